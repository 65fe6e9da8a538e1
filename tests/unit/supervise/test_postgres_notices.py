"""On PostgreSQL, a supervisor is woken by what other processes do, and looks rarely by itself."""

import asyncio

import pytest

from notyet import Engine, Ledger, Supervisor
from notyet.supervise import SupervisorSettings
from supervised import Agent

SETTINGS = SupervisorSettings(poll=0.01, grace=0.0, steer_pause=0.0)


@pytest.fixture
def patient(monkeypatch):
    """Let no test pass because a supervisor looked by itself."""
    monkeypatch.setattr("notyet.supervise.requests._LONGEST_SILENCE", 60.0)


def supervisor(cluster, **options):
    ledger = Ledger(cluster.url(schema="notices"))
    return Supervisor(Engine(ledger=ledger), ledger, settings=SETTINGS, **options)


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.rule("K18")
def test_a_kill_by_another_process_wakes_the_owner(cluster, patient):
    async def live():
        async with supervisor(cluster) as owner, supervisor(cluster) as other:
            agent = Agent(Agent.WAIT)
            handle = await owner.spawn(agent, "do it")
            await until(lambda: agent.got)
            assert await other.kill(handle.task_id)
            return await asyncio.wait_for(handle.result(), 20)

    assert asyncio.run(live()).ending == "killed"


def test_a_retry_by_another_process_wakes_the_owner(cluster, patient):
    got = []

    async def deliver(announcement):
        got.append(announcement.key)

    async def live():
        owned = supervisor(cluster, deliver=deliver)
        async with owned as owner, supervisor(cluster) as other:
            handle = await owner.spawn(Agent("done"), "do it")
            await handle.result()
            await until(lambda: got)
            while (await owner.task(handle)).delivery != "delivered":
                await asyncio.sleep(0.01)
            await other.retry(handle.task_id)
            await until(lambda: len(got) == 2)

    asyncio.run(live())


def test_an_idle_supervisor_asks_nothing_and_hears_again_after_a_crash(cluster, patient):
    async def live():
        async with supervisor(cluster) as owner, supervisor(cluster) as other:
            agent = Agent(Agent.WAIT)
            handle = await owner.spawn(agent, "do it")
            await until(lambda: agent.got)
            changes = owner._heartbeat._changes
            await until(lambda: changes._listener is not None)
            asked = []
            moved = owner._heartbeat._store.tasks.moved
            owner._heartbeat._store.tasks.moved = lambda number: asked.append(1) or moved(number)
            await asyncio.sleep(0.3)  # 30 times its poll
            assert len(asked) <= 2
            await asyncio.to_thread(cluster.crash)
            await other.say(handle.task_id, "and also this")
            await until(lambda: asked)
            await other.kill(handle.task_id)
            return await asyncio.wait_for(handle.result(), 20)

    assert asyncio.run(live()).ending == "killed"
