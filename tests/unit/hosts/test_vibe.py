"""Mistral Vibe: what its session folder says about a stop that its payload does not."""

import json
import shutil

import pytest

from notyet.hosts import host_named
from wire import VECTORS

VIBE = host_named("vibe")
MAIN = {"hook_event_name": "post_agent", "session_id": "s", "cwd": "/w", "parent_session_id": None}


def read(folder, **fields):
    return VIBE.read_event(MAIN | {"transcript_path": str(folder)} | fields, {})


@pytest.mark.rule("B4", "L1")
@pytest.mark.parametrize(
    ("session", "turn", "answer", "task"),
    [
        ("after_deny", "turn-e1603d83c92d630494e059ac15c0fc6c", "ANSWER-2", "the task is hello"),
        ("resumed", "turn-0b5125d5e2badc73efb2bf299d7b37de", "B1", "SECOND TASK"),
        # The start of the turn is no longer in the journal.
        ("long", "turn-ea6f11151c7f7067c225736b2f74515f", "S2", "MAIN"),
        ("subagent", "child-6626ecad3d3beb37aead0e4c:turn:1", "S1", "SUBTASK do it"),
    ],
)
def test_a_session_folder_tells_the_turn_the_answer_and_the_task(session, turn, answer, task):
    event = read(VECTORS / "vibe" / session)
    assert (event.turn_id, event.last_message, event.task) == (turn, answer, task)


def test_a_stop_with_a_parent_session_is_a_subagents():
    event = read("/t", session_id="child-1", parent_session_id="p")
    assert (event.scope, event.session_id, event.agent_id) == ("subagent", "p", "child-1")
    assert event.agent_transcript_path == "/t"
    event = read("/t", parent_session_id=5)
    assert (event.scope, event.session_id, event.agent_id) == ("agent", "s", None)


@pytest.mark.parametrize("path", ["", "/nonexistent", "/dev/null", 5, "/a\0b", None])
def test_without_its_folder_a_stop_is_read_from_the_payload_alone(path):
    event = VIBE.read_event(MAIN | {"transcript_path": path}, {})
    assert (event.session_id, event.turn_id, event.last_message, event.task) == ("s", *[None] * 3)
    assert event.forgets_answers


CALL = {"payload": {"request": {"hook": "post_agent_turn", "turn_id": "t"}}}


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        '{"payload": 5, "x": "turn_start"}',
        '{"payload":{"delta":5},"source":"turn_start","turnId":"t"}',
        '{"payload":{"delta":[5,{"entry":5}]},"x":{"source":"turn_start","turnId":"t"}}',
        '{"source":"turn_start","turnId":"t" broken}',
        '[5,{"role":"user","content":"x","source":"turn_start","turnId":"tt"},"turnId":"t"]',
    ],
)
def test_a_journal_that_says_something_else_tells_nothing(tmp_path, line):
    journal = tmp_path / "journal"
    journal.mkdir()
    broken = {"payload": {"request": {"hook": "post_agent_turn", "turn_id": 5}}}
    lines = [
        line,
        json.dumps(CALL, separators=(",", ":")),
        json.dumps(broken, separators=(",", ":")),
    ]
    (journal / "1.jsonl").write_text("\n".join([*lines, '{"hook":"post_agent_turn" broken}', ""]))
    event = read(tmp_path)
    assert (event.turn_id, event.last_message, event.task) == ("t", "", None)


def test_only_the_newest_call_of_the_hook_counts(tmp_path):
    shutil.copytree(VECTORS / "vibe" / "after_deny" / "journal", tmp_path / "journal")
    (tmp_path / "journal" / "0000000000000099.jsonl").write_text(
        json.dumps(CALL, separators=(",", ":")) + "\n"
    )
    assert read(tmp_path).turn_id == "t"


def test_other_events_are_no_stops():
    assert VIBE.read_event(MAIN | {"hook_event_name": "pre_tool"}, {}) is None
