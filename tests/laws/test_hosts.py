"""What each dialect writes it reads again, and nothing that anybody sends or prints raises."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notyet import Allow, Block, Halt, StopEvent
from notyet.core.event import ENDINGS, SCOPES, BackgroundTask, StartEvent, Usage
from notyet.core.gate import Command, Exit, Gate, Match
from notyet.core.record import replace
from notyet.core.text import clean
from notyet.hosts import HOSTS, command_dialect, host_named, start_dialect
from notyet.hosts.detect import detect
from notyet.hosts.hook_answers import HookAnswer
from notyet.light import dumps, loads

# Text as it passes through a host: not blank, and what `clean` and `strip` leave as it is.
LETTERS = st.characters(exclude_categories=["Cs", "Cc"])
WORDS = st.text(LETTERS | st.sampled_from("\n\t"), min_size=1, max_size=30).filter(
    lambda text: text == clean(text).strip() != ""
)
ANY_TEXT = st.text(max_size=30).filter(lambda text: text.strip() != "")
PATHS = ANY_TEXT.filter(lambda text: "\0" not in text)
MAYBE = st.none() | ANY_TEXT
WILD = st.text(st.characters(), max_size=30)  # with halves of characters
TASKS = st.lists(
    st.builds(BackgroundTask, id=ANY_TEXT, type=ANY_TEXT, status=ANY_TEXT), max_size=3
).map(tuple)
COUNTS = st.integers(0, 10**9)

# What a dialect carries; everything else of an event is lost on the way.
STOP = {
    "session_id": ANY_TEXT,
    "cwd": PATHS,
    "transcript_path": PATHS,
    "stop_hook_active": st.booleans(),
    "permission_mode": ANY_TEXT,
}
CLAUDE = STOP | {"turn_id": MAYBE, "agent_type": MAYBE, "last_message": MAYBE}
CLAUDE |= {"background_tasks": TASKS, "transcript_path": st.none() | PATHS}
CODEX = STOP | {"turn_id": MAYBE, "model": MAYBE, "last_message": MAYBE}
CODEX |= {"transcript_path": st.none() | PATHS}
CHILD = {"agent_id": ANY_TEXT, "agent_type": ANY_TEXT, "agent_transcript_path": st.none() | PATHS}
NATIVE = {
    "scope": st.sampled_from(SCOPES),
    "ending": st.sampled_from(ENDINGS),
    "internal": st.booleans(),
    "forgets_answers": st.booleans(),
    "stop_hook_active": st.none() | st.booleans(),
    "usage": st.none() | st.builds(Usage, **dict.fromkeys(Usage._fields, COUNTS)),
    "total_usage": st.none() | st.builds(Usage, **dict.fromkeys(Usage._fields, COUNTS)),
    "tools_used": st.lists(st.text(), max_size=3).map(tuple),
    "background_tasks": TASKS,
    "result": st.none() | st.integers() | st.text() | st.lists(st.text(), max_size=2),
    "duration_ms": st.none() | st.floats(0, 10**9),
    "turns": st.none() | COUNTS,
    "tool_calls": st.none() | COUNTS,
    "raw": st.none(),
    "workspace": st.sampled_from(("", "ssh://box/srv", "ssh://dev@box:22/a%25b/ö '")),
}
for _name, _default in StopEvent._defaults.items():
    if _name not in NATIVE:
        _kinds = {int: COUNTS, str: PATHS}
        NATIVE[_name] = _kinds.get(type(_default), st.none() | PATHS)


def events(host, fields, **fixed):
    return st.builds(StopEvent, host=st.just(host), **fields, **fixed)


def again(host, event):
    """Write an event as a hook of this host gets it, and read it as the host's."""
    payload, environ = command_dialect(host).write_event(event, "/folder")
    assert all(isinstance(value, str) for value in environ.values())
    return replace(host_named(host).read_event(json.loads(dumps(payload)), {}), raw=None)


@pytest.mark.rule("W1")
@given(
    events("claude", CLAUDE, host_cap=st.just(8))
    | events("claude", CLAUDE | CHILD, host_cap=st.just(8), scope=st.just("subagent"))
)
def test_what_claude_codes_hooks_are_told_is_read_as_it_was(event):
    assert again("claude", event) == event


@pytest.mark.rule("W2")
@given(events("codex", CODEX) | events("codex", CODEX | CHILD, scope=st.just("subagent")))
def test_what_codexs_hooks_are_told_is_read_as_it_was(event):
    assert again("codex", event) == event


@pytest.mark.rule("W3")
@given(events("mux", STOP) | events("mux", STOP, scope=st.just("subagent")))
def test_what_muxs_hooks_are_told_is_read_as_it_was(event):
    assert again("mux", event) == event


@pytest.mark.rule("W5")
@given(st.builds(StopEvent, **NATIVE))
def test_what_our_own_gates_are_told_is_read_as_it_was(event):
    assert again("notyet", event) == event


