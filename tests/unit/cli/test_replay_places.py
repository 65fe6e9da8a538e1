"""What is in force where recorded stops were: supervised agents, and other machines."""

import json
import sqlite3
from contextlib import closing

import pytest

from hook_runs import clean_environ, ledger_path, new_project, payload, run_hook, trust
from notyet.cli.main import main
from with_runs import GATED, LEARNS, project, run_with
from workspaces import trust_there, unreachable, write_there


@pytest.fixture
def found(capsys):
    """A function that replays, and returns what was found of each stop."""

    def found(*words):
        capsys.readouterr()
        main(["replay", "--json", "--all", *words])
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()][:-1]

    return found


def test_supervised_agents_meet_the_gates_that_their_supervisor_reads(tmp_path, found):
    folder = project(tmp_path / "p", LEARNS, GATED)
    assert run_with(folder).returncode == 0

    assert [(line["was"], line["result"]) for line in found()] == [
        ("blocked", "same"),
        ("passed", "same"),
    ]
    trust(folder / "notyet.toml")
    new = tmp_path / "new.toml"
    new.write_text("[limits]\nmax_blocks = 0\n" + GATED)
    assert [line["result"] for line in found("--config", str(new))] == ["differs", "hypothetical"]


def test_a_task_of_which_nothing_is_known_is_left_out(tmp_path, found):
    folder = project(tmp_path / "p", LEARNS, GATED)
    run_with(folder)
    with closing(sqlite3.connect(ledger_path())) as db, db:
        assert db.execute("UPDATE owners SET program = 'mine'").rowcount
    assert {line["left_out"] for line in found()} == {"a program used gates of its own"}
    with closing(sqlite3.connect(ledger_path())) as db, db:
        db.execute("DELETE FROM tasks")
    assert {line["left_out"] for line in found()} == {"its task is not recorded any more"}


def hook(box, content, *argv):
    done = run_hook(content, *argv, environ=clean_environ(**box.environ))
    assert done.returncode == 0, done.stderr
    return done


def test_a_workspace_that_a_file_names_is_not_connected_to(  # noqa: PLR0917  # its world
    warm_box, app, tmp_path, found, monkeypatch, capsys
):
    text = f'workspace = "{warm_box.url(app)}"\n[gates.g]\nrun = "exit 1"\nwhen = "always"\n'
    here = new_project(tmp_path / "here", text)
    write_there(app, "notyet.toml", '[gates.there]\nrun = "exit 1"\nwhen = "always"\n')
    trust_there(warm_box, app)
    hook(warm_box, payload("claude", here))
    unreachable(monkeypatch, warm_box, tmp_path)

    assert [line["result"] for line in found()] == ["same"]
    main(["replay", "--all"])
    said = f"{warm_box.url(app)} was not connected to; its trusted files count"
    assert said in capsys.readouterr().err
    new = tmp_path / "new.toml"
    new.write_text(text.replace("exit 1", "exit 2"))
    (line,) = found("--config", str(new))
    assert (line["result"], line["could_be"]) == ("same", ["blocked"])  # by the one that is there


def test_a_workspace_that_the_host_names_has_its_own_files(warm_box, app, tmp_path, found):
    write_there(app, "notyet.toml", '[gates.there]\nrun = "exit 1"\nwhen = "always"\n')
    trust_there(warm_box, app)
    event = payload("notyet", tmp_path, workspace=warm_box.url(app))
    hook(warm_box, event, "--host", "notyet")

    assert [(line["was"], line["result"]) for line in found()] == [("blocked", "same")]
    new = tmp_path / "new.toml"
    new.write_text("")
    (line,) = found("--config", str(new))
    assert line["left_out"].startswith(
        f"its files were in {warm_box.url(app)}, which the file does not name"
    )
