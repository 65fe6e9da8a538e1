"""Deliveries that got stuck once, or that nobody was waiting for."""

import asyncio

import pytest

from notyet import Block, Engine, Ledger, Limits
from notyet.core.session import Turn
from notyet.supervise import Supervisor, SupervisorSettings
from supervised import QUICK, Agent, Asking, World
from support import gate


class Consumer:
    """Takes results; a function of the attempt's number may raise."""

    def __init__(self, *does):
        self.does = list(does)
        self.got = []

    async def __call__(self, announcement):
        self.got.append(announcement.attempt)
        if self.does:
            await self.does.pop(0)()


async def cancelled():
    raise asyncio.CancelledError("a pool closed its connection")


@pytest.mark.rule("K8")
def test_a_consumer_that_was_cancelled_itself_has_failed_and_is_asked_again(tmp_path):
    consumer = Consumer(cancelled)
    with World(tmp_path, deliver=consumer) as world:
        handle = world.spawn(Agent("done"))
        assert world.result(handle).text == "done"
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert consumer.got == [1, 2]


@pytest.mark.rule("K8")
def test_a_delivery_that_is_cancelled_leaves_nothing_leased(tmp_path):
    started = asyncio.Event()

    async def hang():
        started.set()
        await asyncio.Event().wait()

    with World(tmp_path, deliver=Consumer(hang)) as world:
        handle = world.spawn(Agent("done"))
        world.until(started.is_set)
        assert world.view(handle).delivery == "leased"
    assert world.rows("SELECT status FROM outbox") == [("pending",)]


@pytest.mark.rule("K8")
def test_a_result_whose_consumer_was_taken_away_goes_to_the_next_one(tmp_path):
    with World(tmp_path) as world:

        async def leaves():
            world.supervisor.deliver = None
            raise OSError("busy")

        world.supervisor.deliver = Consumer(leaves)
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.supervisor.deliver is None)
        world.until(lambda: world.view(handle).attempts == 1)
        world.until(lambda: world.view(handle).delivery == "pending")
        world.supervisor.deliver = after = Consumer()
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert len(after.got) == 1


@pytest.mark.rule("K8")
def test_a_result_whose_task_could_not_be_read_for_a_moment_is_looked_at_again(tmp_path):
    consumer = Consumer()
    with World(tmp_path, deliver=consumer) as world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.view(handle).delivery == "delivered")
        (about,) = world.rows("SELECT about FROM tasks")[0]
        world.rows("UPDATE tasks SET about = '{'")
        world.rows("UPDATE outbox SET status = 'leased'")
        world.until(lambda: any("trying again" in said for said in world.warnings))
        assert len(consumer.got) == 1
        world.rows("UPDATE tasks SET about = ?", about)
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert len(consumer.got) == 2


@pytest.mark.rule("K8", "C3")
@pytest.mark.parametrize("verb", ["kill", "reset", "interrupt"])
def test_what_was_ended_together_with_its_parent_leaves_nothing_to_do(tmp_path, verb):
    with World(tmp_path) as world:
        world.supervisor.deliver = world.supervisor.tell_parent
        main = Agent(Agent.WAIT, id="main")
        above = world.launch(main)
        agents = [Agent(Agent.WAIT, id=f"c{n}") for n in range(3)]
        handles = [world.spawn(agent, parent=above) for agent in agents]
        handles.append(world.spawn(Agent(Agent.WAIT, id="deep"), parent=handles[0]))
        world.at_work(main, *agents)
        world.do(getattr(world.supervisor, verb)(above))
        for handle in handles:
            world.until(lambda handle=handle: world.view(handle).delivery == "dismissed")
        ending = world.result(above).ending
        assert [world.result(handle).ending for handle in handles] == [ending] * 4
        assert world.view(handles[0]).delivery_error == f"its parent was {ending}"
    assert not any("suspended" in said for said in world.warnings)


@pytest.mark.rule("K9", "K8")
def test_an_overdue_report_that_comes_while_the_gates_are_asked_is_read(tmp_path):
    asking = Asking()

    async def asks(event):
        if event.scope == "agent":
            await asking()

    with World(tmp_path, gates=[asks], children_expiry=0.05) as world:
        world.supervisor.deliver = world.supervisor.tell_parent
        main, child = Agent(Agent.WAIT, "I read it", id="main"), Agent(Agent.WAIT, id="c")
        above = world.launch(main)
        below = world.spawn(child, parent=above)
        world.at_work(main, child)
        main.come_back(Turn(text="waiting"))
        world.until(lambda: asking.asked)
        child.come_back(Turn(text="found it"))
        world.until(lambda: world.view(below).delivery == "delivered")
        asking.open.set()
        result = world.result(above)
    assert (result.text, result.steers, asking.asked) == ("I read it", 0, 2)
    assert "found it" in main.got[1]


@pytest.mark.rule("B4")
def test_what_a_user_says_to_a_subagent_does_not_refill_its_budget(tmp_path):
    blocks = gate("g", lambda event: Block("more"), scopes=("subagent",))
    with World(tmp_path, gates=[blocks], limits=Limits(stuck_after=0)) as world:
        agent = Agent("1", "2", "3", Agent.WAIT, "5", id="s")
        handle = world.spawn(agent)
        world.at_work(agent)
        world.do(world.supervisor.say(handle, "Go on."))
        agent.come_back(Turn(text="4"))
        result = world.result(handle)
    assert (len(agent.got), agent.got[4]) == (5, "Go on.")
    assert (result.steers, result.outcome) == (3, "capped")


@pytest.mark.rule("K7", "K16")
def test_a_task_that_is_steered_before_it_was_sent_is_not_lost(tmp_path):
    prompts = []

    async def live():
        ledger = Ledger(tmp_path / "ledger.db")
        settings = SupervisorSettings(**QUICK)
        async with Supervisor(Engine(), ledger, settings=settings) as supervisor:
            agent = Agent("one", "two")
            handle = await supervisor.spawn(agent, "Fix the parser.")
            await supervisor.steer(handle, "Use Python 3.12.")
            await handle
            prompts.extend(agent.got)
        ledger.close()

    asyncio.run(asyncio.wait_for(live(), 20))
    assert "Fix the parser." in "\n".join(prompts)
    assert "Use Python 3.12." in prompts[-1]
