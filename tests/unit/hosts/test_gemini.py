"""Gemini CLI: its subagents stop by a tool call, and other tools are none of our business."""

import json

import pytest

from notyet.core.event import StartEvent, StopEvent
from notyet.hosts import host_named
from support import substop
from wire import VECTORS

GEMINI = host_named("gemini")
PAYLOADS = VECTORS / "payloads" / "gemini"


def recorded(name):
    return json.loads((PAYLOADS / name).read_text(encoding="utf-8"))


@pytest.mark.rule("C8")
def test_the_call_that_ends_a_subagent_is_its_stop():
    payload = recorded("BeforeTool.complete_task_of_generalist.json")
    event = GEMINI.read_event(payload, {})
    assert (event.scope, event.session_id) == ("subagent", payload["session_id"])
    assert event.agent_id == f"{payload['session_id']}:complete_task"
    assert event.last_message == "my report"


def test_any_other_tool_call_is_allowed_without_a_word():
    payload = recorded("BeforeTool.invoke_agent.json")
    assert GEMINI.read_event(payload, {}) is None
    assert GEMINI.event_in(payload) in GEMINI.ignored


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"result": "done"}, "done"),
        ({"result": {"response": "done"}, "wait_for_previous": True}, "done"),
        ({"report": {"a": "one", "b": ["two", {"c": "three"}], "d": 4}}, "one\ntwo\nthree"),
        ({"result": " "}, None),
        ({}, None),
        (None, None),
        (["one", "two"], "one\ntwo"),
    ],
)
def test_a_report_is_all_of_its_texts(report, expected):
    payload = recorded("BeforeTool.complete_task_of_generalist.json") | {"tool_input": report}
    assert GEMINI.read_event(payload, {}).last_message == expected


def test_a_subagents_stop_is_read_as_it_is_written():
    written, _ = GEMINI.write_event(substop(session_id="s", last_message="All of it."))
    event = GEMINI.read_event(written, {})
    assert isinstance(event, StopEvent)
    assert (event.scope, event.agent_id, event.last_message) == (
        "subagent",
        "s:complete_task",
        "All of it.",
    )


def test_a_start_adds_context():
    reply = GEMINI.write_context("Lint first.", StartEvent(), "a note")
    assert json.loads(reply.stdout) == {
        "hookSpecificOutput": {
            "hookEventName": "SessionStart",
            "additionalContext": "Lint first.",
        },
        "systemMessage": "a note",
    }
