"""The moves of supervised runs: each guarded, each all or nothing."""

import pytest

from notyet import Allow, Block, Decision, Usage
from notyet.core.session import Turn
from notyet.errors import Refused
from support import rows, stop

BLOCK = Decision(verdict=Block("more"), outcome="blocked", why="g", limit=3)
PASS = Decision(verdict=Allow(), outcome="passed")
DONE = Turn(text="done", usage=Usage(input=5), tools=("bash",))
FAILED = Turn(text="", stop_reason="error", error="boom")


@pytest.fixture
def main(desk):
    """A ledger with a main agent's task that runs."""
    desk.enter("t1", "s1", scope="agent")
    return desk


@pytest.fixture
def sub(desk):
    """The same with a subagent's task."""
    desk.enter("t1", "s1")
    return desk


def gating(desk, turn=DONE, ending="done"):
    assert desk.runs.finish("t1.1", turn, ending, desk.owner)
    assert desk.runs.settle("t1.1", desk.owner, "k1")


def steering(desk):
    gating(desk)
    assert desk.runs.decide("t1.1", desk.owner, BLOCK, begun=None, ceiling=0, key="k2")


@pytest.mark.rule("K5")
def test_a_run_ends_once_and_a_success_heals_an_error_but_nothing_else(sub):
    assert sub.runs.finish("t1.1", FAILED, "error", sub.owner)
    assert not sub.runs.finish("t1.1", FAILED, "error", sub.owner)
    assert not sub.runs.finish("t1.1", FAILED, "timeout", sub.owner)
    assert sub.runs.finish("t1.1", DONE, "done", sub.owner)
    assert not sub.runs.finish("t1.1", Turn(text="again"), "done", sub.owner)
    seen = sub.tasks.look("t1")
    assert (seen.run.state, seen.run.ending, seen.run.turn) == ("settling", "done", DONE)


@pytest.mark.rule("K18")
def test_no_move_of_another_owner_counts(sub):
    other = sub.leases.enrol(1000.0)
    runs = sub.runs
    assert not runs.finish("t1.1", DONE, "done", other)
    assert runs.end("t1", other, "interrupted", error="x") is None
    assert runs.end("t1", other, "killed", run=sub.tasks.look("t1").run) is None
    assert not sub.tasks.mark_sent(sub.tasks.look("t1").run, other, "dispatched")
    assert not sub.tasks.note_session("t1", other, {}, "s9")
    gating(sub)
    assert not runs.settle("t1.1", other, "k")
    assert runs.decide("t1.1", other, PASS, begun=None, ceiling=0, key="k") is None
    assert runs.decide("t1.1", sub.owner, BLOCK, begun=None, ceiling=0, key="k2")
    assert not runs.dispatch("k2", other)
    assert not runs.accept("k2", other)
    assert runs.fail("k2", other, "x") is None
    assert sub.state() == "steering"


@pytest.mark.rule("K18")
@pytest.mark.parametrize(
    ("move", "state"),
    [
        (lambda runs, mover: runs.end("t1", mover, "killed"), "ended"),
        (lambda runs, mover: runs.steer("t1", mover, "k", "x", 0.0), "steering"),
        (lambda runs, mover: runs.say("t1", "user", "k", "x", "k2", mover=mover), "running"),
    ],
)
def test_any_process_may_make_a_persons_move_and_the_owner_finds_it_once(sub, move, state):
    other = sub.leases.enrol(1000.0)
    assert sub.tasks.moved(sub.owner) == []
    move(sub.runs, other)
    assert sub.state() == state
    assert sub.tasks.look("t1").owner == sub.owner
    assert sub.tasks.moved(other) == []
    assert sub.tasks.moved(sub.owner) == ["t1"]
    assert sub.tasks.moved(sub.owner) == []


@pytest.mark.rule("K18")
def test_an_owner_need_not_be_told_of_its_own_moves(sub):
    sub.runs.say("t1", "user", "k", "x", "k2", mover=sub.owner)
    sub.runs.end("t1", sub.owner, "killed")
    assert sub.tasks.moved(sub.owner) == []


