"""`notyet replay --run`, and drafts: what is run, and what is not."""

import json
import os
import subprocess
import sys

import pytest

from commands import pids_in, running, until
from hook_runs import ENTRY, clean_environ, trust
from notyet.cli.main import main
from replays import GATES, capped, changed, replayable, replayed, results, stop


@pytest.fixture
def project(git_project, monkeypatch):
    return replayable(git_project, monkeypatch)


def test_a_gate_is_asked_as_the_stop_would_ask_it(project, capsys):
    working = [{"id": "b1", "type": "subagent", "status": "running"}]
    stop(project, "s1", background_tasks=working)
    (project / "lint-fails").touch()
    changed(project, ("max_blocks = 2", "wait_for_background = false"), name="notyet.toml")
    trust(project / "notyet.toml")

    lines, _ = replayed(capsys, "--run")

    assert results(lines) == [("skipped", "differs", "blocked")]
    assert lines[0]["asked_now"] == ["lint"]


def test_a_gate_is_told_how_often_the_agent_was_sent_back(project, capsys):
    capped(project)
    lint = GATES[GATES.index("[gates.lint]") : GATES.index("[gates.tests]")]
    docs = '[gates.docs]\nrun = "cat > told; exit 1"\nwhen = "always"\n'
    changed(project, (lint, docs), name="notyet.toml")
    trust(project / "notyet.toml")

    lines, _ = replayed(capsys, "2", "--run")

    assert results(lines) == [("blocked", "same", "blocked")]
    assert json.loads((project / "told").read_text())["block_count"] == 1


@pytest.mark.rule("E11")
def test_inside_a_gate_no_gate_runs(project, capsys, monkeypatch):
    stop(project, "s1")
    docs = '[gates.docs]\nrun = "touch ran"\n[gates.tests]'
    changed(project, ("[gates.tests]", docs), name="notyet.toml")
    trust(project / "notyet.toml")
    monkeypatch.setenv("NOTYET_INSIDE", "1")

    assert main(["replay", "--run"]) == 2

    said = "notyet replay: this runs inside a gate, which cannot run gates"
    assert capsys.readouterr().err.startswith(said)
    assert not (project / "ran").exists()
    assert replayed(capsys)[1]["stops"] == 1  # without it no gate runs anyway


@pytest.mark.rule("E2")
def test_what_a_gate_leaves_behind_is_swept(project, tmp_path):
    stop(project, "s1")
    file = tmp_path / "a.pid"
    left = f"setsid sh -c 'echo $$ > {file}; sleep 60' & while ! [ -s {file} ]; do sleep 0.01; done"
    docs = f'[gates.docs]\nrun = """{left}"""\n[gates.tests]'
    changed(project, ("[gates.tests]", docs), name="notyet.toml")
    trust(project / "notyet.toml")
    done = subprocess.run(
        [sys.executable, "-I", str(ENTRY), "replay", "--run"],
        cwd=project,
        env=clean_environ(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b"Run just now" in done.stdout
    assert until(lambda: not any(map(running, pids_in(tmp_path))))


def test_a_draft_leaves_no_trace(project, tmp_path, capsys):
    stop(project, "s1")
    before = sorted(os.walk(os.environ["XDG_STATE_HOME"]))
    known = (tmp_path / "new.toml").write_text(GATES + '[gates.more]\nrun = "touch ran"\n')

    assert known
    replayed(capsys, "--config", str(tmp_path / "new.toml"))

    assert sorted(os.walk(os.environ["XDG_STATE_HOME"])) == before
    stop(project, "s1")
    assert not (project / "ran").exists()
