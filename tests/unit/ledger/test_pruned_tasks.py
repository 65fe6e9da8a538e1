"""Tasks that ended long ago are forgotten, however many others have to stay."""

import time

import pytest

from hook_runs import gate, new_project, payload, query, run_hook
from notyet import Ledger
from notyet.ledger import prune as task_prune
from notyet.ledger.prune import Retention, prune, tidy
from support import decide, rows, stop

DAY = 86_400.0


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db")


def fill(ledger, statuses, ref="{}"):
    """Enter tasks that ended 200 days ago, whose results have these statuses."""
    at = time.time() - 200 * DAY

    def enter(db):
        db.executemany(
            "INSERT INTO tasks (id, parent, about, owner, run, generation, ref, session_id,"
            " created_at, ended_at) VALUES (?, '', '{}', 1, 'r', 1, ?, 's', ?, ?)",
            [(f"t{n:06}", ref, at + n, at + n) for n in range(len(statuses))],
        )
        db.executemany(
            "INSERT INTO outbox (key, task, parent, result, status, owner, next_at, created_at)"
            " VALUES (?, ?, '', '{}', ?, 1, 0, 0)",
            [(f"k{n:06}", f"t{n:06}", status) for n, status in enumerate(statuses)],
        )

    ledger.connection.write(enter)


def left(ledger):
    return rows(ledger, "SELECT count(*) FROM tasks")[0][0]


def test_all_go_that_can_go_among_many_that_must_stay(ledger, monkeypatch):
    monkeypatch.setattr(task_prune, "_LOOKED_AT", 10)
    fill(ledger, [*["suspended"] * 95, "delivered", *["suspended"] * 9, *["delivered"] * 700])
    assert prune(ledger, Retention()).tasks == 701
    assert rows(ledger, "SELECT DISTINCT status, count(*) FROM outbox") == [("suspended", 104)]


def test_tasks_of_one_moment_are_told_apart(ledger, monkeypatch):
    monkeypatch.setattr(task_prune, "_LOOKED_AT", 3)
    fill(ledger, ["suspended", "delivered"] * 20)
    ledger.connection.write(lambda db: db.execute("UPDATE tasks SET created_at = 5, ended_at = 6"))
    assert prune(ledger, Retention()).tasks == 20


def test_tidying_up_looks_at_a_few_and_gets_to_all_in_time(ledger, monkeypatch):
    monkeypatch.setattr(task_prune, "_LOOKED_AT", 10)
    fill(ledger, [*["suspended"] * 50, *["delivered"] * 40, *["suspended"] * 50])
    tidy(ledger, Retention())
    assert left(ledger) >= 120  # two looks at most, at the end and at the beginning
    for _ in range(1_000):  # each of them sees a few of fourteen parts
        tidy(ledger, Retention())
        if left(ledger) == 100:
            break
    assert rows(ledger, "SELECT DISTINCT status, count(*) FROM outbox") == [("suspended", 100)]


def test_wherever_it_begins_a_few_are_all_looked_at(ledger):
    fill(ledger, ["delivered"] * 50)
    tidy(ledger, Retention())
    assert left(ledger) == 0


def test_among_very_many_those_with_a_transcript_wait_for_a_person(ledger, monkeypatch):
    monkeypatch.setattr(task_prune, "_MANY", 20)
    fill(ledger, ["delivered"] * 21, '{"transcript": "/x/y.jsonl"}')
    tidy(ledger, Retention())
    assert left(ledger) == 21
    ledger.connection.write(
        lambda db: db.execute("UPDATE tasks SET ref = '{}' WHERE id = 't000003'")
    )
    tidy(ledger, Retention())
    assert left(ledger) == 20
    tidy(ledger, Retention())  # which are few
    assert left(ledger) == 0
    fill(ledger, ["delivered"] * 21, '{"transcript": "/x/y.jsonl"}')
    assert prune(ledger, Retention()).tasks == 21


def test_what_was_tidied_up_before_the_tasks_took_too_long_stays_so(ledger, monkeypatch):
    for n in range(150):
        decide(ledger, stop(session_id=f"s{n}"), "passed", at=time.time() - 100 * DAY)

    class OutOfTime(BaseException):
        pass

    def late(*_):
        raise OutOfTime

    monkeypatch.setattr("notyet.ledger.prune.tidy_tasks", late)
    with pytest.raises(OutOfTime):
        tidy(ledger, Retention())
    assert rows(ledger, "SELECT count(*) FROM stops") == [(100,)]


def test_a_hook_forgets_tasks_behind_thousands_of_results_that_nobody_took(tmp_path):
    folder = new_project(tmp_path / "p", gate("true"))
    ledger = Ledger()
    for _ in range(49):
        decide(ledger, stop(), "passed")
    fill(ledger, [*["suspended"] * 30_000, *["delivered"] * 30_000])
    ledger.close()
    assert run_hook(payload("claude", folder)).returncode == 0
    ((count,),) = query("SELECT count(*) FROM tasks")
    assert 59_000 <= count <= 60_000


def test_the_look_at_tasks_is_by_an_index(ledger):
    fill(ledger, ["delivered"])
    place = (-1.0, "")
    further = rows(ledger, f"EXPLAIN QUERY PLAN {task_prune._FURTHER}", *place, 5.0, 9)
    old = rows(ledger, f"EXPLAIN QUERY PLAN {task_prune._OLD}", *place, 5.0, "", 5.0, True, 9)
    for plan in (further, old):
        steps = [step for *_, step in plan]
        assert any("tasks_by_time ((created_at,id)>(?,?)" in step for step in steps)
        assert not any(step == "SCAN tasks" for step in steps)


def test_tidying_up_counts_no_more_tasks_the_more_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(task_prune, "_MANY", 20)
    monkeypatch.setattr(task_prune, "_LOOKED_AT", 10)
    steps = {100: 0, 3_000: 0}
    for count in steps:
        ledger = Ledger(tmp_path / f"{count}.db")
        fill(ledger, ["suspended"] * count)

        def step(count=count):
            steps[count] += 1

        def look(db, step=step):
            db.set_progress_handler(step, 100)
            task_prune.tidy_tasks(db, time.time(), 5)
            db.set_progress_handler(None, 0)

        ledger.connection.write(look)
    assert steps[3_000] < 3 * steps[100] + 10, steps


def test_owners_that_are_gone_are_forgotten_where_no_task_is_old(ledger):
    ledger.connection.write(
        lambda db: db.execute(
            "INSERT INTO owners (pid, pid_start, boot, space, program, lease_until)"
            " VALUES (1, '', '', '', '', 5)"
        )
    )
    tidy(ledger, Retention())
    assert rows(ledger, "SELECT count(*) FROM owners") == [(0,)]
