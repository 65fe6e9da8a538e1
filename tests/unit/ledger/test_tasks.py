"""Supervised tasks in the ledger: entered, listed, and taken over from the dead."""

import subprocess
import sys

import pytest

from notyet import Allow, Decision
from notyet.core.session import Turn
from notyet.errors import Refused
from notyet.ledger import tasks
from support import rows

PASS = Decision(verdict=Allow(), outcome="passed")
DONE = Turn(text="done")


def test_a_task_is_read_as_it_was_entered(desk):
    about = {"label": "l", "agent_type": "coder", "cwd": "/here", "timeout": 1.5, "depth": 1}
    run = desk.enter("t1", "s1", {"pid": 7}, cleanup="delete", internal=True, **about).run
    seen = desk.tasks.look("t1")
    assert (seen.task.label, seen.task.cwd, seen.task.timeout) == ("l", "/here", 1.5)
    assert (seen.task.cleanup, seen.task.internal, seen.task.depth) == ("delete", True, 1)
    assert (seen.ref, seen.session_id, seen.owner, seen.user_turn) == ({"pid": 7}, "s1", 1, 1)
    assert (seen.run.id, seen.run.key, seen.run.sent) == (run.id, run.key, "reserved")
    assert seen.run.started_at > 0
    assert desk.tasks.look("t9") is None


def test_a_task_with_odd_texts_can_be_kept(desk):
    desk.enter("t1", "s\ud800", {"odd": "\ud800"}, label="\udfff", cwd="/\udce4")
    assert desk.tasks.look("t1").task.id == "t1"
    assert [view.task.id for view in desk.tasks.views()] == ["t1"]


@pytest.mark.rule("K13")
def test_depth_and_children_are_limited_in_the_ledger_itself(desk):
    desk.enter("p")
    with pytest.raises(Refused, match="agents may be nested 2 deep, and this one would be deeper"):
        desk.enter("deep", parent="p", depth=3, limit=2)
    desk.enter("c1", parent="p", depth=1, limit=2)
    desk.enter("c2", parent="p", depth=1, limit=2)
    with pytest.raises(Refused, match="2 children are at work already, of 2 at once"):
        desk.enter("c3", parent="p", depth=1, limit=2)
    desk.end("c1")
    desk.enter("c3", parent="p", depth=1, limit=2)
    desk.runs.end("p", desk.owner, "killed")
    with pytest.raises(
        Refused, match="the parent task p has ended; its result could not be delivered"
    ):
        desk.enter("c4", parent="p", depth=1, limit=2)
    with pytest.raises(Refused, match="the parent task nobody has ended"):
        desk.enter("c5", parent="nobody", depth=1, limit=2)
    assert rows(desk.ledger, "SELECT count(*) FROM tasks") == [(4,)]


@pytest.mark.rule("K9")
def test_children_are_waited_for_while_active_and_unheard_until_delivered(desk):
    desk.enter("p")
    desk.enter("c1", parent="p")
    desk.enter("c2", parent="p")
    for until in ("ended", "notified", "delivered"):
        assert sorted(desk.tasks.children("p", until)) == ["c1", "c2"]
    desk.end("c1")
    assert desk.tasks.children("p", "ended") == ["c2"]
    assert sorted(desk.tasks.children("p", "notified")) == ["c1", "c2"]
    desk.outbox.told("c1", desk.owner)
    assert desk.tasks.children("p", "notified") == ["c2"]
    assert sorted(desk.tasks.children("p", "delivered")) == ["c1", "c2"]
    desk.outbox.acknowledge("c1")
    desk.end("c2")
    desk.outbox.suspend("c2:1", desk.owner, "hopeless")
    assert not any(desk.tasks.children("p", until) for until in ("notified", "delivered"))


@pytest.mark.rule("C3")
def test_descendants_are_found_through_what_has_ended_and_the_deepest_come_first(desk):
    desk.enter("p")
    desk.enter("c", parent="p")
    desk.enter("g", parent="c")
    desk.enter("other")
    assert desk.tasks.descendants("p") == ["g", "c"]
    desk.end("c")
    assert desk.tasks.descendants("p") == ["g"]
    assert desk.tasks.descendants("g") == []


@pytest.mark.rule("K14")
def test_a_session_is_known_once_it_worked_on_a_task(desk):
    desk.enter("t1")
    assert not desk.tasks.knows_session("s1")
    assert desk.tasks.note_session("t1", desk.owner, {"id": "s1"}, "s1")
    assert desk.tasks.knows_session("s1")
    # Counts hang on the first id: another does not replace it.
    assert desk.tasks.note_session("t1", desk.owner, {"id": "s2"}, "s2")
    seen = desk.tasks.look("t1")
    assert (seen.session_id, seen.ref) == ("s1", {"id": "s2"})


@pytest.mark.rule("K7")
def test_a_prompt_is_marked_before_it_is_sent_and_only_while_its_run_is_at_work(desk):
    run = desk.enter("t1").run
    assert desk.tasks.mark_sent(run, desk.owner, "dispatched")
    assert desk.tasks.look("t1").run.sent == "dispatched"
    assert desk.tasks.mark_sent(run, desk.owner, "accepted")
    assert desk.tasks.look("t1").run.sent == "accepted"
    desk.runs.end("t1", desk.owner, "killed")
    assert not desk.tasks.mark_sent(run, desk.owner, "dispatched")


