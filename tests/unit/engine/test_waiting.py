"""Gates that take too long, are cancelled, or meet the limits of threads and loops."""

import asyncio
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from notyet import Allow, Block, Engine, Problem
from notyet.run import functions as threads
from support import both_ways, gate, run_async, run_sync, stop, wait_for

pytestmark = pytest.mark.rule("A6")


def hanging(released):
    return lambda event: released.wait(30) and Block("too late")


@both_ways
@pytest.mark.rule("A9")
def test_a_sync_gate_that_hangs_is_left_behind_and_its_late_answer_dropped(run):
    released = threading.Event()
    engine = Engine([gate("slow", hanging(released), timeout=0.1), gate("good", Allow())])
    decision = run(engine)
    assert decision.reports[0].answer == Problem("timeout", "did not finish within 0.1 s")
    assert decision.outcome == "failed_open"
    released.set()
    assert run(Engine([gate("g", Allow())])).outcome == "passed"


@both_ways
def test_a_gate_that_hangs_may_block_if_it_is_told_to(run):
    released = threading.Event()
    slow = gate("slow", hanging(released), timeout=0.1, if_broken="block")
    assert run(Engine([slow])).outcome == "blocked"
    released.set()


def test_each_gate_of_a_stage_has_its_own_deadline():
    async def slow(event):
        await asyncio.sleep(30)

    async def quick(event):
        await asyncio.sleep(0.15)

    engine = Engine(
        [
            gate("first", slow, timeout=0.05),
            gate("second", slow, timeout=0.1),
            gate("quick", quick, timeout=None),
        ]
    )
    for run in (run_sync, run_async):
        reports = run(engine).reports
        assert [r.status for r in reports] == ["problem", "problem", "allowed"]


@both_ways
@pytest.mark.parametrize("caught", [True, False])
def test_gates_may_use_timeouts_of_their_own(run, caught):
    async def impatient(event):
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            if not caught:
                raise
        await asyncio.sleep(0)
        return Block("after a timeout")

    decision = run(Engine([gate("g", impatient, priority=1), gate("fine", Allow())]))
    if caught:
        assert decision.outcome == "blocked"
    else:
        assert decision.reports[0].answer == Problem("crashed", "TimeoutError")


@both_ways
def test_what_a_gate_sets_in_its_context_stays_there(run):
    import contextvars

    colour = contextvars.ContextVar("colour", default="plain")

    async def sets(event):
        colour.set("red")
        await asyncio.sleep(0)
        assert colour.get() == "red"

    assert run(Engine([gate("g", sets)])).outcome == "passed"
    assert colour.get() == "plain"


def test_a_hung_gate_cannot_hold_up_the_process_at_exit():
    script = textwrap.dedent(
        """
        import time
        from notyet import Engine, Function, Gate, StopEvent
        hang = Gate(name="hang", check=Function(lambda e: time.sleep(3600)), timeout=0.1)
        print(Engine([hang]).check_sync(StopEvent(session_id="s")).outcome)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.returncode) == ("failed_open\n", 0)


def test_threads_are_used_again_and_idle_ones_do_not_pile_up():
    seen = set()
    engine = Engine([gate("g", lambda e: seen.add(threading.get_ident()))])
    for _ in range(50):
        engine.check_sync(stop())
        wait_for(lambda: threads._idle)  # it has answered a moment before it is free again
    assert len(seen) < 25
    wide = Engine(
        [gate(f"g{n}", lambda e: time.sleep(0.05)) for n in range(threads._MOST_IDLE + 8)]
    )
    wide.check_sync(stop())
    assert len(threads._idle) <= threads._MOST_IDLE


def test_gates_work_in_a_forked_child():
    script = textwrap.dedent(
        """
        import os
        from notyet import Allow, Engine, StopEvent
        engine = Engine([lambda e: Allow()])
        engine.check_sync(StopEvent(session_id="s"))
        child = os.fork()
        if child == 0:
            os._exit(0 if engine.check_sync(StopEvent(session_id="s")).outcome == "passed" else 1)
        print(os.waitpid(child, 0)[1])
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@both_ways
def test_gates_see_the_context_variables_of_the_caller(run):
    import contextvars

    user = contextvars.ContextVar("user")
    user.set("ada")
    seen = []
    run(Engine([gate("g", lambda e: seen.append(user.get()))]))
    assert seen == ["ada"]