@pytest.mark.rule("K2", "B3")
def test_a_block_its_count_and_its_steer_are_one_transaction(sub):
    gating(sub)
    begun = sub.ledger.begin(stop(turn_id="t1/1"))
    decision = Decision(verdict=Block("more"), outcome="blocked", turn=1, limit=3)
    seen = sub.runs.decide("t1.1", sub.owner, decision, begun=begun, ceiling=50, key="k2")
    final = seen.decision
    assert (final.outcome, final.count) == ("blocked", 1)
    seen = sub.tasks.look("t1")
    assert (seen.run.state, seen.steers) == ("steering", 1)
    assert (seen.steer.key, seen.steer.source, seen.steer.phase) == ("k2", "gate", "reserved")
    assert rows(sub.ledger, "SELECT stop FROM steers") == [(begun.stop,)]
    assert rows(sub.ledger, "SELECT blocks FROM agents") == [(1,)]


@pytest.mark.rule("B13", "K2")
def test_a_block_above_the_ceiling_ends_the_task_instead(sub):
    gating(sub)
    begun = sub.ledger.begin(stop())
    decision = Decision(verdict=Block("more"), outcome="blocked", turn=1, limit=0)
    seen = sub.runs.decide("t1.1", sub.owner, decision, begun=begun, ceiling=50, key="k2")
    final = seen.decision
    assert (final.outcome, sub.state()) == ("capped", "ended")


@pytest.mark.rule("K1", "K7")
def test_an_end_its_result_and_its_row_in_the_outbox_are_one_transaction(sub):
    gating(sub)
    seen = sub.runs.decide("t1.1", sub.owner, PASS, begun=None, ceiling=0, key="k2")
    assert seen.decision == PASS
    assert sub.state() == "ended"
    ((key, status, told),) = rows(sub.ledger, "SELECT key, status, told FROM outbox")
    assert (key, status, told) == ("t1:1", "pending", 0)
    result = sub.outbox.read("t1")
    assert (result.text, result.outcome, result.usage) == ("done", "passed", Usage(input=5))
    assert sub.runs.end("t1", sub.owner, "killed") is None
    assert rows(sub.ledger, "SELECT count(*) FROM outbox") == [(1,)]


@pytest.mark.rule("K6")
def test_a_decision_that_comes_too_late_is_dropped_and_its_stop_says_so(sub):
    gating(sub)
    begun = sub.ledger.begin(stop())
    assert sub.runs.end("t1", sub.owner, "killed").ending == "killed"
    assert sub.runs.decide("t1.1", sub.owner, BLOCK, begun=begun, ceiling=0, key="k2") is None
    assert rows(sub.ledger, "SELECT outcome, why FROM stops") == [("skipped", "overtaken")]
    assert rows(sub.ledger, "SELECT count(*) FROM steers") == [(0,)]


@pytest.mark.rule("K2", "K7")
def test_a_steer_is_accepted_once_and_begins_a_run_of_the_next_generation(sub):
    steering(sub)
    assert sub.runs.dispatch("k2", sub.owner)
    assert sub.runs.dispatch("k2", sub.owner)  # recovery sends it again
    assert sub.runs.accept("k2", sub.owner)
    assert not sub.runs.accept("k2", sub.owner)
    assert not sub.runs.dispatch("k2", sub.owner)
    assert sub.runs.fail("k2", sub.owner, "late") is None
    seen = sub.tasks.look("t1")
    assert (seen.run.id, seen.run.generation, seen.run.state) == ("t1.2", 2, "running")
    assert (seen.run.source, seen.run.prompt, seen.run.key, seen.run.sent) == (
        ("gate", "more", "k2", "accepted")
    )
    assert seen.steer is None
    found = rows(sub.ledger, "SELECT generation, state FROM runs ORDER BY generation")
    assert found == [(1, "superseded"), (2, "running")]
    assert not sub.runs.finish("t1.1", DONE, "done", sub.owner)


@pytest.mark.rule("K16")
def test_a_steer_by_hand_is_refused_while_one_is_in_flight_or_just_was(sub):
    sub.runs.steer("t1", sub.owner, "m1", "one", 60.0)
    sub.runs.steer("t1", sub.owner, "m1", "one", 60.0)  # the same one, asked again
    with pytest.raises(Refused, match="is being steered already"):
        sub.runs.steer("t1", sub.owner, "m2", "two", 60.0)
    assert sub.runs.accept("m1", sub.owner)
    with pytest.raises(Refused, match=r"task t1 was steered just now; try again in \d+\.\d s"):
        sub.runs.steer("t1", sub.owner, "m3", "three", 60.0)
    sub.runs.steer("t1", sub.owner, "m4", "four", 0.0)
    sub.runs.end("t1", sub.owner, "killed")
    with pytest.raises(Refused, match=r"task t1 has ended \(killed\)"):
        sub.runs.steer("t1", sub.owner, "m5", "five", 0.0)
    with pytest.raises(Refused, match="there is no task t9"):
        sub.runs.steer("t9", sub.owner, "m6", "six", 0.0)


