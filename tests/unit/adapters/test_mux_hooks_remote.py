"""Mux's hooks in an SSH workspace: read there, run there (M1, M5)."""

import asyncio
import json
import os
import shutil
import signal

import pytest

from notyet.adapters.mux import StopHooksResult, run_stop_hooks
from notyet.core.remote import remote_from

pytestmark = [
    pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
    pytest.mark.rule("M1", "M5"),
]

# As in Mux's own plan: not before the agent has run the tests.
CHECK = """#!/bin/bash
cat > "$MUX_PROJECT_DIR/seen.json"
[ "$MUX_STOP_HOOK_ACTIVE" = true ] && exit 0
grep -q '"tool_name":"bash".*make test' "$MUX_TRANSCRIPT_PATH" && exit 0
echo "Run make test in $(pwd) first" >&2
exit 2
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "it's the project"
    (folder / ".mux" / "hooks").mkdir(parents=True)
    return folder


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role":"user","parts":[]}\n')
    return path


def settings(folder, command):
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    (folder / ".mux").mkdir(exist_ok=True)
    (folder / ".mux" / "settings.json").write_text(json.dumps({"hooks": hooks}))


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def run(box, project, transcript, trust="given", **fields):
    payload = {
        "session_id": "w1",
        "hook_event_name": "Stop",
        "cwd": str(project),
        "transcript_path": str(transcript),
    }
    url = box.url(str(project))
    return asyncio.run(run_stop_hooks(url, payload | fields, trust=trust))


def test_a_hook_of_the_settings_there_decides_by_the_transcript(warm_box, project, transcript):
    settings(project, '"$MUX_PROJECT_DIR/.mux/hooks/check.sh"')
    program(project / ".mux" / "hooks" / "check.sh", CHECK)
    result = run(warm_box, project, transcript)
    reason = f"Run make test in {project} first"
    assert result == StopHooksResult(should_stop=False, continue_reason=reason)
    seen = json.loads((project / "seen.json").read_text())
    assert (seen["cwd"], seen["session_id"]) == (str(project), "w1")
    assert seen["transcript_path"] != str(transcript)
    assert run(warm_box, project, transcript, stop_hook_active=True).should_stop
    with transcript.open("a") as file:
        file.write('{"tool_name":"bash","input":{"script":"make test"}}\n')
    assert run(warm_box, project, transcript) == StopHooksResult(should_stop=True)


def test_an_executable_there_is_a_hook(warm_box, project, transcript):
    program(project / ".mux" / "stop", CHECK)
    assert run(warm_box, project, transcript).continue_reason == f"Run make test in {project} first"
    subagent = run(warm_box, project, transcript, hook_event_name="SubagentStop")
    assert subagent == StopHooksResult(should_stop=True)


def test_the_users_own_hooks_run_here(warm_box, project, transcript, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("notyet.config.files.real_home", lambda: str(home))
    settings(home, "pwd >&2; exit 2")
    settings(project, "pwd >&2; exit 2  # another one")
    for trust in ("given", "asked"):
        result = run(warm_box, project, transcript, trust)
        reasons = [str(tmp_path), str(project)] if trust == "given" else [str(tmp_path)]
        assert result.continue_reason == "\n\n".join(reasons)


def test_without_trust_nothing_runs_there_and_that_is_said(warm_box, project, transcript):
    settings(project, "touch ran; exit 2")
    result = run(warm_box, project, transcript, trust="asked")
    assert result.should_stop
    assert not (project / "ran").exists()
    url = remote_from(warm_box.url(str(project))).url
    assert any(url in warning for warning in result.warnings)


@pytest.mark.rule("M3")
def test_a_machine_that_cannot_be_reached_lets_the_agent_stop(transcript, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    url = "ssh://no-such-machine.invalid/srv/app"
    payload = {"session_id": "w1", "hook_event_name": "Stop"}
    for trust in ("given", "asked"):
        result = asyncio.run(run_stop_hooks(url, payload, trust=trust))
        assert result.should_stop
        assert any("no-such-machine.invalid" in warning for warning in result.warnings)


@pytest.mark.skipif(
    shutil.which("ssh") is None, reason="there is no ssh (Debian: apt-get install openssh-client)"
)
@pytest.mark.rule("C4", "M2")
def test_cancelling_does_not_wait_for_a_machine_that_says_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    waits, config = tmp_path / "waits", tmp_path / "silent"
    config.write_text(f"Host box\n  ProxyCommand sh -c 'echo $$ > {waits}; exec sleep 100'\n")
    monkeypatch.setenv("NOTYET_SSH_CONFIG", str(config))

    async def cancelled():
        cancel = asyncio.Event()
        payload = {"session_id": "w1", "hook_event_name": "Stop"}
        running = asyncio.ensure_future(run_stop_hooks("ssh://box/srv", payload, cancel))
        while not (waits.exists() and waits.read_text().strip()):
            await asyncio.sleep(0.01)
        cancel.set()
        result = await asyncio.wait_for(running, 10)  # it is waited for twice as long
        os.kill(int(waits.read_text()), signal.SIGKILL)
        return result

    result = asyncio.run(cancelled())
    assert result == StopHooksResult(should_stop=True, warnings=("cancelled",))
