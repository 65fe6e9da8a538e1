"""`notyet conclaude`: its command line, exit codes and variables, with real commands."""

import json
import os
import subprocess
import sys

import pytest

from notyet import Ledger
from notyet.config.files import host_files
from notyet.config.trust import candidate, grant
from support import recorded

PAYLOAD = {
    "session_id": "s1",
    "transcript_path": "/t/main.jsonl",
    "hook_event_name": "SubagentStop",
    "stop_hook_active": False,
    "agent_id": "coder",
    "agent_transcript_path": "/t/coder.jsonl",
}
# The example of the document, with commands that leave a trace.


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def configure(project, text):
    (project / ".conclaude.yaml").write_text(text)
    for file in host_files("conclaude", str(project), os.environ):
        grant(candidate(file, os.environ), os.environ)


def call(project, *argv, **fields):
    """Run the real command, as a host does."""
    payload = {k: v for k, v in (PAYLOAD | {"cwd": str(project)} | fields).items() if v is not None}
    return subprocess.run(
        [sys.executable, "-m", "notyet", "conclaude", *argv],
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.rule("G4", "E4")
def test_a_failing_stop_command_sends_the_agent_back_with_exit_2(project):
    configure(
        project, "stop:\n  commands:\n    - run: 'echo hidden; exit 3'\n    - run: touch no\n"
    )
    done = call(project, "Stop", hook_event_name="Stop", agent_id=None)
    assert done.returncode == 2
    assert done.stderr == "Command failed with exit code 3: echo hidden; exit 3\n"
    assert not (project / "no").exists()  # the first failure ends it


def test_stop_with_an_agents_name_runs_the_stop_commands_for_that_agent(project):
    configure(project, "stop:\n  commands:\n    - run: echo $CONCLAUDE_AGENT_NAME > who\n")
    assert call(project, "Hooks", "Stop", "--agent", "coder").returncode == 0
    assert (project / "who").read_text() == "coder\n"


@pytest.mark.rule("B1")
def test_infinite_is_bounded_by_our_limits(project):
    configure(project, "stop:\n  infinite: true\n  infiniteMessage: Keep going.\n")
    stop = {"hook_event_name": "Stop", "agent_id": None}
    codes = [
        call(project, "Stop", stop_hook_active=active, last_assistant_message=str(active), **stop)
        for active in (False, True, True, True)
    ]
    assert [done.returncode for done in codes] == [2, 2, 2, 0]
    assert codes[0].stderr.startswith("Keep going.")
    assert recorded(Ledger())[-1][0] == "capped"


@pytest.mark.rule("C2")
def test_stop_failure_is_told_and_never_blocks(project):
    configure(
        project, "stopFailure:\n  commands:\n    - run: echo $CONCLAUDE_STOP_ERROR > e; exit 1\n"
    )
    assert call(project, "StopFailure", error="rate_limit").returncode == 0
    assert (project / "e").read_text() == "rate_limit\n"


def test_a_notification_is_sent_after_the_commands_and_its_failure_is_only_said(
    project, monkeypatch, tmp_path
):
    configure(
        project,
        'notifications: {enabled: true, hooks: ["*"]}\n'
        'subagentStop: {commands: {"nobody": [{run: "exit 1"}]}}\n',
    )
    tools = tmp_path / "tools"
    tools.mkdir()
    notifier = tools / "notify-send"
    notifier.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/sent\n')
    notifier.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert call(project, "SubagentStop").returncode == 0
    assert "Subagent 'coder' completed" in (tmp_path / "sent").read_text()
    notifier.write_text("#!/bin/sh\nexit 3\n")
    done = call(project, "SubagentStop")
    assert done.returncode == 0
    assert "notify-send failed with exit code 3" in done.stderr


@pytest.mark.rule("G4", "N5")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, ""),
        ("stop:\n  commands:\n    - run: touch ran; exit 1\n", "is not trusted"),
    ],
)
def test_without_a_trusted_file_everything_is_let_go(project, text, says):
    if text:
        (project / ".conclaude.yaml").write_text(text)
    done = call(project, "Stop")
    assert done.returncode == 0
    assert says in done.stderr
    assert not (project / "ran").exists()
