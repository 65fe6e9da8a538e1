"""What people paste from the documents of other hosts works as it stands, or says what to write."""

import json

import pytest

from config_places import hooks, write
from hook_runs import new_project
from mux_document import FORCING
from notyet import Engine, Limits, Usage, last_message
from notyet.core.task import Figures
from support import stop, substop

OPENCLAW = {"agents": {"defaults": {"subagents": {"maxSteerRestarts": 5}}}}
UNCONFIRMED = "Please run the test suite and report the results."


@pytest.mark.rule("K3", "K13")
def test_the_example_of_openclaw_with_its_log_its_gate_and_its_priority():
    log = []

    def handler(event, ctx):
        log.append(json.dumps({"kind": "subagent.stop", "data": event, "from": ctx}))
        if event.label == "test-runner" and event.outcome == "ok":
            response = event.lastAssistantMessage or ""
            if "All tests passed" not in response:
                return {"allow": False, "prompt": UNCONFIRMED, "reason": "not confirmed"}
        return {"allow": True}

    engine = Engine(limits=OPENCLAW)
    engine.on("subagent_stopping", lambda event, ctx: log.append("later"))
    engine.on("subagent_stopping", handler, {"priority": 100})
    usage = Usage(input=3)
    event = substop(label="test-runner", last_message="Done.", usage=usage, tools_used=("bash",))
    assert engine.check_sync(event).verdict.prompt.startswith(UNCONFIRMED)
    said = json.loads(log[0])
    assert said["data"]["lastAssistantMessage"] == "Done."
    assert (said["data"]["maxSteers"], said["data"]["toolsUsed"]) == (5, ["bash"])
    assert (said["data"]["usage"]["input"], "error" in said["data"]) == (3, False)
    assert said["from"]["agentId"] == said["data"]["agentId"]
    assert len(log) == 1  # the first that redirects wins


@pytest.mark.rule("J9")
@pytest.mark.parametrize(
    "limits", [OPENCLAW, OPENCLAW["agents"], {"maxSteerRestarts": 5}, {"maxBlocks": 5}]
)
def test_the_limit_of_openclaw_is_taken_in_code_as_in_its_file(limits):
    assert Engine(limits=limits).limits == Limits(max_blocks=5)


@pytest.mark.parametrize(
    ("limits", "error", "words"),
    [
        ({"maxSteers": 5}, TypeError, "max_steers"),
        ({"agents": 5}, TypeError, "agents"),
        ({"maxSteerRestarts": "5"}, ValueError, "max_blocks is a whole number from 0 up"),
    ],
)
def test_a_limit_with_a_slip_is_refused_and_named(limits, error, words):
    with pytest.raises(error, match=words):
        Engine(limits=limits)


@pytest.mark.rule("K10", "K11")
def test_both_hooks_of_neovate_under_their_own_names_with_a_payload_for_telemetry():
    sent = []

    def telemetry(event, ctx):
        sent.append(json.loads(json.dumps({"data": event, "host": ctx.host})))

    engine = Engine()
    engine.on("subagentStop", telemetry)
    engine.on("stop", telemetry)
    engine.check_sync(substop(usage=Usage(input=3), tool_calls=2))
    last = Figures(usage=Usage(output=1), tool_calls=1)
    engine.check_sync(stop(raw={"last_run": last}, last_message="Done."))
    engine.check_sync(stop(raw={"last_run": "of another host"}, turn_id="t2"))
    subagent, supervised, foreign = (line["data"] for line in sent)
    assert (subagent["usage"]["inputTokens"], subagent["totalToolCalls"]) == (3, 2)
    assert supervised["result"] == {"success": True, "text": "Done."}
    assert supervised["lastRun"]["usage"]["outputTokens"] == 1
    assert "lastRun" not in foreign


@pytest.mark.rule("K3")
def test_events_are_known_by_their_names_in_camel_case():
    told = []
    engine = Engine()
    for name in ("subagentStopping", "subagentStop", "subagentEnded"):
        engine.on(name, lambda event, ctx, name=name: told.append(name))
    engine.check_sync(substop())
    assert told == ["subagentStopping", "subagentStop", "subagentEnded"]
    with pytest.raises(ValueError, match=r"unknown event 'SubagentStop'; choose one of subagent_"):
        engine.on("SubagentStop", lambda event, ctx: None)  # there it decides, here it is told


