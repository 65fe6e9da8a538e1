"""Moments that are rarely met: things that happen just before or just after one another."""

import asyncio

import pytest

from notyet import Block, Command, Gate
from notyet.core.session import Turn
from notyet.errors import LedgerError, Refused
from supervised import Agent, World
from support import gate


@pytest.mark.rule("C3")
def test_a_task_that_is_killed_before_its_prompt_was_sent_never_starts_its_agent(world):
    agent = Agent()

    async def at_once():
        handle = await world.supervisor.spawn(agent, "do it")
        owner = world.supervisor._context.owner
        assert world.supervisor._store.runs.end(handle.task_id, owner, "killed")
        return await handle.result()

    assert world.do(at_once()).ending == "killed"
    assert agent.got == []


@pytest.mark.rule("K6")
def test_a_kill_that_comes_while_the_decision_is_written_down_wins(tmp_path):
    def kill(event):
        owner = world.supervisor._context.owner
        world.supervisor._store.runs.end(event.task_id, owner, "killed")
        return Block("go on")

    with World(tmp_path, gates=[gate("g", kill)]) as world:
        agent = Agent("done")
        result = world.ran(agent)
        assert world.rows("SELECT outcome, why FROM stops") == [("skipped", "overtaken")]
    assert (result.ending, agent.got) == ("killed", ["do it"])
    assert "decided" not in world.kinds()


@pytest.mark.rule("A6", "K2")
def test_a_fault_of_the_engine_lets_the_agent_go_and_is_said(world):
    world.engine.on("stopping", lambda event, ctx: None)

    async def faulty(*_, **__):
        raise RuntimeError("a fault of ours")

    world.engine.decide = faulty
    result = world.ran(Agent("done"))
    assert (result.outcome, result.text) == ("failed_open", "done")
    assert "the gates could not be asked: RuntimeError: a fault of ours" in world.warnings


def test_the_whole_output_of_a_check_is_kept_beside_the_ledger(tmp_path):
    noisy = Gate(name="tests", check=Command(script="seq 3000; test -e ok"))
    with World(tmp_path, gates=[noisy]) as world:

        def mend(prompt):
            (tmp_path / "ok").touch()
            return "mended"

        agent = Agent("done", mend)
        result = world.ran(agent)
    assert result.text == "mended"
    (line,) = [each for each in agent.got[1].splitlines() if each.startswith("Full output: ")]
    with open(line.removeprefix("Full output: "), encoding="utf-8") as log:
        assert "\n1500\n" in log.read()


@pytest.mark.rule("K9", "K6")
@pytest.mark.parametrize("verb", ["kill", "steer"])
def test_a_parent_that_waits_for_its_children_can_be_ended_and_steered(world, verb):
    parent, child = Agent(Agent.WAIT, "steered", id="p"), Agent(Agent.WAIT, id="c")
    above = world.launch(parent)
    world.at_work(parent)
    below = world.spawn(child, parent=above)
    world.at_work(child)
    parent.come_back(Turn(text="waiting"))
    world.until(lambda: world.state(above) == "settling")
    if verb == "kill":
        world.do(world.supervisor.kill(above))
        assert world.result(below).ending == "killed"
        assert world.result(above).text == "waiting"
    else:
        world.do(world.supervisor.steer(above, "Do not wait."))
        world.until(lambda: len(parent.got) == 2)
        child.come_back(Turn(text="report"))
        assert world.result(above).text == "steered"


@pytest.mark.rule("K9", "C9")
def test_what_the_user_says_while_a_parent_waits_for_its_children_is_not_lost(world):
    parent, child = Agent(Agent.WAIT, "heard", id="p"), Agent(Agent.WAIT, id="c")
    above = world.launch(parent)
    world.at_work(parent)
    world.spawn(child, parent=above)
    world.at_work(child)
    parent.come_back(Turn(text="waiting"))
    world.until(lambda: world.state(above) == "settling")
    world.do(world.supervisor.say(above, "Also this."))
    child.come_back(Turn(text="report"))
    assert world.result(above).text == "heard"
    assert parent.got == ["do it", "Also this."]


