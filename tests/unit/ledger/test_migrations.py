"""A ledger of an older version is brought to this one, and loses nothing."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from notyet import Block, Ledger
from notyet.ledger import file as migrations
from notyet.ledger.file import APPLICATION, STEPS, VERSION, migrate, statements, version_of
from support import rows, stop

COUNTED = (
    "INSERT INTO agents (host, session_id, agent_id, turn, turn_ids, blocks, session_blocks,"
    " extend, blocked, repeats, repeat_key, last_stop, seen_at)"
    " VALUES ('embedded', 's1', '', 1, '[]', 2, 2, 0, 1, 0, '', 1, 0)"
)
STOPPED = (
    "INSERT INTO stops (agent, turn, begun_at, pid, token, digest, event, outcome)"
    " VALUES (1, 1, 0, 1, x'00', x'00', '{}', 'blocked')"
)


@pytest.fixture
def old(tmp_path):
    """A ledger as version 1 left it, with one agent that was sent back twice."""
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as db, db:
        STEPS[0](db)
        db.execute(COUNTED)
        db.execute(STOPPED)
        db.execute("PRAGMA user_version = 1")
        db.execute(f"PRAGMA application_id = {APPLICATION}")
    return path


def test_every_version_has_its_step():
    assert len(STEPS) == VERSION


def test_an_old_ledger_keeps_its_counts_and_gets_the_new_columns(old):
    ledger = Ledger(old)
    begun = ledger.begin(stop(stop_hook_active=True))
    assert begun.history.blocks == 2
    assert rows(ledger, "PRAGMA user_version") == [(VERSION,)]
    columns = {name for _, name, *_ in rows(ledger, "PRAGMA table_info(reports)")}
    assert {"exit", "log", "tell_user", "hidden", "held", "workspace"} <= columns
    assert {"definition", "asked_when"} <= columns
    assert rows(ledger, "SELECT count(*) FROM acts") == [(0,)]
    assert rows(ledger, "SELECT outcome FROM stops WHERE id = 1") == [("blocked",)]


def test_of_an_old_report_the_place_is_this_machine(tmp_path):
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as db, db:
        for step in STEPS[:4]:
            step(db)
        db.execute(COUNTED)
        db.execute(STOPPED)
        db.execute(
            "INSERT INTO reports (stop, position, gate, status, said, reason, extend, seconds,"
            " output, matched, observed, warning)"
            " VALUES (1, 0, 'tests', 'blocked', 'no', '', 0, 1.5, 'no', '', 0, '')"
        )
        db.execute("PRAGMA user_version = 4")
        db.execute(f"PRAGMA application_id = {APPLICATION}")
    (report,) = Ledger(path).answer(1, 0).reports
    assert (report.gate, report.answer, report.workspace) == ("tests", Block("no"), "")


def test_of_an_old_stop_the_place_is_unknown(old):
    ledger = Ledger(old)
    ledger.begin(stop(cwd="/somewhere"))
    assert rows(ledger, "SELECT place FROM stops ORDER BY id") == [("",), ("/somewhere",)]


def test_an_old_and_a_new_ledger_look_alike(old, tmp_path):
    Ledger(old).begin(stop())
    new = tmp_path / "new.db"
    Ledger(new).begin(stop())
    tables = []
    for path in (old, new):
        with closing(sqlite3.connect(path)) as db:
            names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            tables.append(
                {name: db.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in names}
            )
    assert tables[0] == tables[1]


def test_many_at_once_migrate_once(old):
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
    def fail(db):
        STEPS[1](db)
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(migrations, "STEPS", (STEPS[0], fail, *STEPS[2:]))
    with closing(sqlite3.connect(old, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="disk full"):
            migrate(db)
        db.execute("ROLLBACK")
        assert version_of(db) == 1
        assert db.execute("SELECT name FROM sqlite_master WHERE name = 'acts'").fetchall() == []


def test_the_scripts_can_be_split_at_their_semicolons():
    for script in Path(migrations.__file__).parent.glob("*.sql"):
        for statement in statements(script.read_text()):
            assert sqlite3.complete_statement(f"{statement};")
