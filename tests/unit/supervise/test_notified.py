"""What observers of supervised agents are told, in which order, and what becomes of a halt."""

import asyncio

import pytest

from notyet import Allow, Block, Halt, Usage
from notyet.core.message import announced
from notyet.core.session import Turn
from supervised import Agent, World
from support import gate

WORKED = Turn(
    text="all done",
    usage=Usage(input=7, output=5, cache_read=3, cache_write=2),
    tools=("bash",),
    tool_calls=4,
    turns=2,
    model="acme/large",
    duration_ms=1500.0,
)
FAILED = Turn(
    text="so far",
    stop_reason="error",
    error="boom",
    usage=Usage(input=7, output=5),
    tool_calls=4,
    turns=2,
    model="acme/large",
    duration_ms=1500.0,
)


def heard(world, *names):
    log = []
    for name in names:
        world.engine.on(name, lambda event, ctx, name=name: log.append((event, ctx)))
    return log


@pytest.mark.rule("K11", "K10")
def test_stop_is_told_everything_about_a_main_agent(world):
    log = heard(world, "stop")
    world.ran(Agent(WORKED, id="main-1"))
    ((stop, ctx),) = log
    assert (stop.sessionId, stop.session_id) == ("main-1", "main-1")
    assert (stop.result.success, stop.result.text, stop.result.error) == (True, "all done", None)
    assert (stop.usage.inputTokens, stop.usage.output_tokens) == (7, 5)
    assert (stop.usage.cacheReadTokens, stop.usage.cacheWriteTokens) == (3, 2)
    assert (stop.turnsCount, stop.toolCallsCount, stop.duration) == (2, 4, 1500.0)
    assert stop.model == "acme/large"
    assert (ctx.host, ctx.sessionId, ctx.ending, ctx.cwd) == (
        ("notyet", "main-1", "done", str(world.folder))
    )


@pytest.mark.rule("K11")
def test_subagent_stop_is_told_everything_about_a_subagent_and_its_parent(world):
    log = heard(world, "subagent_stop")
    parent = world.launch(Agent(Agent.WAIT, id="parent-1"))
    world.until(lambda: world.view(parent).session_id)
    handle = world.spawn(Agent(WORKED, id="child-1"), parent=parent, agent_type="coder")
    world.result(handle)
    ((stop, ctx),) = log
    assert (stop.parentSessionId, stop.agentId, stop.agentType) == (
        ("parent-1", handle.task_id, "coder")
    )
    assert (stop.result.success, stop.result.text) == (True, "all done")
    assert (stop.usage.inputTokens, stop.usage.outputTokens) == (7, 5)
    assert (stop.totalToolCalls, stop.totalDuration, stop.model) == (4, 1500.0, "acme/large")
    assert ctx.session_id == "child-1"
    world.do(world.supervisor.kill(parent))


@pytest.mark.rule("K11")
def test_a_subagent_without_a_parent_has_an_empty_parent_session(world):
    log = heard(world, "subagent_stop")
    world.spawned(Agent(WORKED))
    assert (log[0][0].parentSessionId, log[0][0].agentType) == ("", "")


@pytest.mark.rule("K11", "K10")
def test_after_a_failure_usage_is_empty_and_counts_are_zero_but_the_error_is_told(world):
    log = heard(world, "stop", "subagent_stop")
    world.ran(Agent(FAILED))
    world.spawned(Agent(FAILED, id="s2"))
    (stop, _), (sub, _) = log
    for told in (stop, sub):
        assert (told.result.success, told.result.error, told.result.text) == (
            (False, "boom", "so far")
        )
        assert (told.usage.inputTokens, told.usage.outputTokens) == (0, 0)
        assert told.model == "acme/large"
    assert (stop.turnsCount, stop.toolCallsCount, stop.duration) == (0, 0, 0)
    assert (sub.totalToolCalls, sub.totalDuration) == (0, 0)


