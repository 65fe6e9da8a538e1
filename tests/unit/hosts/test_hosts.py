"""Every host: what it sends is read, and what it is answered is what it understands."""

import json

import pytest

from notyet import Allow, Block, Halt
from notyet.core.event import BackgroundTask, StartEvent, StopEvent
from notyet.core.limits import History, Limits
from notyet.core.plan import plan
from notyet.core.record import as_dict
from notyet.hosts import HOSTS, LEAST_TIMEOUT, all_hosts, host_named, wire
from notyet.hosts.detect import detect, fits, parsed
from notyet.hosts.host import ClaudeLike, Host, Reply
from notyet.hosts.known_programs import every_program, headless
from support import stop, substop
from wire import VECTORS, check_reply, name_of, vectors, verdict_of

PAYLOADS = VECTORS / "payloads"
FILES = sorted(str(path.relative_to(PAYLOADS)) for path in PAYLOADS.glob("*/*.json"))
REPLIES = [
    pytest.param(host, vector, id=vector["id"])
    for host in HOSTS
    if (VECTORS / host / "hosts.json").exists()
    for vector in vectors(host, "hosts.json")
]
VERDICTS = [Allow(), Allow(3, "x"), Block("p"), Block("p", "r", 4), Halt(), Halt("why")]


def recognised(payload):
    """Return the hosts that have a sign which fits a payload."""
    return [
        host.name for host in every_program() if any(fits(payload, parsed(s)) for s in host.signs)
    ]


@pytest.mark.parametrize(("host", "vector"), REPLIES)
def test_a_host_is_answered_in_its_words(host, vector):
    event = stop(**vector.get("event", {}))
    verdict = verdict_of(vector["verdict"])
    settings = vector.get("settings", {})
    reply = host_named(host).write_reply(verdict, vector.get("note", ""), event, settings)
    check_reply(reply, vector["expect"])


@pytest.mark.rule("G1", "G2", "G3")
@pytest.mark.parametrize("settings", [{}, {"claude": "block"}])
@pytest.mark.parametrize("note", ["", "a note"])
@pytest.mark.parametrize("verdict", VERDICTS, ids=repr)
@pytest.mark.parametrize("host", ["claude", "codex", "mux", "gemini", "qwen", "goose"])
def test_no_json_reply_blocks_and_halts_at_once_or_exits_with_a_code(host, verdict, note, settings):
    for version in (None, "2.1.325", "1.0.0"):
        for event in (stop(host_version=version), substop(host_version=version)):
            reply = host_named(host).write_reply(verdict, note, event, settings)
            assert reply.code == 0
            said = json.loads(reply.stdout or "{}")
            blocks = "decision" in said or "hookSpecificOutput" in said
            assert blocks == isinstance(verdict, Block)
            is_final = host != "gemini" or event.scope == "agent"  # there it would send it back
            ends = isinstance(verdict, Halt) and bool(host_named(host).halt) and is_final
            assert ("continue" in said) == ends
            told = said.get("systemMessage", "") + reply.stderr
            reason = verdict.reason if isinstance(verdict, Halt) and not ends else ""
            assert told == " | ".join(part for part in (reason, note) if part)
            known = {"continue", "stopReason", "systemMessage", "decision", "reason"}
            assert said.keys() <= known or host == "claude"


@pytest.mark.rule("G1", "G2")
@pytest.mark.parametrize("letter", ["a", "é", "漢", "😀"])
def test_a_long_prompt_is_cut_to_what_a_host_shows_whole(letter):
    def told(host, event):
        reply = host_named(host).write_reply(Block(letter * 100_000), "", event, {})
        return json.loads(reply.stdout)

    context = told("claude", stop(host_version="2.1.325"))["hookSpecificOutput"][
        "additionalContext"
    ]
    assert 4_000 < len(context.encode("utf-16-le")) // 2 <= 9_000
    assert "characters left out" in context
    assert len(told("claude", stop())["reason"]) == 30_000
    assert 6_000 < len(told("codex", stop())["reason"].encode()) <= 9_000


@pytest.mark.rule("W1", "W2", "G6")
@pytest.mark.parametrize("name", FILES)
def test_a_real_payload_is_read_and_tells_its_host(name):
    payload = json.loads((PAYLOADS / name).read_text(encoding="utf-8")) | {"brand_new_field": [1]}
    name_of_host = name.split("/", maxsplit=1)[0]
    host = host_named(name_of_host)
    assert detect(payload) == name_of_host
    assert recognised(payload) in ([], [name_of_host])  # whatever the order of hosts
    event = host.read_event(payload, {})
    kind = host.event_in(payload)
    if kind in host.stops or kind in host.failures:
        assert isinstance(event, StopEvent)
        assert event.raw == payload
        is_child = {"agent_id", "parent_session_id", "subagent_id"} & wire.known(payload).keys()
        is_subagent = is_child or host.stops.get(kind) == "subagent"
        assert event.scope == ("subagent" if is_subagent else "agent")
    elif kind in host.starts:
        assert isinstance(event, StartEvent)
    else:
        assert event is None


