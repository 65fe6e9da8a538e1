"""Engines for what is in force at a place."""

import asyncio
import os

import pytest

from config_places import hooks, write
from hook_runs import gate, new_project
from notyet import Engine, Ledger
from notyet.config.load import Setup, load
from notyet.core.event import StartEvent
from notyet.core.record import replace
from notyet.engine.from_project import configured_engine, supervising_engine
from notyet.errors import Refused
from support import recorded, stop

WATCHED = gate("exit 1") + "\n[observers.log]\nrun = 'echo $NOTYET_OUTCOME >> told'\n"


def supervised(folder):
    setup = load(str(folder), "notyet", os.environ, agent="scripted")
    said = []
    return supervising_engine(setup, os.environ, warn=said.append), said


def test_gates_observers_and_limits_of_a_file_make_an_engine(tmp_path):
    project = new_project(tmp_path / "p", WATCHED + "[limits]\nmax_blocks = 1\n")
    engine = configured_engine(load(str(project), "claude", os.environ))
    outcomes = [engine.check_sync(stop(cwd=str(project))).outcome for _ in range(2)]
    assert outcomes == ["blocked", "capped"]
    assert (project / "told").read_text().split() == outcomes
    assert engine.limits.max_blocks == 1


@pytest.mark.rule("F13-claude", "K14")
def test_a_supervised_agent_is_told_of_its_gates_and_what_start_hooks_add(tmp_path):
    project = new_project(tmp_path / "p", gate("make test") + "\n[start]\ntell = true\n")
    write(project, ".claude/settings.json", hooks("echo from the hook", event="SessionStart"))
    engine, said = supervised(project)
    event = StartEvent(session_id="s", cwd=str(project))
    told = asyncio.run(engine.start(event))
    assert told.startswith("Before you may finish, notyet runs these checks:\n- g: make test\n")
    assert told.endswith("\n\nfrom the hook")
    child = StartEvent(scope="subagent", session_id="s", cwd=str(project))
    assert asyncio.run(engine.start(child)) == ""  # the gate is for the main agent
    assert said == []


def test_without_a_word_in_the_file_a_supervised_agent_is_not_told_of_its_gates(tmp_path):
    project = new_project(tmp_path / "p", gate("make test"))
    engine, _ = supervised(project)
    assert asyncio.run(engine.start(StartEvent(session_id="s", cwd=str(project)))) == ""


def test_notifications_of_a_conclaude_file_are_sent_for_supervised_agents(tmp_path):
    program = tmp_path / "notify-send"
    program.write_text('#!/bin/sh\necho "$@" >> "$SENT"\n')
    program.chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SENT": str(tmp_path / "sent"),
        "DISPLAY": ":0",
    }
    wishes = {"enabled": True, "hooks": ["*"]}
    said = []
    engine = supervising_engine(Setup(notifications=(wishes,)), environ, warn=said.append)
    asyncio.run(engine.check(stop()))
    assert said == []
    assert "notyet - Stop" in (tmp_path / "sent").read_text()
    program.write_text("#!/bin/sh\nexit 1\n")
    asyncio.run(engine.check(stop()))
    assert said[0].startswith("notification not sent: ")


@pytest.mark.rule("A8")
def test_no_stop_passes_if_something_trusted_could_not_be_loaded(tmp_path):
    lost = "a/notyet.toml cannot be read"
    project = new_project(tmp_path / "p")
    setup = load(str(project), "claude", os.environ)
    engine = configured_engine(replace(setup, unchecked=(lost,)))
    decision = engine.check_sync(stop(cwd=str(project)))
    assert (decision.outcome, decision.why) == ("failed_open", lost)
    ledger = Ledger(tmp_path / "ledger.db")
    without_gates = configured_engine(Setup(unchecked=(lost,)), ledger)
    assert without_gates.check_sync(stop()).warnings == (lost,)
    assert without_gates.decide_sync(stop()).why == "config"
    assert recorded(ledger) == [("skipped", "config")]


@pytest.mark.rule("J8", "K14")
def test_an_engine_of_a_project_has_what_its_trusted_files_say_for_all_hosts(tmp_path):
    limits = "[limits]\nmax_blocks = 1\n"
    project = new_project(tmp_path / "p", WATCHED + limits)
    write(project, ".codex/hooks.json", hooks("touch hooked"))
    said = []
    engine = Engine.from_project(str(project), warn=said.append)
    assert said == []
    outcomes = [engine.check_sync(stop(cwd=str(project))).outcome for _ in range(2)]
    assert outcomes == ["blocked", "capped"]
    assert (project / "told").read_text().split() == outcomes
    assert (project / "hooked").exists()
    assert engine.limits.max_blocks == 1
    (project / "hooked").unlink()
    Engine.from_project(str(project), agent="codex").check_sync(stop(cwd=str(project)))
    assert not (project / "hooked").exists()  # codex runs it itself


def test_an_engine_of_a_project_says_what_is_not_in_force(tmp_path, monkeypatch):
    project = new_project(tmp_path / "p", gate("exit 1"), trusted=False)
    monkeypatch.chdir(project)
    said = []
    engine = Engine.from_project(warn=said.append)
    assert not engine.asks(stop())
    assert [f"{project}/notyet.toml is not trusted" in line for line in said] == [True]
    monkeypatch.setenv("NOTYET_DISABLE", "1")
    said.clear()
    assert not Engine.from_project(warn=said.append).asks(stop())
    assert said == ["off because NOTYET_DISABLE is set"]


@pytest.mark.rule("M1")
def test_an_engine_of_a_workspace_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    lost = Setup(workspace_problem="no route to host")
    monkeypatch.setattr("notyet.engine.from_project.load", lambda *_, **__: lost)
    with pytest.raises(Refused, match="ssh://box/srv cannot be read: no route to host"):
        Engine.from_project(str(tmp_path), workspace="ssh://box/srv")
