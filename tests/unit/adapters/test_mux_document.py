"""Mux's plan for stop hooks, played through by real hooks: its settings, its input, its scripts."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

import mux_document as plan
from config_places import write
from conftest import git
from hook_runs import run_hook
from notyet.adapters.mux import StopHooksResult, continuation, run_stop_hooks
from notyet.config.load import load

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def said(project, host="mux", **fields):
    """Let Mux call the hook with the input of its plan; return what it reads."""
    done = run_hook(plan.INPUT | {"cwd": str(project)} | fields, "--host", host)
    assert done.returncode == 0
    return json.loads(done.stdout) if done.stdout.strip() else {}


def hooks(project, **fields):
    """Run the hooks as Mux itself would; return what came of it."""
    payload = plan.INPUT | {"cwd": str(project)} | fields
    return asyncio.run(run_stop_hooks(str(project), payload, trust="given"))


@pytest.mark.rule("J2", "E6", "C8")
def test_the_settings_of_the_plan_are_two_hooks_with_30_and_10_seconds(project):
    write(project, ".mux/settings.json", plan.SETTINGS)
    found = load(str(project), "mux", os.environ)
    assert [(gate.check.line, gate.match.events, gate.timeout) for gate in found.gates] == [
        ("$MUX_PROJECT_DIR/.mux/hooks/stop-check.sh", ("agent",), 30),
        ("/path/to/subagent-stop-hook.py", ("subagent",), 10),
    ]
    assert found.warnings == ()


@pytest.mark.rule("J2", "E1", "H2", "W3", "G3")
def test_the_script_that_the_settings_name_is_run_and_reads_the_input_of_the_plan(project):
    program(
        project / ".mux" / "hooks" / "stop-check.sh",
        f'#!/bin/sh\ncat > "{project}/seen"\necho "$CLAUDE_PROJECT_DIR" > "{project}/alias"\n'
        "echo 'Task incomplete. Please run tests before stopping.' >&2\nexit 2\n",
    )
    write(project, ".mux/settings.json", plan.SETTINGS)
    assert said(project) == {
        "decision": "block",
        "reason": "Task incomplete. Please run tests before stopping.",
    }
    assert json.loads((project / "seen").read_text()) == plan.INPUT | {"cwd": str(project)}
    assert (project / "alias").read_text() == f"{project}\n"


@pytest.mark.rule("F9-mux", "A6")
def test_a_hook_whose_program_is_missing_lets_the_subagent_stop_with_a_warning(project):
    write(project, ".mux/settings.json", plan.SETTINGS)
    assert said(project, hook_event_name="SubagentStop") == {}
    result = hooks(project, hook_event_name="SubagentStop")
    assert result.should_stop
    assert "/path/to/subagent-stop-hook.py" in result.warnings[0]


@pytest.mark.rule("F7-mux", "K17")
def test_a_blocking_error_is_what_the_agent_sees(project):
    program(project / ".mux" / "stop", plan.BLOCKING_ERROR)
    result = hooks(project)
    assert continuation("Stop", result.continue_reason) == (
        "[Stop hook requested continuation]\n"
        "Error: Tests not run. Please run make test before stopping"
    )


@pytest.mark.rule("F4-mux", "A3")
def test_continue_false_beats_the_block_of_another_hook_and_its_stop_reason_is_shown(project):
    over = """echo '{"continue": false, "stopReason": "Budget spent."}'"""
    both = [{"type": "command", "command": text} for text in ("echo more >&2; exit 2", over)]
    settings = {"hooks": {"Stop": [{"hooks": both}]}}
    write(project, ".mux/settings.json", json.dumps(settings))
    assert said(project) == {"continue": False, "stopReason": "Budget spent."}
    assert hooks(project) == StopHooksResult(should_stop=True, stop_reason="Budget spent.")


@pytest.mark.rule("F10-mux", "E2")
def test_a_hook_out_of_time_lets_the_agent_stop_and_leaves_nothing_running(project):
    program(project / ".mux" / "hooks" / "slow", "#!/bin/sh\nsleep 600 &\necho $! > pid\nwait\n")
    settings = plan.SETTINGS.replace("stop-check.sh", "slow").replace("30", "1")
    write(project, ".mux/settings.json", settings)
    assert said(project) == {}
    child = int((project / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.rule("J3")
def test_a_script_of_the_plan_that_is_not_executable_is_said_and_not_run(project):
    program(project / ".mux" / "stop", plan.BLOCKING_ERROR)
    (project / ".mux" / "stop").chmod(0o644)
    result = hooks(project)
    assert result.should_stop
    assert "executable" in result.warnings[0]


BASH_RAN_TESTS = {"tool_name": "bash", "input": {"script": "make test"}}


def compact(*lines):
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def failing_lint(project):
    (project / "Makefile").write_text("lint:\n\t@echo error: unused name\n")


def clean_lint(project):
    (project / "Makefile").write_text("lint:\n\t@echo fine\n")


def changed(project):
    git(project, "init", "--quiet")
    (project / ".gitignore").write_text("*\n!file.txt\n")
    (project / "file.txt").write_text("new\n")


def stashed(project):
    (project / "file.txt").unlink()


def nothing(project):
    pass


# script, what it is about, the transcript and the state that hold an agent, and those that do not
CASES = [
    (plan.FORCING, "Stop", "", nothing, compact(BASH_RAN_TESTS), nothing),
    (plan.TEST_VERIFICATION, "Stop", "no tests\n", nothing, "12 tests pass\n", nothing),
    (plan.LINT_CHECK, "Stop", "", failing_lint, "", clean_lint),
    (plan.COMMIT_REMINDER, "Stop", "", changed, "", stashed),
    (
        plan.SUBAGENT_CHECK,
        "SubagentStop",
        compact({"role": "assistant"}),
        nothing,
        compact(BASH_RAN_TESTS),
        nothing,
    ),
]
NAMES = ["forcing", "test verification", "lint check", "commit reminder", "subagent check"]


def last_echo(script):
    return [line.split('"')[1] for line in script.splitlines() if "echo" in line][-1]


@pytest.mark.rule("E7", "H2", "J3", "L5", "M1", "M5")
@pytest.mark.parametrize("where", ["here", "over ssh"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_scripts_of_the_plan_work_unmodified_here_and_over_ssh(
    project, tmp_path, request, where, case
):
    script, event, before, hold, after, release = case
    transcript = tmp_path / "chat.jsonl"
    name = "stop" if event == "Stop" else "subagent_stop"
    program(project / ".mux" / name, script)
    place = str(project)
    if where == "over ssh":
        place = request.getfixturevalue("warm_box").url(place)

    def run(content, state, **fields):
        transcript.write_text(content)
        state(project)
        payload = plan.INPUT | {
            "cwd": str(project),
            "transcript_path": str(transcript),
            "hook_event_name": event,
        }
        return asyncio.run(run_stop_hooks(place, payload | fields, trust="given"))

    held = run(before, hold)
    assert held == StopHooksResult(should_stop=False, continue_reason=last_echo(script))
    assert run(after, release) == StopHooksResult(should_stop=True)


@pytest.mark.rule("W3")
def test_a_workspace_has_its_transcript_where_the_plan_says(project):
    script = '#!/bin/sh\nprintf "%s" "$MUX_TRANSCRIPT_PATH" > path\n'
    program(project / ".mux" / "stop", script)
    path = str(Path.home() / ".mux" / "sessions" / "workspace-abc123" / "chat.jsonl")
    hooks(project, transcript_path=path)
    assert (project / "path").read_text() == path
