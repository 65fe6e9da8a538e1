"""Droid: what its payloads do not say stands in the transcript."""

import json
from pathlib import Path

import pytest

from notyet.core.event import StopEvent
from notyet.hosts import host_named
from notyet.hosts.transcript import last_message_of

VECTORS = Path(__file__).parents[2] / "vectors"
DROID = host_named("droid")


def payload(name, transcript):
    read = json.loads((VECTORS / "payloads" / "droid" / f"{name}.json").read_text())
    return read | {"transcript_path": str(transcript)}


def recorded(name):
    return (VECTORS / "transcripts" / f"{name}.jsonl").read_text()


@pytest.fixture
def child(tmp_path):
    """Return the transcript of a subagent, beside that of the session that called it."""
    first = json.loads(recorded("droid-subagent").partition("\n")[0])
    (tmp_path / f"{first['callingSessionId']}.jsonl").write_text(recorded("droid-parent"))
    own = tmp_path / f"{first['id']}.jsonl"
    own.write_text(recorded("droid-subagent"))
    return own


def test_a_stop_whose_transcript_names_a_caller_is_that_of_a_subagent(child):
    sent = payload("Stop.in-subagent", child)
    event = DROID.read_event(sent, {})
    first = json.loads(recorded("droid-subagent").partition("\n")[0])
    assert (event.scope, event.ending) == ("subagent", "done")
    assert (event.session_id, event.agent_id) == (first["callingSessionId"], sent["session_id"])
    assert event.agent_type == "worker"
    assert event.agent_transcript_path == str(child)
    assert event.transcript_path == str(child.parent / f"{first['callingSessionId']}.jsonl")
    assert last_message_of(event) == "SUBANSWER"


def test_a_start_of_a_subagent_names_its_caller_itself(child):
    sent = payload("SessionStart.in-subagent", child)
    event = DROID.read_event(sent, {})
    assert (event.scope, event.agent_type) == ("subagent", "worker")
    assert (event.session_id, event.agent_id) == (sent["calling_session_id"], sent["session_id"])
    reply = DROID.write_context("These gates.", event)
    told = {"hookEventName": "SessionStart", "additionalContext": "These gates."}
    assert json.loads(reply.stdout) == {"hookSpecificOutput": told}
    assert DROID.event_name("subagent") == "Stop"


def test_the_main_agent_is_told_from_its_subagents(tmp_path):
    own = tmp_path / "main.jsonl"
    own.write_text(recorded("droid"))
    event = DROID.read_event(payload("Stop.after-block", own), {})
    assert (event.scope, event.ending, event.stop_hook_active) == ("agent", "done", True)
    assert event.agent_id is None


@pytest.mark.rule("C2")
def test_a_turn_that_a_failed_model_call_ended_is_an_error(tmp_path):
    own = tmp_path / "main.jsonl"
    own.write_text(recorded("droid-api-error"))
    event = DROID.read_event(payload("Stop.api-error", own), {})
    assert (event.ending, event.error) == ("error", "BYOK Error: 400 scripted")


@pytest.mark.parametrize(
    "last",
    [
        "",
        "MESSAGE",
        '{"id":"MESSAGE"}',
        '{"id":"MESSAGE","message":"MESSAGE"}',
        '{"id":"other","message":{"role":"user","visibility":"user_only","of":"MESSAGE"}}',
        '{"id":"MESSAGE","message":{"role":"user","content":[]}}',
        '{"id":"MESSAGE","message":{"role":"assistant","content":[]}}',
    ],
)
def test_what_is_no_error_of_this_turn_is_gated(last, tmp_path):
    own = tmp_path / "main.jsonl"
    sent = payload("Stop.api-error", own)
    own.write_text(last.replace("MESSAGE", sent["message_id"]))
    assert DROID.read_event(sent, {}).ending == "done"
    assert DROID.read_event(sent | {"message_id": 7}, {}).ending == "done"


@pytest.mark.parametrize("call", ['"input":7', '"input":{"subagent_type":7}', '"name":"Task"'])
def test_a_subagent_whose_call_is_not_found_has_no_type(call, child):
    (parents,) = (path for path in child.parent.iterdir() if path != child)
    head, tail = '{"message":{"content":["CALL",{"id":"other"},{"id":"CALL",', "}]}}\n"
    called = json.loads(recorded("droid-subagent").partition("\n")[0])["callingToolUseId"]
    parents.write_text('{"message":"CALL"}\nCALL\n'.replace("CALL", called))
    event = DROID.read_event(payload("Stop.in-subagent", child), {})
    assert (event.scope, event.agent_type) == ("subagent", None)
    parents.write_text(f"{head}{call}{tail}".replace("CALL", called))
    assert DROID.read_event(payload("Stop.in-subagent", child), {}).agent_type is None
    parents.unlink()
    assert DROID.read_event(payload("Stop.in-subagent", child), {}).agent_type is None


def test_a_start_without_a_transcript_is_still_that_of_a_subagent():
    sent = payload("SessionStart.in-subagent", "")
    event = DROID.read_event(sent, {})
    assert (event.scope, event.transcript_path) == ("subagent", None)


def test_the_end_of_a_subagent_at_its_parent_comes_too_late_and_is_let_pass():
    assert DROID.read_event(payload("SubagentStop.done", "/x"), {}) is None


def test_a_subagent_that_is_made_up_names_its_caller():
    made = StopEvent(scope="subagent", session_id="s", agent_id="a", cwd="/w")
    event = DROID.read_event(DROID.write_event(made)[0], {})
    assert (event.scope, event.session_id, event.agent_id) == ("subagent", "s", "a")


def test_a_turn_that_ended_because_the_model_said_nothing_is_gated(tmp_path):
    own = tmp_path / "main.jsonl"
    sent = payload("Stop.api-error", own)
    notice = "The model produced several consecutive responses with no visible output."
    text = recorded("droid-api-error").replace("BYOK Error: 400 scripted", notice)
    own.write_text(text)
    assert notice in text
    assert DROID.read_event(sent, {}).ending == "done"