@pytest.mark.rule("W1", "W2")
@pytest.mark.parametrize(("name", "expected"), vectors("payloads", "expected.json").items())
def test_every_field_of_a_real_payload_finds_its_place(name, expected):
    payload = json.loads((PAYLOADS / name).read_text(encoding="utf-8"))
    event = host_named(name.split("/", maxsplit=1)[0]).read_event(payload, {})
    kind = StartEvent if expected.pop("start", False) else StopEvent
    assert type(event) is kind
    defaults = {field: [] if value == () else value for field, value in kind._defaults.items()}
    assert as_dict(event) | {"raw": None} == {"raw": None} | defaults | expected


@pytest.mark.rule("G6")
@pytest.mark.parametrize("vector", vectors("payloads", "hosts.json"), ids=name_of)
def test_the_payload_tells_the_host(vector):
    assert detect(vector["payload"]) == vector["host"]
    assert recognised(vector["payload"]) in ([], [vector["host"]])


@pytest.mark.parametrize("host", all_hosts(), ids=lambda host: host.name)
def test_a_host_reads_what_it_writes_and_allows_by_its_silence(host):
    assert host.title
    assert host.timeout >= LEAST_TIMEOUT
    written, _ = host.write_event(StopEvent(session_id="s", cwd="/w"))
    event = host.read_event(written, {})
    assert (event.scope, event.session_id, event.cwd) == ("agent", "s", "/w")
    assert host.write_reply(Allow(), "", event, {}) == Reply(stdout=host.silence)


@pytest.mark.rule("C4")
def test_goose_calls_a_failed_model_call_a_stop_without_a_last_message():
    payload = {"event": "Stop", "session_id": "20261116_1", "last_assistant_message": "Done."}
    read = host_named("goose").read_event
    assert read(payload, {}).ending == "done"
    assert read(payload | {"last_assistant_message": None}, {}).ending == "error"
    written, _ = host_named("goose").write_event(StopEvent(session_id="s", cwd="/w"))
    assert read(written, {}).ending == "done"  # as `notyet check --as goose` needs it


@pytest.mark.parametrize("variable", ["GOOSE_PATH_ROOT", "XDG_DATA_HOME"])
def test_sessions_of_goose_are_told_apart_by_the_folder_in_which_their_ids_are_unique(variable):
    payload = {"event": "Stop", "session_id": "20261116_1", "last_assistant_message": "Done."}
    read = host_named("goose").read_event
    ids = [read(payload, {variable: folder}).session_id for folder in ("/a", "/b", "/a", "")]
    assert len(set(ids)) == 3
    assert ids[0] == ids[2] != ids[1]
    assert ids[3] == "20261116_1"
    assert read({"event": "Stop"}, {variable: "/a"}).session_id == ""
    assert read({"event": "SessionEnd"}, {variable: "/a"}) is None


def test_a_misspelt_attribute_of_a_host_is_refused():
    with pytest.raises(TypeError, match="timeot"):
        Host(name="x", title="X", timeot=3)


@pytest.mark.rule("B4", "B8")
def test_a_flag_that_is_wrong_is_not_read_and_a_variable_sets_the_cap():
    payload = {"hook_event_name": "Stop", "session_id": "s", "stop_hook_active": True}
    host = ClaudeLike(name="claude", title="x", cap=5, cap_variable="CAP")
    event = host.read_event(payload, {"CAP": "7"})
    assert (event.stop_hook_active, event.host_cap) == (True, 7)
    for value, cap in (("7", 8), ("x", 5), ("-9", 0)):  # goose's says how many blocks it honours
        counted = ClaudeLike(name="claude", title="x", cap=5, cap_variable="CAP", cap_more=1)
        assert counted.read_event(payload, {"CAP": value}).host_cap == cap
    child = ClaudeLike(name="claude", title="x", cap=5, caps_subagents=False)
    stopped = payload | {"hook_event_name": "SubagentStop"}
    assert child.read_event(stopped, {}).host_cap == 0
    lax = ClaudeLike(name="claude", title="x", flag_is_reliable=False)
    event = lax.read_event(payload, {"CAP": "7"})
    assert (event.stop_hook_active, event.host_cap) == (None, 0)


def test_a_variable_may_hold_the_version_of_the_host():
    host = ClaudeLike(name="claude", title="x", version_variable="ITS_VERSION")
    payload = {"hook_event_name": "Stop", "session_id": "s"}
    assert host.read_event(payload, {"ITS_VERSION": "0.24.4"}).host_version == "0.24.4"
    assert host.read_event(payload, {}).host_version is None