@pytest.mark.rule("K18")
def test_only_what_belongs_to_the_dead_is_claimed(desk):
    living, dead, heir = desk.leases.enrol(1000.0), desk.leases.enrol(1000.0), desk.owner
    desk.enter("theirs", owner=living)
    desk.enter("left", owner=dead)
    desk.enter("mine")
    assert desk.tasks.claim(heir) == []
    desk.leases.retire(dead)
    assert desk.tasks.claim(heir) == ["left"]
    assert desk.tasks.claim(heir) == []
    assert [desk.tasks.look(task).owner for task in ("theirs", "left")] == [living, heir]
    assert not desk.leases.renew(dead, 1000.0)
    assert desk.leases.renew(living, 1000.0)


@pytest.mark.rule("K18")
def test_a_process_that_is_gone_has_lost_its_tasks_before_its_lease_ran_out(desk):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    dead = desk.leases.enrol(1000.0)
    rows(desk.ledger, "UPDATE owners SET pid = ? WHERE id = ?", child.pid, dead)
    desk.enter("left", owner=dead)
    assert desk.tasks.claim(desk.owner) == ["left"]


@pytest.mark.rule("K18", "K8")
def test_results_that_the_dead_did_not_deliver_are_claimed_and_their_tasks_with_them(desk):
    desk.enter("sent")
    desk.end("sent")
    desk.outbox.acknowledge("sent")
    desk.enter("leased")
    desk.end("leased")
    assert desk.outbox.lease("leased", desk.owner)
    desk.leases.retire(desk.owner)
    heir = desk.leases.enrol(1000.0)
    assert desk.tasks.claim(heir) == ["leased"]
    assert desk.tasks.look("leased").owner == heir
    found = rows(desk.ledger, "SELECT task, owner, status FROM outbox ORDER BY task")
    assert found == [("leased", heir, "pending"), ("sent", desk.owner, "delivered")]


@pytest.mark.rule("K18")
def test_an_owner_that_was_taken_for_dead_keeps_what_was_not_claimed(desk):
    late = desk.leases.enrol(0.0)
    desk.enter("taken", owner=late)
    desk.leases.retire(late)
    assert desk.tasks.claim(desk.owner) == ["taken"]
    desk.enter("since", owner=late)
    again = desk.leases.enrol(1000.0, late)
    assert again not in (late, desk.owner)
    assert desk.tasks.look("since").owner == again
    assert desk.tasks.look("taken").owner == desk.owner


@pytest.mark.rule("K18")
def test_what_was_left_without_a_driver_is_found(desk):
    desk.enter("running")
    desk.enter("untold")
    desk.end("untold")
    desk.enter("told")
    desk.end("told")
    desk.outbox.told("told", desk.owner)
    assert sorted(desk.tasks.left(desk.owner)) == ["running", "untold"]
    assert desk.tasks.left(99) == []


def ids(page):
    return [view.task.id for view in page.tasks]


def test_lists_of_tasks_come_page_by_page_the_newest_first(desk):
    for number in range(7):
        desk.enter(f"t{number}")
        rows(desk.ledger, "UPDATE tasks SET created_at = ? WHERE id = ?", number // 2, f"t{number}")
    for number in (1, 3, 5):
        desk.end(f"t{number}")
    desk.outbox.acknowledge("t3")
    page = desk.tasks.page("all", most=3)
    assert (ids(page), page.older) == (["t6", "t5", "t4"], "t4")
    page = desk.tasks.page("all", page.older, most=3)
    assert (ids(page), page.older) == (["t3", "t2", "t1"], "t1")
    page = desk.tasks.page("all", page.older, most=3)
    assert (ids(page), page.older) == (["t0"], "")
    page = desk.tasks.page("active", most=2)
    assert (ids(page), page.older) == (["t6", "t4"], "t4")
    assert ids(desk.tasks.page("active", "t4", most=2)) == ["t2", "t0"]
    page = desk.tasks.page("undelivered", most=1)
    assert (ids(page), page.older) == (["t5"], "t5")
    assert ids(desk.tasks.page("undelivered", "t5")) == ["t1"]
    assert desk.tasks.page("all", "t9") is None
    assert desk.tasks.page("undelivered", "t0") is None  # it has no result


@pytest.mark.file_only("SQLite's plans")
def test_no_list_of_tasks_looks_at_all_of_them(desk):
    desk.enter("t1")
    for statement, _ in tasks._LISTS.values():
        plan = rows(desk.ledger, f"EXPLAIN QUERY PLAN {statement}", 1.0, "", 50)
        assert all(" USING " in step for *_, step in plan), plan
        assert not any(step.startswith("SCAN") for *_, step in plan), plan


def test_a_course_can_be_only_its_newest_part(desk):
    desk.enter("t1")
    for text in ("one", "two"):
        desk.runs.say("t1", "user", text, text, f"{text} steers")
    assert [text for _, text, _ in desk.tasks.course("t1").messages] == ["one", "two"]
    assert [text for _, text, _ in desk.tasks.course("t1", most=1).messages] == ["two"]


def test_the_tasks_of_a_session_and_the_children_of_a_task_can_be_listed(desk):
    desk.enter("t1", "s1")
    desk.enter("t2", "s1", parent="t1")
    desk.enter("t3", "s2", parent="t1")
    assert {view.task.id for view in desk.tasks.of_session("s1")} == {"t1", "t2"}
    assert {view.task.id for view in desk.tasks.below("t1")} == {"t2", "t3"}
    assert len(desk.tasks.below("t1", most=1)) == 1
