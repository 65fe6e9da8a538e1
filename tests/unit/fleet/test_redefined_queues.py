"""Tasks that wait while their queue changes, or lose their place in it, begin all the same."""

import pytest

from crews import Agents
from notyet.fleet import Queue, worker
from supervised import Agent
from support import rows


def test_a_worker_notices_that_a_queue_allows_more_on_each_worker(crew_of):
    crew = crew_of(Queue("agents", per_worker=1))
    agents = Agents(Agent.WAIT)
    for _ in range(3):
        crew.submit()
    crew.start(agents, at_once=8)
    crew.until(lambda: len(agents) == 1)
    crew.do(crew.fleet.define(Queue("agents", per_worker=3)))
    crew.until(lambda: len(agents) == 3)


@pytest.mark.parametrize("limit", ["1/day", "1 at once"])
def test_tasks_of_a_model_whose_limit_was_removed_begin(crew_of, limit):
    crew = crew_of(Queue("agents", limits={"opus": limit}))
    agents = Agents(Agent.WAIT)
    for _ in range(2):
        crew.submit(model="opus")
    crew.start(agents, at_once=8)
    crew.until(lambda: len(agents) == 1)
    crew.do(crew.fleet.define(Queue("agents")))
    crew.until(lambda: len(agents) == 2)


def test_tasks_that_wait_for_a_new_limit_are_not_in_the_way_of_others(crew_of, monkeypatch):
    monkeypatch.setattr(worker, "_LONGEST_HELD", 1.0)
    crew = crew_of(Queue("agents"))
    agents = Agents()
    for _ in range(4):
        crew.submit(model="opus")
    other = crew.submit("other", model="gpt")
    crew.do(crew.fleet.define(Queue("agents", limits={"opus": "1/day"})))
    crew.start(agents, at_once=2)
    crew.result(other)
    assert len([agent for agent in agents if agent.got]) == 2


def test_a_queue_that_could_not_be_read_holds_up_nothing_for_good(crew):
    crew.start(Agents())
    about = rows(crew.fleet.ledger, "SELECT about FROM queues")[0][0]
    task = crew.submit()
    change = "UPDATE queues SET about = ?"
    crew.fleet.ledger.connection.execute(change, ('{"name": "agents", "by": "moon"}',))
    crew.until(lambda: any("moon" in text for text in crew.warnings))
    crew.fleet.ledger.connection.execute(change, (about,))
    assert crew.result(task).ending == "done"


def test_tasks_of_a_queue_that_cannot_be_read_are_not_in_the_way_of_others(crew_of):
    crew = crew_of(Queue("agents"), Queue("other"))
    crew.submit(queue="other")
    task = crew.submit()
    connection = crew.fleet.ledger.connection
    connection.execute("UPDATE tasks SET placement = ''", ())
    connection.execute("DELETE FROM notyet_dbos.workflow_status", ())
    connection.execute("UPDATE queues SET about = '{}' WHERE name = 'other'", ())
    crew.start(Agents())
    assert crew.result(task).ending == "done"


def test_a_task_whose_placement_is_gone_is_placed_again(crew):
    task = crew.submit()
    connection = crew.fleet.ledger.connection
    connection.execute("DELETE FROM notyet_dbos.workflow_status", ())
    crew.start(Agents())
    assert crew.result(task).ending == "done"