@pytest.mark.rule("B10")
@pytest.mark.parametrize(
    ("name", "skipped"),
    [
        ("Stop.background_running", "background"),
        ("Stop.background_completed", ""),  # it stays in the list
        ("SubagentStop.first", ""),  # it is in the list itself
    ],
)
def test_qwens_background_subagents_are_waited_for_while_they_run(name, skipped):
    payload = json.loads((PAYLOADS / "qwen" / f"{name}.json").read_text(encoding="utf-8"))
    event = host_named("qwen").read_event(payload, {})
    assert plan(event, (), History(), Limits()).skipped == skipped


# Shapes that some hosts need and that data can say.
SHAPES = [
    (
        {"block": {"followup_message": "{text}"}},
        Block("Fix it."),
        '{"followup_message": "Fix it."}',
    ),
    (
        {"block": {"hookSpecificOutput": {"hookEventName": "{event}", "decision": "deny"}}},
        Block("Fix it."),
        '{"hookSpecificOutput": {"hookEventName": "Stop", "decision": "deny"}}',
    ),
    ({"halt": {}}, Halt("Budget spent."), '{"systemMessage": "Budget spent. | note"}'),
    ({"halt": {}, "note": ""}, Halt("Budget spent."), "Budget spent. | note"),
    ({"block": {}}, Block("Fix it."), "Fix it.\n"),
]


@pytest.mark.parametrize(("shape", "verdict", "expected"), SHAPES)
def test_data_says_how_a_host_is_answered(shape, verdict, expected):
    host = ClaudeLike(name="claude", title="x", **shape)
    note = "note" if isinstance(verdict, Halt) else ""
    reply = host.write_reply(verdict, note, stop(), {})
    assert reply.code == (2 if shape == {"block": {}} else 0)
    if expected.startswith("{"):
        assert json.loads(reply.stdout) == json.loads(expected)
    else:
        assert reply.stderr == expected


@pytest.mark.rule("F13-claude", "N3")
def test_a_start_has_words_for_the_agent_and_a_note_for_the_user():
    both = host_named("claude").write_context("Tests first.", StartEvent(), "notyet: off")
    said = json.loads(both.stdout)
    assert said.pop("hookSpecificOutput")["additionalContext"] == "Tests first."
    assert said == {"systemMessage": "notyet: off"}
    for host, silence in (("claude", ""), ("codex", ""), ("mux", "notyet: off")):
        reply = host_named(host).write_context("", StartEvent(), "notyet: off")
        assert (reply.code, reply.stderr) == (0, silence)
        assert "off" in reply.stdout or reply.stderr
    assert json.loads(host_named("notyet").write_context("", StartEvent(), "x").stdout) == {
        "systemMessage": "x"
    }


@pytest.mark.rule("G3")
@pytest.mark.parametrize("host", ["mux", "conclaude"])
def test_a_host_without_context_is_told_nothing_at_a_start(host):
    assert host_named(host).write_context("Tests first.", StartEvent()) == Reply()


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        *[(read, value, None) for value in (None, "", " \n", 3, [], {}, True)
          for read in (wire.text, wire.path)],
        (wire.text, " a ", " a "),
        (wire.text, "a\ud800b\udfff", "a\ufffdb\ufffd"),
        (wire.text, "😀 é", "😀 é"),
        (wire.path, "/a b", "/a b"),
        (wire.path, "/a\ud800b", None),
        (wire.path, "/caf\udce9", "/caf\udce9"),
        (wire.path, "/a\0b", None),
        (wire.flag, True, True),
        (wire.flag, False, False),
        *[(wire.flag, value, None) for value in (1, "true", None)],
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_type_counts_as_missing(read, value, expected):
    assert read({"x": value}, "x") == expected
    assert read({}, "x") is None


def test_background_tasks_are_read_as_far_as_possible():
    tasks = [None, 3, {}, {"id": 5, "type": "shell"}, {"id": "b", "type": "x", "status": "done"}]
    assert wire.background_tasks({"background_tasks": tasks}) == (
        BackgroundTask(id="", type=""),
        BackgroundTask(id="", type="shell"),
        BackgroundTask(id="b", type="x", status="done"),
    )
    for wrong in (None, {}, "x", 3):
        assert wire.background_tasks({"background_tasks": wrong}) == ()
    assert len(wire.background_tasks({"background_tasks": [{}] * 5000})) == 1000


def test_a_name_that_is_no_host_is_refused():
    with pytest.raises(KeyError):
        host_named("emacs")


def test_a_field_is_found_by_the_first_of_its_names_that_has_a_value():
    host = host_named("claude")
    assert host.value({"session_id": "s1"}, "session_id") == "s1"
    assert host.value({"session_id": None}, "session_id") is None
    assert host.value({}, "no such field") is None


def test_the_command_line_of_one_turn_has_the_arguments_and_the_session():
    program, line = headless()["claude"]
    assert (program, line.chooses) == ("claude", True)
    words = line.words("-p --resume {id} {args}", ["--model", "m"], "s1")
    assert words == ["-p", "--resume", "s1", "--model", "m"]
