"""Who wins when several things happen to a task at once: signals, people, gates."""

import asyncio

import pytest

from notyet import Block
from notyet.core.session import Turn
from notyet.errors import Refused
from supervised import Agent, Asking, World
from support import gate


@pytest.mark.rule("B7", "K16")
def test_only_what_gates_ask_for_spends_the_budget(world):
    world.block(3)
    agent = Agent(Agent.WAIT, Agent.WAIT, "one", "two", "three", "four")
    handle = world.spawn(agent)
    for n in (1, 2):
        world.until(lambda n=n: len(agent.got) == n and agent.waiting.is_set())
        world.do(world.supervisor.steer(handle, "by hand"))
    result = world.result(handle)
    assert agent.got == ["do it", "by hand", "by hand", "more", "more", "more"]
    assert (result.steers, result.generation, result.outcome) == (3, 6, "capped")


@pytest.mark.rule("K5")
def test_two_signals_for_one_ending_are_evaluated_once(world):
    asked = []
    world.engine.on("subagent_stopping", lambda event, ctx: asked.append(event))

    async def twice(prompt):
        agent.news("ended", turn=Turn(text="done"))
        await asyncio.sleep(0)
        agent.news("ended", turn=Turn(text="done"))
        return "done"

    agent = Agent(twice)
    result = world.spawned(agent)
    assert len(asked) == 1
    assert world.do(world.supervisor.finish(result.run_id, Turn(text="again"))) is False
    assert world.rows("SELECT count(*) FROM outbox") == [(1,)]


@pytest.mark.rule("K5")
def test_a_signal_from_elsewhere_ends_a_run_whose_session_hangs(world):
    agent = Agent(Agent.WAIT)
    handle = world.spawn(agent)
    world.at_work(agent)
    assert world.do(world.supervisor.finish(f"{handle.task_id}.1", Turn(text="seen"))) is True
    assert world.result(handle).text == "seen"
    assert agent.aborts == 1
    assert world.do(world.supervisor.finish("t404.1", Turn(text="whose?"))) is False


@pytest.mark.rule("C2", "K5")
def test_an_error_that_heals_within_the_grace_period_is_a_success(tmp_path):
    asked = []
    with World(tmp_path, grace=20.0) as world:
        world.engine.on("subagent_stopping", lambda event, ctx: asked.append(event.outcome))
        agent = Agent(Turn(text="", stop_reason="error", error="overloaded"))
        handle = world.spawn(agent)
        world.until(lambda: "settling" in world.kinds(handle))
        world.do(world.supervisor.finish(f"{handle.task_id}.1", Turn(text="after all")))
        world.until(lambda: asked)
        result = world.result(handle)
    assert (asked, result.ending, result.text, result.error) == (["ok"], "done", "after all", None)


@pytest.mark.rule("C2", "K5")
def test_a_timeout_that_was_seen_is_not_undone_by_a_late_success(tmp_path):
    asking = Asking()
    with World(tmp_path) as world:
        world.engine.on("subagent_stopping", asking)
        handle = world.spawn(Agent(Agent.WAIT), timeout=0.03)
        world.until(lambda: asking.asked)
        late = world.supervisor.finish(f"{handle.task_id}.1", Turn(text="late"))
        assert world.do(late) is False
        asking.open.set()
        assert world.result(handle).ending == "timeout"


@pytest.mark.rule("K6")
@pytest.mark.parametrize(
    ("verb", "ending"), [("kill", "killed"), ("reset", "reset"), ("interrupt", "interrupted")]
)
def test_ending_a_task_wins_over_a_running_gate(tmp_path, verb, ending):
    asking = Asking(Block("go on"))
    with World(tmp_path, gates=[gate("g", asking, scopes=("subagent",))]) as world:
        agent = Agent("done")
        handle = world.spawn(agent)
        world.until(lambda: asking.asked)
        assert world.do(getattr(world.supervisor, verb)(handle)) is True
        asking.open.set()
        result = world.result(handle)
        assert world.rows("SELECT count(*) FROM steers") == [(0,)]
    assert (result.ending, result.steers, agent.got) == (ending, 0, ["do it"])


