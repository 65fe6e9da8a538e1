"""Gates that take too long, are cancelled, or meet the limits of threads and loops."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from notyet import Allow, Block, Engine, Ledger, Problem
from notyet.checks import threads
from support import both_ways, gate, recorded, run_async, run_sync, stop, wait_for

pytestmark = pytest.mark.rule("A6")


def hanging(released):
    return lambda event: released.wait(30) and Block("too late")


@both_ways
@pytest.mark.rule("A9")
def test_a_sync_gate_that_hangs_is_left_behind_and_its_late_answer_dropped(run):
    released = threading.Event()
    engine = Engine([gate("slow", hanging(released), timeout=0.1), gate("good", Allow())])
    decision = run(engine)
    assert decision.reports[0].answer == Problem("timeout", "no answer after 0.1 s")
    assert decision.outcome == "failed_open"
    released.set()
    assert run(Engine([gate("g", Allow())])).outcome == "passed"


@both_ways
def test_a_gate_that_hangs_may_block_if_it_is_told_to(run):
    released = threading.Event()
    slow = gate("slow", hanging(released), timeout=0.1, if_broken="block")
    assert run(Engine([slow])).outcome == "blocked"
    released.set()


@both_ways
@pytest.mark.parametrize("alone", [True, False])
def test_an_async_gate_that_is_too_slow_is_cancelled(run, alone):
    cancelled = threading.Event()

    async def slow(event):
        try:
            await asyncio.sleep(30)
        finally:
            cancelled.set()

    gates = [gate("slow", slow, timeout=0.1)]
    if not alone:
        gates.append(gate("good", Allow()))
    decision = run(Engine(gates))
    assert cancelled.wait(10)
    assert decision.reports[0].answer.kind == "timeout"


@pytest.mark.parametrize("alone", [True, False])
def test_an_async_gate_that_swallows_its_cancellation_holds_nobody_up(alone):
    said = []

    async def check():
        release = asyncio.Event()

        async def stubborn(event):
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    said.append("cancelled")
            said.append("finished")
            return Block("too late")

        gates = [gate("stubborn", stubborn, timeout=0.05, priority=1)]
        if not alone:
            gates.append(gate("beside", Allow(), priority=1))
        gates.append(gate("after", Allow()))
        decision = await Engine(gates).check(stop())
        assert said == ["cancelled"]
        release.set()
        await asyncio.sleep(0.01)
        return decision

    decision = asyncio.run(check())
    assert decision.outcome == "failed_open"
    assert [r.status for r in decision.reports][-1] == "allowed"
    assert said[-1] == "finished"


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


def test_a_gate_that_cancels_the_task_it_runs_in_harms_only_itself():
    async def suicidal(event):
        asyncio.current_task().cancel()

    async def fine(event):
        await asyncio.sleep(0.01)

    engine = Engine([gate("bad", suicidal, priority=1), gate("fine", fine)])
    assert run_async(engine).outcome == "passed"


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
def test_gates_may_use_task_groups_of_their_own(run):
    async def fails():
        raise ValueError("in a child")

    async def grouping(event):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                group.create_task(asyncio.sleep(10))
        except* ValueError:
            pass
        return Block("after a group")

    decision = run(Engine([gate("g", grouping, priority=1), gate("fine", Allow())]))
    assert decision.outcome == "blocked"


def test_a_gate_that_catches_its_cancellation_cannot_keep_a_cancelled_check_alive():
    asked = []

    async def main():
        release = asyncio.Event()

        async def catching(event):
            asked.append("asked")
            try:
                await release.wait()
            except asyncio.CancelledError:
                asked.append("caught")
            return Allow()

        task = asyncio.create_task(Engine([gate("g", catching)]).check(stop()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert asked == ["asked", "caught"]


def test_a_check_that_is_cancelled_in_the_moment_its_gate_is_late_stays_cancelled():
    async def main():
        async def slow(event):
            await asyncio.sleep(10)

        task = asyncio.create_task(Engine([gate("g", slow, timeout=0.05)]).check(stop()))
        await asyncio.sleep(0.02)
        loop = asyncio.get_running_loop()
        loop.call_later(0.02, time.sleep, 0.05)  # so that alarm and cancellation fall together
        loop.call_later(0.03, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


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


@pytest.mark.rule("C4", "C9")
@pytest.mark.parametrize("kind", ["alone", "together", "thread"])
def test_cancelling_a_check_cancels_its_gates_and_says_so_in_the_ledger(tmp_path, kind):
    asked, cancelled = threading.Event(), threading.Event()

    async def slow(event):
        asked.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    released = threading.Event()
    answer = (lambda e: asked.set() or released.wait(30)) if kind == "thread" else slow
    gates = [gate("slow", answer)]
    if kind == "together":
        gates.append(gate("beside", Allow()))
    ledger = Ledger(tmp_path / "ledger.db")

    async def main():
        task = asyncio.create_task(Engine(gates, ledger=ledger).check(stop()))
        while not asked.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    asyncio.run(main())
    released.set()
    if kind != "thread":
        assert cancelled.is_set()
    wait_for(lambda: recorded(ledger) == [("skipped", "cancelled")])
    assert ledger.begin(stop()).history.blocks == 0


@pytest.mark.parametrize("loop", ["open", "closed"])
def test_a_check_cancelled_while_the_ledger_is_opened_leaves_no_stop_asking(tmp_path, loop):
    ledger = Ledger(tmp_path / "ledger.db")
    begin = ledger.begin
    begun, release = threading.Event(), threading.Event()

    def slow_begin(event):
        result = begin(event)
        begun.set()
        release.wait(30)
        return result

    ledger.begin = slow_begin

    async def main():
        task = asyncio.create_task(Engine([gate("g", Block("x"))], ledger=ledger).check(stop()))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if loop == "open":
            release.set()
            await asyncio.to_thread(wait_for, given_up)

    def given_up():
        return recorded(ledger) == [("skipped", "cancelled")]

    asyncio.run(main())
    release.set()
    wait_for(given_up)


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
        time.sleep(0.001)
    assert len(seen) < 25
    wide = Engine(
        [gate(f"g{n}", lambda e: time.sleep(0.05)) for n in range(threads._MOST_IDLE + 8)]
    )
    wide.check_sync(stop())
    assert len(threads._idle) <= threads._MOST_IDLE


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
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


def test_a_gate_whose_loop_was_taken_away_is_cleared_away_quietly():
    from notyet.checks.function import Question, guarded_async
    from notyet.dialects.native import read_reply

    async def slow(event):
        await asyncio.Future()

    async def ask():
        asking = guarded_async(Question("g", slow, read_reply, timeout=None), (stop(),), print, 0)
        task = asyncio.ensure_future(asking)
        await asyncio.sleep(0)
        return asking, task

    loop = asyncio.new_event_loop()
    asking, task = loop.run_until_complete(ask())
    asking.close()
    task._log_destroy_pending = False
    loop.close()


@both_ways
def test_gates_see_the_context_variables_of_the_caller(run):
    import contextvars

    user = contextvars.ContextVar("user")
    user.set("ada")
    seen = []
    run(Engine([gate("g", lambda e: seen.append(user.get()))]))
    assert seen == ["ada"]


@both_ways
def test_where_no_thread_can_be_started_a_gate_could_not_be_asked(run, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_idle", [])
    monkeypatch.setattr(threading.Thread, "start", refuse)
    decision = run(Engine([gate("g", Block("x"))]))
    assert decision.reports[0].answer == Problem("cannot_start", "can't start new thread")
    assert decision.outcome == "failed_open"


def test_every_gate_of_a_stage_is_cancelled_with_its_check():
    cancelled = []

    async def main():
        async def slow(event):
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.append(1)
                raise

        task = asyncio.create_task(Engine([gate("a", slow), gate("b", slow)]).check(stop()))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
        assert cancelled == [1, 1]  # by us, and not when the loop is closed

    asyncio.run(main())


def test_no_timer_is_left_behind():
    async def main():
        async def quick(event):
            await asyncio.sleep(0)

        await Engine([gate("a", quick), gate("b", quick)]).check(stop())
        return [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]

    assert asyncio.run(main()) == []


def test_ctrl_c_while_a_gate_is_asked_gives_the_stop_up_and_leaves_gating_on(tmp_path):
    def interrupt(event):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)

    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(KeyboardInterrupt):
        Engine([gate("g", interrupt)], ledger=ledger).check_sync(stop())
    assert recorded(ledger) == [("skipped", "cancelled")]
    assert Engine([gate("g", Block("x"))], ledger=ledger).check_sync(stop()).outcome == "blocked"


def test_an_interrupt_while_gates_are_started_leaves_gating_on(monkeypatch):
    from notyet.checks import drive, drive_async

    def interrupted(job):
        raise KeyboardInterrupt

    engine = Engine([gate("g", Block("x"))])
    with monkeypatch.context() as patch:
        patch.setattr(threads, "run_in_thread", interrupted)
        patch.setattr(drive_async, "run_in_thread", interrupted)
        assert drive
        with pytest.raises(KeyboardInterrupt):
            engine.check_sync(stop())
    assert engine.check_sync(stop(last_message="again")).outcome == "blocked"


def test_one_handlers_context_and_cancellations_concern_no_other():
    import contextvars

    colour = contextvars.ContextVar("colour", default="plain")
    seen = []

    async def first(event, ctx):
        colour.set("red")
        asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)

    async def second(event, ctx):
        await asyncio.sleep(0.01)
        seen.append(colour.get())

    engine = Engine()
    engine.on("stopping", first)
    engine.on("stopping", second)
    assert asyncio.run(engine.check(stop())).outcome == "passed"
    assert seen == ["plain"]


def test_a_check_works_without_a_free_thread_for_its_ledger(tmp_path, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    async def blocking(event):
        return Block("x")

    monkeypatch.setattr(threads, "_idle", [])
    monkeypatch.setattr(threading.Thread, "start", refuse)
    ledger = Ledger(tmp_path / "ledger.db")
    engine = Engine([gate("g", blocking)], ledger=ledger)
    assert asyncio.run(engine.check(stop())).outcome == "blocked"
    assert recorded(ledger) == [("blocked", "g")]


def test_shutting_a_loop_down_in_the_midst_of_a_check_is_quiet(caplog):
    async def main():
        async def slow(event):
            await asyncio.sleep(30)

        engine = Engine([gate("g", slow, priority=1), gate("h", slow)])
        tasks = [asyncio.create_task(engine.check(stop(session_id=f"s{n}"))) for n in range(10)]
        await asyncio.sleep(0.01)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(main())
    assert not [message for message in caplog.messages if "never retrieved" in message]
