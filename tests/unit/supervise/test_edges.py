"""Moments that are rarely met: things that happen just before or just after one another."""

import asyncio
import gc
import threading

import pytest

from notyet import Block, Command, Gate, Ledger, LedgerError
from notyet.core.session import Turn
from notyet.supervise.context import Store
from supervised import Agent, World
from support import gate


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
    assert "the gates could not run: RuntimeError: a fault of ours" in world.warnings


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


def test_a_hundred_agents_at_once_each_have_their_own_result(tmp_path):
    with World(tmp_path, max_children=200) as world:
        world.block(1)

        async def all_of_them():
            handles = [
                await world.supervisor.spawn(Agent("one", f"answer {n}", id=f"s{n}"), f"task {n}")
                for n in range(100)
            ]
            return await asyncio.gather(*(handle.result() for handle in handles))

        results = world.do(all_of_them())
    assert [result.text for result in results] == [f"answer {n}" for n in range(100)]
    assert {result.steers for result in results} == {1}


def test_a_call_of_the_ledger_that_fails_after_its_caller_was_cancelled_prints_nothing(tmp_path):
    printed, may_fail = [], threading.Event()

    def fail():
        may_fail.wait(10)
        raise LedgerError("here", "it is down")

    async def cancelled():
        asyncio.get_running_loop().set_exception_handler(lambda _, what: printed.append(what))
        store = Store(Ledger(tmp_path / "ledger.db"), 1.0, print)
        store.open()
        calling = asyncio.ensure_future(store(fail))
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait({calling})
        may_fail.set()
        await store(lambda: None)  # one after another
        store.close()
        del calling
        gc.collect()

    asyncio.run(cancelled())
    assert printed == []
