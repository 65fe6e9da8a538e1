"""Checks that are cancelled, interrupted or shut down, and gates that cancel what is not theirs."""

import asyncio
import gc
import os
import signal
import sys
import threading

import pytest

from notyet import Allow, Block, Engine, Ledger
from notyet.run import functions as drive_functions
from support import both_ways, gate, recorded, stop, wait_for


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
def test_an_async_gate_that_swallows_its_cancellation_delays_nothing(alone):
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

    def slow_begin(event, patience):
        result = begin(event, patience)
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


def test_ctrl_c_while_a_gate_is_asked_gives_the_stop_up_and_leaves_gating_on(tmp_path):
    released = threading.Event()

    def is_awaited():
        return sys._current_frames()[threading.main_thread().ident].f_code is awaiting

    def interrupt(event):
        wait_for(is_awaited)  # else it may come in the midst of anything, even of a `__del__`
        os.kill(os.getpid(), signal.SIGINT)
        # One that comes just before the wait begins is not heard until that ends.
        while not released.wait(0.2):
            os.kill(os.getpid(), signal.SIGINT)

    def once(number, _frame):
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    awaiting = drive_functions.run_functions.__code__
    gc.collect()
    ledger = Ledger(tmp_path / "ledger.db")
    before = signal.signal(signal.SIGINT, once)
    try:
        with pytest.raises(KeyboardInterrupt):
            Engine([gate("g", interrupt)], ledger=ledger).check_sync(stop())
    finally:
        released.set()
        signal.signal(signal.SIGINT, before)
    assert recorded(ledger) == [("skipped", "cancelled")]
    assert Engine([gate("g", Block("x"))], ledger=ledger).check_sync(stop()).outcome == "blocked"


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
