"""Moves that lost something once: a task, a report, an answer, a budget."""

import os

import pytest

from notyet import Allow, Block, Decision, Halt
from notyet.core.session import Turn
from notyet.errors import Refused
from notyet.run.proc import start_time
from support import rows, stop

BLOCK = Decision(verdict=Block("more"), outcome="blocked", turn=1, limit=3)
PASS = Decision(verdict=Allow(), outcome="passed", turn=1)
HALT = Decision(verdict=Halt("enough"), outcome="halted", turn=1)
DAY = 86_400.0


@pytest.mark.rule("K16", "K7")
def test_a_steer_of_an_agent_that_was_not_told_its_task_tells_it(desk):
    desk.enter()
    desk.runs.steer("t1", desk.owner, "k", "Use Python 3.12.", 0.0)
    assert desk.tasks.look("t1").steer.prompt == "do it\n\nUse Python 3.12."


@pytest.mark.rule("K18")
def test_what_is_recovered_in_its_own_process_is_asked_about_anew(desk):
    desk.enter("t1", "s1")
    desk.enter("t2", "s2")
    mine, other = (stop(host="notyet", session_id=f"s{n}") for n in (1, 2))
    first, second = desk.ledger.begin(mine), desk.ledger.begin(other)
    assert desk.tasks.left(desk.owner, {"t2"}) == ["t1"]
    found = rows(desk.ledger, "SELECT outcome, why FROM stops ORDER BY id")
    assert found == [("skipped", "lost"), ("asking", "")]
    assert not desk.ledger.begin(mine).repeats
    assert desk.ledger.begin(other).repeats == second.stop
    assert first.stop != second.stop


@pytest.mark.rule("K19")
@pytest.mark.parametrize("source", ["user", "manual", "children"])
def test_an_answer_that_was_followed_by_anything_is_kept_where_the_last_one_is_empty(desk, source):
    desk.enter()
    if source == "manual":
        desk.gate(text="a report")
        desk.runs.steer("t1", desk.owner, "k", "go on", 0.0)
    else:
        kind = "user" if source == "user" else "machine"
        desk.runs.say("t1", kind, "m", "go on", "k")
        desk.gate(text="a report")
    desk.runs.accept(desk.tasks.look("t1").steer.key, desk.owner)
    assert desk.tasks.look("t1").run.source == source
    desk.gate(text="", generation=2)
    desk.decide(PASS, generation=2)
    result = desk.outbox.read("t1")
    assert (result.text, result.rejected) == ("", "a report")


@pytest.mark.rule("K9", "K8")
def test_a_report_that_comes_while_the_gates_are_asked_is_read_before_the_end(desk):
    desk.enter()
    desk.gate()
    begun = desk.ledger.begin(stop())
    desk.runs.say("t1", "machine", "c:1", "the child's report", "x")
    assert desk.decide(PASS, begun=begun).outcome == "passed"
    seen = desk.tasks.look("t1")
    assert (seen.run.state, seen.steer.source) == ("steering", "children")
    assert (seen.steer.prompt, seen.steers) == ("the child's report", 0)
    assert rows(desk.ledger, "SELECT outcome FROM stops") == [("passed",)]
    desk.runs.accept(seen.steer.key, desk.owner)
    desk.gate(generation=2)
    desk.decide(PASS, generation=2)
    assert desk.state() == "ended"
    assert rows(desk.ledger, "SELECT state FROM messages") == [("sent",)]


@pytest.mark.rule("K9", "K13")
def test_a_parent_whose_gates_run_gets_no_child(desk):
    desk.enter("p")
    desk.gate("p")
    with pytest.raises(Refused, match="the parent task p is about to stop: its gates are running"):
        desk.enter("c", parent="p")
    desk.decide(BLOCK, "p")
    desk.enter("c", parent="p")


@pytest.mark.rule("K9")
def test_a_parent_is_not_gated_while_a_child_is_at_work(desk):
    desk.enter("p")
    desk.enter("late", parent="p")
    desk.runs.finish("p.1", Turn(text="done"), "done", desk.owner)
    desk.enter("new", parent="p")
    assert not desk.runs.settle("p.1", desk.owner, "k", until="ended", overdue=("late",))
    assert desk.state("p") == "settling"
    desk.end("new")
    assert desk.runs.settle("p.1", desk.owner, "k", until="ended", overdue=("late",))
    assert desk.state("p") == "gating"


@pytest.mark.rule("B4", "C9")
@pytest.mark.parametrize(("scope", "turn"), [("agent", 2), ("subagent", 1)])
def test_a_users_message_opens_a_turn_of_a_main_agent_and_not_of_a_subagent(desk, scope, turn):
    desk.enter(scope=scope)
    desk.runs.say("t1", "user", "m", "and this", "k")
    desk.gate()
    desk.runs.accept("t1.1 settles", desk.owner)
    assert (desk.tasks.look("t1").run.source, desk.tasks.look("t1").user_turn) == ("user", turn)


