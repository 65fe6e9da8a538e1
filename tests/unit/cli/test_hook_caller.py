"""Which host calls, where its command line does not say it or another host runs that line."""

import json
import os

import pytest

from hook_runs import FAILING, PASSING, ask, new_project, payload, stops
from notyet.hosts import host_named
from notyet.hosts.host import ClaudeLike


@pytest.fixture
def copycat(monkeypatch):
    """A host that also runs Claude Code's settings, and is told by a key."""
    from notyet.hook import caller
    from notyet.hosts import gemini

    host = ClaudeLike(
        name="gemini",
        title="Copycat",
        settings={"user": ".copycat/settings.json", "project": ".copycat/settings.json"},
        runs_files_of=("claude",),
    )
    monkeypatch.setattr(gemini, "HOST", host)
    monkeypatch.setattr(caller, "detect", lambda _: host.name)
    return host


@pytest.mark.rule("G6")
def test_a_host_that_no_sign_tells_is_blocked_in_two_ways_and_its_user_is_told(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    sent = {"hook_event_name": "Stop", "session_id": "s", "working_dir": str(project)}
    reply = ask(sent)
    said = json.loads(reply.stdout)
    assert reply.code == 2
    assert "FAILED bad" in reply.stderr
    assert said["reason"] == said["message"] == reply.stderr.strip("\n")
    assert "this host is unknown" in said["systemMessage"]
    assert stops() == [("blocked", "bad")]


@pytest.mark.rule("G6", "G5")
def test_a_host_that_no_sign_tells_is_allowed_without_a_code(tmp_path):
    project = new_project(tmp_path / "p", PASSING)
    reply = ask({"hook_event_name": "stop", "session_id": "s", "cwd": str(project)})
    assert reply.code == 0
    assert not reply.stdout
    assert "name it with --host" in reply.stderr
    assert stops() == [("passed", "")]


@pytest.mark.rule("G6")
def test_a_program_whose_agents_cannot_be_sent_back_is_not_checked_and_its_user_told(
    tmp_path, monkeypatch
):
    from notyet.hosts import known_programs

    host = known_programs.Host(name="kiro", title="Kiro", cannot="it never waits")
    monkeypatch.setattr(known_programs, "OTHERS", (host,))
    project = new_project(tmp_path / "p", FAILING)
    reply = ask({"hook_event_name": "Stop", "cwd": str(project)})
    assert reply.code == 0
    assert "NOT CHECKED: agents of Kiro cannot be sent back: it never waits" in reply.stderr
    assert stops() == [("skipped", "host")]


@pytest.mark.rule("G6", "B12")
def test_settings_that_another_host_runs_too_are_answered_in_its_words(tmp_path, copycat):
    project = new_project(tmp_path / "p", FAILING)
    sent = payload("claude", project, timestamp="now")
    agent = {"AI_AGENT": "claude-code_2-1-325_agent"}
    reply = ask(sent, "--host", "claude", environ={**os.environ, **agent})
    assert json.loads(reply.stdout)["decision"] == "block"  # of Claude Code it would be context
    assert stops() == [("blocked", "bad")]


@pytest.mark.rule("G6", "B12")
def test_a_host_that_also_has_settings_of_its_own_with_us_is_counted_once(tmp_path, copycat):
    project = new_project(tmp_path / "p", FAILING)
    (project / ".copycat").mkdir()
    group = {"hooks": [{"type": "command", "command": "notyet hook --host gemini"}]}
    (project / ".copycat" / "settings.json").write_text(json.dumps({"hooks": {"Stop": [group]}}))
    sent = payload("claude", project, timestamp="now")
    reply = ask(sent, "--host", "claude")
    assert (reply.code, reply.stdout, reply.stderr) == (0, "", "")
    assert stops() == []
    assert ask(sent, "--host", "gemini").stdout
    assert stops() == [("blocked", "bad")]


@pytest.mark.rule("G6")
@pytest.mark.parametrize("found", ["codex", "auggie", "claude"])
def test_a_named_host_is_believed_if_the_other_does_not_run_its_settings(
    tmp_path, monkeypatch, found
):
    from notyet.hook import caller

    monkeypatch.setattr(caller, "detect", lambda _: found)
    project = new_project(tmp_path / "p", FAILING)
    reply = ask(payload("claude", project, timestamp="now"), "--host", "claude")
    assert json.loads(reply.stdout)["decision"] == "block"
    assert stops() == [("blocked", "bad")]


@pytest.mark.rule("A10")
def test_an_event_that_a_host_sends_in_vain_is_allowed_without_a_word(tmp_path, monkeypatch):
    from notyet.hosts import gemini

    host = ClaudeLike(name="gemini", title="x", ignored=("Inner",))
    monkeypatch.setattr(gemini, "HOST", host)
    project = new_project(tmp_path / "p", FAILING)
    for more in ({}, {"session_id": 5}):  # the second is not answered at the door
        reply = ask(payload("gemini", project, hook_event_name="Inner", **more), "--host", "gemini")
        assert (reply.code, reply.stdout, reply.stderr) == (0, "", "")
    assert stops() == []
    assert host_named("gemini") is host


@pytest.mark.rule("G6", "B12")
@pytest.mark.parametrize("scope", ["", "user", "project"])
def test_a_line_for_claude_code_that_copilot_runs_counts_once(tmp_path, monkeypatch, scope):
    from notyet.install.settings import settings_of

    project = new_project(tmp_path / "p", FAILING)
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "moved"))
    environ = {**os.environ, "COPILOT_PROJECT_DIR": str(project)}
    copilot = settings_of("copilot")
    if scope:
        file = copilot.target(scope, str(project), environ)
        os.makedirs(os.path.dirname(file.path))
        with open(file.path, "w") as out:
            out.write(copilot.text_with("", file, copilot.entries("/x/notyet", 60)))
    sent = payload("claude", project, timestamp="2026-11-16T00:18:18.005Z", stop_reason="end_turn")
    del sent["last_assistant_message"]
    inside = ask(sent | {"agent_id": "a", "parent_agent_id": "s"}, "--host", "claude")
    assert (inside.code, inside.stdout, inside.stderr) == (0, "", "")
    reply = ask(sent, "--host", "claude", environ=environ)
    assert ('{"decision": "block"' in reply.stdout) == (not scope)
    assert stops() == ([] if scope else [("blocked", "bad")])


