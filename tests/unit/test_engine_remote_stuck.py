"""An agent that is stuck, where its files or its gates are on another machine (B6)."""

import os
import shutil
from pathlib import Path

import pytest

from notyet import Block, Command, Engine, Gate, Limits
from support import both_ways, gate, run_sync, stop


def command(name, script, *, workspace="", **fields):
    return Gate(name=name, check=Command(script=script, workspace=workspace), **fields)


@both_ways
@pytest.mark.rule("B6")
def test_an_agent_that_changes_nothing_there_is_stuck(warm_box, git_project, run):
    gates = [command("tests", "echo 3 failed; exit 1")]
    event = stop(workspace=warm_box.url(git_project), cwd="/", turn_id="t")
    engine = Engine(gates)
    assert [run(engine, event).outcome for _ in range(3)] == ["blocked", "blocked", "stuck"]


@pytest.mark.rule("B6")
def test_an_agent_that_changes_files_there_is_not_stuck(warm_box, git_project, tmp_path):
    gates = [command("tests", "echo 3 failed; exit 1"), gate("f", Block("no"))]
    event = stop(workspace=warm_box.url(git_project), cwd="/", turn_id="t")
    engine = Engine(gates)
    outcomes = []
    for number in range(3):
        outcomes.append(run_sync(engine, event).outcome)
        with open(os.path.join(git_project, "file.txt"), "w") as file:
            file.write(f"{number}")
    assert outcomes == ["blocked"] * 3
    # One of the places cannot be told, so nothing can.
    lost = Engine([*gates, command("there", "exit 1", workspace=warm_box.url(tmp_path))])
    assert [run_sync(lost, event).outcome for _ in range(3)] == ["blocked"] * 3


@pytest.mark.rule("B6")
def test_an_agent_that_changes_its_own_files_is_not_stuck_where_a_gate_is_elsewhere(
    warm_box, git_project, tmp_path
):
    there = tmp_path / "there"
    shutil.copytree(git_project, there)
    limits = Limits(max_blocks=9)
    engine = Engine([command("tests", "exit 1", workspace=warm_box.url(there))], limits=limits)
    event = stop(cwd=git_project, turn_id="t")

    def outcome(text=None):
        if text is not None:
            Path(git_project, "file.txt").write_text(text)
        return run_sync(engine, event).outcome

    assert [outcome(text) for text in "abc"] == ["blocked"] * 3
    assert [outcome() for _ in range(2)] == ["blocked", "stuck"]


@pytest.mark.rule("B6")
def test_a_function_is_about_the_agents_workspace(warm_box, git_project):
    engine = Engine([gate("f", Block("no"))], limits=Limits(max_blocks=9))
    event = stop(workspace=warm_box.url(git_project), cwd="/", turn_id="t")
    outcomes = []
    for number in range(4):
        outcomes.append(run_sync(engine, event).outcome)
        if number == 0:
            Path(git_project, "file.txt").write_text("changed")
    assert outcomes == ["blocked", "blocked", "blocked", "stuck"]


@pytest.mark.rule("B6", "M3")
def test_a_machine_out_of_reach_is_not_waited_for_again(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTYET_SSH_CONFIG", os.devnull)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    asked = []
    monkeypatch.setattr("notyet.git.remote.fingerprint_there", lambda *_: asked.append(1))
    where = "ssh://no-such-machine.invalid/srv"
    engine = Engine([command("g", "true", workspace=where, if_broken="block")])
    decision = run_sync(engine)
    assert decision.outcome == "blocked"
    assert "no-such-machine.invalid" in decision.reports[0].answer.detail
    assert asked == []
