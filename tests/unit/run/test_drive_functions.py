"""Functions share a thread where they can, and none of them is held up or harmed by another."""

import asyncio
import contextvars
import threading
import time

import pytest

from notyet import Allow, Block, Engine
from notyet.core.verdict import Problem
from notyet.hosts.notyet.hooks import read_return
from notyet.run import functions as threads
from notyet.run.drive import Stage, run_stage
from notyet.run.drive_async import drive
from notyet.run.functions import GateFunction
from support import gate, stop

LONG = 30.0


def stage(*calls, timeout=LONG, ends=None, deadline=None):
    questions = [
        GateFunction(f"f{place}", call, read_return, timeout=timeout)
        for place, call in enumerate(calls)
    ]
    functions = {place: (question, ()) for place, question in enumerate(questions)}
    return Stage(functions, {}, deadline, ends=ends)


def on_a_loop(asked):
    def line():
        return (yield asked)

    return asyncio.run(drive(line()))


both = pytest.mark.parametrize("ask", [run_stage, on_a_loop])


def blocks(_place, report):
    return isinstance(report.answer, Block)


@both
def test_functions_that_wait_for_nothing_share_a_thread(ask):
    seen = []
    ask(stage(*[lambda: seen.append(threading.get_ident())] * 5, ends=blocks))
    assert len(seen) == 5
    assert len(set(seen)) == 1


@both
def test_one_that_waits_for_another_gets_it_asked_beside_it(ask):
    asked = threading.Event()

    def waits():
        return Allow() if asked.wait(LONG) else Block("nobody came")

    reports = ask(stage(waits, waits, asked.set))
    assert [report.answer for report in reports] == [Allow(), Allow(), Allow()]


@both
def test_in_order_each_is_asked_when_the_one_before_has_answered(ask):
    said = []

    def slow():
        time.sleep(0.01)
        said.append("slow")

    ask(stage(slow, lambda: said.append("quick"), ends=blocks))
    assert said == ["slow", "quick"]


@both
def test_in_order_those_behind_the_end_are_not_asked(ask):
    said = []
    reports = ask(stage(lambda: Block("no"), lambda: said.append("asked"), ends=blocks))
    assert [report.answer for report in reports] == [Block("no")]
    assert said == []


@both
def test_in_order_one_that_is_late_is_left_behind_and_the_next_is_asked(ask):
    never = threading.Event()
    try:
        late, after = ask(stage(never.wait, lambda: Block("so"), timeout=0.05, ends=blocks))
    finally:
        never.set()
    assert late.answer == Problem("timeout", "did not finish within 0.05 s")
    assert after.answer == Block("so")


@both
def test_what_a_late_one_says_in_the_end_is_not_taken(ask):
    never, ended = threading.Event(), threading.Event()

    def late():
        never.wait(LONG)
        ended.set()
        return Block("too late")

    asked = stage(late, lambda: None, timeout=0.05, ends=blocks)
    reports = ask(asked)
    never.set()
    assert ended.wait(LONG)
    assert [report.status for report in reports] == ["problem", "allowed"]


@both
def test_what_one_sets_in_its_context_the_next_in_its_thread_does_not_see(ask):
    colour = contextvars.ContextVar("colour", default="plain")
    seen = []

    def sets():
        seen.append(colour.get())
        colour.set("red")

    ask(stage(sets, sets, sets, ends=blocks))
    assert seen == ["plain"] * 3


@both
def test_where_the_hosts_time_is_up_all_that_are_left_have_that_problem(ask):
    never = threading.Event()
    asked = stage(never.wait, lambda: None, deadline=time.monotonic() + 0.05)
    try:
        first, second = ask(asked)
    finally:
        never.set()
    assert first.answer.kind == "deadline"
    assert second.answer == Allow()


