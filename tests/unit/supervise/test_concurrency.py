"""What an attack on the supervisor found: cancelled callers, late words, and things at once."""

import asyncio

import pytest

from notyet import Block
from notyet.core.session import News, Turn
from notyet.core.task import Task
from notyet.errors import Refused, SendError
from supervised import Agent, Dead, World, first_run
from support import gate

ONCE = gate("g", lambda e: Block("more") if not e.block_count else None, scopes=("subagent",))


class Silent(Agent):
    """A session that has no news."""

    def news(self, kind, **fields):
        """Say nothing."""


@pytest.mark.rule("K2")
def test_a_steered_run_times_out_without_news_that_its_prompt_arrived(tmp_path):
    with World(tmp_path, gates=[ONCE]) as world:
        agent = Silent("one", Agent.WAIT)
        result = world.result(world.spawn(agent, timeout=1.0))
    assert (result.ending, result.generation) == ("timeout", 2)
    assert agent.aborts >= 1


@pytest.mark.rule("K5")
def test_an_ending_that_is_told_before_its_prompt_was_accepted_counts(tmp_path):
    class Early(Agent):
        async def send(self, prompt, key):
            if len(self.got) == 1:
                self.got.append(prompt)
                self.on_news(News(kind="ended", turn=Turn(text="told elsewhere")))
                await asyncio.Event().wait()
            return await super().send(prompt, key)

    with World(tmp_path, gates=[ONCE], abort_patience=0.1) as world:
        result = world.result(world.spawn(Early("one")))
    assert (result.ending, result.text, result.generation) == ("done", "told elsewhere", 2)


@pytest.mark.rule("K7", "K18")
def test_two_recoveries_at_once_drive_each_task_once(tmp_path):
    dead = Dead(tmp_path)
    for name in "abcde":
        run = first_run(name)
        task = Task(id=name, prompt="do it")
        dead.tasks.start(task, run, dead.owner, {}, "", max_depth=5, max_children=5)
    dead.buried()
    agents = []

    def reopen(ref):
        agents.append(Agent("done", knows=False))
        return agents[-1]

    with World(tmp_path, reopen=reopen) as world:
        both = world.do(asyncio.gather(world.supervisor.recover(), world.supervisor.recover()))
        for handle in (*both[0], *both[1]):
            world.result(handle)
    assert [len(agent.got) for agent in agents] == [1] * 5


@pytest.mark.rule("K6")
def test_a_kill_whose_caller_was_cancelled_still_ends_the_agent(world):
    agent = Agent(Agent.WAIT)
    handle = world.spawn(agent)
    world.at_work(agent)

    async def cancelled():
        killing = asyncio.ensure_future(world.supervisor.kill(handle))
        await asyncio.sleep(0)
        killing.cancel()
        await asyncio.wait({killing})

    world.do(cancelled())
    world.until(lambda: agent.aborts == 1)
    assert world.result(handle).ending == "killed"


def test_a_task_whose_spawn_was_cancelled_is_ended_and_told(world):
    told = []
    world.engine.on("subagent_ended", lambda event, ctx: told.append(event.outcome))

    async def cancelled():
        for delay in range(12):
            spawning = asyncio.ensure_future(world.supervisor.spawn(Agent(Agent.WAIT), "x"))
            for _ in range(delay):
                await asyncio.sleep(0)
            spawning.cancel()
            await asyncio.wait({spawning})
            if not spawning.cancelled():  # the ledger was faster: then it is at work, as asked
                await world.supervisor.kill(spawning.result())

    world.do(cancelled())
    world.until(lambda: all(view.state == "ended" for view in world.do(world.supervisor.tasks())))
    entered = world.do(world.supervisor.tasks())
    world.until(lambda: len(told) == len(entered))


def test_to_cancel_a_run_is_to_interrupt_its_agent(world):
    agent = Agent(Agent.WAIT)

    async def impatient():
        running = asyncio.ensure_future(world.supervisor.run(agent, "x"))
        while not agent.waiting.is_set():
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait({running})

    world.do(impatient())
    world.until(lambda: world.do(world.supervisor.tasks())[0].ending == "interrupted")
    world.until(lambda: agent.aborts == 1)


def test_a_kill_reaches_children_that_are_spawned_meanwhile(world):
    parent = Agent(Agent.WAIT, id="parent")
    above = world.launch(parent)
    world.at_work(parent)

    spawned = []

    async def breed():
        try:
            while True:
                child = Agent(Agent.WAIT)
                spawned.append(await world.supervisor.spawn(child, "x", parent=above))
        except Refused:
            return

    async def both():
        breeding = asyncio.ensure_future(breed())
        while not spawned:
            await asyncio.sleep(0.005)
        await world.supervisor.kill(above)
        await breeding

    world.do(both())
    assert all(view.state == "ended" for view in world.do(world.supervisor.tasks()))


