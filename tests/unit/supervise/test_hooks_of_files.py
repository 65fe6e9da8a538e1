"""Supervised agents meet the hooks of every host's files, through real files and scripts."""

import json
import os
import shutil

import pytest

from config_places import hooks, write
from notyet import Engine, Ledger
from notyet.core.session import Turn
from supervised import Agent, World

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
MARK = "[Stop hook requested continuation]"
FIELDS = {
    "session_id",
    "transcript_path",
    "cwd",
    "permission_mode",
    "hook_event_name",
    "stop_hook_active",
}
ONCE = """#!/usr/bin/env bash
if [[ "$MUX_STOP_HOOK_ACTIVE" == "true" ]]; then exit 0; fi
echo "Please run tests before stopping" >&2
exit 2
"""
ALWAYS = "#!/bin/sh\necho 'Not yet.' >&2\nexit 2\n"


class Project:
    """A project with files of hosts, and a supervisor for it."""

    def __init__(self, folder, state):
        self.folder = folder
        self.state = state
        self.warnings = []

    def world(self, **settings):
        ledger, warn = Ledger(self.state / "ledger.db"), self.warnings.append
        engine = Engine.from_project(str(self.folder), ledger=ledger, warn=warn)
        return Here(self, engine, **settings)

    def lines(self, name="log"):
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Here(World):
    """A world whose agents work in the project."""

    def __init__(self, project, engine, **settings):
        super().__init__(project.state, engine=engine, **settings)
        self.project = project

    def _here(self, fields):
        return {"cwd": str(self.project.folder)} | fields


@pytest.fixture
def project(tmp_path):
    for name in ("project", "state"):
        (tmp_path / name).mkdir()
    return Project(tmp_path / "project", tmp_path / "state")


@pytest.mark.rule("K17", "B5")
def test_mux_continues_a_main_agent_with_its_mark_and_the_reason(project):
    write(project.folder, ".mux/stop", ONCE)
    agent = Agent("done", "tests pass")
    with project.world() as world:
        result = world.ran(agent)
    assert agent.got == ["do it", f"{MARK}\nPlease run tests before stopping"]
    assert (result.text, result.steers, result.outcome) == ("tests pass", 1, "passed")


@pytest.mark.rule("K17", "K12")
def test_mux_continues_a_subagent_with_the_bare_reason(project):
    write(project.folder, ".mux/subagent_stop", ONCE)
    write(project.folder, ".mux/stop", ALWAYS)
    agent = Agent("done", "tests pass")
    with project.world() as world:
        result = world.spawned(agent)
    assert agent.got == ["do it", "Please run tests before stopping"]
    assert result.outcome == "passed"


@pytest.mark.rule("K17", "B1")
@pytest.mark.parametrize("script", [".mux/stop", ".mux/subagent_stop"])
def test_mux_continues_an_agent_three_times_per_turn_at_most(project, script):
    write(project.folder, script, "#!/bin/sh\necho x >> count\necho 'Not yet.' >&2\nexit 2\n")
    agent = Agent()
    with project.world() as world:
        result = (world.ran if script == ".mux/stop" else world.spawned)(agent)
    assert (len(agent.got), result.steers, result.outcome) == (4, 3, "capped")
    assert (project.folder / "count").read_text() == "x\n" * 3
    assert any("3 of 3 send-backs used" in said for said in project.warnings)


