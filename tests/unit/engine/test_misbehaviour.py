"""Gates that raise, hang, lie, scribble or refuse to die."""

import asyncio
import functools

import pytest

from notyet import Allow, Block, Engine, Halt, Ledger, Problem
from support import both_ways, gate, run_async, stop

pytestmark = pytest.mark.rule("A6")


def raising(error):
    def call(event):
        raise error

    return call


def raising_async(error):
    async def call(event):
        raise error

    return call


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@both_ways
@pytest.mark.parametrize("style", [raising, raising_async])
@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ValueError("bad\nnews"), "ValueError: bad news"),
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "CancelledError"),
        (GeneratorExit(), "GeneratorExit"),
        (StopIteration(5), "StopIteration"),
        (Unprintable(), "Unprintable"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_whatever_a_gate_raises_is_a_problem_of_that_gate_alone(run, style, error, detail):
    decision = run(Engine([gate("bad", style(error)), gate("good", Allow())]))
    assert decision.outcome == "failed_open"
    problem = decision.reports[0].answer
    assert problem.kind == "crashed"
    assert detail in problem.detail or "raised StopIteration" in problem.detail


@both_ways
def test_a_keyboard_interrupt_raised_in_a_handlers_thread_stays_there(run):
    decision = run(Engine([gate("bad", raising(KeyboardInterrupt()))]))
    assert decision.reports[0].answer == Problem("crashed", "KeyboardInterrupt")


def test_a_keyboard_interrupt_in_the_loops_own_thread_is_the_users(recwarn):
    engine = Engine([gate("g", raising_async(KeyboardInterrupt()))])
    with pytest.raises(KeyboardInterrupt):
        run_async(engine)


@both_ways
@pytest.mark.parametrize("nonsense", [True, False, "block", 0, {"decision": "block"}, object()])
def test_a_wrong_return_type_is_a_problem_that_says_what_to_return(run, nonsense):
    decision = run(Engine([gate("g", lambda e: nonsense)]))
    problem = decision.reports[0].answer
    assert problem.kind == "bad_answer"
    assert f"it returned {type(nonsense).__name__}; return Allow()" in problem.detail
    assert decision.outcome == "failed_open"


@both_ways
@pytest.mark.rule("A9")
def test_a_gate_that_scribbles_on_the_event_harms_only_itself(run):
    def setting(event):
        event.cwd = "/elsewhere"

    def forcing(event):
        event.__dict__["last_message"] = "forged"
        event.raw["key"] = "forged"

    seen = []
    decision = run(
        Engine(
            [
                gate("setting", setting, priority=2),
                gate("forcing", forcing, priority=1),
                gate("reading", lambda e: seen.append((e.last_message, e.raw)) or None),
            ]
        ),
        stop(last_message="true", raw={"key": "true"}),
    )
    assert decision.reports[0].answer.kind == "crashed"
    assert "read-only" in decision.reports[0].answer.detail
    assert seen == [("true", {"key": "true"})]


class AsyncCallable:
    async def __call__(self, event):
        return Block("async object")


class PlainCallable:
    def __call__(self, event):
        return Block("plain object")


async def _with_reason(reason, event):
    return Block(reason)


class Checker:
    async def method(self, event):
        return Block("method")


@both_ways
@pytest.mark.parametrize(
    ("call", "prompt"),
    [
        (AsyncCallable(), "async object"),
        (PlainCallable(), "plain object"),
        (functools.partial(_with_reason, "partial"), "partial"),
        (Checker().method, "method"),
        (lambda event: _with_reason("returned un-awaited", event), "returned un-awaited"),
    ],
)
def test_every_kind_of_callable_is_called_rightly(run, call, prompt):
    assert run(Engine([gate("g", call)])).verdict.prompt == prompt


class MyBlock(Block):
    """Somebody's own kind of block."""


@both_ways
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (lambda: Halt(None), "problem"),
        (lambda: Block("x", reason=ValueError()), "problem"),
        (lambda: Block("x", None), "problem"),
        (lambda: Allow(note=None), "problem"),
        (lambda: Block("x", extend=2**70), "problem"),
        (lambda: MyBlock("x"), "blocked"),
        (lambda: Block("x" * 3_000_000), "blocked"),
    ],
)
def test_an_odd_verdict_is_a_problem_or_a_verdict_and_never_an_exception(
    run, tmp_path, answer, status
):
    engine = Engine([gate("g", lambda e: answer())], ledger=Ledger(tmp_path / "ledger.db"))
    decision = run(engine)
    assert decision.reports[0].status == status
    if status == "blocked":
        assert len(decision.verdict.prompt) <= 100_000
