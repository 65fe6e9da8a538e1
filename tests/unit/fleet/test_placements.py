"""Tasks in queues: entered once, begun once within limits, taken over, queued again."""

import subprocess
import sys
import threading
import time

import pytest

from crews import Office
from notyet.core.event import Usage
from notyet.core.session import Turn
from notyet.core.task import Room
from notyet.errors import Refused
from notyet.ledger.leases import Leases
from notyet.ledger.placements import note_placement, unplaced
from stores import opened, place
from supervised import first_run
from support import rows

PLACEMENTS = "SELECT id, placement FROM tasks ORDER BY id"


# Entering.


def test_a_task_waits_in_its_queue_until_a_worker_begins_it(office):
    assert office.enter(model="opus", retries=2, label="fix it")
    seen, order = office.placements.order("t1")
    assert (seen.run.state, seen.owner, seen.queue, seen.retries) == ("queued", 0, "agents", 2)
    assert (order.agent, order.model, order.priority) == ("x", "opus", 5)
    assert office.placements.counts() == {("agents", "opus"): (1, 0)}
    assert office.placements.states(["t1", "t2"]) == {"t1": "queued"}
    assert office.placements.states([]) == {}
    assert office.adopt(machine="m1", cwd="/clone") == 0
    seen, _ = office.placements.order("t1")
    assert (seen.run.state, seen.run.key, seen.owner) == ("running", "key of t1", office.owner)
    assert (seen.task.cwd, seen.session_id) == ("/clone", "s1")
    assert rows(office.ledger, "SELECT machine, begun FROM tasks") == [("m1", 1)]
    assert office.placements.counts() == {("agents", "opus"): (0, 1)}
    office.end()
    assert office.placements.counts() == {}


def test_a_task_is_entered_once(office):
    assert office.enter(placement="p1")
    assert not office.enter(placement="p2", prompt="something else")
    assert rows(office.ledger, PLACEMENTS) == [("t1", "p1")]
    assert office.tasks.look("t1").task.prompt == "do it"


def test_nothing_is_entered_in_an_unknown_queue(office):
    with pytest.raises(Refused, match=r"no queue 'nightly' \(there are: agents\); define it"):
        office.enter(queue="nightly")
    assert office.tasks.look("t1") is None


def test_any_text_survives_the_queue(office):
    prompt = "nul \0, escape \x1a0, a surrogate \ud800, quotes ' \" %s ?"
    office.enter(prompt=prompt)
    kept = office.tasks.look("t1")
    assert kept.run.prompt == prompt.replace("\ud800", "?")  # which is sent


def test_a_task_that_is_not_of_a_fleet_has_no_order(office):
    assert office.placements.order("t9") is None


def test_a_queue_is_changed_by_defining_it_again(office):
    office.placements.define("agents", {"name": "agents", "priority": 7})
    office.placements.define("b", {"name": "b"})
    assert office.placements.queues() == {
        "agents": {"name": "agents", "priority": 7},
        "b": {"name": "b"},
    }


# Beginning.


def test_a_task_is_begun_once(office):
    office.enter()
    other = office.leases.enrol(1000.0)
    assert office.adopt() == 0
    assert office.adopt(owner=other) is None
    assert office.tasks.look("t1").owner == office.owner
    assert office.adopt("t9") is None


def test_a_task_that_a_person_ended_is_not_begun(office):
    office.enter()
    office.runs.end("t1", 0, "killed")
    assert office.adopt() is None
    assert office.state() == "ended"


def test_only_so_many_are_at_work_at_once(office):
    for name in ("t1", "t2", "t3"):
        office.enter(name, model="opus")
    office.enter("t4", model="gpt")
    two = Room(at_once=2, model="opus")
    assert [office.adopt(name, room=two) for name in ("t1", "t2")] == [0, 0]
    assert office.adopt("t3", room=two) > 0
    assert office.state("t3") == "queued"
    assert office.adopt("t4", room=Room(at_once=1, model="gpt")) == 0
    office.end("t1")
    assert office.adopt("t3", room=two) == 0


