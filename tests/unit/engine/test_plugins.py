"""Handlers as OpenClaw's plugins write them: `subagent_stopping` decides, in sequence."""

import asyncio
import json

import pytest

from notyet import Allow, Block, Engine, Halt, Limits, Usage
from support import gate, stop, substop

FULL = {
    "run_id": "run-1",
    "session_id": "child-1",
    "parent_session_id": "parent-1",
    "agent_id": "a1",
    "task": "write the parser",
    "label": "test-runner",
    "end_reason": "subagent-complete",
    "error": None,
    "last_message": "All done",
    "usage": Usage(input=10, output=5, cache_read=3, cache_write=2),
    "duration_ms": 1234.5,
    "tools_used": ("bash", "edit"),
}


def run(engine, event=None):
    return asyncio.run(engine.check(event or substop()))


def engine_with(*handlers, name="subagent_stopping", **options):
    engine = Engine(**options)
    for handler in handlers:
        engine.on(name, handler)
    return engine


@pytest.mark.rule("K3")
def test_a_handler_sees_every_field_in_snake_and_in_camel_case():
    seen = []
    run(engine_with(lambda event, ctx: seen.append((event, ctx))), substop(**FULL))
    ((event, ctx),) = seen
    expected = {
        "runId": "run-1",
        "childSessionKey": "child-1",
        "requesterSessionKey": "parent-1",
        "agentId": "a1",
        "task": "write the parser",
        "label": "test-runner",
        "outcome": "ok",
        "reason": "subagent-complete",
        "lastAssistantMessage": "All done",
        "usage": {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 2, "total": 20},
        "durationMs": 1234.5,
        "toolsUsed": ("bash", "edit"),
        "steerCount": 0,
        "maxSteers": 3,
    }
    assert event.to_dict() == expected
    assert json.loads(json.dumps(event.to_dict()))["toolsUsed"] == ["bash", "edit"]
    assert event.last_assistant_message == event.lastAssistantMessage == "All done"
    assert event.usage.cache_read == event.usage.cacheRead == 3
    assert event.error is None
    assert ctx.to_dict() == {
        "agentId": "a1",
        "runId": "run-1",
        "childSessionKey": "child-1",
        "requesterSessionKey": "parent-1",
    }
    assert ctx.child_session_key == ctx.childSessionKey
    with pytest.raises(AttributeError, match="has no field 'lastMessage'; it has run_id"):
        _ = event.lastMessage


@pytest.mark.rule("K3")
def test_what_is_not_known_is_none_or_empty():
    seen = []
    bare = substop(run_id=None, agent_id=None, agent_type=None, parent_session_id=None)
    run(engine_with(lambda event, ctx: seen.append((event, ctx))), bare)
    ((event, ctx),) = seen
    assert (event.usage, event.task, event.tools_used) == (None, None, ())
    assert (ctx.run_id, ctx.agent_id, ctx.requester_session_key) == ("", "", "child-1")


@pytest.mark.rule("K3")
@pytest.mark.parametrize(
    ("ending", "outcome", "reason"),
    [
        ("done", "ok", "subagent-complete"),
        ("error", "error", "subagent-error"),
        ("timeout", "timeout", "subagent-error"),
    ],
)
def test_the_outcome_is_ok_error_or_timeout(ending, outcome, reason):
    seen = []
    handler = lambda event, ctx: seen.append((event.outcome, event.reason, event.error))
    run(engine_with(handler), substop(ending=ending, error="why"))
    assert seen == [(outcome, reason, "why")]


@pytest.mark.parametrize(
    ("returned", "verdict"),
    [
        (None, Allow()),
        ({}, Allow()),
        ({"allow": True}, Allow()),
        ({"allow": True, "prompt": "ignored"}, Allow()),
        ({"allow": False, "prompt": "go on"}, Block("go on", "go on")),
        ({"allow": False, "prompt": "go on", "reason": "why"}, Block("go on", "why")),
        ({"allow": False, "prompt": "p", "extend_max_steers": 5}, Block("p", "p", 5)),
        ({"allow": False, "prompt": "p", "extendMaxSteers": 5}, Block("p", "p", 5)),
        (Block("native"), Block("native", "native")),
        (Halt("enough"), Halt("enough")),
        (Allow(), Allow()),
    ],
)
@pytest.mark.parametrize("style", ["plain", "async"])
def test_a_handler_may_return_a_dict_or_a_verdict(returned, verdict, style):
    async def later(event, ctx):
        return returned

    handler = later if style == "async" else lambda event, ctx: returned
    assert run(engine_with(handler)).verdict == verdict


@pytest.mark.rule("A1", "A2")
def test_handlers_run_by_priority_then_registration_and_the_first_block_wins():
    asked = []

    def handler(name, returned=None):
        return lambda event, ctx: asked.append(name) or returned

    engine = Engine()
    engine.on("subagent_stopping", handler("low"), priority=-5)
    engine.on("subagent_stopping", handler("first tie"))
    engine.on("subagent_stopping", handler("blocks", {"allow": False, "prompt": "p"}))
    engine.on("subagent_stopping", handler("second tie", {"allow": False, "prompt": "no"}))
    engine.on("subagent_stopping", handler("high"), priority=100)
    decision = run(engine)
    assert asked == ["high", "first tie", "blocks"]
    assert decision.verdict == Block("p", "p")
    assert [r.status for r in decision.reports].count("not_asked") == 2


