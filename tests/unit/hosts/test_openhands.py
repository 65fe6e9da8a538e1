"""OpenHands: the last message is in the folder of its conversation."""

import json

import pytest

from notyet.hosts import host_named

SESSION = "951324f3-5bde-493a-8371-aaf3a32ebcdd"
MESSAGE = {
    "source": "agent",
    "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "A message."}]},
    "kind": "MessageEvent",
}
FINISHED = {"source": "agent", "action": {"message": "Finished.", "kind": "FinishAction"}}
ACTED = {"source": "agent", "action": {"command": "ls", "kind": "TerminalAction"}}
HOOK = {"source": "hook", "kind": "HookExecutionEvent"}
FEEDBACK = {"source": "environment", "llm_message": {"role": "user", "content": []}}


def stop_of(environ, session=SESSION):
    payload = {
        "event_type": "Stop",
        "session_id": session,
        "working_dir": "/w",
        "metadata": {"reason": "agent_finished"},
    }
    return host_named("openhands").read_event(payload, environ)


def keep(folder, *events):
    """Write events as OpenHands does: a file each, without blanks."""
    folder = folder / SESSION.replace("-", "") / "events"
    folder.mkdir(parents=True)
    for number, event in enumerate(events):
        text = event if isinstance(event, str) else json.dumps(event, separators=(",", ":"))
        (folder / f"event-{number:05}-x.json").write_text(text)


@pytest.mark.parametrize(
    ("events", "answer"),
    [
        ([MESSAGE], "A message."),
        ([MESSAGE, HOOK, FEEDBACK, FINISHED], "Finished."),
        ([FINISHED, FEEDBACK, ACTED, MESSAGE, HOOK], "A message."),
        ([ACTED, HOOK], None),
        (['{"source":"agent",', '["source":"agent"]', '"source":"agent"'], None),
        ([], None),
    ],
)
def test_the_answer_is_the_last_that_the_agent_said(tmp_path, events, answer):
    keep(tmp_path / ".openhands" / "conversations", *events)
    assert stop_of({"HOME": str(tmp_path)}).last_message == answer


def test_a_variable_may_name_the_folder_of_conversations(tmp_path):
    keep(tmp_path, MESSAGE)
    environ = {"HOME": "/nowhere", "OPENHANDS_CONVERSATIONS_DIR": str(tmp_path)}
    assert stop_of(environ).last_message == "A message."


@pytest.mark.parametrize("session", ["../../x", "a/b", "\0", "x" * 5000])
def test_a_session_without_a_folder_has_no_answer(tmp_path, session):
    assert stop_of({"HOME": str(tmp_path)}, session).last_message is None