def test_a_limit_of_the_whole_queue_counts_every_model_but_no_other_queue(office):
    office.placements.define("other", {"name": "other"})
    office.enter("t1", model="opus")
    office.enter("t2", model="gpt")
    office.enter("t3", queue="other")
    assert office.adopt("t1", room=Room(at_once=1)) == 0
    assert office.adopt("t2", room=Room(at_once=1)) > 0
    assert office.adopt("t3", room=Room(at_once=1)) == 0


def test_only_so_many_begin_in_a_period_however_soon_they_end(office):
    room = Room(rate=2, period=60.0, model="opus")
    for name in ("t1", "t2", "t3"):
        office.enter(name, model="opus")
    for name in ("t1", "t2"):
        assert office.adopt(name, room=room) == 0
        office.end(name)
    assert 0 < office.adopt("t3", room=room) <= 60.0
    assert office.placements.begun_within("agents", "opus", 60.0) == 2
    assert office.placements.begun_within("agents", "gpt", 60.0) == 0
    assert office.placements.begun_within("agents", None, 60.0) == 2
    with opened(office.ledger) as db:  # an hour later
        db.execute("UPDATE begins SET at = at - 3600")
    assert office.adopt("t3", room=room) == 0


def test_the_clock_of_a_worker_does_not_count(office, monkeypatch):
    """A worker whose clock is a day ahead begins no more than others."""
    room = Room(rate=1, period=60.0, model="")
    office.enter("t1")
    office.enter("t2")
    assert office.adopt("t1", room=room) == 0
    monkeypatch.setattr("time.time", lambda now=time.time: now() + 86_400)
    assert 0 < office.adopt("t2", room=room) <= 60.0


def test_adopters_at_once_never_exceed_a_limit(office, tmp_path):
    tasks = [f"t{number}" for number in range(24)]
    for task in tasks:
        office.enter(task)
    begun, barrier = [], threading.Barrier(4)
    room = Room(at_once=5, rate=7, model="")

    def work(number):
        mine = Office(tmp_path)
        barrier.wait()
        begun.extend(task for task in tasks[number::2] if mine.adopt(task, room=room) == 0)
        mine.ledger.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == len(set(begun)) == 5
    assert office.placements.counts() == {("agents", ""): (19, 5)}


def test_processes_at_once_never_exceed_a_rate(office, tmp_path):
    for number in range(12):
        office.enter(f"t{number}")
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from crews import *
from notyet import Ledger
from notyet.ledger.leases import Leases
ledger = Ledger({place(tmp_path / "ledger.db")!r})
owner, placements = Leases(ledger.connection).enrol(1000.0), Placements(ledger)
sys.stdin.readline()
for number in range(12):
    task = Task(id=f"t{{number}}", prompt="do it", scope="agent")
    room = Room(rate=4, period=3600.0, model="")
    known = dict(key=f"{{owner}} {{number}}", machine="", room=room)
    if placements.adopt(task, owner, {{}}, "", **known) == 0:
        print(task.id)
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([sys.executable, "-c", code], **pipes) for _ in range(3)]
    begun = [task for process in started for task in process.communicate("\n")[0].split()]
    assert len(begun) == len(set(begun)) == 4
    assert office.placements.counts() == {("agents", ""): (8, 4)}


# Placing anew.


def test_a_queued_task_can_be_placed_anew_by_one_process(office):
    office.enter(placement="p1")
    place_anew = lambda name: office.ledger.connection.write(
        lambda db: [note_placement(db, task, name) for task, _ in unplaced(db, 10)]
    )
    assert place_anew("p2") == []
    assert not office.placements.unplace("t1", "p0")
    assert office.placements.unplace("t1", "p1")
    assert place_anew("p2") == [True]
    assert not office.placements.unplace("t1", "p1")
    assert rows(office.ledger, PLACEMENTS) == [("t1", "p2")]


def test_a_task_that_was_begun_is_not_placed_anew(office):
    office.enter(placement="")
    write = office.ledger.connection.write
    office.adopt()
    assert not office.placements.unplace("t1", "")
    assert not write(lambda db: note_placement(db, "t1", "p2"))
    assert not write(lambda db: note_placement(db, "t9", "p2"))