START = {"session_id": ANY_TEXT, "cwd": PATHS, "transcript_path": PATHS}
BEGUN = START | {"scope": st.just("agent"), "source": ANY_TEXT}
SPAWNED = START | {
    "scope": st.just("subagent"),
    "agent_id": ANY_TEXT,
    "agent_type": ANY_TEXT,
    "turn_id": ANY_TEXT,
}
CODEX_START = {"model": ANY_TEXT, "permission_mode": ANY_TEXT}
STARTS = {
    "claude": st.builds(StartEvent, **BEGUN) | st.builds(StartEvent, **SPAWNED),
    "codex": st.builds(StartEvent, **(BEGUN | CODEX_START))
    | st.builds(StartEvent, **(SPAWNED | CODEX_START)),
}


@pytest.mark.rule("F13-claude", "F13-codex")
@pytest.mark.parametrize("host", ["claude", "codex"])
@given(data=st.data(), told=WORDS)
def test_start_hooks_are_told_and_answer_what_is_read_as_it_was(host, data, told):
    event = replace(data.draw(STARTS[host]), host=host)
    payload, _ = start_dialect(host).write_start(event)
    assert host_named(host).read_event(json.loads(dumps(payload)), {}) == event
    reply = host_named(host).write_context(told, event)
    given_ = start_dialect(host).read_context(
        Exit(code=0, stdout=reply.stdout.encode()), event.scope
    )
    assert given_.context == told


def read_back(host, verdict, note, event, settings=None):
    reply = host_named(host).write_reply(verdict, note, event, settings or {})
    check = Command(script="x", speaks=host)
    gate = Gate(name="g", check=check, match=Match(events=(event.scope,)))
    ended = Exit(code=reply.code, stdout=reply.stdout.encode(), stderr=reply.stderr.encode())
    return command_dialect(host).read_reply(gate, ended)


SAYABLE = st.just(Allow()) | st.builds(Block, WORDS) | st.builds(Halt, st.just("") | WORDS)
NOTES = st.just("") | WORDS


@pytest.mark.rule("G1")
@given(
    SAYABLE,
    NOTES,
    st.sampled_from(SCOPES),
    st.sampled_from([None, "2.1.162", "2.1.163", "3.0.0"]),
    st.sampled_from([{}, {"claude": "block"}]),
)
def test_what_claude_code_is_answered_means_what_we_meant(verdict, note, scope, version, settings):
    event = StopEvent(scope=scope, host_version=version)
    reading = read_back("claude", verdict, note, event, settings)
    assert replace(reading, context="") == HookAnswer(answer=verdict, tell_user=note)


@pytest.mark.rule("G2")
@given(SAYABLE, NOTES, st.sampled_from(SCOPES))
def test_what_codex_is_answered_means_what_we_meant(verdict, note, scope):
    reading = read_back("codex", verdict, note, StopEvent(scope=scope))
    assert reading == HookAnswer(answer=verdict, tell_user=note)


@pytest.mark.rule("G3")
@given(SAYABLE, NOTES, st.sampled_from(SCOPES))
def test_what_mux_is_answered_means_what_we_meant(verdict, note, scope):
    assert read_back("mux", verdict, note, StopEvent(scope=scope)) == HookAnswer(answer=verdict)


EXTENDS = st.integers(0, 1_000_000)


@given(
    st.builds(Allow, EXTENDS, NOTES)
    | st.builds(Block, WORDS, NOTES, EXTENDS).filter(lambda block: block.reason != block.prompt)
    | st.builds(Halt, NOTES),
    NOTES,
)
def test_what_a_host_of_our_own_kind_is_answered_means_what_we_meant(verdict, note):
    reading = read_back("notyet", verdict, note, StopEvent())
    assert reading == HookAnswer(answer=verdict, tell_user=note)


@pytest.mark.rule("E5", "G1", "G2", "G3")
@pytest.mark.parametrize("host", ["claude", "codex", "mux"])
@given(
    st.builds(Block, WILD.filter(lambda text: text.strip() != ""))
    | st.builds(Halt, WILD)
    | st.builds(Allow, note=WILD),
    WILD,
)
def test_whatever_a_gate_says_the_reply_is_one_that_the_host_takes(host, verdict, note):
    reading = read_back(host, verdict, note, StopEvent())
    assert type(reading.answer) is type(verdict)
    reply = host_named(host).write_reply(verdict, note, StopEvent(), {})
    assert reply.code == 0
    assert reply.stdout.isascii()
    assert isinstance(json.loads(reply.stdout or "{}"), dict)
    reply.stderr.encode()


