"""Pruning removes what is old and over, and nothing else."""

import sqlite3
import time
from contextlib import closing

import pytest

from notyet import Allow, Decision, Ledger, Report
from support import decide, rows, stop

DAY = 86_400.0


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db")


def test_pruning_removes_old_stops_with_their_reports_and_agents(ledger):
    old = ledger.begin(stop(session_id="old"))
    report = Report(gate="g", answer=Allow())
    done = Decision(verdict=Allow(), outcome="passed", turn=1, reports=(report,))
    ledger.record(old, done)
    with closing(sqlite3.connect(ledger.path)) as db, db:
        db.execute("UPDATE stops SET begun_at = begun_at - ?", (10 * DAY,))
        db.execute("UPDATE agents SET seen_at = seen_at - ?", (10 * DAY,))
    new = ledger.begin(stop(session_id="new"))
    ledger.record(new, done)
    assert ledger.prune(older_than=7 * DAY) == 1
    assert rows(ledger, "SELECT id FROM stops") == [(new.stop,)]
    assert rows(ledger, "SELECT stop FROM reports") == [(new.stop,)]
    assert rows(ledger, "SELECT session_id FROM agents") == [("new",)]


def test_pruning_never_touches_what_is_active(ledger):
    asking = ledger.begin(stop(session_id="asking"))
    working = decide(ledger, stop(session_id="sent back"), at=time.time() - 3 * DAY)
    idle = decide(ledger, stop(session_id="idle"), "passed", at=time.time() - 3 * DAY)
    newest = decide(ledger, stop(session_id="newest"), "passed")
    assert ledger.prune(older_than=0) == 1
    left = {stop for (stop,) in rows(ledger, "SELECT id FROM stops")}
    assert left == {asking.stop, working, newest}
    assert idle not in left
    assert ledger.begin(stop(session_id="sent back")).history.blocks == 1


def test_pruning_clears_what_was_lost_and_what_was_forgotten(ledger):
    decide(ledger, stop(session_id="sent back and forgotten"), at=time.time() - 40 * DAY)
    ledger.begin(stop(session_id="lost"))
    with closing(sqlite3.connect(ledger.path)) as db, db:
        db.execute("UPDATE stops SET begun_at = begun_at - ? WHERE outcome = 'asking'", (2 * DAY,))
        db.execute("UPDATE agents SET seen_at = seen_at - ?", (2 * DAY,))
    decide(ledger, stop(session_id="newest"), "passed")
    assert ledger.prune(older_than=DAY) == 2
    assert rows(ledger, "SELECT session_id FROM agents") == [("newest",)]


def test_pruning_goes_on_until_nothing_old_is_left(ledger, monkeypatch):
    from notyet.ledger import prune

    monkeypatch.setattr(prune, "AT_ONCE", 3)
    for n in range(8):
        decide(ledger, stop(session_id=f"s{n}"), "passed", at=time.time() - 9 * DAY)
    assert ledger.prune(older_than=DAY) == 7
    assert rows(ledger, "SELECT id FROM stops") == [(8,)]  # so that the next one is the ninth
    assert ledger.begin(stop(session_id="new")).stop == 9


def test_pruning_keeps_what_counts_against_the_ceiling(ledger):
    decide(ledger, stop())
    decide(ledger, stop(), "capped", at=time.time() - 3 * DAY)
    ledger.prune(older_than=0)
    assert ledger.begin(stop()).history.session_blocks == 1
