"""Mux's Stop and SubagentStop hooks: each bullet of its "Testing" chapter, by its own name."""

import asyncio
import json
import os
import shutil

import pytest

from notyet import Ledger
from notyet.adapters.mux import MOST_CONTINUATIONS, continuation, run_stop_hooks
from notyet.config.files import host_files
from notyet.config.trust import candidate, grant
from notyet.hook import main as hook
from notyet.hook.payload import HostCall, Options
from support import recorded

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def settings(project, name="settings.json", home=None, **hooks):
    """Write Mux settings with one command per event."""
    folder = (home or project) / ".mux"
    folder.mkdir(parents=True, exist_ok=True)
    block = {
        event: [{"hooks": [handler if isinstance(handler, dict) else command(handler)]}]
        for event, handler in hooks.items()
    }
    (folder / name).write_text(json.dumps({"hooks": block}))


def command(script, **fields):
    return {"type": "command", "command": script} | fields


def run(project, event="Stop", **fields):
    payload = {
        "session_id": "workspace-abc123",
        "transcript_path": str(project / "chat.jsonl"),
        "cwd": str(project),
        "permission_mode": "default",
        "hook_event_name": event,
        "stop_hook_active": False,
    }
    return asyncio.run(run_stop_hooks(str(project), payload | fields, trust="given"))


class TestTheExecutor:
    def test_exit_0_without_json_stops(self, project):
        settings(project, Stop="exit 0")
        assert run(project).should_stop

    def test_exit_0_with_decision_block_and_a_reason_continues_with_it(self, project):
        settings(project, Stop="""echo '{"decision": "block", "reason": "Run the tests."}'""")
        result = run(project)
        assert (result.should_stop, result.continue_reason) == (False, "Run the tests.")

    def test_exit_2_continues_with_stderr_as_the_reason(self, project):
        settings(project, Stop="echo 'Error: Tests not run.' >&2; exit 2")
        result = run(project)
        assert (result.should_stop, result.continue_reason) == (False, "Error: Tests not run.")

    def test_exit_1_stops_with_a_warning(self, project):
        settings(project, Stop="echo oh no >&2; exit 1")
        result = run(project)
        assert result.should_stop
        assert "exited with code 1: oh no" in result.warnings[0]

    def test_invalid_json_is_plain_text_and_stops(self, project):
        settings(project, Stop="echo '{not json'")
        assert run(project).should_stop
        assert not run(project).warnings

    def test_hooks_run_together_and_all_reasons_are_joined(self, project):
        def waits_for(other, name):
            waits = f"touch {name}; until [ -e {other} ]; do sleep 0.01; done"
            return command(f"{waits}; echo {name} >&2; exit 2", timeout=30)

        block = [
            {"hooks": [waits_for("two", "one"), waits_for("three", "two")]},
            {"hooks": [command("touch three")]},
        ]
        (project / ".mux").mkdir()
        (project / ".mux" / "settings.json").write_text(json.dumps({"hooks": {"Stop": block}}))
        assert run(project).continue_reason == "one\n\ntwo"

    def test_cancelling_ends_the_hook_and_lets_the_agent_stop(self, project):
        settings(project, Stop=f"echo $$ > {project}/pid; sleep 60; echo x >&2; exit 2")

        async def interrupted():
            cancel = asyncio.Event()
            payload = {"session_id": "w", "hook_event_name": "Stop"}
            running = asyncio.ensure_future(
                run_stop_hooks(str(project), payload, cancel, trust="given")
            )
            while not (project / "pid").exists() or not (project / "pid").read_text():
                await asyncio.sleep(0.01)
            cancel.set()
            return await running

        result = asyncio.run(interrupted())
        assert (result.should_stop, result.warnings) == (True, ("cancelled",))
        pid = int((project / "pid").read_text())
        for _ in range(500):
            if not os.path.exists(f"/proc/{pid}"):
                return
            asyncio.run(asyncio.sleep(0.01))
        raise AssertionError("the hook outlived its cancellation")

    def test_a_cancel_that_never_comes_changes_nothing(self, project):
        settings(project, Stop="echo go on >&2; exit 2")

        async def patient():
            payload = {"session_id": "w", "hook_event_name": "Stop"}
            return await run_stop_hooks(str(project), payload, asyncio.Event(), trust="given")

        assert asyncio.run(patient()).continue_reason == "go on"

    def test_an_event_that_is_no_stop_is_refused(self, project):
        with pytest.raises(ValueError, match="'Stop' or 'SubagentStop', not 'PreToolUse'"):
            run(project, "PreToolUse")

    def test_without_trust_nothing_runs_and_that_is_said(self, project):
        settings(project, Stop=f"touch {project}/ran")
        payload = {"session_id": "w", "hook_event_name": "Stop"}
        result = asyncio.run(run_stop_hooks(str(project), payload))
        assert result.should_stop
        assert "is not trusted; run: notyet trust --read mux" in result.warnings[0]
        assert not (project / "ran").exists()