@pytest.mark.rule("B5", "K17")
def test_the_payload_of_mux_says_whether_a_hook_continued_the_agent(project):
    script = "#!/bin/sh\ncat >> log; echo >> log\n[ -e ok ] || { echo Go on. >&2; exit 2; }\n"
    write(project.folder, ".mux/stop", script)
    ok = project.folder / "ok"

    def good(prompt):
        ok.touch()
        return "done"

    agent = Agent("one", Agent.WAIT, "three", good, id="workspace-1")
    with project.world() as world:
        handle = world.launch(agent)
        world.until(lambda: len(agent.got) == 2 and agent.waiting.is_set())
        world.do(world.supervisor.say(handle, "And the readme."))
        agent.come_back(Turn(text="two"))
        world.result(handle)
    lines = project.lines()
    assert all(set(line) == FIELDS for line in lines)
    assert {line["hook_event_name"] for line in lines} == {"Stop"}
    assert {line["session_id"] for line in lines} == {"workspace-1"}
    assert {line["permission_mode"] for line in lines} == {"default"}
    assert {line["cwd"] for line in lines} == {str(project.folder)}
    # the user's message opened a turn, so the flag is false again
    assert [line["stop_hook_active"] for line in lines] == [False, False, True]
    assert agent.got == ["do it", f"{MARK}\nGo on.", "And the readme.", f"{MARK}\nGo on."]


@pytest.mark.rule("K17")
def test_a_subagents_mux_payload_names_the_task_and_the_childs_own_transcript(project, tmp_path):
    write(project.folder, ".mux/subagent_stop", "#!/bin/sh\ncat >> log; echo >> log\n")
    with project.world() as world:
        handle = world.spawn(Agent("done", id="c", transcript=str(tmp_path / "child.jsonl")))
        world.result(handle)
    (line,) = project.lines()
    assert (line["session_id"], line["hook_event_name"]) == (handle.task_id, "SubagentStop")
    assert line["transcript_path"] == str(tmp_path / "child.jsonl")
    assert line["stop_hook_active"] is False


@pytest.mark.rule("C4", "K6", "K17")
def test_an_interrupt_ends_a_mux_hook_that_runs_and_the_agent_stops(project):
    write(project.folder, ".mux/stop", "#!/bin/sh\necho $$ > pid\nsleep 60\necho no >&2\nexit 2\n")
    agent = Agent("done")
    with project.world() as world:
        handle = world.launch(agent)
        pid = project.folder / "pid"
        world.until(lambda: pid.exists() and pid.read_text().strip())
        assert world.do(world.supervisor.interrupt(handle)) is True
        result = world.result(handle)
        number = int(pid.read_text())
        world.until(lambda: not os.path.exists(f"/proc/{number}") or _is_dead(number))
    assert (result.ending, agent.got) == ("interrupted", ["do it"])


def _is_dead(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.rule("C2", "C4")
@pytest.mark.parametrize("ending", ["error", "cancelled"])
def test_mux_is_not_asked_without_a_final_response(project, ending):
    write(project.folder, ".mux/stop", ALWAYS)
    agent = Agent(Turn(text="", stop_reason=ending, error="x"))
    with project.world() as world:
        result = world.ran(agent)
    assert (result.steers, agent.got) == (0, ["do it"])


@pytest.mark.rule("C9", "K17")
def test_a_message_queued_while_a_mux_hook_runs_is_sent_instead_of_its_reason(project):
    once = 'said=$(cat); printf "%s\\n" "$said" >> log'  # it may be ended at any moment
    script = f"#!/bin/sh\n{once}\nwhile [ ! -e go ]; do sleep 0.02; done\n"
    write(project.folder, ".mux/stop", script)
    agent = Agent("done", "done again")
    with project.world() as world:
        handle = world.launch(agent)
        world.until(project.lines)
        world.do(world.supervisor.say(handle, "Also this."))
        (project.folder / "go").touch()
        result = world.result(handle)
    assert agent.got == ["do it", "Also this."]
    assert (result.text, result.unsent) == ("done again", ())
    assert [line["stop_hook_active"] for line in project.lines()] == [False, False]


@pytest.mark.rule("K12", "C8")
@pytest.mark.parametrize("host", ["claude", "codex"])
def test_subagent_stop_of_claude_and_codex_continues_the_child_and_asks_for_its_report(
    project, host
):
    script = (
        "cat >> log; echo >> log; [ -e done ] && exit 0; touch done;"
        """ echo '{"decision": "block", "reason": "Run the tests."}'"""
    )
    file = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}[host]
    both = json.loads(hooks(script, event="SubagentStop"))["hooks"]
    both |= json.loads(hooks("echo main >> main; exit 2", event="Stop"))["hooks"]
    write(project.folder, file, json.dumps({"hooks": both}))
    agent = Agent("half", "the whole report", id="child-1", transcript="/child.jsonl")
    with project.world() as world:
        parent = Agent(Agent.WAIT, id="parent-1", transcript="/parent.jsonl")
        above = world.launch(parent)
        world.at_work(parent)
        handle = world.spawn(agent, parent=above, agent_type="coder")
        result = world.result(handle)
        world.do(world.supervisor.kill(above))
    assert not (project.folder / "main").exists()
    assert (result.text, result.steers) == ("the whole report", 1)
    first, second = project.lines()
    assert agent.got[1].startswith("Run the tests.\n\n")
    assert agent.got[1].endswith("your last message.")
    assert first["hook_event_name"] == "SubagentStop"
    assert (first["agent_id"], first["agent_type"]) == (handle.task_id, "coder")
    assert first["agent_transcript_path"] == "/child.jsonl"
    assert first["transcript_path"] == "/parent.jsonl"
    assert first["last_assistant_message"] == "half"
    assert (first["stop_hook_active"], second["stop_hook_active"]) == (False, True)


