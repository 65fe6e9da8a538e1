"""What the durable ledger promises beyond counting."""

import os
import time

import pytest

from notyet import (
    Allow,
    Block,
    Decision,
    Ledger,
    LedgerBusy,
    LedgerError,
    Usage,
)
from notyet.ledger.stop_rows import HISTORY_COLUMNS, REPORT_COLUMNS, STOP_COLUMNS
from stores import locked, opened
from support import decide, recorded, rows, stop, substop


def test_the_tables_have_the_columns_that_are_written(ledger):
    ledger.begin(stop())
    for table, columns, count in (
        ("agents", HISTORY_COLUMNS, 1),
        ("stops", STOP_COLUMNS, 1),
        ("reports", REPORT_COLUMNS, 0),
    ):
        sql = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608  # our own names
        assert len(rows(ledger, sql)) == count


@pytest.mark.rule("B11")
def test_a_block_after_which_a_new_turn_starts_without_a_stop_was_overridden(ledger):
    first = decide(ledger, stop(turn_id="a"))
    second = decide(ledger, stop(turn_id="b"))
    third = decide(ledger, stop(turn_id="b"), "passed")
    decide(ledger, stop(turn_id="c"))
    outcomes = dict(rows(ledger, "SELECT id, outcome FROM stops"))
    assert [outcomes[n] for n in (first, second, third)] == ["overridden", "blocked", "passed"]


@pytest.mark.rule("B11")
def test_a_late_decision_of_an_older_turn_does_not_hide_an_override(ledger):
    old = ledger.begin(stop(turn_id="t1"))
    overridden = decide(ledger, stop(turn_id="t2"))
    ledger.record(old, Decision(verdict=Allow(), outcome="passed", turn=old.history.turn))
    decide(ledger, stop(turn_id="t3"), "passed")
    outcomes = dict(rows(ledger, "SELECT id, outcome FROM stops"))
    assert outcomes == {old.stop: "passed", overridden: "overridden", 3: "passed"}


@pytest.mark.rule("B12")
def test_a_stop_whose_process_died_is_lost_and_not_waited_for(ledger):
    child = os.fork()
    if child == 0:
        Ledger(ledger.path).begin(stop())
        os._exit(0)
    os.waitpid(child, 0)
    begun = ledger.begin(stop())
    assert not begun.repeats
    assert rows(ledger, "SELECT outcome, why FROM stops WHERE id = 1") == [("skipped", "lost")]


@pytest.mark.rule("B12", "K18")
def test_a_stop_of_another_machine_is_not_lost_because_its_number_is_unknown_here(ledger):
    first = ledger.begin(stop())
    with opened(ledger) as db:
        db.execute("UPDATE stops SET pid = 2147483646, machine = 'elsewhere'")
    assert ledger.begin(stop()).repeats == first.stop
    with opened(ledger) as db:
        db.execute("UPDATE stops SET begun_at = 5")
    assert not ledger.begin(stop()).repeats


def test_a_waiting_repetition_gives_up_when_the_first_process_is_gone(ledger):
    ledger.begin(stop())
    with opened(ledger) as db:
        db.execute("UPDATE stops SET pid = 2147483646")
    assert ledger.answer(1, 60) is None


@pytest.mark.rule("B12")
def test_a_stop_that_this_process_could_not_record_holds_no_later_one_up(ledger):
    begun = ledger.begin(stop())
    ledger.patience = 0.05
    with locked(ledger), pytest.raises(LedgerBusy):
        ledger.record(begun, Decision(verdict=Allow(), outcome="passed", turn=1))
    assert not ledger.begin(stop()).repeats


def test_the_stored_event_is_bounded_and_holds_no_raw_payload(ledger):
    event = substop(
        last_message="x" * 100_000,
        result={"rows": ["y" * 1000] * 1000},
        tools_used=tuple(f"tool{n}" for n in range(5000)),
        usage=Usage(input=3),
        raw={"secret": "hunter2"},
    )
    ledger.begin(event)
    ((stored,),) = rows(ledger, "SELECT event FROM stops")
    assert len(stored) < 40_000
    assert '"input": 3' in stored
    assert "hunter2" not in repr(rows(ledger, "SELECT * FROM stops"))


