"""Observers are told about an ending and cannot change it."""

import asyncio
import threading

import pytest

from notyet import Block, Engine, Halt, Observer, Usage
from support import gate, stop, substop

RUN = {
    "usage": Usage(input=7, output=3, cache_read=2, cache_write=1),
    "turns": 4,
    "tool_calls": 9,
    "duration_ms": 1500.0,
    "model": "anthropic/claude",
    "last_message": "All done",
}


def run(engine, event):
    return asyncio.run(engine.check(event))


def telling(*names, gates=()):
    engine, told = Engine(gates), []
    for name in names:
        engine.on(name, lambda event, ctx, name=name: told.append((name, event, ctx)))
    return engine, told


@pytest.mark.rule("K11")
def test_stop_gets_session_result_usage_counts_duration_and_model():
    engine, told = telling("stop")
    run(engine, stop(**RUN))
    ((_, event, ctx),) = told
    assert event.to_dict() == {
        "sessionId": "s1",
        "result": {"success": True, "text": "All done"},
        "usage": {
            "inputTokens": 7,
            "outputTokens": 3,
            "cacheReadTokens": 2,
            "cacheWriteTokens": 1,
        },
        "turnsCount": 4,
        "toolCallsCount": 9,
        "duration": 1500.0,
        "model": "anthropic/claude",
    }
    assert event.session_id == event.sessionId
    assert (ctx.host, ctx.session_id, ctx.ending, ctx.outcome) == (
        "embedded",
        "s1",
        "done",
        "skipped",
    )


@pytest.mark.rule("K11")
def test_subagent_stop_gets_its_parent_or_an_empty_text():
    engine, told = telling("subagent_stop")
    run(engine, substop(**RUN))
    run(engine, substop(parent_session_id=None, **RUN))
    (_, event, _), (_, orphan, _) = told
    assert event.to_dict() == {
        "parentSessionId": "parent-1",
        "agentId": "a1",
        "agentType": "coder",
        "result": {"success": True, "text": "All done"},
        "usage": {
            "inputTokens": 7,
            "outputTokens": 3,
            "cacheReadTokens": 2,
            "cacheWriteTokens": 1,
        },
        "totalToolCalls": 9,
        "totalDuration": 1500.0,
        "model": "anthropic/claude",
    }
    assert orphan.parent_session_id == ""


@pytest.mark.rule("K11")
@pytest.mark.parametrize("ending", ["error", "timeout", "killed", "interrupted"])
def test_on_failure_usage_is_empty_and_counts_are_zero(ending):
    engine, told = telling("stop", "subagent_stop")
    run(engine, stop(ending=ending, error="why", **RUN))
    run(engine, substop(ending=ending, error="why", **RUN))
    (_, main, _), (_, sub, _) = told
    assert (main.usage.input_tokens, main.turns_count, main.tool_calls_count) == (0, 0, 0)
    assert (main.duration, main.result.success, main.result.error) == (0.0, False, "why")
    assert (sub.usage.output_tokens, sub.total_tool_calls, sub.total_duration) == (0, 0, 0.0)


@pytest.mark.rule("C1", "C5", "K10")
@pytest.mark.parametrize(
    ("answer", "told_of"),
    [(None, ["stop"]), (Halt("enough"), ["stop"]), (Block("go on"), [])],
)
def test_observers_are_told_of_every_outcome_but_a_send_back(answer, told_of):
    engine, told = telling("stop", gates=[gate("g", answer)])
    run(engine, stop())
    assert [name for name, _, _ in told] == told_of


@pytest.mark.rule("C5")
def test_a_redirected_subagent_is_told_about_once_for_its_last_run():
    answers = [Block("1"), Block("2"), None]
    deciding = gate("g", lambda e: answers.pop(0), scopes=("subagent",))
    engine, told = telling("subagent_stop", "subagent_ended", gates=[deciding])
    for n in range(3):
        run(engine, substop(run_id=f"run-{n}"))
    assert [name for name, _, _ in told] == ["subagent_stop", "subagent_ended"]
    assert told[1][1].run_id == "run-2"