def test_a_task_that_vanished_from_its_ledger_is_a_clear_error(world):
    agent = Agent(Agent.WAIT)
    handle = world.spawn(agent)
    world.at_work(agent)
    world.rows("DELETE FROM tasks")
    agent.come_back(Turn(text="done"))
    with pytest.raises(LedgerError, match=f"task {handle.task_id} is gone"):
        world.result(handle)


def test_a_run_whose_steer_vanished_is_a_clear_error(tmp_path):
    with World(tmp_path) as world:
        world.engine.on("subagent_stopping", lambda event, ctx: {"allow": False, "prompt": "x"})

        def drop(event, decision):
            world.rows("DELETE FROM steers")

        world.engine.on("decision", drop)
        handle = world.spawn(Agent("done"))
        with pytest.raises(LedgerError, match=f"task {handle.task_id} lost its steer"):
            world.result(handle)


@pytest.mark.rule("K18")
@pytest.mark.parametrize("what", ["kill", "say"])
def test_an_owner_that_refuses_an_intent_is_quoted_to_whoever_asked(world, what):
    agent = Agent(Agent.WAIT)
    handle = world.launch(agent)
    world.at_work(agent)
    world.do(world.supervisor._heartbeat.stop())
    with World(world.folder, beside=world) as other:

        async def ask():
            text = ("hello",) if what == "say" else ()
            await getattr(other.supervisor, what)(handle, *text)

        async def refuse():
            intents = world.supervisor._store.intents
            while not (waiting := intents.waiting(world.supervisor._context.owner)):
                await asyncio.sleep(0.01)
            intents.answer(waiting[0].id, "refused", "not now")

        async def both():
            await asyncio.gather(ask(), refuse())

        with pytest.raises(Refused, match="not now"):
            other.do(both())
    world.do(world.supervisor._heartbeat.start())


@pytest.mark.rule("K18")
def test_a_kill_that_a_natural_end_was_faster_than_says_so(world):
    agent = Agent(Agent.WAIT)
    handle = world.launch(agent)
    world.at_work(agent)
    world.do(world.supervisor._heartbeat.stop())
    with World(world.folder, beside=world) as other:

        async def both():
            killing = asyncio.ensure_future(other.supervisor.kill(handle))
            intents = world.supervisor._store.intents
            while not intents.waiting(world.supervisor._context.owner):
                await asyncio.sleep(0.01)
            agent.come_back(Turn(text="done"))
            return await killing

        assert other.do(both()) is False
    assert world.result(handle).ending == "done"
    world.do(world.supervisor._heartbeat.start())


@pytest.mark.rule("K8")
def test_a_consumer_that_was_taken_away_leaves_results_where_they_are(tmp_path):
    async def leave(announcement):
        world.supervisor.deliver = None
        raise OSError("gone")

    with World(tmp_path, deliver=leave) as world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.supervisor.deliver is None)
        assert world.result(handle).text == "done"
        assert world.view(handle).delivery == "delivered"  # to whoever awaited it


@pytest.mark.rule("K14")
def test_a_start_hook_sees_the_session_and_the_task_of_a_subagent(world):
    seen = []
    world.engine.on("subagent_start", lambda event, ctx: seen.append((event, ctx)))
    handle = world.spawn(Agent("done"), agent_type="coder")
    world.result(handle)
    ((event, ctx),) = seen
    assert (event.agentId, event.agentType) == (handle.task_id, "coder")
    assert (ctx.host, ctx.cwd) == ("notyet", str(world.folder))


def test_a_hundred_agents_at_once_each_have_their_own_result(tmp_path):
    with World(tmp_path, max_children=200) as world:
        world.engine.on(
            "subagent_stopping",
            lambda event, ctx: {"allow": False, "prompt": "more"} if not event.steerCount else None,
        )

        async def all_of_them():
            handles = [
                await world.supervisor.spawn(Agent("one", f"answer {n}", id=f"s{n}"), f"task {n}")
                for n in range(100)
            ]
            return await asyncio.gather(*(handle.result() for handle in handles))

        results = world.do(all_of_them())
    assert [result.text for result in results] == [f"answer {n}" for n in range(100)]
    assert {result.steers for result in results} == {1}
