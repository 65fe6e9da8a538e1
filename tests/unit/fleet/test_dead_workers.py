"""Workers that die by kill -9: nothing is lost, nothing is sent twice, and that is announced."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import crew_member
from crew_member import Writing, prompts
from notyet.core.task import Room
from notyet.ledger.leases import Leases
from support import rows

PROGRAM = crew_member.__file__
SHORT = {"lease": 1.5}


@pytest.fixture
def member(url, crew, tmp_path):
    """Return what starts a worker in another process, and waits until the fleet knows it."""
    started = []

    def start(where="", machine=""):
        command = [sys.executable, PROGRAM, url, str(tmp_path), where, machine]
        path = os.pathsep.join([str(Path(PROGRAM).parent), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path})
        started.append(process)
        count = len(started)
        crew.until(lambda: len(crew.fleet.placements.workers()) >= count or process.poll())
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def killed(process):
    process.kill()
    process.wait()


def survivor(crew, tmp_path, **options):
    """Start the worker of this process."""
    known = {"reopen": crew_member.reopen, "settings": SHORT}
    crew.start(lambda order, cwd: Writing(tmp_path), **(known | options))


def waits(crew, path):
    crew.until(path.exists)


def test_a_worker_that_dies_before_it_begins_a_task_leaves_it_to_another(crew, member, tmp_path):
    task = crew.submit()
    process = member("opening")
    waits(crew, tmp_path / "opening")
    killed(process)
    survivor(crew, tmp_path)
    assert crew.result(task).text == f"done by {os.getpid()}"
    assert [prompt for _, prompt, _ in prompts(tmp_path)] == ["do it"]


def test_a_turn_that_died_with_its_worker_is_not_sent_again_but_announced(crew, member, tmp_path):
    task, retried = crew.submit("wait"), crew.submit("wait, too", retries=1)
    process = member()
    crew.until(lambda: len(prompts(tmp_path)) == 2)
    killed(process)
    (tmp_path / "go").touch()
    survivor(crew, tmp_path)
    result = crew.result(task)
    assert result.ending == "interrupted"
    assert result.error
    assert crew.result(retried).text == f"done by {os.getpid()}"
    assert sorted(prompt for _, prompt, _ in prompts(tmp_path)) == ["wait", *["wait, too"] * 2]
    assert len({key for key, _, _ in prompts(tmp_path)}) == 3


def test_a_task_whose_turn_had_ended_goes_on_where_it_was(crew, member, tmp_path):
    task = crew.submit()
    process = member("gating")
    waits(crew, tmp_path / "gating")
    killed(process)
    survivor(crew, tmp_path)
    assert crew.result(task).text == f"done by {process.pid}"
    assert len(prompts(tmp_path)) == 1


def test_a_worker_that_dies_when_a_task_has_ended_loses_no_result(crew, member, tmp_path):
    task = crew.submit()
    process = member("ended")
    process.wait()
    survivor(crew, tmp_path)
    crew.until(lambda: crew.fleet.placements.orphans() == [])
    assert crew.result(task).text == f"done by {process.pid}"
    assert len(prompts(tmp_path)) == 1


def test_a_conversation_of_a_machine_that_is_gone_ends_interrupted(crew, member, tmp_path):
    """The lease tells that it is gone, by the clock of the database."""
    task, retried = crew.submit("wait"), crew.submit("wait, too", retries=1)
    process = member(machine="other")
    crew.until(lambda: len(prompts(tmp_path)) == 2)
    killed(process)
    (tmp_path / "go").touch()
    survivor(crew, tmp_path)
    assert crew.result(task).ending == "interrupted"
    assert crew.result(retried).text == f"done by {os.getpid()}"


def test_a_conversation_stays_on_its_machine_while_a_worker_lives_there(crew, member, tmp_path):
    task = crew.submit()
    first = member("gating", machine="other")
    waits(crew, tmp_path / "gating")
    member(machine="other")
    survivor(crew, tmp_path)
    killed(first)
    crew.result(task)
    names = "SELECT owners.machine FROM owners JOIN tasks ON tasks.owner = owners.id"
    assert rows(crew.fleet.ledger, names) == [("other",)]


def test_a_conversation_that_is_not_bound_goes_on_anywhere(crew, tmp_path):
    """What a worker of another machine left, whose sessions can be reopened from here."""
    task = crew.submit()
    ledger = crew.fleet.ledger
    owner = Leases(ledger.connection).enrol(1000.0, program="fleet")
    seen, _ = crew.fleet.placements.order(task)
    session, adopt = Writing(tmp_path), crew.fleet.placements.adopt
    room = Room()
    assert adopt(seen.task, owner, session.ref(), "", key="k", machine="", room=room) == 0
    Leases(ledger.connection).retire(owner)
    survivor(crew, tmp_path)
    assert crew.result(task).ending == "done"
    assert [key for key, _, _ in prompts(tmp_path)] == ["k"]


def test_what_a_dead_worker_left_comes_before_what_is_queued(crew, tmp_path):
    """Else a worker that always has something to do would never take it over."""
    ledger, placements = crew.fleet.ledger, crew.fleet.placements
    owner = Leases(ledger.connection).enrol(1000.0, program="fleet")
    left = [crew.submit(f"left {number}") for number in range(3)]
    for task in left:
        seen, _ = placements.order(task)
        ref = Writing(tmp_path).ref()
        assert placements.adopt(seen.task, owner, ref, "", key=task, machine="", room=Room()) == 0
    crew.submit("wait", priority=1)
    survivor(crew, tmp_path, at_once=1)
    crew.until(lambda: prompts(tmp_path))
    queued = crew.submit("queued")
    Leases(ledger.connection).retire(owner)
    crew.until(lambda: crew.worker._reserved == len(left))
    (tmp_path / "go").touch()
    crew.result(queued)
    sent = [prompt for _, prompt, _ in prompts(tmp_path)]
    assert sent[0] == "wait"
    assert sorted(sent[1:4]) == ["left 0", "left 1", "left 2"]
    assert sent[4:] == ["queued"]


def test_a_schedule_is_submitted_once_for_each_time_though_two_workers_run(crew, member, tmp_path):
    crew.do(crew.fleet.schedule("often", "* * * * * *", "tick", agent="a", queue="agents"))
    member()
    survivor(crew, tmp_path)
    crew.until(lambda: len(prompts(tmp_path)) >= 3)
    crew.do(crew.fleet.unschedule("often"))
    counts = "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM begins)"
    crew.until(lambda: len({*rows(crew.fleet.ledger, counts)[0], len(prompts(tmp_path))}) == 1)
    keys = [key for key, _, _ in prompts(tmp_path)]
    assert len(keys) == len(set(keys))