def test_a_closed_ledger_opens_again(ledger):
    decide(ledger, stop())
    ledger.close()
    ledger.close()
    assert ledger.begin(stop()).history.blocks == 1


@pytest.mark.file_only("a replaced one")
def test_a_decision_is_never_counted_on_another_stop_of_the_same_number(ledger):
    mine = ledger.begin(stop(session_id="mine"))
    ledger.close()
    os.unlink(ledger.path)
    other = ledger.begin(stop(session_id="other"))
    assert (other.stop, other.history.blocks) == (mine.stop, 0)
    with pytest.raises(LedgerError, match="is gone; was the file replaced"):
        ledger.record(mine, Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=3))
    assert ledger.begin(stop(session_id="other", last_message="x")).history.blocks == 0


def test_a_value_that_the_ledger_cannot_hold_is_a_ledger_error(ledger):
    begun = ledger.begin(stop())
    with pytest.raises(LedgerError, match=r"OverflowError|out of range"):
        ledger.record(begun, Decision(verdict=Allow(), outcome="passed", turn=1, count=2**70))


class Interrupted:
    """A connection during which somebody presses Ctrl-C, right after one statement."""

    def __init__(self, db, statement):
        self._db = db
        self._statement = statement

    def execute(self, sql, *values):
        done = self._db.execute(sql, *values)
        if sql.startswith(self._statement):
            self._statement = "never again"
            raise KeyboardInterrupt
        return done

    def __getattr__(self, name):
        return getattr(self._db, name)


@pytest.mark.file_only("its statements")
@pytest.mark.rule("B3", "B12")
@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO stops", "COMMIT"])
def test_ctrl_c_in_the_midst_of_a_transaction_leaves_no_lock(ledger, statement):
    ledger.begin(stop(session_id="another"))
    ledger.connection._db = Interrupted(ledger.connection._db, statement)
    with pytest.raises(KeyboardInterrupt):
        ledger.begin(stop())
    assert not ledger.begin(stop()).repeats
    assert not Ledger(ledger.path, patience=0.2).begin(stop(last_message="x")).repeats


@pytest.mark.rule("B12")
def test_a_stop_that_was_dropped_is_not_repeated(ledger):
    begun = ledger.begin(stop())
    assert ledger.begin(stop()).repeats == begun.stop
    del begun
    assert not ledger.begin(stop()).repeats


def test_a_stop_whose_process_is_only_waiting_to_be_collected_is_lost(ledger):
    child = os.fork()
    if not child:
        Ledger(ledger.path).begin(stop())
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        assert ledger.answer(1, 20) is None
        assert not ledger.begin(stop()).repeats
    finally:
        os.waitpid(child, 0)
    assert recorded(ledger) == [("skipped", "lost"), ("asking", "")]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="nobody says when it started")
def test_a_stop_whose_process_id_was_given_to_another_program_is_lost(ledger):
    ledger.begin(stop())
    parent = os.getppid()
    rows(ledger, "UPDATE stops SET pid = ?", parent)  # alive, but it started at another time
    assert not ledger.begin(stop()).repeats
    assert recorded(ledger)[0] == ("skipped", "lost")


def test_a_call_can_be_given_less_patience_than_the_ledger_has(ledger):
    begun = ledger.begin(stop())
    ledger.patience = 60.0
    assert ledger.patience == 60.0
    passed = Decision(verdict=Allow(), outcome="passed", turn=1)
    calls = (
        lambda: ledger.begin(stop(session_id="s2"), 0.05),
        lambda: ledger.skip(stop(), passed, 0.05),
        lambda: ledger.record(begun, passed, 0, 0.05),
        lambda: ledger.give_up(begun, 0.05),
    )
    started = time.monotonic()
    with locked(ledger):
        for call in calls:
            with pytest.raises(LedgerBusy, match=r"locked it for over 0\.05 s"):
                call()
    assert time.monotonic() - started < 30


@pytest.mark.rule("B12")
def test_an_answer_that_is_recorded_while_its_process_is_looked_for_is_not_lost(
    ledger, monkeypatch
):
    begun = ledger.begin(stop())

    def is_lost(*_):
        ledger.record(begun, Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=3))
        return True

    monkeypatch.setattr("notyet.ledger.ledger.is_lost", is_lost)
    assert ledger.answer(begun.stop, 5.0).outcome == "blocked"
