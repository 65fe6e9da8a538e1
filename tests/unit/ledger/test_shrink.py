"""A ledger gives its space back to the system, whichever version began it."""

import os
import resource
import signal
import sqlite3
from contextlib import closing

import pytest

from notyet import Ledger
from notyet.cli.main import main
from notyet.ledger.file import APPLICATION, STEPS
from notyet.ledger.prune import Retention, prune, shrink
from support import decide, rows, stop

BEGUN = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
    " INSERT INTO stops (agent, turn, begun_at, ended_at, pid, token, digest, event, outcome,"
    " verdict) SELECT 1, 1, 5.0, 6.0, 1, x'00', x'00',"
    " '{\"last_message\": \"' || hex(zeroblob(500)) || '\"}', 'passed', 'allow' FROM n"
)


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A ledger that version 5 began and this one went on with."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("NOTYET_LEDGER", str(path))
    begin(path)
    ledger = Ledger(path)
    decide(ledger, stop(session_id="kept"))
    return ledger


def begin(path):
    """Begin a ledger as version 5 did, with many old stops."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        for step in STEPS[:5]:
            step(db)
        db.execute(BEGUN)
        db.execute("PRAGMA user_version = 5")
        db.execute(f"PRAGMA application_id = {APPLICATION}")


def test_a_file_that_an_earlier_version_began_is_written_anew_and_shrinks_ever_after(old, capsys):
    size = os.path.getsize(old.path)
    assert size > 4_000_000
    assert main(["log", "--prune"]) == 0
    out = capsys.readouterr().out
    assert "removed 4901 stops; " in out
    assert "it was written anew: an earlier notyet began it" in out
    assert os.path.getsize(old.path) < size / 10
    assert rows(old, "PRAGMA integrity_check") == [("ok",)]
    assert rows(old, "PRAGMA auto_vacuum") == [(2,)]
    assert rows(old, "PRAGMA journal_mode") == [("wal",)]
    assert rows(old, "PRAGMA application_id") == [(APPLICATION,)]
    # Whoever had it open goes on, and nothing was counted anew.
    begun = old.begin(stop(session_id="kept", stop_hook_active=True))
    assert (begun.stop, begun.history.blocks, begun.warnings) == (5_002, 1, ())
    assert main(["log", "--prune"]) == 0
    assert "anew" not in capsys.readouterr().out


def test_a_file_that_no_stop_brought_up_to_date_yet_is_pruned_too(tmp_path, capsys, monkeypatch):
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("NOTYET_LEDGER", str(path))
    begin(path)
    assert main(["log", "--all"]) == 1  # who only looks leaves it as it is
    assert "the next stop mends it" in capsys.readouterr().err
    assert main(["log", "--prune"]) == 0
    assert "removed 4900 stops; " in capsys.readouterr().out
    assert main(["log", "--all"]) == 0


def test_without_room_on_the_disk_it_stays_as_it_is_and_says_why(old, capsys, monkeypatch):
    monkeypatch.setattr("notyet.ledger.prune._COPIES", 10**12)
    assert main(["log", "--prune"]) == 0
    out = capsys.readouterr().out
    assert "removed 4901 stops; " in out
    assert "0 bytes less" in out
    assert "to shrink, it has to be written anew: that takes" in out
    assert "MB left" in out
    assert os.path.getsize(old.path) > 4_000_000
    assert rows(old, "PRAGMA integrity_check") == [("ok",)]
    monkeypatch.undo()  # there is room now
    prune(old, Retention())
    assert shrink(old).is_new


def test_a_disk_that_becomes_full_meanwhile_leaves_it_whole(old):
    for _ in range(300):  # what is left is more than fits into the limit below
        decide(old, stop(last_message="x" * 7_000, session_id=os.urandom(4).hex()), "passed")
    prune(old, Retention())
    old.file.checkpoint()
    old.close()
    child = os.fork()
    if not child:  # a file that may not grow is as good as a full disk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        shrunk = shrink(old)
        os._exit(7 if shrunk.why_not and not shrunk.is_new and not shrunk.freed else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert rows(old, "PRAGMA integrity_check") == [("ok",)]
    assert rows(old, "SELECT count(*) FROM agents") == [(301,)]
    assert shrink(old).is_new


def test_somebody_who_holds_it_is_waited_for_and_then_left_in_peace(old):
    prune(old, Retention())
    old.patience = 0.1
    with closing(sqlite3.connect(old.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert shrink(old).why_not == "database is locked"
        other.execute("ROLLBACK")
    assert shrink(old).is_new


def test_where_nothing_is_free_nothing_is_written(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    decide(ledger, stop())
    assert not shrink(ledger).is_new