@pytest.mark.rule("C9")
def test_messages_wait_for_the_end_of_the_turn_and_go_together_as_the_users(main):
    desk = main
    desk.runs.say("t1", "machine", "m1", "report", "x1")
    desk.runs.say("t1", "user", "m2", "and this", "x2")
    desk.runs.say("t1", "user", "m2", "and this", "x3")  # the same message again
    assert desk.runs.finish("t1.1", DONE, "done", desk.owner)
    assert desk.runs.settle("t1.1", desk.owner, "k1")
    steer = desk.tasks.look("t1").steer
    assert (steer.source, steer.prompt) == ("user", "report\n\nand this")
    assert desk.runs.accept("k1", desk.owner)
    assert desk.tasks.look("t1").user_turn == 2
    assert rows(desk.ledger, "SELECT state FROM messages") == [("sent",), ("sent",)]


@pytest.mark.rule("B7", "C9")
def test_what_machines_say_opens_no_turn_and_does_not_interrupt_a_gate(main):
    desk = main
    gating(desk)
    desk.runs.say("t1", "machine", "m1", "report", "x1")
    assert desk.state() == "gating"
    desk.runs.say("t1", "user", "m2", "stop that", "x2")
    steer = desk.tasks.look("t1").steer
    assert (desk.state(), steer.key, steer.source) == ("steering", "x2", "user")
    assert desk.runs.accept("x2", desk.owner)
    assert (desk.tasks.look("t1").user_turn, desk.tasks.look("t1").steers) == (2, 0)


@pytest.mark.rule("C9", "C4")
def test_unsent_messages_of_the_user_are_in_the_result(sub):
    sub.runs.say("t1", "user", "m1", "wait", "x1")
    sub.runs.say("t1", "machine", "m2", "report", "x2")
    result = sub.runs.end("t1", sub.owner, "interrupted")
    assert result.unsent == ("wait",)
    with pytest.raises(Refused, match=r"task t1 has ended \(interrupted\)"):
        sub.runs.say("t1", "user", "m3", "too late", "x3")


@pytest.mark.rule("K6")
@pytest.mark.parametrize("ending", ["killed", "reset", "interrupted"])
@pytest.mark.parametrize("where", ["running", "settling", "gating", "steering"])
def test_a_person_can_end_a_task_wherever_it_is(sub, where, ending):
    if where == "settling":
        sub.runs.finish("t1.1", DONE, "done", sub.owner)
    elif where == "gating":
        gating(sub)
    elif where == "steering":
        steering(sub)
    assert sub.state() == where
    result = sub.runs.end("t1", sub.owner, ending)
    assert (result.ending, result.outcome, sub.state()) == (ending, "skipped", "ended")
    if where == "steering":
        assert rows(sub.ledger, "SELECT phase FROM steers") == [("abandoned",)]
        assert not sub.runs.accept("k2", sub.owner)
    assert sub.runs.end("t1", sub.owner, ending) is None


def test_an_end_meant_for_a_run_that_has_moved_on_does_nothing(sub):
    seen = sub.tasks.look("t1").run
    gating(sub)
    assert sub.runs.end("t1", sub.owner, "interrupted", run=seen) is None
    seen = sub.tasks.look("t1").run
    turn = Turn(text="half", stop_reason="cancelled")
    result = sub.runs.end("t1", sub.owner, "interrupted", run=seen, turn=turn, error="gone")
    assert (result.text, result.error) == ("half", "gone")


@pytest.mark.rule("K19")
def test_only_an_answer_with_words_is_kept_as_rejected(sub):
    steering(sub)
    sub.runs.accept("k2", sub.owner)
    sub.runs.finish("t1.2", Turn(text=" "), "done", sub.owner)
    sub.runs.settle("t1.2", sub.owner, "k3")
    sub.runs.decide("t1.2", sub.owner, BLOCK, begun=None, ceiling=0, key="k4")
    sub.runs.accept("k4", sub.owner)
    assert sub.tasks.look("t1").rejected == "done"
