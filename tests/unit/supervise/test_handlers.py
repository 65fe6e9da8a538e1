"""Plugin handlers of supervised subagents: what they see, and each row of their edge cases."""

import pytest

from notyet import Usage
from notyet.core.session import Turn
from supervised import Agent

FIRST = Turn(
    text="done",
    usage=Usage(input=10, output=20, cache_read=30, cache_write=40),
    tools=("bash", "edit"),
    tool_calls=3,
    turns=2,
    model="acme/large",
    duration_ms=1200.0,
)
SECOND = Turn(text="tests pass", usage=Usage(input=1, output=2, total=9), duration_ms=5.0)
SNAKE = {
    "run_id": "runId",
    "child_session_key": "childSessionKey",
    "requester_session_key": "requesterSessionKey",
    "agent_id": "agentId",
    "task": "task",
    "label": "label",
    "outcome": "outcome",
    "reason": "reason",
    "error": "error",
    "last_assistant_message": "lastAssistantMessage",
    "usage": "usage",
    "duration_ms": "durationMs",
    "tools_used": "toolsUsed",
    "steer_count": "steerCount",
    "max_steers": "maxSteers",
}


@pytest.mark.rule("K3", "B5")
def test_a_handler_sees_every_field_under_both_names_and_figures_of_this_run_only(world):
    seen = []

    def handler(event, ctx):
        seen.append((event, ctx))
        return {"allow": False, "prompt": "Run the tests."} if event.steer_count == 0 else None

    world.engine.on("subagent_stopping", handler)
    parent = world.launch(Agent(Agent.WAIT, id="parent-1"))
    world.until(lambda: world.view(parent).session_id)
    agent = Agent(FIRST, SECOND, id="child-1")
    handle = world.spawn(agent, "Mend it.", parent=parent, label="mender", agent_type="coder")
    world.result(handle)
    (first, ctx), (second, _) = seen
    for snake, camel in SNAKE.items():
        assert getattr(first, snake) == getattr(first, camel)
    assert first.runId == ctx.runId == ctx.run_id == f"{handle.task_id}.1"
    assert first.childSessionKey == ctx.childSessionKey == ctx.child_session_key == "child-1"
    assert first.requesterSessionKey == ctx.requesterSessionKey == "parent-1"
    assert ctx.requester_session_key == "parent-1"
    assert first.agentId == ctx.agentId == ctx.agent_id == handle.task_id
    assert (first.task, first.label) == ("Mend it.", "mender")
    assert (first.outcome, first.reason, first.error) == ("ok", "subagent-complete", None)
    assert first.lastAssistantMessage == "done"
    assert (first.durationMs, first.toolsUsed) == (1200.0, ("bash", "edit"))
    usage = first.usage
    assert (usage.input, usage.output, usage.total) == (10, 20, 100)
    assert (usage.cacheRead, usage.cache_read, usage.cacheWrite) == (30, 30, 40)
    assert (first.steerCount, first.maxSteers) == (0, 3)
    assert second.runId == f"{handle.task_id}.2"
    assert (second.usage.input, second.usage.output, second.usage.total) == (1, 2, 9)
    assert (second.durationMs, second.toolsUsed) == (5.0, ())
    assert (second.steerCount, second.lastAssistantMessage) == (1, "tests pass")
    assert (second.task, second.label) == ("Mend it.", "mender")
    world.do(world.supervisor.kill(parent))


@pytest.mark.rule("K3")
@pytest.mark.parametrize(
    ("turn", "outcome", "error"),
    [
        (Turn(text="yes"), "ok", None),
        (Turn(text="", stop_reason="error", error="boom"), "error", "boom"),
        (Agent.WAIT, "timeout", "no end after 0.05 s"),
    ],
)
def test_a_handler_is_told_how_the_run_ended(world, turn, outcome, error):
    seen = []
    world.engine.on("subagent_stopping", lambda event, ctx: seen.append(event))
    world.spawned(Agent(turn), timeout=0.05 if outcome == "timeout" else None)
    assert [(event.outcome, event.error) for event in seen] == [(outcome, error)]


@pytest.mark.rule("K3")
def test_a_foreign_subagent_names_the_session_that_started_it(world):
    seen = []
    world.engine.on("subagent_stopping", lambda event, ctx: seen.append(event))
    world.spawned(Agent("done", id="c1"), parent="session-of-a-stranger")
    world.spawned(Agent("done", id="c2"))
    assert [event.requesterSessionKey for event in seen] == ["session-of-a-stranger", "c2"]


@pytest.mark.rule("K2")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"allow": False}, "allow=False with no prompt; treated as allow=True"),
        ({"allow": False, "prompt": ""}, "allow=False with an empty prompt"),
        ({"allow": False, "prompt": " \n"}, "allow=False with an empty prompt"),
    ],
)
def test_a_block_without_words_is_an_allow_with_a_warning(world, answer, words):
    world.engine.on("subagent_stopping", lambda event, ctx: answer)
    agent = Agent("done")
    result = world.spawned(agent)
    assert (result.outcome, agent.got) == ("passed", ["do it"])
    assert any(words in said for said in world.warnings)


def raises(event, ctx):
    raise RuntimeError("handler down")


@pytest.mark.rule("K2")
def test_a_handler_that_raises_lets_the_agent_go_and_is_logged(world):
    world.engine.on("subagent_stopping", raises)
    result = world.spawned(Agent("done"))
    assert (result.ending, result.outcome) == ("done", "failed_open")
    assert any("RuntimeError: handler down" in said for said in world.warnings)


@pytest.mark.rule("K2")
@pytest.mark.parametrize("answer", [None, {}, {"allow": True}, {"allow": True, "prompt": "x"}])
def test_a_handler_that_allows_lets_the_agent_go(world, answer):
    world.engine.on("subagent_stopping", lambda event, ctx: answer)
    agent = Agent("done")
    assert world.spawned(agent).outcome == "passed"
    assert agent.got == ["do it"]


@pytest.mark.rule("K2")
def test_the_first_block_wins_and_later_handlers_are_not_asked(world):
    order = []

    def named(name, answer):
        def handler(event, ctx):
            order.append(name)
            return answer if event.steerCount == 0 else None

        return handler

    block = {"allow": False, "prompt": "of the second", "reason": "why"}
    world.engine.on("subagent_stopping", named("low", {"allow": True}), priority=-1)
    world.engine.on("subagent_stopping", named("second", block), priority=5)
    world.engine.on("subagent_stopping", named("first", None), priority=5)
    world.engine.on("subagent_stopping", named("high", None), priority=100)
    agent = Agent("done", "good")
    world.spawned(agent)
    assert order[:2] == ["high", "second"]
    assert order[2:] == ["high", "second", "first", "low"]
    assert agent.got[1] == "of the second"


@pytest.mark.rule("K12")
def test_the_prompt_of_a_plugin_goes_to_the_subagent_as_it_is(world):
    world.block(1, "Run the tests.")
    agent = Agent()
    world.spawned(agent)
    assert agent.got == ["do it", "Run the tests."]


@pytest.mark.rule("K2", "A10")
def test_without_handlers_a_subagent_just_ends_and_nothing_is_written_about_its_stop(world):
    agent = Agent("done")
    result = world.spawned(agent)
    assert (result.ending, result.outcome, result.stop_reason) == ("done", "skipped", "no-gate")
    assert agent.got == ["do it"]
    tables = ("agents", "stops", "reports", "steers", "passes", "starts")
    found = {table: world.rows(f"SELECT * FROM {table}") for table in tables}  # noqa: S608
    assert found == {table: [] for table in tables}
