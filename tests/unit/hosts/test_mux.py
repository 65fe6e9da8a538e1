"""Mux: what its hooks answer, what it sends us, and what we tell it."""

import pytest

from notyet import Allow
from notyet.hosts.hook_commands import own_timeout
from notyet.hosts.mux import hooks as mux
from support import stop, substop
from wire import (
    ended,
    gate_of,
)


@pytest.mark.rule("W3", "H2")
def test_a_hook_gets_exactly_six_keys_and_the_variables_of_both_names():
    event = stop(cwd="/w", transcript_path="/t/chat.jsonl", stop_hook_active=True, agent_id="x")
    payload, environ = mux.write_event(event, "/project")
    assert payload == {
        "session_id": "s1",
        "transcript_path": "/t/chat.jsonl",
        "cwd": "/w",
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "stop_hook_active": True,
    }
    assert environ == {
        "CLAUDE_PROJECT_DIR": "/project",
        "MUX_PROJECT_DIR": "/project",
        "MUX_STOP_HOOK_ACTIVE": "true",
        "MUX_TRANSCRIPT_PATH": "/t/chat.jsonl",
        "XUM_PROJECT_DIR": "/project",
        "XUM_STOP_HOOK_ACTIVE": "true",
        "XUM_TRANSCRIPT_PATH": "/t/chat.jsonl",
    }


@pytest.mark.rule("W3", "H2")
def test_a_subagents_session_is_its_task_and_its_transcript_its_own():
    event = substop(task_id="task-7", transcript_path="/t/main", agent_transcript_path="/t/child")
    payload, environ = mux.write_event(event, "")
    assert (payload["session_id"], payload["transcript_path"]) == ("task-7", "/t/child")
    assert payload["hook_event_name"] == "SubagentStop"
    assert environ["MUX_TRANSCRIPT_PATH"] == environ["XUM_TRANSCRIPT_PATH"] == "/t/child"
    assert environ["MUX_STOP_HOOK_ACTIVE"] == "false"
    assert mux.write_event(substop(), "")[0]["session_id"] == "a1"
    payload, _ = mux.write_event(substop(agent_id=None, transcript_path="/t/own"), "")
    assert (payload["session_id"], payload["transcript_path"]) == ("child-1", "/t/own")


@pytest.mark.rule("F5-mux")
def test_plain_text_is_kept_but_not_without_end():
    reading = mux.read_reply(gate_of("mux", {}), ended({"code": 0, "stdout": "x" * 1_000_000}))
    assert isinstance(reading.answer, Allow)
    assert 10_000 < len(reading.answer.note) <= 30_000


@pytest.mark.rule("E9")
@pytest.mark.parametrize(
    ("handlers", "seconds"),
    [
        ([], 0.0),
        ([{"type": "command", "command": "./mine.sh", "timeout": 60}], 0.0),
        ([{"type": "prompt", "prompt": "notyet hook"}], 0.0),
        ([{"type": "command", "command": "notyet hook --host mux"}], 10.0),
        ([{"type": "command", "command": "notyet hook --host mux", "timeout": 30}], 30.0),
        ([{"type": "command", "command": "notyet hook", "timeout": n} for n in (90, 40)], 40.0),
    ],
)
def test_the_time_that_mux_waits_for_notyet_is_in_its_settings(handlers, seconds):
    settings = {"hooks": {"Stop": [{"hooks": handlers}]}}
    assert own_timeout("mux", settings, "Stop") == seconds
    assert own_timeout("mux", settings, "SubagentStop") == 0.0
