"""A worker in this process, with a real database and a real engine."""

import asyncio

import pytest

from crews import Agents, Crew
from notyet import Block, Engine
from notyet.core.session import Turn
from notyet.errors import LedgerError, LedgerNewer, Refused
from notyet.fleet import Queue, Worker
from notyet.fleet.worker import _opened
from notyet.ledger.placements import Placements
from stores import opened
from supervised import Agent
from support import gate, rows


def taken(crew):
    """Return how many placements workers have."""
    sql = (
        "SELECT count(*) FROM notyet_dbos.workflow_status"
        " WHERE name = 'place' AND status = 'PENDING'"
    )
    return rows(crew.fleet.ledger, sql)[0][0]


def test_a_submitted_task_is_begun_and_its_result_comes_back(crew):
    agents = Agents("all done")
    task = crew.submit("fix it", model="opus", args=["-v"], label="fix")
    assert crew.state(task) == "queued"
    crew.start(agents)
    result = crew.result(task)
    assert (result.text, result.ending, result.label) == ("all done", "done", "fix")
    assert agents[0].got == ["fix it"]
    assert (agents.orders[0].model, agents.orders[0].args) == ("opus", ("-v",))
    assert crew.fleet._outbox.untaken() == []
    crew.drain()
    assert crew.fleet.placements.workers() == []


def test_a_task_with_a_key_is_submitted_once(crew):
    agents = Agents()
    tasks = {crew.submit("do it", key="pr-1") for _ in range(3)}
    other = crew.submit("do it", key="pr-2")
    crew.start(agents)
    assert len(tasks) == 1
    crew.result(*tasks)
    crew.result(other)
    assert crew.submit("do it", key="pr-1") in tasks
    crew.drain()
    assert len(agents) == 2


def test_smaller_priorities_begin_first(crew):
    agents = Agents()
    numbers = [9, 3, None, 7, 1]
    tasks = [crew.submit(f"task {number}", priority=number) for number in numbers]
    crew.start(agents, at_once=1)
    for task in tasks:
        crew.result(task)
    assert [agent.got[0] for agent in agents] == [
        *("task 1", "task 3", "task 7", "task 9", "task None")
    ]


def test_a_worker_takes_no_more_than_it_can_do_so_that_others_find_work(crew):
    agents = Agents(Agent.WAIT)
    for number in range(6):
        crew.submit(f"task {number}")
    crew.start(agents, at_once=2)
    crew.until(lambda: len(agents) == 2)
    crew.do(asyncio.sleep(1.2))  # two looks into the queue
    assert taken(crew) == 2
    assert len(crew.worker.tasks) == 2


def test_a_queue_allows_so_many_on_each_worker(crew_of):
    crew = crew_of(Queue("agents", per_worker=1), Queue("more", per_worker=2))
    agents = Agents(Agent.WAIT)
    for number in range(3):
        crew.submit(f"task {number}")
        crew.submit(f"more {number}", queue="more")
    crew.start(agents, "agents", "more", at_once=8)
    crew.until(lambda: len(agents) == 3)
    crew.do(asyncio.sleep(1.2))
    assert sorted(order.queue for order in agents.orders) == ["agents", "more", "more"]


def test_limits_of_models_are_kept(crew_of):
    crew = crew_of(Queue("agents", limits={"opus": "1 at once", "*": "2 at once"}))
    most, at_work = {}, {}

    def opened(order, cwd):
        async def turn(prompt):
            at_work[order.model] = at_work.get(order.model, 0) + 1
            most[order.model] = max(most.get(order.model, 0), at_work[order.model])
            await asyncio.sleep(0.05)
            at_work[order.model] -= 1
            return "done"

        return Agent(turn)

    tasks = [crew.submit(f"{n}", model=model) for n in range(4) for model in ("opus", "gpt")]
    crew.start(opened, at_once=8)
    for task in tasks:
        crew.result(task)
    assert most["opus"] == 1
    assert most["gpt"] <= 2


def test_a_queue_that_is_changed_keeps_what_waits_in_it(crew_of):
    """Models get and lose lanes of their own, and parts of a shared one."""
    crew = crew_of(Queue("agents", limits={"opus": "5 at once"}))
    tasks = [crew.submit(model) for model in ("opus", "gpt") for _ in range(2)]
    tasks += [crew.submit(model, model=model) for model in ("opus", "gpt")]
    crew.do(crew.fleet.define(Queue("agents", limits={"*": "9 at once"})))
    tasks += [crew.submit(model, model=model) for model in ("opus", "gpt")]
    crew.do(crew.fleet.define(Queue("agents", limits={"gpt": "9/s"})))
    tasks += [crew.submit(model, model=model) for model in ("opus", "gpt")]
    crew.start(Agents(), settings={"lease": 1.0}, at_once=8)
    for task in tasks:
        assert crew.result(task).ending == "done"


