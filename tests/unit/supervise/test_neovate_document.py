"""The design of Neovate's `stop` and `subagentStop`, played: what they get, and when."""

import asyncio

import pytest

from notyet import StopEvent, Usage
from notyet.core.session import Turn
from notyet.errors import Refused
from supervised import Agent, World

WORKED = Turn(
    text="all done",
    usage=Usage(input=7, output=5),
    tools=("bash",),
    tool_calls=4,
    turns=2,
    model="acme/large",
    duration_ms=1500.0,
)
# The payloads of its design, field by field.
STOP = {
    "sessionId": str,
    "result": object,
    "usage": object,
    "turnsCount": int,
    "toolCallsCount": int,
    "duration": float,
    "model": str,
    "lastRun": object,
}
SUBAGENT_STOP = {
    "parentSessionId": str,
    "agentId": str,
    "agentType": str,
    "result": object,
    "usage": object,
    "totalToolCalls": int,
    "totalDuration": float,
    "model": str,
    "lastRun": object,
}


class Told(World):
    """A world with a plugin for both hooks, one async and one plain."""

    def __init__(self, folder, **settings):
        super().__init__(folder, **settings)
        self.told = []

        async def stop(event, ctx):
            await asyncio.sleep(0)
            self.told.append(("stop", event))

        self.engine.on("stop", stop)
        self.engine.on("subagent_stop", lambda e, c: self.told.append(("subagent_stop", e)))

    def names(self):
        return [name for name, _ in self.told]


@pytest.mark.rule("C8", "K9", "K10")
def test_a_task_tool_tells_of_its_subagents_first_and_then_of_the_main_agent(tmp_path):
    order = []
    with Told(tmp_path) as world:

        async def task_tool(prompt):
            """Let two subagents work, as the tool of a main agent does."""
            await started.wait()
            for name in ("one", "two"):
                work = Agent(WORKED, id=f"child-{name}")
                child = await world.supervisor.spawn(work, name, parent=above, agent_type=name)
                await child.result()
                order.append(len(world.told))
            return WORKED

        started = asyncio.Event()
        above = world.launch(Agent(task_tool, id="main-1"))
        started.set()
        world.result(above)
        order.append(len(world.told))
    assert world.names() == ["subagent_stop", "subagent_stop", "stop"]
    assert order == [1, 2, 3]  # each was told before its result was handed out
    one, two, main = [event for _, event in world.told]
    assert (one.parentSessionId, two.parentSessionId) == ("main-1", "main-1")
    assert (one.agentType, two.agentType, main.sessionId) == ("one", "two", "main-1")


@pytest.mark.rule("K11")
def test_both_payloads_have_the_fields_of_the_design_and_no_others(tmp_path):
    with Told(tmp_path) as world:
        world.ran(Agent(WORKED, id="main-1"))
        world.spawned(Agent(WORKED, id="child-1"), agent_type="coder")
    (_, stop), (_, sub) = world.told
    for event, fields in ((stop, STOP), (sub, SUBAGENT_STOP)):
        told = event.to_dict()
        assert list(told) == list(fields)
        assert all(isinstance(told[name], kind) for name, kind in fields.items())
    assert (sub.usage.inputTokens, sub.usage.outputTokens) == (7, 5)
    assert (stop.duration, sub.totalDuration, stop.model) == (1500.0, 1500.0, "acme/large")


@pytest.mark.rule("K11", "K3")
def test_figures_are_the_tasks_totals_and_those_of_the_last_run_stand_beside_them(tmp_path):
    first = Turn(
        text="one",
        usage=Usage(input=1000, total=1000),
        tools=("bash",),
        tool_calls=3,
        duration_ms=5.0,
    )
    last = Turn(
        text="two",
        usage=Usage(input=5, total=5),
        tools=("edit", "bash"),
        tool_calls=2,
        duration_ms=2.0,
    )
    stopping = []
    with Told(tmp_path) as world:
        world.engine.on("subagent_stopping", lambda event, _: stopping.append(event.usage.input))
        world.block(1)
        result = world.spawned(Agent(first, last))
    ((_, told),) = world.told
    assert (told.usage.inputTokens, told.totalToolCalls, told.totalDuration) == (1005, 5, 7.0)
    assert told.lastRun.to_dict() == {
        "usage": told.lastRun.usage.to_dict(),
        "turnsCount": 1,
        "toolCallsCount": 2,
        "duration": 2.0,
    }
    assert told.lastRun.usage.inputTokens == 5
    assert (result.usage, result.turns) == (Usage(input=1005, total=1005), 2)
    assert (result.tools, result.tool_calls, result.duration_ms) == (("bash", "edit"), 5, 7.0)
    assert (result.last_run.usage, result.last_run.tools) == (last.usage, last.tools)
    assert stopping == [1000, 5]  # a gate sees its own run


