"""How many transactions a task costs: on PostgreSQL, they are most of its price."""

import collections

import pytest

from notyet.supervise import requests
from supervised import Agent, World

MOST = 12  # for three prompts
MOST_MESSAGES = 30  # to PostgreSQL, for the same


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """Return a world whose heartbeat waits, and the transactions of its ledger."""
    monkeypatch.setattr(requests, "_MOST_PAUSE", 1000.0)
    delivered, found = [], collections.Counter()
    with World(tmp_path, deliver=delivered.append, poll=1000.0) as world:
        connection = world.ledger.connection
        original = connection._transact

        def transact(begin, work, *args, **options):
            found[work.__qualname__.replace(".<locals>", "")] += 1
            return original(begin, work, *args, **options)

        monkeypatch.setattr(connection, "_transact", transact)
        world.delivered = delivered
        yield world, found


def agent():
    sent_back = Agent("one", "two", "three")
    sent_back.id = "s1"  # known from the start, as it is of a session that goes on
    return sent_back


def passed(world, handle):
    """Wait until a task with three prompts is over, and handed out."""
    loop = world.supervisor._context.live[handle.task_id].loop
    result = world.result(handle)
    world.until(loop.done)
    assert (result.outcome, result.steers) == ("passed", 2)


@pytest.mark.rule("K7")
def test_a_subagent_with_three_prompts_costs_ten_transactions(counted):
    world, found = counted
    world.block(2)
    passed(world, world.spawn(agent()))
    assert len(world.delivered) == 1
    assert sum(found.values()) == 10, found


@pytest.mark.rule("K7")
def test_a_main_agent_with_three_prompts_costs_ten_transactions(counted):
    world, found = counted
    world.engine.on(
        "stopping",
        lambda event, _: {"allow": False, "prompt": "more"} if event.steerCount < 2 else None,
    )
    passed(world, world.launch(agent()))
    assert sum(found.values()) == 10, found


@pytest.mark.rule("K7", "K10", "K14")
def test_observers_of_its_end_start_handlers_and_a_session_id_that_comes_late_stay_below_the_limit(
    counted,
):
    world, found = counted
    world.block(2)
    told = []
    world.engine.on("subagent_ended", lambda event, ctx: told.append(event))
    world.engine.on("subagent_start", lambda event, ctx: "Hello.")
    passed(world, world.spawn(Agent("one", "two", "three")))
    assert len(told) == 1
    assert sum(found.values()) <= MOST, found


def test_the_statements_of_a_transaction_travel_together(counted, monkeypatch, pytestconfig):
    if pytestconfig.option.store == "file":
        pytest.skip("about PostgreSQL: make test-postgres")
    from notyet.ledger.postgres_transaction import Answering

    world, _ = counted
    world.block(2)
    passed(world, world.spawn(agent()))
    original, sent = Answering.wait, []

    def wait(self, *args, **options):
        sent.append(self)
        return original(self, *args, **options)

    monkeypatch.setattr(Answering, "wait", wait)
    passed(world, world.spawn(agent()))
    assert 0 < len(sent) <= MOST_MESSAGES