@pytest.mark.rule("K6", "K16")
def test_a_steer_by_hand_while_a_gate_runs_wins(tmp_path):
    asking = Asking(Block("go on"))
    with World(tmp_path, gates=[gate("g", asking, scopes=("subagent",))]) as world:
        agent = Agent("done", "done otherwise")
        handle = world.spawn(agent)
        world.until(lambda: asking.asked)
        world.do(world.supervisor.steer(handle, "Otherwise."))
        world.until(lambda: asking.asked == 2)
        asking.answer = None
        asking.open.set()
        result = world.result(handle)
    assert agent.got == ["do it", "Otherwise."]
    assert (result.text, result.steers) == ("done otherwise", 0)


@pytest.mark.rule("K6")
def test_a_kill_while_the_prompt_of_a_gate_is_being_sent_wins(world):
    world.block(3)
    sent = asyncio.Event()

    async def hang(prompt):
        sent.set()
        return await agent._wait()

    agent = Agent("done", hang)
    handle = world.spawn(agent)
    world.until(sent.is_set)
    assert world.state(handle) == "steering"
    world.do(world.supervisor.kill(handle))
    result = world.result(handle)
    assert (result.ending, result.generation) == ("killed", 1)
    assert world.rows("SELECT phase FROM steers") == [("abandoned",)]


@pytest.mark.rule("K16")
def test_a_steer_by_hand_aborts_waits_until_the_run_settled_and_then_sends(world):
    order = []

    async def slow_to_stop(prompt):
        try:
            await agent._wait()
        finally:
            await asyncio.sleep(0.02)
            order.append("settled")
        return Turn(text="", stop_reason="cancelled")

    def next_one(prompt):
        order.append("sent")
        return "done"

    agent = Agent(slow_to_stop, next_one)
    handle = world.spawn(agent)
    world.at_work(agent)
    world.do(world.supervisor.steer(handle, "Other way."))
    world.result(handle)
    assert order == ["settled", "sent"]
    assert agent.aborts == 1


@pytest.mark.rule("K16")
def test_steers_by_hand_are_rate_limited_and_one_is_in_flight_at_most(tmp_path):
    refused = asyncio.Event()

    class Slow(Agent):
        async def abort(self):
            await refused.wait()  # so that the first steer is in flight
            await super().abort()

    with World(tmp_path, steer_pause=60.0) as world:
        agent = Slow(Agent.WAIT, Agent.WAIT)
        handle = world.spawn(agent)
        world.at_work(agent)

        async def twice():
            await world.supervisor.steer(handle, "one")
            with pytest.raises(Refused, match="is being steered already; wait until that has"):
                await world.supervisor.steer(handle, "two")
            refused.set()

        world.do(twice())
        world.until(lambda: len(agent.got) == 2 and agent.waiting.is_set())
        with pytest.raises(Refused, match=r"was steered just now; try again in [56]\d\.\d s"):
            world.do(world.supervisor.steer(handle, "three"))
        world.do(world.supervisor.kill(handle))
        with pytest.raises(Refused, match=rf"task {handle.task_id} has ended \(killed\)"):
            world.do(world.supervisor.steer(handle, "four"))
        with pytest.raises(Refused, match="there is no task t404; list them with: notyet tasks"):
            world.do(world.supervisor.steer("t404", "five"))


@pytest.mark.rule("K16", "K4")
def test_a_steer_whose_agent_does_not_stop_ends_the_task_and_says_why(tmp_path):
    class Deaf(Agent):
        async def abort(self):
            await asyncio.Event().wait()

    with World(tmp_path, abort_patience=0.05) as world:
        agent = Deaf(Agent.WAIT)
        handle = world.spawn(agent)
        world.at_work(agent)
        world.do(world.supervisor.steer(handle, "Other way."))
        result = world.result(handle)
    assert result.ending == "interrupted"
    assert "the agent did not stop within 0.05 s" in (result.stop_reason or "")
    assert agent.got == ["do it"]