@pytest.mark.rule("K10")
def test_observers_are_awaited_one_after_another_before_the_result_is_handed_out(world):
    order = []

    async def slow(event, ctx):
        await asyncio.sleep(0.03)
        order.append("slow")
        return {"allow": False, "prompt": "ignored"}

    def broken(event, ctx):
        raise ValueError("telemetry")

    for handler in (slow, broken, lambda event, ctx: order.append("plain")):
        world.engine.on("subagent_stop", handler)

    async def wait():
        await handle.result()
        order.append("result")

    agent = Agent("done")
    handle = world.spawn(agent)
    world.do(wait())
    assert order == ["slow", "plain", "result"]
    assert agent.got == ["do it"]
    assert any("ValueError: telemetry (ignored)" in said for said in world.warnings)


@pytest.mark.rule("K10")
@pytest.mark.parametrize("verb", ["kill", "reset", "interrupt"])
def test_observers_are_told_of_every_ending(world, verb):
    log = heard(world, "stop", "subagent_stop", "subagent_ended")
    handles = []
    for start, agent in (
        (world.launch, Agent(Agent.WAIT, id="a")),
        (world.spawn, Agent(Agent.WAIT, id="b")),
    ):
        handles.append(start(agent))
        world.at_work(agent)
    for handle in handles:
        world.do(getattr(world.supervisor, verb)(handle))
        world.result(handle)
    assert len(log) == 3


@pytest.mark.rule("K15", "K2")
def test_a_halt_ends_the_child_and_its_reason_is_in_result_announcement_and_payloads(tmp_path):
    news = []

    async def deliver(announcement):
        news.append(announced(announcement.result))

    halting = gate("budget", Halt("budget spent"), scopes=("subagent",))
    with World(tmp_path, gates=[halting], deliver=deliver) as world:
        ended = heard(world, "subagent_ended")
        stopped = heard(world, "subagent_stop")
        parent = Agent(Agent.WAIT, id="p")
        above = world.launch(parent)
        world.at_work(parent)
        child = Agent("half of it", id="c")
        result = world.spawned(child, parent=above, label="worker")
        world.until(lambda: news)
        assert world.state(above) == "running"
        world.do(world.supervisor.kill(above))
    assert (result.outcome, result.stop_reason, result.text) == (
        ("halted", "budget spent", "half of it")
    )
    assert child.got == ["do it"]
    assert ended[0][0].stopReason == "budget spent"
    assert stopped[0][1].stopReason == stopped[0][0].result.stopReason == "budget spent"
    assert news == [
        "Subagent worker has finished.\n"
        "Its work did not pass the checks (halted: budget spent).\n"
        "Its report:\nhalf of it"
    ]


@pytest.mark.rule("K14", "F13-claude")
def test_what_start_handlers_add_stands_before_the_first_prompt_once_per_task(world):
    world.engine.on("subagent_start", lambda event, ctx: f"You are a {event.agentType}.")
    world.block(1)
    agent = Agent("one", "two")
    result = world.spawned(agent, "Mend it.", agent_type="coder")
    assert agent.got == ["You are a coder.\n\nMend it.", "more"]
    assert world.view(result.task_id).task.prompt == "Mend it."


@pytest.mark.rule("B11")
def test_who_watches_decisions_is_told_that_an_agent_was_let_go_against_one(tmp_path):
    answers = [Block("more"), Allow()]
    with World(tmp_path, gates=[gate("g", lambda *_: answers.pop(0))]) as world:
        told = []
        world.engine.on("decision", lambda event, decision: told.append(decision))
        agent = Agent("one", Agent.WAIT, "three")
        handle = world.launch(agent)
        world.until(agent.waiting.is_set)
        world.do(world.supervisor.say(handle, "Never mind, do this."))
        agent.come_back(Turn(text="two"))
        world.result(handle)
    assert [decision.outcome for decision in told] == ["blocked", "overridden", "passed"]
    assert (told[1].overridden, told[1].turn) == (1, 1)


@pytest.mark.rule("K14")
def test_session_start_is_told_once_per_session_and_subagent_start_once_per_task(world):
    log = []
    for name in ("session_start", "subagent_start"):
        world.engine.on(name, lambda event, ctx, name=name: log.append((name, event.sessionId)))
    main = Agent("one", "two", id="m")
    world.ran(main)
    world.ran(main)
    sub = Agent("one", "two", id="c")
    world.spawned(sub)
    world.spawned(sub)
    assert [name for name, _ in log] == ["session_start", "subagent_start", "subagent_start"]