@pytest.mark.rule("C8")
def test_stopping_is_the_same_for_main_agents_and_each_keeps_to_its_scope():
    asked = []
    engine = engine_with(lambda e, c: asked.append("sub"))
    engine.on("stopping", lambda e, c: asked.append("main") or {"allow": False, "prompt": "p"})
    assert run(engine, stop()).outcome == "blocked"
    assert run(engine, substop()).outcome == "passed"
    assert asked == ["main", "sub"]


@pytest.mark.rule("A9")
def test_a_handler_cannot_change_what_the_next_one_sees():
    def scribble(event, ctx):
        event.__dict__["label"] = "forged"

    seen = []
    engine = engine_with(scribble, lambda e, c: seen.append(e.label))
    run(engine, substop(label="true"))
    assert seen == ["true"]


@pytest.mark.parametrize(
    ("returned", "warning"),
    [
        ({"allow": True, "extendMaxSteers": "5"}, "extend_max_steers is a whole number, not '5'"),
        ({"extend_max_steers": True}, "extend_max_steers is a whole number, not True"),
        ({"extend_max_steers": -2}, "extend_max_steers is a whole number, not -2"),
        ({"alow": False}, "unknown key 'alow' in its answer; known: allow, extend_max_steers"),
    ],
)
def test_a_slip_in_an_answer_is_warned_about_and_harmless(returned, warning, caplog):
    decision = run(engine_with(lambda e, c: returned))
    assert decision.outcome == "passed"
    assert warning in caplog.text


@pytest.mark.parametrize("returned", ["block", True, 7, ["allow"]])
def test_any_other_answer_is_a_problem(returned):
    decision = run(engine_with(lambda e, c: returned))
    assert decision.outcome == "failed_open"
    assert "a dict like" in decision.reports[0].answer.detail


def test_only_known_events_can_be_handled():
    with pytest.raises(ValueError, match="unknown event 'subagent_stoping'; choose one of sub"):
        Engine().on("subagent_stoping", lambda e, c: None)


def test_a_handler_must_take_event_and_context():
    with pytest.raises(TypeError, match=r"called with \(event, ctx\)"):
        Engine().on("subagent_stopping", lambda event: None)


# --- The edge cases of OpenClaw's specification, section 4.5, one by one ------------------


@pytest.mark.rule("B1")
def test_edge_case_steer_count_at_max_steers(caplog):
    asked = []
    handler = lambda e, c: asked.append(e.steer_count) or {"allow": False, "prompt": "p"}
    engine = engine_with(handler, limits=Limits(max_blocks=2))
    outcomes = [run(engine).outcome for _ in range(3)]
    assert outcomes == ["blocked", "blocked", "capped"]
    assert asked == [0, 1]
    assert "limit reached: 2 of 2 send-backs used (max_blocks) in run run-1" in caplog.text
    assert "of session child-1; the agent is not sent back again; not run:" in caplog.text


@pytest.mark.rule("A6")
def test_edge_case_hook_throws_an_error(caplog):
    def throws(event, ctx):
        raise RuntimeError("plugin bug")

    asked = []
    decision = run(engine_with(throws, lambda e, c: asked.append(1)))
    assert decision.outcome == "failed_open"
    assert asked == [1]
    assert "crashed: RuntimeError: plugin bug (if_broken = allow)" in caplog.text


@pytest.mark.rule("A5")
@pytest.mark.parametrize("answer", [{"allow": False}, {"allow": False, "prompt": None}])
def test_edge_case_allow_false_without_a_prompt(answer, caplog):
    assert run(engine_with(lambda e, c: answer)).outcome == "passed"
    assert "allow=False with no prompt; treated as allow=True" in caplog.text


@pytest.mark.rule("A5")
@pytest.mark.parametrize("prompt", ["", "  \n"])
def test_edge_case_allow_false_with_an_empty_prompt(prompt, caplog):
    assert run(engine_with(lambda e, c: {"allow": False, "prompt": prompt})).outcome == "passed"
    assert "allow=False with an empty prompt; treated as allow=True" in caplog.text


@pytest.mark.rule("C3")
@pytest.mark.parametrize("ending", ["killed", "reset"])
def test_edge_case_subagent_was_killed_or_reset(ending):
    asked, told = [], []
    engine = engine_with(lambda e, c: asked.append(e))
    engine.on("subagent_ended", lambda e, c: told.append(e.outcome))
    run(engine, substop(ending=ending))
    assert (asked, told) == ([], [ending])


@pytest.mark.rule("C2")
def test_edge_case_subagent_timed_out():
    shorter = {"allow": False, "prompt": "Do only the first file."}
    engine = engine_with(lambda e, c: shorter if e.outcome == "timeout" else None)
    assert run(engine, substop(ending="timeout")).verdict.prompt == "Do only the first file."


@pytest.mark.rule("C2")
def test_other_gates_are_not_asked_after_an_error_where_plugin_handlers_are():
    engine = engine_with(lambda e, c: None)
    engine._add_gate(gate("native", Block("x"), scopes=("subagent",)))
    decision = run(engine, substop(ending="error"))
    assert [r.gate.split("[")[0] for r in decision.reports] == ["subagent_stopping"]
