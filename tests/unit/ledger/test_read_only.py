"""Whoever only looks at a ledger leaves it as it is: only a stop makes, mends or migrates one."""

import os
import sqlite3
from contextlib import closing

import pytest

from notyet import Block, Engine, Ledger
from notyet.errors import LedgerError, LedgerNeedsRepair
from notyet.ledger import past_stops
from notyet.ledger.connection import UNRELEASED
from support import gate, stop

pytestmark = pytest.mark.file_only("opening it without changing it")


def blocked(path):
    ledger = Ledger(path)
    engine = Engine([gate("g", Block("x"))], ledger=ledger, warn=lambda _: None)
    decision = engine.check_sync(stop())
    ledger.close()
    return decision


def found(path):
    ledger = Ledger(path, repair=False)
    try:
        return past_stops.stops(ledger, past_stops.StopFilter())
    finally:
        ledger.close()


def contents(folder):
    return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def spoiled(path):
    with open(path, "r+b") as file:
        file.write(b"nothing of a database" * 10)


def test_what_was_recorded_is_read(tmp_path):
    path = tmp_path / "a? #%20b.db"  # SQLite is given it as part of an address
    blocked(path)
    (one,) = found(path)
    assert one.outcome == "blocked"


def test_a_file_that_another_process_is_just_making_is_empty_and_left_to_it(tmp_path):
    (tmp_path / "ledger.db").write_bytes(b"")
    assert Ledger(tmp_path / "ledger.db", repair=False).recall(stop(), []) == {}
    assert contents(tmp_path) == {"ledger.db": b""}


def test_a_damaged_ledger_stays_where_it_is_until_a_stop_mends_it_and_says_so(tmp_path):
    path = tmp_path / "ledger.db"
    blocked(path)
    spoiled(path)
    before = contents(tmp_path)
    with pytest.raises(
        LedgerNeedsRepair,
        match=r"it is damaged \(.*\); the next stop sets it aside",
    ):
        found(path)
    assert contents(tmp_path) == before
    (warning,) = blocked(path).warnings
    assert "was corrupt; it was moved to" in warning


def test_a_ledger_of_an_unreleased_notyet_is_set_aside_by_a_stop_and_not_by_a_look(tmp_path):
    path = tmp_path / "ledger.db"
    blocked(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"PRAGMA application_id = {UNRELEASED}")
    before = contents(tmp_path)
    with pytest.raises(
        LedgerNeedsRepair,
        match=r"an unreleased notyet .* the next stop sets it aside",
    ):
        found(path)
    assert contents(tmp_path) == before
    (warning,) = blocked(path).warnings
    (aside,) = [name for name in os.listdir(tmp_path) if ".before-" in name]
    was = f"ledger {path} was written by an unreleased notyet"
    assert warning == f"{was}; it was moved to {tmp_path / aside} and a new one was started"
    assert (tmp_path / aside).read_bytes() == before["ledger.db"]
    assert len(found(path)) == 1


def test_a_foreign_file_is_not_a_ledger_to_repair(tmp_path):
    path = tmp_path / "photos.db"
    path.write_text("not a database at all")
    with pytest.raises(LedgerError, match="it is not a ledger") as caught:
        found(path)
    assert not isinstance(caught.value, LedgerNeedsRepair)
    with pytest.raises(LedgerError, match="directory"):
        found(tmp_path)


def test_what_is_to_be_remembered_makes_a_ledger_though_a_look_did_not(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = Ledger(path, repair=False)
    assert ledger.recall(stop(), []) == {}
    ledger.skip(stop(), blocked(tmp_path / "other.db"))
    (one,) = past_stops.stops(ledger, past_stops.StopFilter())
    assert one.host == "embedded"
    ledger.close()
    assert len(found(path)) == 1
