"""Commands of a `notyet.toml`, and hosts that speak as we do."""

import json

import pytest

from notyet import Allow, Block, Halt, StopEvent
from notyet.core.event import ENDINGS, BackgroundTask, StartEvent, Usage
from notyet.core.verdict import Problem
from notyet.hosts.notyet import HOST
from notyet.hosts.notyet import hooks as native
from support import stop, substop
from wire import (
    ended,
    gate_of,
)


@pytest.mark.rule("E10")
def test_a_problem_says_what_the_command_said_and_not_all_of_it():
    gate = gate_of("notyet", {})
    for fields, detail in (
        ({"code": 127, "stderr": "/bin/sh: 1: ./x.sh: not found"}, "./x.sh: not found"),
        ({"code": 127, "stderr": "sh: 1: eslint: not found\nERR! code 127"}, "eslint: not found"),
        ({"code": 126, "stderr": "bash: line 1: ./x: Permission denied"}, "./x: Permission denied"),
        ({"code": 127, "stderr": "a\nlnt"}, "lnt"),
        ({"code": 127}, "the shell could not find it"),
        ({"code": 126}, "the shell could not execute it"),
    ):
        assert native.read_reply(gate, ended(fields)).answer.detail == detail
    long = native.read_reply(gate, ended({"code": 127, "stderr": "x" * 9_999})).answer.detail
    assert len(long) < 400
    child = gate_of("notyet", {"options": {"python": "gates:tests"}})
    silent = native.read_reply(child, ended({"code": 0})).answer
    assert silent == Problem("bad_answer", "its answer could not be read")
    failed = ended({"code": 0, "stdout": json.dumps({"problem": "ValueError: x"})})
    assert native.read_reply(child, failed).answer == Problem("crashed", "ValueError: x")


@pytest.mark.rule("W5")
def test_a_command_is_told_every_field_but_the_hosts_own_payload():
    event = substop(
        raw={"secret": 1},
        usage=Usage(input=3, total=3),
        tools_used=("Bash",),
        background_tasks=(BackgroundTask(id="b", type="shell"),),
        result={"answer": [1, 2]},
    )
    payload, _ = native.write_event(event, "/p")
    assert payload.keys() == set(StopEvent._fields) - {"raw"}
    assert payload["usage"]["input"] == 3
    assert payload["tools_used"] == ["Bash"]
    assert payload["background_tasks"] == [{"id": "b", "type": "shell", "status": "running"}]
    assert payload["result"] == {"answer": [1, 2]}
    assert json.loads(json.dumps(payload)) == payload


@pytest.mark.rule("W5")
def test_a_result_that_has_no_json_is_described():
    payload, _ = native.write_event(stop(result={1, 2}), "")
    assert payload["result"] == "{1, 2}"
    payload, _ = native.write_event(stop(result=["x" * 20_000, object]), "")
    assert len(payload["result"]) == 8_000
    payload, _ = native.write_event(stop(duration_ms=float("nan")), "")
    assert payload["duration_ms"] == "nan"


@pytest.mark.rule("H5")
def test_a_command_gets_all_variables_even_unknown_ones():
    event = substop(
        host="claude",
        cwd="/w/sub",
        transcript_path="/t/main",
        agent_transcript_path="/t/child",
        block_count=1,
        max_blocks=3,
        stop_hook_active=True,
    )
    assert native.write_event(event, "/w")[1] == {
        "NOTYET_EVENT": "subagent_stop",
        "NOTYET_HOST": "claude",
        "NOTYET_SESSION_ID": "child-1",
        "NOTYET_AGENT_ID": "a1",
        "NOTYET_AGENT_TYPE": "coder",
        "NOTYET_CWD": "/w/sub",
        "NOTYET_PROJECT_DIR": "/w",
        "NOTYET_TRANSCRIPT_PATH": "/t/main",
        "NOTYET_AGENT_TRANSCRIPT_PATH": "/t/child",
        "NOTYET_BLOCK_COUNT": "1",
        "NOTYET_MAX_BLOCKS": "3",
        "NOTYET_STOP_HOOK_ACTIVE": "true",
    }
    bare = native.write_event(StopEvent(cwd="/w"), "")[1]
    assert bare.keys() == native.write_event(event, "/w")[1].keys()
    assert bare["NOTYET_EVENT"] == "stop"
    assert bare["NOTYET_PROJECT_DIR"] == "/w"
    assert bare["NOTYET_AGENT_ID"] == ""
    assert (bare["NOTYET_BLOCK_COUNT"], bare["NOTYET_STOP_HOOK_ACTIVE"]) == ("0", "false")


@pytest.mark.rule("W5")
def test_a_field_of_a_wrong_type_counts_as_missing():
    strange = (None, True, -1, 1.5, "x", "", "a\0b", [], ["x", 3], {}, {"input": "3"}, 10**30)
    for name in StopEvent._fields:
        for value in strange:
            event = HOST.read_event({"session_id": "s", "host": "h", name: value}, {})
            assert isinstance(event, StopEvent)
    event = HOST.read_event(
        {
            "scope": ["agent"],
            "ending": "fell over",
            "cwd": "a\0b",
            "turns": True,
            "duration_ms": float("nan"),
            "max_blocks": 2.0,
            "usage": {"input": True, "output": 4, "total": "9"},
            "tools_used": ["Bash", 3],
            "internal": "yes",
        },
        {},
    )
    assert event == StopEvent(usage=Usage(output=4), tools_used=("Bash",), raw=event.raw)


@pytest.mark.rule("W5")
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_can_be_told(ending):
    assert HOST.read_event({"ending": ending, "internal": True}, {}).ending == ending


def test_a_starting_agent_of_such_a_host_is_given_context():
    reply = HOST.write_context("Tests first.", StartEvent())
    assert json.loads(reply.stdout) == {"additionalContext": "Tests first."}


def test_a_function_is_called_with_a_copy_and_returns_a_verdict_or_nothing():
    event = stop(raw={"a": [1]})
    (copy,) = native.write_call(event)()
    assert copy == event
    assert copy.raw is not event.raw
    for verdict in (Allow(2), Block("x"), Halt()):
        assert native.read_return(verdict) == (verdict, "")
    assert native.read_return(None) == (Allow(), "")
    answer, _ = native.read_return("no")
    assert answer == Problem("bad_answer", answer.detail)
    assert answer.detail.startswith("it returned str; return Allow()")


@pytest.mark.rule("W5", "M1")
@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("ssh://dev@box/srv/app/", "ssh://dev@box/srv/app"),
        ("local", ""),
        ("", ""),
        ("box:/srv/app", ""),
        ("ssh://-oProxyCommand=x/srv", ""),
        ("ssh://box/a\0b", ""),
        (7, ""),
        (None, ""),
    ],
)
def test_a_workspace_is_read_if_it_names_a_place(said, read):
    event = HOST.read_event({"session_id": "s1", "workspace": said}, {})
    assert event.workspace == read


@pytest.mark.rule("W5", "M1")
def test_where_the_files_are_is_among_what_a_gate_is_told():
    event = stop(workspace="ssh://box/srv/app")
    payload, _ = native.write_event(event, "")
    assert payload["workspace"] == "ssh://box/srv/app"
    assert HOST.read_event(payload, {}).workspace == event.workspace
