"""conclaude's proposal for subagent commands, played through by the real command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import git
from hook_runs import trust

EXAMPLE = Path(__file__).parents[2] / "vectors" / "conclaude" / "example.yaml"
PAYLOAD = {
    "session_id": "s1",
    "transcript_path": "/t/main.jsonl",
    "hook_event_name": "SubagentStop",
    "stop_hook_active": False,
    "agent_id": "coder",
    "agent_transcript_path": "/t/agent.jsonl",
}
SIX = (
    "CONCLAUDE_AGENT_ID",
    "CONCLAUDE_AGENT_TRANSCRIPT_PATH",
    "CONCLAUDE_SESSION_ID",
    "CONCLAUDE_TRANSCRIPT_PATH",
    "CONCLAUDE_HOOK_EVENT",
    "CONCLAUDE_CWD",
)
# Stands for the one program of the example that not every machine has.
NPM = """\
#!/bin/sh
for name in {names}; do eval "echo $name=\\$$name"; done >> {folder}/npm
echo "npm $*" >> {folder}/npm
exit {code}
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


def configure(project, text):
    (project / ".conclaude.yaml").write_text(text)
    trust(project / ".conclaude.yaml", "conclaude")


def call(project, *argv, path="", **fields):
    """Run the command as the proposal tries it: `… SubagentStop < test_payload.json`."""
    payload = {k: v for k, v in (PAYLOAD | {"cwd": str(project)} | fields).items() if v is not None}
    file = project.parent / "test_payload.json"
    file.write_text(json.dumps(payload))
    environ = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"} if path else dict(os.environ)
    with file.open() as stdin:
        return subprocess.run(
            [sys.executable, "-m", "notyet", "conclaude", *argv],
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            cwd=project,
            env=environ,
        )


def npm(tmp_path, code=0):
    tools = tmp_path / "tools"
    tools.mkdir()
    program = tools / "npm"
    program.write_text(NPM.format(names=" ".join(SIX), folder=tmp_path, code=code))
    program.chmod(0o755)
    return str(tools)


def staged(project):
    done = subprocess.run(
        ["git", "diff", "--cached", "--name-only"], cwd=project, capture_output=True, text=True
    )
    return done.stdout.split()


@pytest.mark.rule("D3", "H3", "G4", "E7")
def test_the_example_runs_unmodified_with_its_variables(project, tmp_path):
    configure(project, EXAMPLE.read_text())
    done = call(project, "SubagentStop", path=npm(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "npm").read_text().splitlines() == [
        "CONCLAUDE_AGENT_ID=coder",
        "CONCLAUDE_AGENT_TRANSCRIPT_PATH=/t/agent.jsonl",
        "CONCLAUDE_SESSION_ID=s1",
        "CONCLAUDE_TRANSCRIPT_PATH=/t/main.jsonl",
        "CONCLAUDE_HOOK_EVENT=SubagentStop",
        f"CONCLAUDE_CWD={project}",
        "npm run lint",
    ]
    assert staged(project) == [".conclaude.yaml"]  # `git add .` of "*coder"


@pytest.mark.rule("D1", "D2")
@pytest.mark.parametrize(
    ("agent", "ran_npm", "ran_git"),
    [
        ({"agent_id": "auto-coder"}, False, True),
        ({"agent_id": "tester"}, False, False),
        ({"agent_id": "a5f1c2", "agent_type": "coder"}, True, True),
        ({"agent_id": "Coder"}, False, False),
    ],
)
def test_only_the_patterns_of_the_example_that_fit_run(project, tmp_path, agent, ran_npm, ran_git):
    configure(project, EXAMPLE.read_text())
    call(project, "SubagentStop", path=npm(tmp_path), **agent)
    assert (tmp_path / "npm").exists() is ran_npm
    assert bool(staged(project)) is ran_git


@pytest.mark.rule("F9-conclaude-subagent", "E4")
def test_a_command_of_the_example_that_fails_is_reported_and_does_not_block(project, tmp_path):
    configure(project, EXAMPLE.read_text())
    done = call(project, "SubagentStop", path=npm(tmp_path, code=1))
    assert (done.returncode, done.stdout) == (0, "")
    assert "Running linter after coder" in done.stderr
    assert staged(project) == [".conclaude.yaml"]


@pytest.mark.rule("F9-conclaude-subagent", "F10-conclaude-subagent", "D3")
def test_commands_after_one_that_fails_or_hangs_still_run(project):
    configure(
        project,
        'subagentStop:\n  commands:\n    "*":\n'
        "      - run: exit 3\n"
        "      - run: sleep 600\n        timeout: 1\n"
        "      - run: no-such-program-anywhere\n"
        "      - run: touch last\n",
    )
    done = call(project, "SubagentStop")
    assert done.returncode == 0
    assert (project / "last").exists()
    assert "timed out after 1 second" in done.stderr


@pytest.mark.rule("W4", "D2")
def test_without_an_agent_id_the_star_runs_and_that_it_is_missing_is_said(project):
    configure(
        project,
        "subagentStop:\n  commands:\n"
        '    "*": [{run: echo all >> log}]\n    "coder": [{run: echo coder >> log}]\n',
    )
    done = call(project, "SubagentStop", agent_id=None)
    assert (done.returncode, (project / "log").read_text()) == (0, "all\n")
    assert "agent_id" in done.stderr


@pytest.mark.rule("D2")
@pytest.mark.parametrize(
    ("argv", "fields"),
    [([], {"agent_type": "coder"}), (["--agent", "coder"], {})],
    ids=["type", "name"],
)
def test_without_an_agent_id_its_type_and_name_still_match(project, argv, fields):
    configure(
        project,
        "subagentStop:\n  commands:\n"
        '    "coder": [{run: echo coder >> log}]\n    "tester": [{run: echo tester >> log}]\n',
    )
    call(project, "SubagentStop", *argv, agent_id=None, **fields)
    assert (project / "log").read_text() == "coder\n"


@pytest.mark.rule("C8")
def test_stop_and_subagent_stop_are_configured_apart(project):
    configure(
        project,
        "stop: {commands: [{run: echo main >> log}]}\n"
        'subagentStop: {commands: {"*": [{run: echo sub >> log}]}}\n',
    )
    call(project, "SubagentStop")
    call(project, "Stop", hook_event_name="Stop", agent_id=None, agent_transcript_path=None)
    assert (project / "log").read_text() == "sub\nmain\n"


@pytest.mark.rule("A10")
def test_a_file_without_subagent_stop_runs_nothing_at_a_subagents_stop(project):
    configure(project, "stop: {commands: [{run: 'touch ran; exit 1'}]}\n")
    done = call(project, "SubagentStop")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (project / "ran").exists()


def stop(project):
    """Let a main agent stop."""
    return call(project, "Stop", hook_event_name="Stop", agent_id=None, agent_transcript_path=None)


@pytest.mark.rule("E8")
def test_a_run_of_many_lines_may_branch_and_keep_variables(project):
    configure(
        project,
        "stop:\n  commands:\n    - run: |\n        wanted=report.md\n"
        "        if [ ! -e $wanted ]; then\n          echo $wanted is missing\n          exit 1\n"
        "        fi\n      showStdout: true\n      message: Not yet.\n",
    )
    done = stop(project)
    assert (done.returncode, done.stderr) == (2, "Not yet.\nStdout: report.md is missing\n")


@pytest.mark.rule("G4")
def test_files_that_a_stop_command_makes_do_not_block(project):
    text = "preToolUse: {preventRootAdditions: true}\nstop: {commands: [{run: touch made}]}\n"
    configure(project, text)
    done = stop(project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (project / "made").exists()