@pytest.mark.rule("K11")
def test_a_turn_that_a_steer_cut_off_counts_with_what_it_cost(tmp_path):
    with Told(tmp_path) as world:
        agent = Agent(Agent.WAIT, Turn(text="done", usage=Usage(input=5)))
        handle = world.spawn(agent)
        world.at_work(agent)
        cut = Turn(text="half", stop_reason="cancelled", usage=Usage(input=70))
        agent.abort = aborted(agent, cut)
        world.do(world.supervisor.steer(handle, "another way"))
        result = world.result(handle)
    assert (result.text, result.usage, result.rejected) == ("done", Usage(input=75), "")
    assert result.last_run.usage == Usage(input=5)


def aborted(agent, turn):
    """Return an `abort` that ends the turn of an agent with what it cost so far."""

    async def abort():
        if not agent._turn.done():
            agent.come_back(turn)

    return abort


@pytest.mark.rule("K11")
@pytest.mark.parametrize("scope", ["agent", "subagent"])
def test_the_result_of_a_host_reaches_the_plugin_as_the_host_made_it(tmp_path, scope):
    loop_result = {
        "success": True,
        "data": {"text": "hi", "history": [], "usage": {"promptTokens": 1}},
        "metadata": {"turnsCount": 1, "toolCallsCount": 0, "duration": 3},
    }
    with Told(tmp_path) as world:
        event = StopEvent(scope=scope, session_id="s", agent_id="a", result=loop_result)
        world.do(world.engine.check(event))
    ((_, told),) = world.told
    assert told.result == loop_result


@pytest.mark.rule("K10", "C4")
@pytest.mark.parametrize(
    ("turn", "success"),
    [
        (Turn(text="yes"), True),
        (Turn(text="", stop_reason="error", error="api_error"), False),
        (Turn(text="half", stop_reason="cancelled"), False),
    ],
)
def test_the_plugin_is_told_of_success_failure_and_a_user_who_cancels(tmp_path, turn, success):
    with Told(tmp_path) as world:
        world.ran(Agent(turn))
        world.spawned(Agent(turn, id="c"))
    assert world.names() == ["stop", "subagent_stop"]
    assert [event.result.success for _, event in world.told] == [success, success]


@pytest.mark.rule("K10", "K13")
def test_a_subagent_that_never_began_is_not_reported(tmp_path):
    with Told(tmp_path, max_children=1) as world:
        root = Agent(Agent.WAIT, id="main-1")
        above = world.launch(root)
        world.at_work(root)
        first = Agent(Agent.WAIT, id="c1")
        world.spawn(first, parent=above)
        world.at_work(first)
        with pytest.raises(Refused):
            world.spawn(Agent("done", id="c2"), parent=above)
        assert world.told == []
        world.do(world.supervisor.kill(above))


@pytest.mark.rule("K10")
@pytest.mark.parametrize("scope", ["main", "sub"])
def test_a_plugin_that_throws_costs_neither_the_answer_nor_the_next_plugin(tmp_path, scope):
    def throws(event, ctx):
        raise RuntimeError("telemetry is down")

    with World(tmp_path) as world:
        after = []
        for name in ("stop", "subagent_stop"):
            world.engine.on(name, throws)
            world.engine.on(name, lambda event, ctx: after.append(event))
        result = (world.ran if scope == "main" else world.spawned)(Agent("the answer"))
    assert (result.text, len(after)) == ("the answer", 1)
    assert any("telemetry is down" in said for said in world.warnings)


@pytest.mark.rule("K10")
def test_what_a_plugin_returns_continues_no_agent_but_stopping_does(tmp_path):
    block = {"allow": False, "prompt": "go on"}
    with World(tmp_path) as world:
        world.engine.on("stop", lambda event, ctx: block)
        told = Agent("done")
        world.ran(told)
        world.engine.on("stopping", lambda event, ctx: block if event.steerCount == 0 else None)
        asked = Agent("done", "really done", id="s2")
        result = world.ran(asked)
    assert told.got == ["do it"]
    assert asked.got == ["do it", "go on"]
    assert result.text == "really done"