@pytest.mark.rule("G6", "B12")
def test_other_entries_of_a_host_that_only_mention_us_do_not_hide_its_stop(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    (project / ".cursor").mkdir()
    hooks = {"stop": [{"command": "./done.sh"}], "beforeShell": [{"command": "notyet hook"}]}
    file = project / ".cursor" / "hooks.json"
    file.write_text(json.dumps({"version": 1, "hooks": hooks}))
    sent = payload("claude", project, cursor_version="1", conversation_id="c", status="completed")
    assert ask(sent, "--host", "claude").stdout
    assert stops() == [("blocked", "bad")]
    hooks["stop"].append({"command": "notyet hook --host cursor"})
    file.write_text(json.dumps({"version": 1, "hooks": hooks}))
    assert not ask(sent, "--host", "claude").stdout
    assert stops() == [("blocked", "bad")]


@pytest.mark.rule("G6")
def test_devin_is_known_by_what_its_payload_lacks(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    sent = {"hook_event_name": "Stop", "session_id": "d", "prompt_id": "p"}
    environ = {**os.environ, "DEVIN_PROJECT_DIR": str(project)}
    reply = ask(sent | {"stop_hook_active": False}, "--host", "claude", environ=environ)
    assert json.loads(reply.stdout)["decision"] == "block"
    assert stops() == [("blocked", "bad")]