@pytest.mark.rule("A9")
def test_what_a_handler_gets_is_a_dict_and_a_record_that_cannot_be_changed():
    seen = []
    engine = Engine()
    engine.on("subagent_stopping", lambda event, ctx: seen.append(event))
    engine.check_sync(substop(last_message="Done."))
    (event,) = seen
    assert event["lastAssistantMessage"] == event.last_assistant_message == "Done."
    with pytest.raises(TypeError, match="SubagentStopping is read-only"):
        event["lastAssistantMessage"] = "No."
    with pytest.raises(TypeError, match="SubagentStopping is read-only"):
        del event["lastAssistantMessage"]
    assert event.__copy__() == event
    assert event.__replace__(label="x")["label"] == "x"
    assert json.loads(json.dumps(event)) == json.loads(json.dumps(event.to_dict()))


@pytest.mark.rule("L3")
def test_the_last_message_of_a_transcript_can_be_read(tmp_path):
    blocks = [{"type": "text", "text": "All done."}]
    line = {"type": "message", "message": {"role": "assistant", "content": blocks}}
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert last_message(str(path)) == "All done."
    assert last_message(str(tmp_path / "none.jsonl")) is None


MUX = """
{
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "timeout": 30,
                  "command": "$MUX_PROJECT_DIR/.mux/hooks/stop-check.sh"}]}
    ]
  }
}
"""
CONCLAUDE = """
subagentStop:
  commands:
    "*":
      - run: "echo all >> ran"
        message: "Logging subagent completion"
    "coder":
      - run: "echo coder >> ran"
    "test*":
      - run: "echo tester >> ran"
    "*coder":
      - run: "echo any coder, $CONCLAUDE_AGENT_ID >> ran"
"""


@pytest.mark.rule("J8")
def test_the_settings_and_the_script_of_mux(tmp_path):
    project = new_project(tmp_path / "p", "")
    script = project / ".mux" / "hooks" / "stop-check.sh"
    script.parent.mkdir(parents=True)
    script.write_text(FORCING)
    script.chmod(0o755)
    write(project, ".mux/settings.json", MUX)
    engine = Engine.from_project(str(project))
    transcript = project / "chat.jsonl"
    transcript.write_text("")
    event = stop(cwd=str(project), transcript_path=str(transcript), stop_hook_active=False)
    decision = engine.check_sync(event)
    assert decision.outcome == "blocked"
    assert "Please run tests before stopping" in decision.verdict.prompt


@pytest.mark.rule("J8")
def test_the_commands_of_conclaude_for_subagents(tmp_path):
    project = new_project(tmp_path / "p", "")
    write(project, ".conclaude.yaml", CONCLAUDE)
    engine = Engine.from_project(str(project))
    engine.check_sync(substop(cwd=str(project), agent_id="coder", agent_type="coder"))
    first, *others = (project / "ran").read_text().splitlines()
    assert (first, sorted(others)) == ("all", ["any coder, coder", "coder"])


@pytest.mark.rule("J8")
@pytest.mark.parametrize("scope", ["agent", "subagent"])
def test_a_decision_of_a_codex_hook(tmp_path, scope):
    project = new_project(tmp_path / "p", "")
    reply = json.dumps({"decision": "block", "reason": "Run the tests."})
    event = "Stop" if scope == "agent" else "SubagentStop"
    write(project, ".codex/hooks.json", hooks(f"echo '{reply}'", event=event))
    engine = Engine.from_project(str(project))
    decision = engine.check_sync((stop if scope == "agent" else substop)(cwd=str(project)))
    assert decision.outcome == "blocked"
    assert "Run the tests." in decision.verdict.prompt


def test_a_pasted_file_that_is_not_trusted_says_the_line_that_changes_that(tmp_path):
    project = new_project(tmp_path / "p", "")
    write(project, ".codex/hooks.json", hooks("exit 2"), trusted=False)
    said = []
    engine = Engine.from_project(str(project), warn=said.append)
    assert not engine.asks(stop(cwd=str(project)))
    assert [line for line in said if "hooks.json is not trusted" in line and "notyet trust" in line]
