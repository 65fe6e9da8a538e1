"""`notyet check` and the ledger: one that cannot be used, and what it knows of a session."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hook_runs import (
    ENTRY,
    FAILING,
    HOSTS,
    clean_environ,
    ledger_path,
    new_project,
    payload,
    query,
    run_hook,
    stops,
)

CHANGED = '[gates]\ntests = "echo ran >> {ran}"\n'


def command(*argv):
    return [sys.executable, "-I", str(ENTRY), "check", *argv]


def timeless(text):
    """Hide how long gates took, in which two runs differ."""
    return re.sub(r"\d+\.\d s", "N s", text)


@pytest.mark.parametrize("host", HOSTS)
def test_a_ledger_that_cannot_be_used_lets_go_as_in_the_hook_and_nobody_is_asked(
    check, git_project, tmp_path, monkeypatch, host
):
    ran = tmp_path / "ran"
    folder = new_project(Path(git_project), CHANGED.format(ran=ran))
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path))  # a folder
    (tmp_path / "sent.json").write_text(json.dumps(payload(host, folder)))
    done = check(folder, "--payload", tmp_path / "sent.json", "--as", host, "--json")
    assert done.code == 2
    said = done.json
    assert (said["outcome"], said["why"], said["reports"]) == ("skipped", "ledger", [])
    environ = clean_environ(NOTYET_LEDGER=str(tmp_path))
    ended = run_hook((tmp_path / "sent.json").read_bytes(), "--host", host, environ=environ)
    assert said["reply"]["stdout"] == ended.stdout.decode()
    assert said["reply"]["stderr"] == ended.stderr.decode()
    assert not ran.exists()
    done = check(folder)
    assert done.code == 2
    assert done.out.startswith("NOT CHECKED: a stop would be allowed: ledger ")
    assert done.err == ""


def test_a_ledger_from_the_future_is_left_alone(check, git_project):
    folder = new_project(Path(git_project), '[gates]\na = "true"\n')
    check(folder)
    with closing(sqlite3.connect(ledger_path())) as db:
        db.execute("PRAGMA user_version = 999")
    done = check(folder)
    assert done.code == 2
    assert "NOT CHECKED: a stop would be allowed" in done.out
    assert "upgrade notyet" in done.out


def test_a_damaged_ledger_is_left_to_the_next_stop(check, git_project, tmp_path):
    ran = tmp_path / "ran"
    folder = new_project(Path(git_project), CHANGED.format(ran=ran))
    check(folder)
    path = Path(ledger_path())
    content = b"no SQLite at all" * 400
    path.write_bytes(content)
    for name in ("-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    done = check(folder)
    assert (done.code, ran.read_text()) == (0, "ran\nran\n")  # a stop asks then, too
    assert "it is damaged" in done.err
    assert done.err.count("\n") == 1
    assert path.read_bytes() == content


def test_a_full_disk_is_said_and_lets_go_as_in_the_hook(git_project):
    folder = new_project(Path(git_project), '[gates]\na = "true"\nb = "exit 1"\n')
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command("--json")],
        cwd=folder,
        env=clean_environ(),
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (2, b"")
    said = json.loads(done.stdout)
    assert (said["why"], said["reports"]) == ("ledger", [])
    assert "a local disk that you can write" in said["notes"][0]


# What the ledger knows of a session.


@pytest.mark.rule("B1")
@pytest.mark.parametrize("limits", ["max_blocks = 2", "max_blocks = 9\nstuck_after = 3"])
def test_a_real_payload_is_asked_about_with_what_its_session_has_spent(
    check, git_project, tmp_path, limits
):
    folder = new_project(Path(git_project), f"[limits]\n{limits}\n" + FAILING)
    file = tmp_path / "sent.json"
    seen = []
    for number in range(4):
        sent = payload("claude", folder, stop_hook_active=number > 0)
        file.write_text(json.dumps(sent))
        done = check(folder, "--payload", file, "--as", "claude", "--json")
        before = query("SELECT * FROM agents"), stops()
        check(folder, "--payload", file)
        assert (query("SELECT * FROM agents"), stops()) == before
        ended = run_hook(file.read_bytes(), "--host", "claude")
        assert timeless(done.json["reply"]["stdout"]) == timeless(ended.stdout.decode())
        seen.append(done.json["outcome"])
    assert seen[:2] == ["blocked", "blocked"]
    assert seen[-1] in {"capped", "stuck"}


@pytest.mark.rule("B11")
def test_a_stop_that_the_host_overrode_is_told_of_as_the_hook_tells(check, tmp_path):
    folder = new_project(tmp_path / "p", FAILING)
    file = tmp_path / "sent.json"
    for turn in ("one", "two"):
        file.write_text(json.dumps(payload("codex", folder, turn_id=turn)))
        done = check(folder, "--payload", file, "--as", "codex", "--json")
        ended = run_hook(file.read_bytes(), "--host", "codex")
        assert timeless(done.json["reply"]["stdout"]) == timeless(ended.stdout.decode())


def test_without_a_payload_it_is_the_first_stop_of_a_turn(check, tmp_path):
    folder = new_project(tmp_path / "p", FAILING)
    run_hook(payload("claude", folder), "--host", "claude")
    assert "(send-back 1 of 3)" in check(folder).out
