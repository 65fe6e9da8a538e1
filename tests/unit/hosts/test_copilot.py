"""Copilot: events that do not say what they are, and a transcript that lags behind."""

import json
import threading
import time

import pytest

from notyet.hosts import copilot, host_named, transcript
from support import stop, substop

COPILOT = host_named("copilot")
CAMEL = {"sessionId": "s", "timestamp": 1794788289532, "cwd": "/w"}
PASCAL = {"session_id": "s", "timestamp": "2026-11-16T00:18:09.532Z", "cwd": "/w"}
STOPPED = 1794788289532


@pytest.mark.rule("W1", "W2")
@pytest.mark.parametrize(
    ("payload", "name"),
    [
        (CAMEL | {"stopReason": "end_turn"}, "agentStop"),
        (CAMEL | {"stopReason": "end_turn", "agentId": "a"}, "agentStop of a subagent"),
        (CAMEL | {"stopReason": "end_turn", "agentId": "a", "response": ""}, "subagentStop"),
        (CAMEL | {"stopReason": "end_turn", "agentId": "a", "agentName": "x"}, "subagentStop"),
        (CAMEL | {"agentName": "explore", "agentId": "a"}, "subagentStart"),
        (CAMEL | {"agentName": "explore", "agent_id": "a"}, "subagentStart"),
        (CAMEL | {"source": "new", "initialPrompt": "hello"}, "sessionStart"),
        (CAMEL | {"reason": "complete"}, ""),
        (CAMEL | {"hook_event_name": 7, "stopReason": "end_turn"}, "agentStop"),
        (PASCAL | {"hook_event_name": "Stop"}, "agentStop"),
        (PASCAL | {"hook_event_name": "Stop", "agent_id": "a"}, "agentStop of a subagent"),
        (PASCAL | {"hook_event_name": "SubagentStop", "agent_id": "a"}, "subagentStop"),
        (PASCAL | {"hook_event_name": "SessionStart"}, "sessionStart"),
        (PASCAL | {"hook_event_name": "agentStop"}, "agentStop"),
        (PASCAL | {"hook_event_name": "PreToolUse"}, "PreToolUse"),
    ],
)
def test_a_payload_tells_its_event_in_both_spellings(payload, name):
    assert COPILOT.event_in(payload) == name
    event = COPILOT.read_event(payload, {})
    assert (event is None) == (name in ("", "PreToolUse", "agentStop of a subagent"))


def said(text, **more):
    return {"type": "assistant.message", "data": {"content": text, "toolRequests": []}} | more


def hook_started(timestamp):
    return {
        "type": "hook.start",
        "data": {"hookType": "agentStop", "input": {"timestamp": timestamp}},
    }


def write(file, *entries):
    with file.open("a") as out:
        out.writelines(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "events.jsonl"
    write(file, said("An older one."), hook_started(STOPPED - 999))
    return file


@pytest.fixture
def now(monkeypatch):
    """Let it be just after the stop; asking for the time takes 0.3 s."""
    moments = [STOPPED / 1000]

    def tick():
        moments.append(moments[-1] + 0.3)
        return moments[-1]

    monkeypatch.setattr(time, "time", tick)
    monkeypatch.setattr(copilot, "_PAUSE", 0.0)
    return moments


@pytest.mark.rule("L2", "B14")
@pytest.mark.parametrize("payload", [CAMEL, PASCAL], ids=["camel", "Pascal"])
def test_the_last_message_is_that_of_this_stop(file, now, payload):
    write(file, said("The newest."), hook_started(STOPPED), said("no", agentId="a"))
    event = stop(host="copilot", transcript_path=str(file), raw=payload)
    assert COPILOT.last_message(event) == "The newest."
    assert len(now) == 2  # it did not wait


@pytest.mark.rule("L2")
def test_a_transcript_that_lags_is_waited_for(file, monkeypatch):
    polled = threading.Event()
    ends_of = transcript.ends_of

    def noticed(path):
        ends = ends_of(path)
        polled.set()
        return ends

    monkeypatch.setattr(transcript, "ends_of", noticed)
    stopped = int(time.time() * 1000) + 60_000  # of a clock that is ahead
    monkeypatch.setattr(copilot, "_LAG", 60_000)

    def host():
        polled.wait(30)
        write(file, said("The newest."), hook_started(stopped))

    writer = threading.Thread(target=host)
    writer.start()
    event = stop(host="copilot", transcript_path=str(file), raw={"timestamp": stopped})
    assert COPILOT.last_message(event) == "The newest."
    writer.join()


@pytest.mark.rule("L2")
@pytest.mark.parametrize("stopped", [STOPPED, STOPPED - 86_400_000, 10**400])
def test_an_older_message_is_never_taken_for_the_last(file, now, stopped):
    event = stop(host="copilot", transcript_path=str(file), raw={"timestamp": stopped})
    assert COPILOT.last_message(event) is None
    assert len(now) < 9


@pytest.mark.parametrize(
    "timestamp", [None, True, 1.5, "", "yesterday", [], "0001-01-01T00:00:00+23:59"]
)
def test_a_stop_without_a_time_has_no_message(file, timestamp):
    event = stop(host="copilot", transcript_path=str(file), raw={"timestamp": timestamp})
    assert COPILOT.last_message(event) is None


def test_what_the_payload_says_needs_no_transcript(file, tmp_path):
    known = substop(host="copilot", transcript_path=str(file), last_message="Mine.", raw=CAMEL)
    assert COPILOT.last_message(known) == "Mine."
    silent = substop(host="copilot", transcript_path=str(file), last_message=None, raw=CAMEL)
    assert COPILOT.last_message(silent) is None
    assert COPILOT.last_message(stop(host="copilot", transcript_path=None, raw=CAMEL)) is None
    assert COPILOT.last_message(stop(host="copilot", transcript_path=str(file), raw=None)) is None
    for path in (str(tmp_path), "\0", None):
        assert transcript.ends_of(path) == (b"", b"")


@pytest.mark.rule("B12")
def test_the_users_hook_yields_to_the_projects_where_that_one_runs(tmp_path):
    users, project = tmp_path / ".copilot" / "hooks", tmp_path / "p"
    settings = project / ".github" / "hooks" / "notyet.json"
    settings.parent.mkdir(parents=True)
    users.mkdir(parents=True)
    payload = CAMEL | {"stopReason": "end_turn"}
    environ = {"HOME": str(tmp_path), "COPILOT_PROJECT_DIR": str(project)}
    of_user = environ | {"COPILOT_HOOK_DIR": str(users), "COPILOT_ALLOW_ALL": "true"}

    def is_repeated(environ, **hooks):
        settings.write_text(json.dumps({"hooks": hooks}))
        return COPILOT.is_repeated(payload, environ)

    ours = {"type": "command", "bash": "notyet hook --host copilot"}
    assert is_repeated(of_user, agentStop=[ours])
    assert not is_repeated(of_user | {"COPILOT_ALLOW_ALL": ""}, agentStop=[ours])  # not trusted
    assert not is_repeated(of_user, agentStop=[{"bash": "notyet status"}, 7], subagentStop=[ours])
    assert not is_repeated(of_user, agentStop=[ours | {"async": True}])
    assert not is_repeated(of_user | {"COPILOT_HOOK_DIR": str(settings.parent)}, agentStop=[ours])
    assert not is_repeated(of_user | {"COPILOT_PROJECT_DIR": ""}, agentStop=[ours])