@pytest.mark.rule("C2", "C3", "C4")
@pytest.mark.parametrize(
    ("ending", "outcome", "reason"),
    [
        ("done", "ok", "subagent-complete"),
        ("error", "error", "subagent-error"),
        ("timeout", "timeout", "subagent-error"),
        ("killed", "killed", "subagent-killed"),
        ("reset", "reset", "session-reset"),
        ("interrupted", "interrupted", "subagent-interrupted"),
    ],
)
def test_subagent_ended_gets_outcome_and_reason_for_every_ending(ending, outcome, reason):
    engine, told = telling("subagent_ended", gates=[gate("g", scopes=("subagent",))])
    run(engine, substop(ending=ending))
    ((_, event, ctx),) = told
    assert (event.outcome, event.reason) == (outcome, reason)
    assert (event.target_session_key, event.target_kind, ctx.run_id) == (
        "child-1",
        "subagent",
        "run-1",
    )


def test_a_halt_tells_the_observers_why():
    engine, told = telling(
        "subagent_ended", "subagent_stop", gates=[gate("g", Halt("budget"), scopes=("subagent",))]
    )
    run(engine, substop())
    assert told[0][1].stop_reason == "budget"
    assert told[1][1].result.stop_reason == "budget"


@pytest.mark.rule("C8")
def test_main_observers_do_not_fire_for_subagents_and_the_other_way_round():
    engine, told = telling("stop", "subagent_stop", "subagent_ended")
    run(engine, stop())
    run(engine, substop())
    assert [name for name, _, _ in told] == ["stop", "subagent_stop", "subagent_ended"]


@pytest.mark.rule("K10")
def test_observers_run_one_after_another_awaited_before_the_result_is_handed_out():
    order = []
    engine = Engine()

    async def slow(event, ctx):
        await asyncio.sleep(0.05)
        order.append("slow")

    engine.on("stop", slow)
    engine.on("stop", lambda event, ctx: order.append("plain"))
    engine.on("stop", slow)
    run(engine, stop())
    order.append("result")
    assert order == ["slow", "plain", "slow", "result"]
    engine.check_sync(stop())
    assert order[4:] == ["slow", "plain", "slow"]


@pytest.mark.rule("K10")
def test_an_observers_answer_is_ignored_and_its_failure_is_its_own(caplog):
    def fails(event, ctx):
        raise ValueError("broken telemetry")

    told = []
    engine = Engine(
        observers=[
            Observer("stop", lambda event, ctx: Block("not your say")),
            Observer("stop", fails),
            Observer("stop", lambda event, ctx: told.append(event)),
        ]
    )
    decision = run(engine, stop())
    assert decision.verdict != Block("not your say")
    assert len(told) == 1
    assert "crashed: ValueError: broken telemetry (ignored)" in caplog.text


@pytest.mark.rule("K10")
def test_an_observer_that_hangs_is_left_behind(caplog):
    released = threading.Event()
    hangs = Observer("stop", lambda event, ctx: released.wait(30), timeout=0.05)
    told = []
    after = Observer("stop", lambda event, ctx: told.append(1))
    run(Engine(observers=[hangs, after]), stop())
    released.set()
    assert told == [1]
    assert "did not finish within 0.05 s (ignored)" in caplog.text


@pytest.mark.rule("A9", "K10")
def test_an_observer_cannot_change_what_the_next_one_is_told():
    seen = []

    def scribble(event, ctx):
        event.result["text"] = "forged"

    engine = Engine(observers=[Observer("stop", scribble)])
    engine.on("stop", lambda event, ctx: seen.append(event.result["text"]))
    run(engine, stop(result={"text": "true"}))
    assert seen == ["true"]


@pytest.mark.rule("A10")
def test_observers_are_told_although_no_gate_applies():
    engine, told = telling("stop", gates=[gate("g", scopes=("subagent",))])
    run(engine, stop())
    assert len(told) == 1


def test_outcomes_that_do_not_exist_are_refused_and_one_word_stands_for_itself():
    assert Observer("decision", print, outcomes="blocked").outcomes == ("blocked",)
    with pytest.raises(ValueError, match="outcomes are some of passed, blocked"):
        Observer("decision", print, outcomes=("bloked",))