def test_no_more_are_placed_at_once_than_asked_for(office):
    for name in ("t3", "t1", "t2"):
        office.enter(name, placement="")
    found = office.ledger.connection.write(lambda db: unplaced(db, 2))
    assert [task for task, _ in found] == ["t1", "t2"]


# Workers that die.


def test_a_task_of_a_living_worker_is_no_orphan_and_of_a_dead_one_it_is(office):
    office.enter("t1")
    office.enter("t2")
    office.adopt("t1", machine="m1")
    assert office.placements.orphans() == []
    office.leases.retire(office.owner)
    assert [(found.task, found.machine) for found in office.placements.orphans()] == [("t1", "m1")]


def test_a_task_whose_observers_were_not_notified_is_an_orphan_too(office):
    office.enter()
    office.adopt()
    office.end()
    office.leases.retire(office.owner)
    assert [found.task for found in office.placements.orphans()] == ["t1"]


def test_a_task_that_was_ended_while_it_was_queued_is_no_orphan(office):
    office.enter()
    office.runs.end("t1", 0, "killed")
    assert office.placements.orphans() == []


def test_an_orphan_is_claimed_once_and_a_queued_task_never(office):
    office.enter("t1")
    office.enter("t2")
    office.adopt("t1")
    office.leases.retire(office.owner)
    one, two = office.leases.enrol(1000.0), office.leases.enrol(1000.0)
    assert office.tasks.claim(one, "t1") == ["t1"]
    assert office.tasks.claim(two, "t1") == []
    assert office.tasks.claim(two, "t2") == []
    assert office.state("t2") == "queued"


def test_workers_that_live_are_known_with_what_they_say(office):
    fleet = Leases(office.ledger.connection)
    owner = fleet.enrol(1000.0, program="fleet")
    office.placements.describe(owner, {"id": "w1", "name": "box"})
    fleet.enrol(1000.0, program="fleet")  # has said nothing yet
    assert {"id": "w1", "name": "box"} in office.placements.workers()
    assert len(office.placements.workers()) == 2
    fleet.retire(owner)
    assert office.placements.workers() == [{}]


# People.


@pytest.mark.parametrize("ending", ["killed", "interrupted", "reset"])
def test_a_person_ends_a_queued_task_and_its_result_waits(office, ending):
    office.enter(retries=5)
    office.runs.say("t1", "user", "k", "also that", "k2")
    office.runs.end("t1", 0, ending)
    result = office.result()
    assert (result.ending, result.outcome, result.unsent) == (ending, "skipped", ("also that",))
    assert [task for task, _ in office.outbox.untaken()] == ["t1"]
    assert office.placements.counts() == {}


def test_a_queued_task_cannot_be_steered_but_told_something(office):
    office.enter()
    with pytest.raises(Refused, match="t1 is queued, and has no turn to abort; say it instead"):
        office.runs.steer("t1", 0, "k", "other", 0.0)
    office.runs.say("t1", "user", "k", "also that", "k2")
    office.adopt()
    assert office.runs.finish("t1.1", Turn(text="x"), "done", office.owner)
    assert office.runs.settle("t1.1", office.owner, "k3")
    assert office.tasks.look("t1").steer.prompt == "also that"


def test_a_queued_task_is_seen_in_lists(office):
    office.enter(model="opus")
    (view,) = office.tasks.views()
    assert (view.state, view.queue, view.model, view.owner_alive) == (
        "queued",
        "agents",
        "opus",
        False,
    )


# Retries.


def ended(office, ending, **more):
    """Let the owner end the only task."""
    return office.runs.end("t1", office.owner, ending, error="boom", **more)


