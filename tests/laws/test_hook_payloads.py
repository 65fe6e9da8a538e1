"""Whatever comes on stdin, a hook answers."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hook_runs import (
    HOSTS,
    PASSING,
    ask,
    assert_allows,
    new_project,
    payload,
    trust,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [
        *("session_id", "cwd", "transcript_path", "agent_transcript_path", "turn_id", "scope"),
        *("hook_event_name", "stop_hook_active", "last_assistant_message", "agent_id", "host"),
        *("agent_type", "background_tasks", "prompt_id", "usage", "ending", "result", "raw"),
        *("tools_used", "internal", "last_message", "model", "permission_mode", "block_count"),
    ]
)
EVENTS = st.sampled_from(["Stop", "SubagentStop", "StopFailure", "SessionStart", "SubagentStart"])


@pytest.fixture(scope="module")
def one_project(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "p"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(host=st.sampled_from(["", *HOSTS]), odd=st.dictionaries(NAMES, JSON), event=EVENTS)
@pytest.mark.rule("G5")
def test_no_object_of_a_host_raises(one_project, host, odd, event):
    if not one_project.exists():
        new_project(one_project, PASSING + "[start]\ntell = true\n")
    trust(one_project / "notyet.toml")
    named = ["--host", host] if host else []
    content = payload(host or "claude", one_project) | {"hook_event_name": event} | odd
    reply = ask(content, *named)
    assert reply.code == 0
    said = json.loads(reply.stdout) if reply.stdout else {}
    assert "block" not in str(said.get("decision"))
    assert "internal error" not in reply.stderr
    json.dumps(said, ensure_ascii=False).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    host=st.sampled_from(["", *HOSTS]),
    content=st.binary() | st.text().map(str.encode) | JSON.map(lambda v: json.dumps(v).encode()),
)
@pytest.mark.rule("G5")
def test_no_bytes_on_stdin_raise(host, content):
    reply = ask(content, *(["--host", host] if host else []))
    assert_allows(host or "claude", reply.code, reply.stdout if host else "")
    assert "internal error" not in reply.stderr
    assert reply.stderr or json.loads(content)
