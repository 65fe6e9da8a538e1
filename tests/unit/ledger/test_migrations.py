"""A ledger of an older version is brought up to this one by numbered steps, and loses nothing."""

import sqlite3
import threading
from contextlib import closing

import pytest

from notyet import Ledger
from notyet.errors import LedgerNeedsRepair
from notyet.ledger import connection, migrations
from notyet.ledger.connection import FIRST_VERSION, VERSION, version_of
from notyet.ledger.migrations import STEPS, migrate, statements
from support import decide, rows, stop

pytestmark = pytest.mark.file_only("its versions")


def add_note(db):
    db.execute("ALTER TABLE stops ADD COLUMN note TEXT NOT NULL DEFAULT 'none'")


def fail(db):
    add_note(db)
    raise sqlite3.OperationalError("disk full")


@pytest.fixture
def old(tmp_path):
    """A ledger of this version, with one agent that was sent back twice."""
    ledger = Ledger(tmp_path / "ledger.db")
    for message in ("one", "two"):
        decide(ledger, stop(last_message=message, stop_hook_active=True))
    ledger.close()
    return ledger.path


def upgrade(monkeypatch, step):
    """Become the notyet that has one step more."""
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, step))
    for module in (connection, migrations):
        monkeypatch.setattr(module, "VERSION", VERSION + 1)


def test_every_version_after_the_first_has_its_step():
    assert FIRST_VERSION + len(STEPS) == VERSION


def test_an_old_ledger_keeps_its_counts_and_gets_the_new_column(old, monkeypatch):
    upgrade(monkeypatch, add_note)
    with pytest.raises(
        LedgerNeedsRepair, match=r"an older notyet wrote it .*the next stop repairs it"
    ):
        Ledger(old, repair=False).recall(stop(), [])
    ledger = Ledger(old)
    assert ledger.begin(stop(last_message="three", stop_hook_active=True)).history.blocks == 2
    assert rows(ledger, "PRAGMA user_version") == [(VERSION + 1,)]
    assert rows(ledger, "SELECT note FROM stops WHERE id = 1") == [("none",)]


def test_many_at_once_migrate_once(old, monkeypatch):
    upgrade(monkeypatch, add_note)
    begun = []
    threads = [
        threading.Thread(target=lambda: begun.append(Ledger(old).begin(stop(session_id="x"))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(begun) == 8


def test_a_step_that_fails_leaves_the_old_version(old, monkeypatch):
    upgrade(monkeypatch, fail)
    with closing(sqlite3.connect(old, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="disk full"):
            migrate(db)
        db.execute("ROLLBACK")
        assert version_of(db) == VERSION
        assert "note" not in [row[1] for row in db.execute("PRAGMA table_info(stops)")]


def test_a_ledger_of_the_first_version_keeps_its_stops_and_its_tasks(tmp_path):
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements(migrations.schema()):
            db.execute(statement)
        db.execute("CREATE TABLE intents (id INTEGER PRIMARY KEY, task TEXT)")  # it had one more
        db.execute(
            "INSERT INTO stops (agent, turn, begun_at, pid, token, digest, event, outcome)"
            " VALUES (1, 1, 5, 1, x'00', x'00', '{}', 'passed')"
        )
        db.execute("INSERT INTO owners VALUES (7, 1, '', '', 'pid:[1]', 'bot', 5)")
        db.execute(
            "INSERT INTO tasks (id, parent, about, owner, run, generation, ref, session_id,"
            " created_at) VALUES ('t', '', '{}', 7, 't.1', 1, '{}', '', 5)"
        )
        db.execute(f"PRAGMA application_id = {connection.APPLICATION}")
        db.execute(f"PRAGMA user_version = {FIRST_VERSION}")
    ledger = Ledger(path)
    assert ledger.begin(stop()).stop == 2
    assert rows(ledger, "SELECT id, machine FROM owners") == [(7, "pid:[1]")]
    assert rows(ledger, "SELECT id, moved FROM tasks") == [("t", 0)]
    assert rows(ledger, "SELECT 1 FROM sqlite_master WHERE name = 'intents'") == []


def test_the_script_can_be_split_at_its_semicolons():
    parts = statements(migrations.schema())
    assert all(sqlite3.complete_statement(f"{part};") for part in parts)
    assert not any("--" in part for part in parts)
