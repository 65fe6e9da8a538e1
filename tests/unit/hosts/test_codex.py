"""Codex: what its hooks answer, what it sends us, and what we tell it."""

import pytest

from notyet.core.event import StartEvent
from notyet.hosts import codex
from notyet.hosts.codex import hooks as codex_hooks
from support import stop, substop

COMMON = {"session_id", "transcript_path", "cwd", "hook_event_name", "model", "permission_mode"}
STOP = COMMON | {"turn_id", "stop_hook_active", "last_assistant_message"}
SUBAGENT_STOP = STOP | {"agent_id", "agent_type", "agent_transcript_path"}


@pytest.mark.rule("W2", "H4")
def test_a_hook_gets_exactly_the_keys_of_codex_and_no_variable():
    full = substop(
        parent_session_id="root",
        turn_id="t1",
        cwd="/w",
        model="m",
        transcript_path="/t/parent.jsonl",
        agent_transcript_path="/t/child.jsonl",
        last_message="Done.",
        stop_hook_active=True,
        permission_mode="bypassPermissions",
    )
    payload, environ = codex_hooks.write_event(full, "/elsewhere")
    assert environ == {}
    assert payload == {
        "session_id": "root",
        "turn_id": "t1",
        "transcript_path": "/t/parent.jsonl",
        "cwd": "/w",
        "hook_event_name": "SubagentStop",
        "model": "m",
        "permission_mode": "bypassPermissions",
        "stop_hook_active": True,
        "last_assistant_message": "Done.",
        "agent_id": "a1",
        "agent_type": "coder",
        "agent_transcript_path": "/t/child.jsonl",
    }
    for event, keys in (
        (stop(agent_id="x", background_tasks=()), STOP),
        (substop(agent_id=None, agent_type=None), SUBAGENT_STOP),
    ):
        payload, environ = codex_hooks.write_event(event, "")
        assert (payload.keys(), environ) == (keys, {})


@pytest.mark.rule("W2", "F13-codex", "C8", "H4")
def test_a_start_hook_gets_exactly_the_keys_of_codex():
    payload, environ = codex_hooks.write_start(StartEvent(session_id="s", cwd="/w", source="clear"))
    assert environ == {}
    assert payload.keys() == COMMON | {"source"}
    assert (payload["hook_event_name"], payload["source"]) == ("SessionStart", "clear")
    assert (payload["permission_mode"], payload["model"]) == ("default", "")
    assert payload["transcript_path"] is None
    assert codex_hooks.write_start(StartEvent())[0]["source"] == "startup"
    child = StartEvent(scope="subagent", session_id="s", agent_id="c")
    payload, environ = codex_hooks.write_start(child)
    assert environ == {}
    assert payload.keys() == COMMON | {"turn_id", "agent_id", "agent_type"}
    assert (payload["hook_event_name"], payload["agent_id"]) == ("SubagentStart", "c")
    assert payload["agent_type"] == "default"
    payload, _ = codex_hooks.write_start(StartEvent(scope="subagent", agent_type="worker"))
    assert (payload["agent_type"], payload["agent_id"]) == ("worker", "")


@pytest.mark.rule("D5")
def test_a_child_without_a_type_has_the_default_type():
    for name in ("SubagentStop", "SubagentStart"):
        for said in ({}, {"agent_type": ""}, {"agent_type": None}):
            event = codex.HOST.read_event({"hook_event_name": name, "session_id": "s"} | said, {})
            assert event.agent_type == "default"
        named = {"hook_event_name": name, "agent_type": "worker"}
        assert codex.HOST.read_event(named, {}).agent_type == "worker"
        assert codex.HOST.read_event(named, {}).session_id == ""
    for name in ("Stop", "SessionStart"):
        event = codex.HOST.read_event({"hook_event_name": name, "session_id": "s"}, {})
        assert event.agent_type is None