@pytest.mark.rule("K15", "C8")
@pytest.mark.parametrize("host", ["claude", "codex", "mux"])
def test_continue_false_ends_the_child_and_its_stop_reason_is_surfaced(project, host):
    file = {
        "claude": ".claude/settings.json",
        "codex": ".codex/hooks.json",
        "mux": ".mux/settings.json",
    }[host]
    answer = """echo '{"continue": false, "stopReason": "budget spent"}'"""
    write(project.folder, file, hooks(answer, event="SubagentStop"))
    agent = Agent("half")
    with project.world() as world:
        result = world.spawned(agent)
    assert (result.outcome, result.stop_reason) == ("halted", "budget spent")
    assert (result.text, agent.got) == ("half", ["do it"])


@pytest.mark.rule("K14", "F13-codex", "C8")
def test_subagent_start_of_codex_runs_once_and_its_context_comes_before_the_first_request(project):
    said = {
        "hookSpecificOutput": {
            "hookEventName": "SubagentStart",
            "additionalContext": "Use tabs.",
        }
    }
    script = f"cat >> log; echo >> log; echo '{json.dumps(said)}'"
    once = "[ -e done ] && exit 0; touch done; echo 'More.' >&2; exit 2"
    events = json.loads(hooks(script, event="SubagentStart"))["hooks"]
    events |= json.loads(hooks(once, event="SubagentStop"))["hooks"]
    events |= json.loads(hooks("touch session", event="SessionStart"))["hooks"]
    write(project.folder, ".codex/hooks.json", json.dumps({"hooks": events}))
    agent = Agent("one", "two")
    with project.world() as world:
        handle = world.spawn(agent, "Mend it.", agent_type="coder")
        world.result(handle)
    assert agent.got[0] == "Use tabs.\n\nMend it."
    assert len(agent.got) == 2
    (start,) = project.lines()
    assert (start["agent_id"], start["agent_type"]) == (handle.task_id, "coder")
    assert not (project.folder / "session").exists()


@pytest.mark.rule("K12")
def test_a_failing_check_of_ours_tells_a_subagent_to_send_its_whole_report_again(project):
    toml = '[gates.tests]\nrun = "test -e ok"\nwhen = "always"\nfor = "subagents"\n'
    write(project.folder, "notyet.toml", toml)

    def mend(prompt):
        (project.folder / "ok").touch()
        return "whole report"

    agent = Agent("report", mend)
    with project.world() as world:
        result = world.spawned(agent)
    assert "Your report was not delivered." in agent.got[1]
    assert agent.got[1].endswith("your last message.")
    assert (result.text, result.outcome) == ("whole report", "passed")