def test_messages_do_not_prolong_the_grace_of_an_error(tmp_path):
    with World(tmp_path, grace=5.0) as world:
        agent = Agent(Turn(text="", stop_reason="error", error="overloaded"), "on we go")
        handle = world.spawn(agent)
        world.until(lambda: world.state(handle) == "settling")
        world.do(world.supervisor.say(handle, "go on"))
        assert world.result(handle).text == "on we go"
    assert agent.got[1] == "go on"


@pytest.mark.parametrize("fields", [{"label": 5}, {"cwd": 1}, {"task": 7}])
def test_a_task_of_the_wrong_shape_is_refused_before_its_agent_starts(world, fields):
    agent = Agent()
    with pytest.raises(TypeError, match="is text"):
        world.spawn(agent, **fields)
    assert agent.got == []


def test_a_fault_of_ours_ends_the_task_and_says_so(world, monkeypatch):
    monkeypatch.setattr("notyet.engine.engine.Engine.asks", lambda *_: 1 / 0)
    handle = world.spawn(Agent("done"))
    result = world.result(handle)
    assert (result.ending, result.text) == ("interrupted", "done")
    assert "internal error: ZeroDivisionError" in result.error


def test_a_close_that_is_cancelled_goes_on(tmp_path):
    with World(tmp_path) as world:
        agent = Agent(Agent.WAIT)
        world.spawn(agent)
        world.at_work(agent)

        async def twice():
            closing = asyncio.ensure_future(world.supervisor.close())
            await asyncio.sleep(0)
            closing.cancel()
            await asyncio.wait({closing})
            await world.supervisor.close()

        world.do(twice())
        assert agent.aborts == 1
        with pytest.raises(Refused, match="not running"):
            world.spawn(Agent())


def test_a_plain_function_may_be_the_consumer(tmp_path):
    got = []
    with World(tmp_path, deliver=got.append) as world:
        handle = world.spawn(Agent("done"))
        world.result(handle)
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert [announcement.result.text for announcement in got] == ["done"]


@pytest.mark.rule("K14", "K13")
def test_a_refused_spawn_is_told_to_no_start_hook(tmp_path):
    told = []
    with World(tmp_path, max_children=1) as world:
        world.engine.on("subagent_start", lambda event, ctx: told.append(event))
        parent = Agent(Agent.WAIT, id="parent")
        above = world.launch(parent)
        world.at_work(parent)
        world.spawn(Agent(Agent.WAIT, id="a"), parent=above)
        with pytest.raises(Refused):
            world.spawn(Agent(id="b"), parent=above)
        world.do(world.supervisor.kill(above))
    assert len(told) == 1


def test_a_spawn_that_is_under_way_when_the_supervisor_closes_is_refused_and_ended(tmp_path):
    with World(tmp_path) as world:
        begun = asyncio.Event()

        async def slow(event, ctx):
            begun.set()
            await asyncio.sleep(0.2)

        world.engine.on("subagent_start", slow)
        agent = Agent("done")

        async def both():
            spawning = asyncio.ensure_future(world.supervisor.spawn(agent, "x"))
            await begun.wait()
            await world.supervisor.close()
            await asyncio.wait({spawning})
            return spawning.exception()

        error = world.do(both())
        assert isinstance(error, Refused)
        assert agent.got == []
        assert world.rows("SELECT count(*) FROM tasks WHERE ended_at IS NULL") == [(0,)]


@pytest.mark.rule("K5")
def test_an_error_that_was_told_heals_when_the_turn_itself_comes_back_well(tmp_path):
    with World(tmp_path, grace=5.0) as world:
        agent = Agent(Agent.WAIT)
        handle = world.spawn(agent)
        world.at_work(agent)
        failed = Turn(text="", stop_reason="error", error="overloaded")
        agent.on_news(News(kind="ended", turn=failed))
        world.until(lambda: world.state(handle) == "settling")
        agent.come_back(Turn(text="all is well"))
        result = world.result(handle)
    assert (result.ending, result.text) == ("done", "all is well")


@pytest.mark.rule("K4")
def test_late_words_of_the_turn_before_do_not_count_as_acceptance(tmp_path):
    class Trailing(Agent):
        async def send(self, prompt, key):
            if self.got:
                self.on_news(News(kind="text", text="... and that was it"))
                await asyncio.sleep(0.02)
                raise SendError("gone")
            return await super().send(prompt, key)

    with World(tmp_path, gates=[ONCE]) as world:
        result = world.result(world.spawn(Trailing("one")))
    assert (result.ending, result.outcome, result.text) == ("done", "failed_open", "one")


@pytest.mark.rule("C7")
def test_a_gate_may_start_an_internal_reviewer(tmp_path):
    reviews = []

    async def review(event):
        handle = await world.supervisor.spawn(
            Agent("fine", id="reviewer"), "Review it.", parent=event.task_id, internal=True
        )
        reviews.append((await handle).text)

    with World(tmp_path, gates=[gate("review", review)]) as world:
        assert world.result(world.launch(Agent("done"))).outcome == "passed"
    assert reviews == ["fine"]
