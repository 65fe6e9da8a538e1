"""What a move returns is what a look would find: the owner goes on with it."""

import pytest

from notyet import Allow, Block, Decision, Usage
from notyet.core.record import replace
from notyet.core.session import Turn
from notyet.ledger.task_rows import TELLING
from supervised import first_run
from support import rows, stop

ODD = "na\u00efve \ud800 text with \0 and \x1a"  # not all of this can be stored as it is
BLOCK = Decision(verdict=Block(f"more {ODD}"), outcome="blocked", turn=1, limit=3)
PASS = Decision(verdict=Allow(), outcome="passed", turn=1)
DONE = Turn(text=f"done {ODD}", usage=Usage(input=5), tools=("bash",), duration_ms=0.1)


def same(desk, seen):
    """Return True if a move returned what a look finds, besides what it brings along."""
    return replace(seen, begun=None, decision=None, outgoing=None) == desk.tasks.look(seen.task.id)


@pytest.fixture
def entered(desk):
    run = replace(first_run("t1"), prompt=ODD, sent="dispatched")
    desk.enter(run=run, label=ODD, session=f"session {ODD}", ref={"of": ODD})
    return desk


def event(seen):
    return stop(session_id=seen.session_id, agent_id=seen.task.id, task_id=seen.task.id)


def test_a_task_is_seen_as_it_is_entered(desk):
    run = replace(first_run("t1"), prompt=ODD)
    seen = desk.enter(run=run, label=ODD, session=f"session {ODD}", ref={"of": ODD})
    assert same(desk, seen)


def test_a_run_is_seen_as_it_ended(entered):
    failed = Turn(text="", stop_reason="error", error=ODD)
    assert same(entered, entered.runs.finish("t1.1", failed, "error", entered.owner))
    assert same(entered, entered.runs.finish("t1.1", DONE, "done", entered.owner))


def test_a_turn_that_ended_well_is_seen_at_its_gates_with_its_stop_entered(entered):
    seen = entered.runs.settle("t1.1", entered.owner, "k", turn=DONE, event=event)
    assert same(entered, seen)
    assert seen.run.state == "gating"
    assert rows(entered.ledger, "SELECT id, outcome FROM stops") == [(seen.begun.stop, "asking")]


@pytest.mark.rule("C9")
@pytest.mark.parametrize("phase", ["reserved", "dispatched"])
def test_a_turn_that_ended_well_is_seen_with_the_steer_that_its_messages_make(entered, phase):
    entered.runs.say("t1", "machine", "m1", ODD, "x")
    seen = entered.runs.settle("t1.1", entered.owner, "k", turn=DONE, phase=phase, event=event)
    assert same(entered, seen)
    assert (seen.run.state, seen.steer.source, seen.begun) == ("steering", "children", None)
    assert seen.steer.phase == phase
    assert rows(entered.ledger, "SELECT count(*) FROM stops") == [(0,)]


@pytest.mark.rule("K9")
def test_a_turn_that_ended_well_is_seen_waiting_for_children_unless_its_user_spoke(entered):
    entered.enter("c", parent="t1")
    how = {"until": "ended", "event": event}
    seen = entered.runs.settle("t1.1", entered.owner, "k", turn=DONE, **how)
    assert same(entered, seen)
    assert seen.run.state == "settling"
    entered.runs.say("t1", "machine", "m1", "a report", "x")
    assert entered.runs.settle("t1.1", entered.owner, "k", **how) is None
    entered.runs.say("t1", "user", "m2", "and this", "x")
    seen = entered.runs.settle("t1.1", entered.owner, "k", **how)
    assert same(entered, seen)
    assert (seen.run.state, seen.steer.prompt) == ("steering", "a report\n\nand this")


@pytest.mark.rule("K5", "K6", "K18")
def test_a_turn_that_ended_too_late_moves_nothing_and_enters_no_stop(entered):
    late = {"turn": DONE, "event": event}
    assert entered.runs.settle("t1.1", 99, "k", **late) is None
    assert entered.runs.finish("t1.1", DONE, "done", entered.owner)
    assert entered.runs.settle("t1.1", entered.owner, "k", **late) is None
    entered.runs.end("t1", entered.owner, "killed")
    assert entered.runs.settle("t1.1", entered.owner, "k", **late) is None
    assert rows(entered.ledger, "SELECT count(*) FROM stops") == [(0,)]


@pytest.mark.rule("K2", "B3", "K7")
def test_a_block_is_seen_with_its_steer_and_what_it_begins(entered):
    seen = entered.runs.settle("t1.1", entered.owner, "k", turn=DONE, event=event)
    how = {"begun": seen.begun, "ceiling": 50, "key": "k2", "phase": "dispatched"}
    seen = entered.runs.decide("t1.1", entered.owner, BLOCK, **how)
    assert same(entered, seen)
    assert (seen.steers, seen.steer.phase, seen.decision.count) == (1, "dispatched", 1)
    seen = entered.runs.accept("k2", entered.owner)
    assert same(entered, seen)
    assert (seen.run.id, seen.run.state, seen.steer) == ("t1.2", "running", None)
    assert seen.rejected


def test_a_steer_is_seen_as_it_is_dispatched_and_what_a_user_begins(desk):
    desk.enter(scope="agent")
    desk.runs.steer("t1", desk.owner, "k", ODD, 0.0)
    assert same(desk, desk.runs.dispatch("k", desk.owner))
    assert same(desk, desk.runs.accept("k", desk.owner))
    desk.runs.say("t1", "user", "m", ODD, "x")
    assert same(desk, desk.runs.settle("t1.2", desk.owner, "k2", turn=DONE))
    seen = desk.runs.accept("k2", desk.owner)
    assert same(desk, seen)
    assert seen.user_turn == 2


@pytest.mark.rule("K1", "K10")
def test_an_end_is_seen_with_its_result_marked_and_leased_for_its_owner(entered):
    seen = entered.runs.settle("t1.1", entered.owner, "k", turn=DONE, event=event)
    how = {"begun": seen.begun, "ceiling": 50, "key": "k2", "told": TELLING, "is_leased": True}
    seen = entered.runs.decide("t1.1", entered.owner, PASS, **how)
    assert same(entered, seen)
    out = seen.outgoing
    assert (out.result, out.told) == (entered.outbox.read("t1"), TELLING)
    found = rows(entered.ledger, "SELECT status, told, key FROM outbox")
    assert found == [("leased", TELLING, out.announcement.key)]
    assert entered.outbox.lease("t1", entered.owner) == out.announcement


def test_a_result_that_is_taken_is_what_the_end_left(entered):
    assert entered.outbox.take("t1", entered.owner, TELLING, is_leased=True) is None
    result = entered.runs.end("t1", entered.owner, "killed")
    seen = entered.outbox.take("t1", entered.owner, TELLING, is_leased=True)
    assert same(entered, seen)
    assert (seen.outgoing.result, seen.outgoing.told) == (result, TELLING)
    assert seen.outgoing.announcement == entered.outbox.lease("t1", entered.owner)