def test_people_reach_a_task_at_work_through_the_ledger(crew, url):
    agents = Agents(Agent.WAIT, Agent.WAIT)
    task = crew.submit()
    crew.start(agents)
    crew.until(lambda: agents and agents[0].waiting.is_set())
    other = Crew(url)
    try:
        other.do(other.fleet.say(task, "and that", key="k"))
        other.do(other.fleet.say(task, "and that", key="k"))
        other.do(other.fleet.steer(task, "only the parser"))
        crew.until(lambda: len(agents[0].got) == 2 and agents[0].waiting.is_set())
        assert agents[0].got[1] == "only the parser"
        agents[0].come_back(Turn(text="parser done"))
        crew.until(lambda: len(agents[0].got) == 3)
        assert agents[0].got[2] == "and that"
        assert crew.result(task).ending == "done"
        assert not other.do(other.fleet.kill(task))
    finally:
        other.close()


@pytest.mark.parametrize(("act", "ending"), [("kill", "killed"), ("interrupt", "interrupted")])
def test_people_end_a_task_at_work_for_good(crew, act, ending):
    agents = Agents(Agent.WAIT)
    task = crew.submit(retries=3)
    crew.start(agents)
    crew.until(lambda: agents and agents[0].waiting.is_set())
    assert crew.do(getattr(crew.fleet, act)(task))
    assert crew.result(task).ending == ending
    crew.drain()
    assert len(agents) == 1
    assert agents[0].aborts


def test_a_queued_task_that_was_killed_is_never_begun(crew):
    agents = Agents()
    task = crew.submit()
    assert crew.do(crew.fleet.kill(task))
    assert crew.result(task).ending == "killed"
    later = crew.submit()
    crew.start(agents)
    crew.result(later)
    assert len(agents) == 1


def test_gates_send_a_task_back_and_an_error_is_retried(crew):
    answers = [Turn(text="", stop_reason="error", error="overloaded")]
    agents = []

    def opened(order, cwd):
        agents.append(Agent(*answers, id=f"s{len(agents)}"))
        answers.clear()
        return agents[-1]

    blocks = [Block("more")]
    checks = gate(answer=lambda event: blocks.pop() if blocks else None)
    engine = Engine([checks], ledger=crew.fleet.ledger, warn=crew.warnings.append)
    task = crew.submit(retries=1)
    crew.start(opened, engine_of=lambda task: engine, settings={"lease": 1.0})
    result = crew.result(task)
    assert (result.ending, result.outcome) == ("done", "passed")
    assert [len(agent.got) for agent in agents] == [1, 2]
    assert result.steers == 1


def test_an_agent_that_cannot_be_opened_ends_its_task_with_the_reason(crew):
    task = crew.submit(agent="nobody", cwd="/nowhere")
    crew.start(open_session=None, engine_of=None)
    assert crew.result(task).error == "/nowhere is not a folder of this worker, nor a git address"
    task = crew.submit(agent="nobody")
    crew.drain()
    crew.start(_opened)
    result = crew.result(task)
    assert result.ending == "error"
    assert "nobody" in result.error
    assert "\n" not in result.error


def test_a_workspace_that_cannot_be_read_ends_its_task_with_the_reason(crew):
    task = crew.submit(cwd="ssh://127.0.0.1:1/srv")
    crew.start(Agents(), engine_of=None)
    result = crew.result(task)
    assert result.ending == "error"
    assert "ssh://127.0.0.1:1/srv cannot be read" in result.error


# A database that is away for longer than anyone waits.


def away(crew, monkeypatch, name):
    """Let one call of the ledger fail, after it was made."""
    real, faults = getattr(crew.fleet.placements, name), [LedgerError("x", "it is away")]

    def call(*args, **options):
        found = real(*args, **options)
        if faults:
            raise faults.pop()
        return found

    monkeypatch.setattr(crew.fleet.placements, name, call)


def test_a_task_is_begun_later_if_the_ledger_could_not_be_read(crew, monkeypatch):
    task = crew.submit()
    away(crew, monkeypatch, "order")
    crew.start(Agents(), settings={"ledger_patience": 0.0})
    assert crew.result(task).ending == "done"
    assert any("it is away (trying again)" in warning for warning in crew.warnings)


def test_a_task_goes_on_that_began_without_that_its_worker_heard_of_it(crew, monkeypatch):
    task = crew.submit()
    reopened, real, faults = Agent("reopened"), Placements.adopt, [LedgerError("x", "it is away")]

    def adopt(*args, **options):
        found = real(*args, **options)
        if faults:
            raise faults.pop()
        return found

    monkeypatch.setattr(Placements, "adopt", adopt)
    settings = {"ledger_patience": 0.0}
    crew.start(Agents(), settings=settings, reopen=lambda ref: reopened)
    assert crew.result(task).text == "reopened"
    assert reopened.got == ["do it"]


