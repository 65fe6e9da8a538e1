"""The files of another machine are unknown, so an agent is never stuck over them (B6)."""

import os

import pytest

from notyet import Command, Engine, Gate, Limits
from support import run_sync, stop


def command(name, script, *, workspace="", **fields):
    return Gate(name=name, check=Command(script=script, workspace=workspace), **fields)


@pytest.mark.rule("B6")
@pytest.mark.parametrize("is_agent_there", [False, True])
def test_an_agent_is_not_stuck_over_a_gate_there(warm_box, git_project, is_agent_there):
    url = warm_box.url(git_project)
    gates = [command("tests", "echo 3 failed; exit 1", workspace=url)]
    about = {"workspace": url, "cwd": "/"} if is_agent_there else {"cwd": git_project}
    engine = Engine(gates, limits=Limits(max_blocks=9))
    event = stop(turn_id="t", **about)
    assert [run_sync(engine, event).outcome for _ in range(4)] == ["blocked"] * 4


@pytest.mark.rule("B6", "M3")
def test_a_machine_out_of_reach_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTYET_SSH_CONFIG", os.devnull)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    where = "ssh://no-such-machine.invalid/srv"
    engine = Engine([command("g", "true", workspace=where, if_broken="block")])
    decision = run_sync(engine)
    assert decision.outcome == "blocked"
    assert "no-such-machine.invalid" in decision.reports[0].answer.detail
