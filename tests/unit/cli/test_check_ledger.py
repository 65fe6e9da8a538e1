"""`notyet check` and the ledger: one that cannot be used, and what it knows of a session."""

import json
import re
from pathlib import Path

import pytest

from hook_runs import (
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


def timeless(text):
    """Hide how long gates took and which stop it is, in which two runs differ."""
    return re.sub(r" \(notyet log \d+\)", "", re.sub(r"\d+\.\d s", "N s", text))


@pytest.mark.parametrize("host", HOSTS)
def test_an_unusable_ledger_allows_as_in_the_hook_and_runs_no_gate(
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
