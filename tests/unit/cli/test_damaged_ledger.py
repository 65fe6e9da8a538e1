"""A damaged ledger: only a stop mends it, and whoever loses its counts is told."""

import json
import os
from pathlib import Path

import with_runs
from hook_runs import FAILING, ledger_path, new_project, payload, run_hook
from notyet.cli import person
from notyet.cli.main import main

MENDED = "was corrupt; it was moved to"


def spoil():
    """Overwrite the ledger; return what is in its place now."""
    path = Path(ledger_path())
    for name in ("-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    path.write_bytes(b"no SQLite at all" * 400)
    return path.read_bytes()


def set_aside():
    """Return the ledgers that were moved out of the way."""
    names = os.listdir(os.path.dirname(ledger_path()))
    return [name for name in names if ".corrupt-" in name]


def test_what_a_person_does_is_done_and_the_ledger_left_to_the_next_stop(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "")
    folder = new_project(tmp_path / "p", FAILING)
    monkeypatch.chdir(folder)
    run_hook(payload("claude", folder))
    damaged = spoil()
    for command in ("off", "on"):
        assert main([command]) == 0
        said = capsys.readouterr()
        assert said.out.startswith(f"notyet is {command}")
        assert "starts a new one (that was not recorded)" in said.err
    assert (Path(ledger_path()).read_bytes(), set_aside()) == (damaged, [])


def test_with_mends_it_and_tells_who_runs_it(tmp_path):
    folder = with_runs.project(tmp_path / "p", with_runs.LEARNS)
    with_runs.run_with(folder)
    spoil()
    done = with_runs.run_with(folder, "--json")
    assert done.stderr.count(MENDED) == 1
    (said,) = [line for line in json.loads(done.stdout)["warnings"] if MENDED in line]
    assert set_aside()[0] in said
