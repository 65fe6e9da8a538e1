"""A ledger that cannot be used: an Allow with a clear warning, never a block or a traceback."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from notyet import Allow, Block, Engine, Ledger, LedgerBusy, light
from support import gate, stop

pytestmark = pytest.mark.file_only("places and damage")


def checked(path, **options):
    ledger = Ledger(path, **options)
    return Engine([gate("g", Block("x"))], ledger=ledger).check_sync(stop())


def assert_allowed(decision, *words):
    assert (decision.verdict, decision.outcome, decision.why) == (Allow(), "skipped", "ledger")
    (warning,) = decision.warnings
    assert "\n" not in warning
    for word in words:
        assert word in warning


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "sub" / "ledger.db"
    assert_allowed(checked(path), str(path), "set NOTYET_LEDGER")


def test_a_folder_in_the_files_place(tmp_path):
    assert_allowed(checked(tmp_path), str(tmp_path), "directory", "set NOTYET_LEDGER")


def test_a_python_without_sqlite(tmp_path, monkeypatch):
    monkeypatch.setattr("notyet.ledger.connection.sqlite3_module", None)
    assert_allowed(checked(tmp_path / "ledger.db"), "this Python was built without SQLite")


@pytest.mark.rule("B3")
def test_a_file_that_other_processes_keep_locked(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path).begin(stop(session_id="another"))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    decision = checked(path, patience=0.2)
    assert_allowed(decision, str(path), "other processes locked it for over 0.2 s")
    with pytest.raises(LedgerBusy):
        Ledger(path, patience=0.05).begin(stop())
    holder.execute("ROLLBACK")
    holder.close()
    assert checked(path).outcome == "blocked"


@pytest.mark.rule("B3")
def test_a_send_back_that_cannot_be_counted_does_not_happen(tmp_path):
    path = tmp_path / "ledger.db"
    holder = None

    def lock_and_block(event):
        nonlocal holder
        holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        return Block("x")

    engine = Engine([gate("g", lock_and_block)], ledger=Ledger(path, patience=0.1))
    decision = engine.check_sync(stop())
    holder.close()
    assert (decision.verdict, decision.outcome, decision.count) == (Allow(), "failed_open", 0)
    assert decision.why == "g blocked, but the ledger failed"
    assert "this decision was not recorded" in decision.warnings[0]


@pytest.mark.parametrize("content", [b"this is no database" * 99, b"\x00" * 5000])
def test_a_file_that_is_no_database_is_moved_aside_and_named(tmp_path, content):
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    decision = checked(path)
    assert decision.outcome == "blocked"
    (moved,) = [each for each in tmp_path.iterdir() if ".corrupt-" in each.name]
    assert moved.read_bytes() == content
    assert decision.warnings == (
        f"ledger {path} was corrupt; it was moved to {moved} and a new one was started",
    )
    assert checked(path).count == 2


def test_a_file_with_broken_pages_is_moved_aside(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = Ledger(path)
    for n in range(200):
        ledger.begin(stop(session_id=f"s{n}", last_message="x" * 500))
    ledger.close()
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(4096))
    decision = checked(path)
    assert decision.outcome == "blocked"
    assert "was corrupt" in decision.warnings[0]
    assert checked(path).count == 2


@pytest.mark.parametrize("size", [16, 100, 4096])
def test_a_ledger_of_any_name_with_a_broken_header_is_moved_aside(tmp_path, size):
    path = tmp_path / "mine.sqlite"
    ledger = Ledger(path)
    ledger.begin(stop())
    ledger.close()
    with path.open("r+b") as file:
        file.write(b"x" * size)
    decision = checked(path)
    assert decision.outcome == "blocked"
    assert "was corrupt; it was moved to" in decision.warnings[0]
    assert checked(path).count == 2


def test_another_programs_database_with_a_broken_header_is_left_alone(tmp_path):
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE stops (name)")
    path.write_bytes(b"x" * 100 + path.read_bytes()[100:])
    before = path.read_bytes()
    assert_allowed(checked(path), "it is not a ledger", "set NOTYET_LEDGER to a file of its own")
    assert path.read_bytes() == before


def test_a_corrupt_file_that_cannot_be_moved_is_named(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"\0" * 5000)

    def refuse(old, new):
        raise PermissionError(13, "Permission denied", old)

    monkeypatch.setattr(light, "replace", refuse)
    assert_allowed(checked(path), str(path), "Permission denied", "set NOTYET_LEDGER")


def test_only_one_of_two_processes_moves_a_corrupt_file_aside(tmp_path):
    from notyet.ledger.repair import set_aside

    path = tmp_path / "ledger.db"
    Ledger(path).begin(stop())
    assert set_aside(str(path)) == ""
    assert path.exists()


def test_a_newer_file_allows_and_is_left_as_it_is(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path).begin(stop())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    assert_allowed(checked(path), "version 99", "upgrade notyet")
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 7])
def test_another_programs_database_is_left_alone(tmp_path, version):
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE agents (name)")
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    assert_allowed(checked(path), "it is not a ledger", "set NOTYET_LEDGER to a file of its own")
    assert path.read_bytes() == before


def test_another_programs_file_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("do not lose me\n" * 100)
    assert_allowed(checked(path), str(path), "it is not a ledger")
    assert path.read_text() == "do not lose me\n" * 100
    assert list(tmp_path.iterdir()) == [path]


SCRIPT = """
import logging, os, resource, signal, sys
import notyet.ledger.connection  # with SQLite, which another user may not be able to load
from notyet import Block, Engine, Ledger, StopEvent
path, how = sys.argv[1:]
Engine([lambda event: Block("x")]).check_sync(StopEvent(session_id="s"))  # loads what is needed
engine = Engine([lambda event: Block("x")], ledger=Ledger(path))
if how == "full disk":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    engine.check_sync(StopEvent(session_id="s"))
    size = os.path.getsize(path + "-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
else:
    if os.getuid() == 0:
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
decision = engine.check_sync(StopEvent(session_id="s"))
print(type(decision.verdict).__name__, decision.outcome, decision.why)
print(decision.warnings[0])
"""


def run_script(path, how):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), how],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_full_disk(tmp_path):
    done = run_script(tmp_path / "ledger.db", "full disk")
    assert "Traceback" not in done.stderr
    said, warning = done.stdout.splitlines()
    assert said == "Allow skipped ledger"
    assert str(tmp_path / "ledger.db") in warning


@pytest.fixture
def open_folder():
    """A folder that everybody can enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_place_that_is_read_only(open_folder, what):
    path = open_folder / "ledger.db"
    if what == "file":
        Ledger(path).close()
        ledger = Ledger(path)
        ledger.begin(stop())
        ledger.close()
    path.parent.chmod(0o555)
    if what == "file":
        path.chmod(0o444)
    done = run_script(path, "read only")
    assert "Traceback" not in done.stderr, done.stderr
    said, warning = done.stdout.splitlines()
    assert said == "Allow skipped ledger"
    assert "set NOTYET_LEDGER" in warning