@pytest.mark.rule("K8", "C3")
@pytest.mark.parametrize("ending", ["killed", "reset", "interrupted"])
def test_a_result_is_dropped_where_a_person_ended_its_task_together_with_one_above(desk, ending):
    desk.enter("p")
    desk.enter("middle", parent="p")
    desk.enter("c", parent="middle")
    desk.end("middle")
    for task in ("c", "p"):
        desk.runs.end(task, desk.owner, ending)
    assert desk.outbox.drop("c:1", desk.owner)
    assert desk.status("c") == ("dismissed", f"its parent was {ending}")
    assert not desk.outbox.drop("p:1", desk.owner)
    assert not desk.outbox.drop("middle:1", desk.owner)


@pytest.mark.rule("K8", "K18")
def test_a_result_is_not_dropped_where_no_person_ended_its_task_or_only_that(desk):
    desk.enter("p")
    for task in ("alone", "lost"):
        desk.enter(task, parent="p")
    desk.runs.end("alone", desk.owner, "killed")
    desk.runs.end("lost", desk.owner, "interrupted", error="its supervisor died")
    assert not desk.outbox.drop("alone:1", desk.owner)
    desk.runs.end("p", desk.owner, "interrupted")
    assert not desk.outbox.drop("alone:1", desk.owner)
    assert not desk.outbox.drop("lost:1", desk.owner)


@pytest.mark.rule("K8")
def test_a_result_in_the_queue_of_a_parent_that_ended_is_not_taken_as_delivered(desk):
    desk.enter("p")
    desk.enter("c", parent="p")
    desk.end("c")
    first = desk.outbox.lease("c", desk.owner)
    desk.runs.say("p", "machine", first.key, "done", "s1")
    desk.runs.end("p", desk.owner, "killed")  # before the delivery was acknowledged
    assert not desk.outbox.acknowledge("c", first.attempt)
    assert desk.status("c") == ("pending", "")
    again = desk.outbox.lease("c", desk.owner)
    assert (again.key, again.attempt) == (first.key, 2)
    assert desk.outbox.acknowledge("c", again.attempt)  # by a consumer that reads it at once
    assert desk.status("c") == ("delivered", "")


@pytest.mark.rule("K8", "K16")
def test_a_result_in_a_queue_that_a_steer_cleared_is_suspended_and_not_delivered(desk):
    desk.enter("p")
    desk.enter("c", parent="p")
    desk.end("c")
    leased = desk.outbox.lease("c", desk.owner)
    desk.runs.say("p", "machine", leased.key, "done", "s1")
    desk.runs.steer("p", desk.owner, "s2", "Other way.", 0.0)
    assert not desk.outbox.acknowledge("c", leased.attempt)
    assert desk.status("c")[0] == "suspended"


@pytest.mark.rule("K8")
def test_a_main_agents_result_that_was_had_is_not_delivered_again(desk):
    desk.enter(scope="agent")
    desk.end("t1")
    desk.outbox.acknowledge("t1")
    with pytest.raises(Refused, match="its caller has had the result; read it with: notyet tasks"):
        desk.outbox.retry("t1", desk.owner)
    assert rows(desk.ledger, "SELECT count(*) FROM outbox") == [(1,)]


@pytest.mark.rule("C3", "K8")
def test_pruning_keeps_what_has_ended_above_something_that_is_active_or_undelivered(desk):
    desk.enter("top")
    desk.enter("middle", parent="top")
    desk.enter("below", parent="middle")
    desk.enter("other")
    for task in ("other", "middle", "top"):
        desk.end(task)
        desk.outbox.acknowledge(task)
    rows(desk.ledger, "UPDATE tasks SET created_at = 5, ended_at = ended_at * 0 + 6")
    assert desk.ledger.prune(DAY) == 1
    assert desk.tasks.descendants("top") == ["below"]
    desk.runs.end("below", desk.owner, "killed")
    assert desk.ledger.prune(DAY) == 0
    desk.outbox.acknowledge("below")
    assert desk.ledger.prune(DAY) == 2


@pytest.mark.rule("K18", "K8")
def test_an_owner_that_was_fenced_changes_nothing_of_a_delivery_but_that_it_happened(desk):
    desk.enter()
    desk.end("t1")
    desk.outbox.lease("t1", desk.owner)
    heir = desk.leases.enrol(1000.0)
    desk.leases.retire(desk.owner)
    desk.tasks.claim(heir)
    desk.outbox.lease("t1", heir)
    desk.outbox.told("t1", desk.owner)
    desk.outbox.postpone("t1:1", desk.owner, "late", 60.0)
    assert not desk.outbox.suspend("t1:1", desk.owner, "late")
    desk.outbox.release("t1", desk.owner)
    assert rows(desk.ledger, "SELECT status, error, told FROM outbox") == [("leased", "", 0)]
    desk.outbox.release("t1", heir)
    assert desk.status("t1") == ("pending", "")
    desk.outbox.acknowledge("t1")
    assert desk.status("t1") == ("delivered", "")


