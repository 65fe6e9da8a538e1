"""Payloads as hosts really send them, and as nobody should."""

import json

import pytest

from notyet.core.event import BackgroundTask, StartEvent, StopEvent
from notyet.core.record import as_dict
from notyet.hosts import host_named
from notyet.hosts import wire as payload
from notyet.hosts.detect import detect
from wire import VECTORS, vectors

FOLDER = VECTORS / "payloads"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.json"))
STOPS = ("Stop", "SubagentStop", "StopFailure")
STARTS = ("SessionStart", "SubagentStart")


def sent(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@pytest.mark.rule("W1", "W2", "G6")
@pytest.mark.parametrize("name", FILES)
def test_a_real_payload_is_read_and_tells_its_host(name):
    told = sent(name) | {"brand_new_field": [1]}
    host = name.split("/", maxsplit=1)[0]
    assert detect(told) == host
    event = host_named(host).read_event(told, {})
    kind = told["hook_event_name"]
    if kind in STOPS:
        assert isinstance(event, StopEvent)
        assert event.raw == told
        assert event.scope == ("subagent" if "agent_id" in told else "agent")
    elif kind in STARTS:
        assert isinstance(event, StartEvent)
    else:
        assert event is None


@pytest.mark.rule("W1", "W2")
@pytest.mark.parametrize(("name", "expected"), vectors("payloads", "expected.json").items())
def test_every_field_of_a_real_payload_finds_its_place(name, expected):
    event = host_named(name.split("/", maxsplit=1)[0]).read_event(sent(name), {})
    kind = StartEvent if expected.pop("start", False) else StopEvent
    assert type(event) is kind
    defaults = {field: [] if value == () else value for field, value in kind._defaults.items()}
    assert as_dict(event) | {"raw": None} == {"raw": None} | defaults | expected


def test_there_are_payloads_of_both_hosts():
    assert len([name for name in FILES if name.startswith("claude/")]) == 16
    assert len([name for name in FILES if name.startswith("codex/")]) == 15


def test_a_text_is_text_that_is_not_blank():
    for value in (None, "", " \n", 3, [], {}, True):
        assert payload.text({"x": value}, "x") is None
        assert payload.path({"x": value}, "x") is None
    assert payload.text({}, "x") is None
    assert payload.text({"x": " a "}, "x") == " a "
    assert payload.path({"x": "/a b"}, "x") == "/a b"


def test_half_a_character_becomes_a_mark_in_a_text_and_makes_a_path_unknown():
    assert payload.text({"x": "a\ud800b\udfff"}, "x") == "a\ufffdb\ufffd"
    assert payload.text({"x": "😀 é"}, "x") == "😀 é"
    assert payload.path({"x": "/a\ud800b"}, "x") is None
    assert payload.path({"x": "/caf\udce9"}, "x") == "/caf\udce9"
    assert payload.path({"x": "/a\0b"}, "x") is None


def test_a_flag_is_a_truth_value_or_unknown():
    for value, flag in ((True, True), (False, False), (1, None), ("true", None), (None, None)):
        assert payload.flag({"x": value}, "x") is flag


def test_background_tasks_are_taken_as_far_as_they_can_be_made_out():
    tasks = [None, 3, {}, {"id": 5, "type": "shell"}, {"id": "b", "type": "x", "status": "done"}]
    assert payload.background_tasks({"background_tasks": tasks}) == (
        BackgroundTask(id="", type=""),
        BackgroundTask(id="", type="shell"),
        BackgroundTask(id="b", type="x", status="done"),
    )
    for wrong in (None, {}, "x", 3):
        assert payload.background_tasks({"background_tasks": wrong}) == ()
    assert len(payload.background_tasks({"background_tasks": [{}] * 5000})) == 1000
