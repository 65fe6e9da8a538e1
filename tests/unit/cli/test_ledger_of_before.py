"""What `check` and `status --why` know of a ledger that the next stop mends: no more than it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hook_runs import ledger_path, new_project, payload, run_hook

GATES = '[gates.tests]\nrun = "exit 1"\nwhen = "always"\n'


def sent(folder, file, **fields):
    file.write_text(json.dumps(payload("claude", folder, **fields)))
    return file


@pytest.mark.rule("N1")
def test_nothing_is_recalled_of_a_ledger_of_which_only_a_part_is_damaged(
    check, git_project, status, tmp_path
):
    folder = new_project(Path(git_project), '[gates]\ntests = "true"\n')
    run_hook(payload("claude", folder), "--host", "claude")
    with closing(sqlite3.connect(ledger_path())) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = db.execute("PRAGMA page_size").fetchone()[0]
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'agents'").fetchone()
        index = "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'agents' AND type = 'index'"
        roots = [root, *(row[0] for row in db.execute(index))]
    with open(ledger_path(), "r+b") as file:
        for page in roots:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
    file = sent(folder, tmp_path / "sent.json", session_id="s2")
    why = status(folder, "--why", "--payload", str(file))
    assert "spared" not in why
    assert "it is damaged" in why
    assert "the number of send-backs used in this turn, of 3, is unknown" in why
    said = json.loads(status(folder, "--why", "--payload", str(file), "--json"))["why"]
    assert (said["used"], said["gates"][0]["asked"]) == (None, True)
    done = check(folder, "--payload", file)
    assert "a stop would not ask now" not in done.out
    assert "it is not known what was spent and what passed" in done.err
    ended = run_hook(file.read_bytes(), "--host", "claude")
    assert b"was corrupt" in ended.stderr


@pytest.mark.rule("B1")
def test_a_ledger_that_others_hold_lets_go_in_a_look_as_in_a_stop(status, tmp_path):
    folder = new_project(tmp_path / "p", GATES)
    run_hook(payload("claude", folder), "--host", "claude")
    with closing(sqlite3.connect(ledger_path(), isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        why = status(folder, "--why")
    assert "no gate runs: ledger " in why
    assert "other processes held it" in why


@pytest.fixture
def status(monkeypatch, capsys):
    """Run `notyet status` in a folder; return what it prints."""
    from notyet.cli.main import main

    def run(folder, *argv):
        monkeypatch.chdir(folder)
        capsys.readouterr()
        main(["status", *argv])
        return " ".join(capsys.readouterr().out.split())

    return run