FIELDS = sorted({
    *StopEvent._fields,
    "agent_stop_cause", "agent_transcript_path", "context_limit", "conversation_id",
    "conversationId", "crons", "cursor_version", "event", "event_type", "generation_id",
    "hookEventName", "hook_event_name", "last_assistant_message", "project_path", "prompt_id",
    "sessionId", "source", "stop_reason", "stopReason", "subagent_type", "task_name", "timestamp",
    "workspacePaths", "working_directory",
})  # fmt: skip
EVENT_NAMES = ["Stop", "SubagentStop", "StopFailure", "SessionStart", "SubagentStart", "SessionEnd"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WILD | st.sampled_from(FIELDS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WILD | st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=12,
)
PAYLOADS = st.dictionaries(st.sampled_from(FIELDS) | WILD, JSON, max_size=12)
NAMED = st.builds(
    lambda payload, name: payload | {"hook_event_name": name},
    PAYLOADS,
    st.sampled_from(EVENT_NAMES),
)
ENVIRONS = st.fixed_dictionaries(
    {},
    optional={
        "AI_AGENT": st.text() | st.text().map(lambda text: f"claude-code_{text}"),
        "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": st.text() | st.integers().map(str),
        "CLAUDE_PROJECT_DIR": st.text(),
    },
)


@pytest.mark.rule("G6", "W1", "W2", "W3", "W5")
@given(PAYLOADS | NAMED, ENVIRONS)
def test_no_payload_is_too_strange_to_be_read_and_answered(payload, environ):
    assert isinstance(detect(payload), str)
    for host in HOSTS:
        event = host_named(host).read_event(payload, environ)
        assert event is None or event.session_id == event.session_id.encode().decode()
        if isinstance(event, StopEvent):
            assert "\0" not in event.cwd
            host_named(host).write_reply(Block("x"), "", event, {})
            for other in ("claude", "codex", "mux", "notyet", "conclaude"):
                told, _ = command_dialect(other).write_event(event, "")
                assert isinstance(loads(dumps(told)), dict)
        elif event is not None:
            host_named(host).write_context("x", event)


@pytest.mark.rule("W1", "W2", "W3", "W5")
@pytest.mark.parametrize("host", HOSTS)
@given(field=st.sampled_from(FIELDS), wrong=JSON, name=st.sampled_from(EVENT_NAMES))
def test_one_wrong_field_leaves_the_others_alone(host, field, wrong, name):
    payload = {"hook_event_name": name, "session_id": "s", "cwd": "/w", "scope": "agent"}
    event = host_named(host).read_event(payload | {field: wrong}, {})
    if event is not None and field not in {"hook_event_name", "session_id"}:
        assert event.session_id == "s"


ANSWER_KEYS = [
    "decision", "reason", "continue", "stopReason", "systemMessage", "suppressOutput", "prompt",
    "hookSpecificOutput", "additionalContext", "hookEventName", "extend", "problem",
]  # fmt: skip
SAID = st.sampled_from(["block", "approve", "allow", "halt", "Stop", "SessionStart", "x", " "])
ANSWERS = st.dictionaries(
    st.sampled_from(ANSWER_KEYS),
    SAID | JSON | st.dictionaries(st.sampled_from(ANSWER_KEYS), SAID | JSON, max_size=3),
    max_size=5,
).map(lambda said: json.dumps(said).encode())
OUTPUTS = st.binary(max_size=60) | ANSWERS | st.builds(lambda a, b: a + b, ANSWERS, st.binary())
EXITS = st.builds(
    Exit,
    code=st.none() | st.sampled_from([0, 1, 2, 126, 127]) | st.integers(0, 255),
    signal=st.integers(0, 64),
    timed_out=st.booleans(),
    cancelled=st.booleans(),
    problem=st.just("") | st.text(max_size=5),
    stdout=OUTPUTS,
    stderr=OUTPUTS,
)
QUIET = st.builds(Exit, code=st.sampled_from([0, 0, 1, 2, 3]), stdout=OUTPUTS, stderr=OUTPUTS)
OPTIONS = st.sampled_from([{}, {"pass_codes": [0, 5]}, {"python": "a:b"}])


@pytest.mark.rule("E5")
@pytest.mark.parametrize("host", ["claude", "codex", "mux", "notyet"])
@given(ended=EXITS | QUIET, options=OPTIONS, scope=st.sampled_from(SCOPES))
def test_nothing_that_a_command_prints_raises_and_what_is_read_is_clean(
    host, ended, options, scope
):
    check = Command(script="x", speaks=host, options=options)
    gate = Gate(name="g", check=check, match=Match(events=(scope,)))
    reading = command_dialect(host).read_reply(gate, ended)
    answer = reading.answer
    told = [reading.tell_user, reading.context]
    told += [getattr(answer, name, "") for name in ("prompt", "reason", "note")]
    for text in told:
        text.encode()
        assert not any(c < " " and c not in "\n\t" for c in text)
    if host in {"claude", "codex"}:
        start_dialect(host).read_context(ended, scope)