class TestTheSettingsLoader:
    @pytest.mark.rule("J2")
    def test_user_project_and_local_settings_are_merged(self, project, tmp_path, monkeypatch):
        home = tmp_path / "user"
        monkeypatch.setenv("HOME", str(home))
        settings(project, home=home, Stop="echo user >&2; exit 2")
        settings(project, Stop="echo project >&2; exit 2")
        settings(project, "settings.local.json", Stop="echo local >&2; exit 2")
        assert run(project).continue_reason == "user\n\nproject\n\nlocal"

    @pytest.mark.rule("J2")
    def test_the_same_command_in_a_later_file_replaces_the_earlier(self, project):
        blocks = "echo once >> ran; echo once >&2; exit 2"
        settings(project, Stop=command(blocks))
        settings(project, "settings.local.json", Stop=command(blocks, **{"async": True}))
        assert run(project).should_stop
        assert (project / "ran").read_text() == "once\n"
        settings(project, Stop=command(blocks, **{"async": True}))
        settings(project, "settings.local.json", Stop=command(blocks))
        assert run(project).continue_reason == "once"
        assert (project / "ran").read_text() == "once\nonce\n"


def stops(project, flags, event="Stop"):
    """Let an agent stop several times in a turn, as Mux calls our hook; return the replies."""
    replies = []
    for flag in flags:
        payload = {
            "session_id": "workspace-abc123",
            "transcript_path": str(project / "chat.jsonl"),
            "cwd": str(project),
            "permission_mode": "default",
            "hook_event_name": event,
            "stop_hook_active": flag,
        }
        raw = json.dumps(payload).encode()
        replies.append(
            hook.reply_to(HostCall(Options(["--host", "mux"]), os.environ, lambda raw=raw: raw))
        )
    return [json.loads(reply.stdout) if reply.stdout else {} for reply in replies]


def trust(project):
    for file in host_files("mux", str(project), os.environ):
        grant(candidate(file, os.environ), os.environ)


class TestAnAgentSession:
    def test_the_agent_stops_when_no_hook_is_configured(self, project):
        assert stops(project, [False]) == [{}]

    def test_the_agent_continues_when_a_hook_exits_2_with_the_right_message(self, project):
        settings(project, Stop="echo 'Please run tests before stopping' >&2; exit 2")
        trust(project)
        (reply,) = stops(project, [False])
        assert reply == {"decision": "block", "reason": "Please run tests before stopping"}
        assert continuation("Stop", reply["reason"]) == (
            "[Stop hook requested continuation]\nPlease run tests before stopping"
        )
        assert continuation("SubagentStop", "Go on.") == "Go on."

    @pytest.mark.rule("B5", "H2")
    def test_loop_prevention_the_hook_is_told_that_it_is_active(self, project):
        script = f'cat >> {project}/seen; echo " $MUX_STOP_HOOK_ACTIVE" >> {project}/seen'
        settings(project, Stop=f"{script}; echo go on >&2; exit 2")
        trust(project)
        stops(project, [False, True])
        lines = (project / "seen").read_text().splitlines()
        assert [json.loads(line.rpartition(" ")[0])["stop_hook_active"] for line in lines] == [
            False,
            True,
        ]
        assert [line.rpartition(" ")[2] for line in lines] == ["false", "true"]

    @pytest.mark.rule("B1")
    def test_three_continuations_at_most_prevent_infinite_loops(self, project):
        settings(project, Stop=f"echo x >> {project}/asked; echo go on >&2; exit 2")
        trust(project)
        replies = stops(project, [False, True, True, True])
        assert [bool(reply) for reply in replies] == [True] * MOST_CONTINUATIONS + [False]
        assert len((project / "asked").read_text().splitlines()) == 3  # at the limit not asked
        assert recorded(Ledger())[-1][0] == "capped"

    @pytest.mark.rule("K17", "J8")
    @pytest.mark.parametrize(
        ("scope", "told"),
        [
            ("agent", "[Stop hook requested continuation]\nRun the tests."),
            ("subagent", "Run the tests."),
        ],
    )
    def test_a_supervised_agent_is_continued_as_mux_would(self, project, scope, told):
        from notyet import StopEvent
        from notyet.config.load import load
        from notyet.engine.from_project import configured_engine

        script = "echo 'Run the tests.' >&2; exit 2"
        settings(project, Stop=script, SubagentStop=script)
        trust(project)
        engine = configured_engine(load(str(project), "notyet", os.environ, agent="scripted"))
        event = StopEvent(scope=scope, host="notyet", session_id="s", cwd=str(project))
        decision = asyncio.run(engine.decide(event))
        assert decision.verdict.prompt == told
        assert decision.verdict.because == "Run the tests."

    @pytest.mark.rule("C4")
    def test_a_user_interrupt_bypasses_the_hook(self, project):
        from notyet import Engine, StopEvent
        from notyet.config.load import load

        settings(project, Stop=f"touch {project}/asked; echo go on >&2; exit 2")
        trust(project)
        gates = load(str(project), "mux", os.environ).gates
        event = StopEvent(host="mux", session_id="w", cwd=str(project), ending="interrupted")
        decision = Engine(gates).check_sync(event)
        assert (decision.outcome, decision.why) == ("skipped", "no-gate")
        assert not (project / "asked").exists()
