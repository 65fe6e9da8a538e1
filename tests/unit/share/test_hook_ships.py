"""What sharing costs a stop: a look at the time of a file, and once a minute a process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hook_runs import (
    ENTRY,
    PASSING,
    clean_environ,
    in_bytes,
    ledger_path,
    new_project,
    payload,
    run_hook,
    stops,
)
from notyet.cli.main import main
from notyet.hook import main as hook
from notyet.ledger.connection import SHIP_STAMP
from notyet.run import spawn
from support import wait_for


def stamp():
    return Path(ledger_path() + SHIP_STAMP)


@pytest.fixture
def project(tmp_path):
    return new_project(tmp_path / "p", PASSING)


def share(users_file, url):
    Path(users_file).write_text(f'[share]\nto = "{url}"\n')


def environ_of(pid):
    content = Path(f"/proc/{pid}/environ").read_bytes()
    return dict(part.split(b"=", 1) for part in content.split(b"\0") if part)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_stop_starts_a_shipper_that_copies_it(users_file, project, database):
    share(users_file, database.url)
    assert run_hook(payload("claude", project), "--host", "claude").returncode == 0

    def is_there():
        return database.rows("SELECT count(*) FROM pg_tables WHERE schemaname = 'team'")[0][0]

    wait_for(lambda: is_there() and database.outcomes() == [(1, "passed")])


def test_a_database_that_does_not_answer_costs_a_stop_nothing(users_file, project, silent):
    share(users_file, silent.url)
    done = run_hook(payload("claude", project), "--host", "claude")
    # The hook and all that had its streams are gone; the shipper still waits for an answer.
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert stops() == [("passed", "")]
    pid = silent.accept()
    assert is_running(pid)
    done = run_hook(payload("claude", project), "--host", "claude")
    assert done.returncode == 0
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_server_that_is_gone_costs_a_stop_nothing(users_file, project):
    share(users_file, "postgresql://me@127.0.0.1:1/x")
    done = run_hook(payload("claude", project), "--host", "claude")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert stops() == [("passed", "")]


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_a_shipper_stands_alone(users_file, project, silent):
    share(users_file, silent.url)
    reads, writes = os.pipe()
    os.set_inheritable(writes, True)
    given = {"NOTYET_SHARE": "postgresql://evil/x", "NOTYET_SHARE_WORDS": "1", "KEPT": "yes"}
    code = [sys.executable, "-I", "-S", str(ENTRY), "hook", "--host", "claude"]
    with subprocess.Popen(
        code,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environ(**given),
        pass_fds=[writes],
    ) as started:
        started.communicate(in_bytes(payload("claude", project)), timeout=60)
    os.close(writes)
    pid = silent.accept()
    assert os.read(reads, 1) == b"", "it would have kept the pipe open"
    os.close(reads)
    assert os.getsid(pid) == pid
    assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)} == {"/dev/null"}
    known = environ_of(pid)
    assert known[b"KEPT"] == b"yes"
    assert [name for name in known if name.startswith(b"NOTYET_SHARE")] == []
    os.kill(pid, signal.SIGKILL)


def test_variables_alone_make_a_hook_share_nothing(project, silent):
    environ = clean_environ(NOTYET_SHARE=silent.url)
    run_hook(payload("claude", project), "--host", "claude", environ=environ)
    assert not stamp().exists()


def test_where_nothing_is_shared_no_stamp_is_made(users_file, project):
    Path(users_file).write_text("[limits]\nmax_blocks = 4\n")
    run_hook(payload("claude", project), "--host", "claude")
    assert stops() == [("passed", "")]
    assert not stamp().exists()


@pytest.fixture
def launched(monkeypatch):
    """The command lines of shippers that would be started."""
    found = []
    monkeypatch.setattr(spawn, "launch", lambda argv, *_: found.append(argv))
    return found


def test_a_shipper_is_started_at_most_once_a_minute(tmp_path, launched):
    ledger, path = str(tmp_path / "ledger.db"), tmp_path / f"ledger.db{SHIP_STAMP}"
    for _ in range(3):
        hook.start_shipper(ledger, os.environ)
    assert [argv[-1] for argv in launched] == ["ship"]
    assert path.stat().st_mode & 0o777 == 0o600
    began = path.stat().st_mtime
    os.utime(path, (began - 55, began - 55))
    hook.start_shipper(ledger, os.environ)
    assert len(launched) == 1
    os.utime(path, (began - 61, began - 61))
    hook.start_shipper(ledger, os.environ)
    hook.start_shipper(ledger, os.environ)
    assert len(launched) == 2
    os.utime(path, (began + 3_600, began + 3_600))  # the clock was set back
    hook.start_shipper(ledger, os.environ)
    assert len(launched) == 3


def test_a_stamp_that_cannot_be_written_starts_nothing(tmp_path, launched):
    hook.start_shipper(str(tmp_path / "missing" / "ledger.db"), os.environ)
    folder = tmp_path / f"ledger.db{SHIP_STAMP}"
    folder.mkdir()
    os.utime(folder, (5, 5))
    hook.start_shipper(str(tmp_path / "ledger.db"), os.environ)
    assert launched == []


def test_a_shipper_by_hand_counts_too(users_file, project, database, launched, capsys):
    share(users_file, database.url)
    run_hook(payload("claude", project), "--host", "claude")
    os.utime(stamp(), (5, 5))
    assert main(["ship", "--wait", "60s"]) == 0
    hook.start_shipper(ledger_path(), os.environ)
    assert launched == []


def test_an_agent_that_notyet_runs_starts_a_shipper_too(users_file, project, silent, monkeypatch):
    share(users_file, silent.url)
    monkeypatch.chdir(project)
    (project / "agent.toml").write_text('[[turn]]\nsay = "Done!"\n')
    assert main(["with", "scripted:agent.toml", "Go."]) == 0
    pid = silent.accept()
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)  # our own child