@pytest.mark.rule("K18")
@pytest.mark.parametrize("machine", ["elsewhere pid:[4026531836]", "elsewhere pid:[1]"])
def test_an_owner_on_another_machine_lives_as_long_as_its_lease(desk, machine):
    other = desk.leases.enrol(1000.0)
    desk.enter()
    rows(desk.ledger, "UPDATE tasks SET owner = ?", other)
    gone = "UPDATE owners SET pid = 2147483647, boot = 'its', machine = ? WHERE id = ?"
    rows(desk.ledger, gone, machine, other)
    assert desk.tasks.claim(desk.owner) == []
    assert desk.tasks.views("t1")[0].owner_alive
    rows(desk.ledger, "UPDATE owners SET lease_until = 1 WHERE id = ?", other)
    assert not desk.tasks.views("t1")[0].owner_alive
    assert desk.tasks.claim(desk.owner) == ["t1"]


@pytest.mark.rule("K18")
def test_a_clock_that_jumps_forward_takes_no_task_from_a_living_process_of_this_machine(desk):
    other = desk.leases.enrol(1000.0)
    desk.enter()
    living = "UPDATE owners SET lease_until = 1, pid = ?, pid_start = ? WHERE id = ?"
    rows(desk.ledger, living, os.getppid(), start_time(os.getppid()), desk.owner)
    assert desk.tasks.claim(other) == []
    assert desk.tasks.views("t1")[0].owner_alive
    rows(desk.ledger, "UPDATE owners SET pid_start = '' WHERE id = ?", desk.owner)
    assert desk.tasks.claim(other) == ["t1"]  # where the start of a process is unknown


@pytest.mark.rule("K18")
def test_leases_are_counted_by_the_clock_of_the_database(desk, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 5.0)  # this process's own is wrong
    other = desk.leases.enrol(1000.0)
    rows(desk.ledger, "UPDATE owners SET machine = 'elsewhere' WHERE id = ?", desk.owner)
    assert desk.leases.renew(desk.owner, 1000.0)
    desk.enter()
    assert desk.tasks.claim(other) == []
    assert desk.leases.renew(desk.owner, -1.0)
    assert desk.tasks.claim(other) == ["t1"]


@pytest.mark.rule("K8", "K18")
def test_one_task_that_ended_is_taken_over_while_its_result_is_not_delivered(desk):
    desk.enter()
    desk.end()
    other = desk.leases.enrol(1000.0)
    assert desk.tasks.claim(other, "t1") == []
    desk.leases.retire(desk.owner)
    assert desk.tasks.claim(other, "t1") == ["t1"]
    desk.outbox.acknowledge("t1")
    desk.leases.retire(other)
    assert desk.tasks.claim(desk.leases.enrol(1000.0), "t1") == []


@pytest.mark.rule("K18")
def test_an_owner_of_before_the_system_started_is_dead(desk):
    other = desk.leases.enrol(1000.0)
    desk.enter()
    rows(desk.ledger, "UPDATE tasks SET owner = ?", other)
    rows(desk.ledger, "UPDATE owners SET boot = 'earlier' WHERE id = ?", other)
    assert desk.tasks.claim(desk.owner) == ["t1"]


@pytest.mark.rule("K4", "B13")
@pytest.mark.parametrize(
    ("is_marked", "sent", "counted"),
    [(False, None, 0), (True, "reserved", 0), (True, None, 1), (True, "dispatched", 1)],
)
def test_a_send_back_that_certainly_did_not_happen_is_not_counted(desk, is_marked, sent, counted):
    desk.enter()
    desk.gate()
    begun = desk.ledger.begin(stop(turn_id="t1/1"))
    desk.decide(BLOCK, begun=begun)
    counts = "SELECT blocks, session_blocks, blocked FROM agents"
    assert rows(desk.ledger, counts) == [(1, 1, 1)]
    if is_marked:
        desk.runs.dispatch("t1.1 decides", desk.owner)
    desk.runs.fail("t1.1 decides", desk.owner, "no such agent", sent)
    assert rows(desk.ledger, counts) == [(counted,) * 3]
    assert rows(desk.ledger, "SELECT outcome FROM stops") == [("failed_open",)]


@pytest.mark.rule("K4", "B13")
def test_a_send_back_that_did_not_happen_stays_counted_where_another_stop_came_since(desk):
    desk.enter()
    desk.gate()
    begun = desk.ledger.begin(stop(turn_id="t1/1"))
    desk.decide(BLOCK, begun=begun)
    later = desk.ledger.begin(stop(turn_id="t1/1", last_message="another", stop_hook_active=True))
    desk.ledger.record(later, PASS)
    desk.runs.fail("t1.1 decides", desk.owner, "no such agent")
    assert rows(desk.ledger, "SELECT blocks, session_blocks FROM agents") == [(0, 1)]