@both
def test_without_another_thread_the_rest_could_not_be_asked(ask, monkeypatch):
    never, begun = threading.Event(), threading.Event()
    real, started = threads.run_in_thread, []

    def waits():
        begun.set()
        never.wait()

    def one(job):
        started.append(job)
        if len(started) > 1:
            assert begun.wait(LONG)
            raise RuntimeError("can't start new thread")
        real(job)

    monkeypatch.setattr(threads, "run_in_thread", one)
    try:
        reports = ask(stage(waits, lambda: None, lambda: None, timeout=0.2))
    finally:
        never.set()
    assert [report.answer.kind for report in reports] == ["timeout", "cannot_start", "cannot_start"]


def test_an_async_gate_that_waits_for_nothing_takes_no_turn_of_the_loop():
    turns = []

    async def main():
        loop = asyncio.get_running_loop()

        async def quick(event):
            assert asyncio.current_task().get_name() == "quick"

        engine = Engine([gate("quick", quick), gate("second", quick, step=1, observe=True)])
        loop.call_soon(turns.append, "turn")
        decision = await engine.decide(stop())
        assert turns == []
        return decision

    assert asyncio.run(main()).reports[0].status == "allowed"


def test_the_task_of_an_async_gate_that_waits_for_nothing_ends_as_any_task_does():
    tasks, heard = {}, []

    async def main():
        async def quick(event):
            tasks["quick"] = asyncio.current_task()

        async def heard_of(event):
            tasks["heard of"] = asyncio.current_task()
            asyncio.current_task().add_done_callback(heard.append)

        async def cancels_itself(event):
            tasks["cancels itself"] = asyncio.current_task()
            asyncio.current_task().cancel()

        gates = [gate("a", quick), gate("b", heard_of), gate("c", cancels_itself)]
        decision = await Engine(gates).decide(stop())
        await asyncio.sleep(0)
        assert not asyncio.all_tasks() - {asyncio.current_task()}
        return decision

    assert asyncio.run(main()).outcome == "passed"
    assert {name: (task.done(), task.cancelled()) for name, task in tasks.items()} == {
        "quick": (True, False),
        "heard of": (True, False),
        "cancels itself": (True, True),
    }
    assert heard == [tasks["heard of"]]


def test_an_async_gate_that_cancels_itself_and_then_waits_has_crashed():
    async def waits(event):
        asyncio.current_task().cancel()
        await asyncio.sleep(LONG)

    decision = asyncio.run(Engine([gate("waits", waits)]).decide(stop()))
    assert str(decision.reports[0].answer) == "crashed: CancelledError"


def test_an_async_gate_has_a_task_of_its_own_that_goes_on_where_it_waits():
    async def main():
        mine = asyncio.current_task()

        async def waits(event):
            task = asyncio.current_task()
            assert task is not mine
            async with asyncio.timeout(LONG):
                await asyncio.sleep(0)
            assert asyncio.current_task() is task
            return Block(task.get_name())

        decision = await Engine([gate("waits", waits)]).decide(stop())
        assert asyncio.current_task() is mine
        return decision

    assert asyncio.run(main()).verdict.reason == "waits"


def test_without_a_thread_one_that_was_late_already_delays_no_other(monkeypatch):
    run_stage(stage(lambda: None))  # the first thread is there, and idle
    left = threading.Event()
    started = []
    start = threads.run_in_thread

    def scarce(job):
        started.append(job)
        if len(started) > 1:
            raise RuntimeError("can't start new thread")
        start(job)

    monkeypatch.setattr(threads, "run_in_thread", scarce)
    asked = stage(lambda: left.wait(LONG), lambda: None, lambda: None, lambda: None)
    question, arguments = asked.functions[2]
    asked.functions[2] = (GateFunction("f2", question.call, read_return, timeout=0.0), arguments)
    try:
        asked.deadline = time.monotonic() + 1.0  # for the one that holds the only thread
        reports = run_stage(asked)
    finally:
        left.set()
    kinds = [report.answer.kind for report in reports]
    assert kinds == ["deadline", "cannot_start", "timeout", "cannot_start"]