def test_a_worker_goes_on_when_the_database_has_crashed(crew, cluster):
    agents = Agents(Agent.WAIT)
    task, key = crew.submit(), {"key": "later"}
    crew.start(agents)
    crew.until(lambda: agents and agents[0].waiting.is_set())
    cluster.crash()
    later = crew.submit(**key)
    cluster.crash()
    assert crew.submit(**key) == later
    agents[0].come_back(Turn(text="survived"))
    assert crew.result(task).text == "survived"
    crew.until(lambda: len(agents) == 2 and agents[1].waiting.is_set())
    agents[1].come_back(Turn(text="too"))
    assert crew.result(later).text == "too"
    assert [agent.got for agent in agents] == [["do it"], ["do it"]]


# Ending a worker.


def test_a_worker_that_drains_takes_no_more_and_waits_for_its_tasks(crew):
    agents = Agents(Agent.WAIT)
    task = crew.submit()
    crew.start(agents)
    crew.until(lambda: agents and agents[0].waiting.is_set())
    crew.worker.drain()
    later = crew.submit()
    crew.do(asyncio.sleep(1.2))
    assert not crew.working.done()
    assert crew.fleet.placements.workers()[0]["draining"]
    agents[0].come_back(Turn(text="done"))
    crew.do(asyncio.wait({crew.working}))
    assert crew.result(task).ending == "done"
    assert crew.state(later) == "queued"
    crew.start(Agents())
    assert crew.result(later).ending == "done"


def test_a_worker_that_drains_gives_back_what_waits_for_room(crew_of):
    crew = crew_of(Queue("agents", limits={"*": "1/day"}))
    tasks = [crew.submit(), crew.submit()]
    crew.start(Agents())
    crew.result(tasks[0])
    # The engine's own limit is lifted, so that the worker has to wait for the ledger's.
    crew.fleet.placing.define(Queue("agents", limits={"*": "9/day"}))
    crew.until(lambda: crew.worker.tasks == {tasks[1]})
    crew.drain()
    assert crew.state(tasks[1]) == "queued"
    assert taken(crew) == 0


def test_a_worker_that_is_cancelled_leaves_its_tasks_to_others(crew):
    agents = Agents(Agent.WAIT)
    task = crew.submit(retries=1)
    waiting = crew.submit()
    crew.start(agents, at_once=1, is_bound=False)
    crew.until(lambda: agents and agents[0].waiting.is_set())
    crew.stop()
    assert agents[0].aborts == 1
    crew.start(Agents("second"), settings={"lease": 1.0}, reopen=lambda ref: Agent(knows=True))
    assert crew.result(task).text == "second"
    assert crew.result(waiting).text == "second"


def test_a_worker_can_be_cancelled_while_it_drains(crew):
    agents = Agents(Agent.WAIT)
    crew.submit()
    crew.start(agents)
    crew.until(lambda: agents and agents[0].waiting.is_set())
    crew.worker.drain()
    crew.until(lambda: crew.fleet.placements.workers()[0]["draining"])
    crew.stop()
    assert crew.working.cancelled()
    assert agents[0].aborts == 1


def test_a_worker_of_an_unknown_queue_is_refused(crew):
    worker = Worker(crew.fleet, ["agents", "nightly"])
    with pytest.raises(Refused, match=r"there is no queue 'nightly' \(there are: agents\)"):
        crew.do(worker.run())


def test_tasks_of_a_queue_without_workers_are_placed_by_those_of_others(crew_of):
    crew = crew_of(Queue("agents"), Queue("other"))
    task = crew.submit(queue="other")
    crew.fleet.ledger.connection.execute("UPDATE tasks SET placement = ''", ())
    crew.start(Agents())
    placed = "SELECT count(*) FROM tasks WHERE placement <> ''"
    crew.until(lambda: rows(crew.fleet.ledger, placed) == [(1,)])
    crew.drain()
    crew.start(Agents(), "other")
    assert crew.result(task).ending == "done"


def test_a_second_worker_in_one_process_is_refused_and_the_first_goes_on(crew, url):
    crew.start(Agents())
    other = Crew(url)
    try:
        with pytest.raises(Refused, match="this process has a worker already; start another"):
            other.do(Worker(other.fleet, ["agents"]).run())
    finally:
        other.close()
    assert crew.result(crew.submit()).ending == "done"


def test_a_worker_ends_when_a_newer_notyet_has_updated_the_tables(crew):
    agents = Agents(Agent.WAIT)
    crew.submit("do it")
    crew.start(agents)
    crew.until(lambda: agents and agents[0].got)
    with opened(crew.fleet.ledger) as db:
        db.execute("UPDATE ledger_version SET version = version + 1")
    crew.until(crew.working.done)
    with pytest.raises(LedgerNewer, match="upgrade notyet"):
        crew.working.result()
    assert agents[0].aborts


@pytest.mark.rule("K7")
def test_a_task_that_ended_with_an_error_begins_again_at_once(crew):
    answers = iter([Turn(text="", stop_reason="error", error="overloaded"), "done"])
    task = crew.submit("do it", retries=1)
    # The next sweep would be minutes away.
    crew.start(lambda order, cwd: Agent(next(answers)), settings={"lease": 600.0})
    result = crew.result(task)
    assert (result.ending, result.generation) == ("done", 2)