def test_an_interrupted_task_is_queued_again_while_it_has_retries(office):
    office.enter(retries=1)
    office.adopt(machine="m1")
    assert ended(office, "interrupted") is None
    seen, order = office.placements.order("t1")
    assert (seen.run.id, seen.run.state, seen.run.prompt) == ("t1.2", "queued", "do it")
    assert (seen.owner, seen.session_id, dict(seen.ref), seen.retries) == (0, "", {}, 0)
    assert rows(office.ledger, "SELECT placement, machine, begun FROM tasks") == [("", "", 0)]
    assert order.retries == 1
    assert office.result() is None
    assert office.adopt() == 0
    assert ended(office, "interrupted").ending == "interrupted"
    assert office.state() == "ended"


def test_an_error_is_retried_and_the_result_has_the_figures_of_all_runs(office):
    office.enter(retries=1)
    office.adopt()
    spent = {"usage": Usage(input=5), "tools": ("bash",), "tool_calls": 2, "turns": 3}
    office.finish(ending="error", text="", stop_reason="error", error="overloaded", **spent)
    office.decide("skipped")
    assert office.state() == "queued"
    assert office.adopt(key="other") == 0
    office.finish(generation=2, usage=Usage(input=7), tools=("edit",), tool_calls=1, turns=1)
    office.decide("passed", generation=2)
    result = office.result()
    assert (result.ending, result.outcome, result.generation) == ("done", "passed", 2)
    assert (result.usage.input, result.tools, result.tool_calls) == (12, ("bash", "edit"), 3)
    assert (result.turns, result.last_run.turns) == (4, 1)


@pytest.mark.parametrize("ending", ["killed", "interrupted", "reset"])
def test_a_task_that_a_person_ended_is_not_retried(office, ending):
    office.enter(retries=5)
    office.adopt()
    assert office.runs.end("t1", 0, ending).ending == ending
    assert office.state() == "ended"


@pytest.mark.parametrize("outcome", ["passed", "capped", "stuck", "failed_open", "halted"])
def test_a_task_that_gates_let_go_is_not_retried(office, outcome):
    office.enter(retries=5)
    office.adopt()
    office.finish(ending="error", text="", stop_reason="error", error="boom")
    assert office.decide(outcome)
    assert (office.state(), office.result().ending) == ("ended", "error")


def test_a_timeout_is_not_retried(office):
    office.enter(retries=5)
    office.adopt()
    office.finish(ending="timeout", text="", stop_reason="error", error="no end")
    office.decide("skipped")
    assert office.result().ending == "timeout"


def test_what_the_user_said_and_was_not_sent_is_sent_in_the_next_run(office):
    office.enter(retries=1)
    office.adopt()
    office.runs.say("t1", "user", "k", "also that", "k2")
    assert office.runs.finish("t1.1", Turn(text="x"), "done", office.owner)
    assert office.runs.settle("t1.1", office.owner, "k3")  # it is reserved, and not sent
    ended(office, "interrupted")
    assert office.adopt(key="other") == 0
    office.finish(generation=2)
    assert office.tasks.look("t1").steer.prompt == "also that"


def test_a_task_without_a_queue_is_not_retried(office):
    start, limits = office.tasks.start, {"max_depth": 1, "max_children": 1}
    start(office.task(), first_run("t1"), office.owner, {}, "", **limits)
    assert ended(office, "interrupted").ending == "interrupted"


# Results.


def test_results_stay_until_they_are_taken_in_the_order_in_which_tasks_ended(office):
    for name in ("t2", "t1", "t3"):
        office.enter(name)
        office.adopt(name)
        office.end(name)
    assert [task for task, _ in office.outbox.untaken()] == ["t2", "t1", "t3"]
    assert [task for task, _ in office.outbox.untaken(1)] == ["t2"]
    office.outbox.acknowledge("t2")
    assert [task for task, _ in office.outbox.untaken()] == ["t1", "t3"]
    assert set(office.outbox.results(["t1", "t2", "t9"])) == {"t1", "t2"}


def test_results_of_other_programs_are_not_the_fleets(office):
    start, limits = office.tasks.start, {"max_depth": 1, "max_children": 1}
    start(office.task(), first_run("t1"), office.owner, {}, "", **limits)
    office.end()
    assert office.outbox.untaken() == []
