"""Claude Code: what its hooks answer, what it sends us, and what we tell it."""

import pytest

from notyet.core.event import BackgroundTask, StartEvent
from notyet.hosts import claude
from notyet.hosts.claude import hooks as claude_hooks
from notyet.hosts.codex import hooks as codex_hooks
from notyet.hosts.mux import hooks as mux
from support import stop, substop

CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


@pytest.mark.rule("G1")
def test_the_version_is_read_from_the_variable_that_claude_code_sets():
    payload = {"hook_event_name": "Stop", "session_id": "s"}
    for value, version in (
        ("claude-code_2-1-325_agent", "2.1.325"),
        ("claude-code_2-1-197", "2.1.197"),
        ("claude-code_", None),
        ("claude-code", None),
        ("codex_1-2-3", None),
        ("", None),
    ):
        assert claude.HOST.read_event(payload, {"AI_AGENT": value}).host_version == version
    assert claude.HOST.read_event(payload, {}).host_version is None
    inherited = {"AI_AGENT": "claude-code_2-1-325_agent", CAP: "5"}
    other = mux.HOST.read_event(payload, inherited)
    assert (other.host_version, other.host_cap) == (None, 0)


@pytest.mark.rule("B8")
@pytest.mark.parametrize(
    ("value", "cap"),
    [(None, 8), ("2", 2), (" 12 ", 12), ("0", 0), ("-1", 0), ("", 8), ("many", 8), ("9" * 5000, 8)],
)
def test_the_hosts_own_cap_is_eight_or_what_its_variable_says(value, cap):
    environ = {} if value is None else {CAP: value}
    event = claude.HOST.read_event({"hook_event_name": "Stop", "session_id": "s"}, environ)
    assert event.host_cap == cap


@pytest.mark.rule("W1")
def test_all_but_the_session_and_the_events_name_may_be_missing():
    event = claude.HOST.read_event({"session_id": "s", "hook_event_name": "Stop"}, {})
    assert event.__replace__(raw=None) == stop(session_id="s", host="claude", host_cap=8)
    assert claude.HOST.read_event({"hook_event_name": "Stop"}, {}).session_id == ""
    assert claude.HOST.read_event({"hook_event_name": "SessionStart"}, {}) == StartEvent(
        host="claude"
    )
    environ = {"CLAUDE_PROJECT_DIR": "/p"}
    event = claude.HOST.read_event({"session_id": "s", "hook_event_name": "SubagentStop"}, environ)
    assert (event.scope, event.cwd, event.stop_hook_active) == ("subagent", "/p", None)


@pytest.mark.rule("W1")
def test_a_subagents_type_may_come_by_its_older_name():
    told = {"session_id": "s", "hook_event_name": "SubagentStop", "subagent_type": "coder"}
    assert claude.HOST.read_event(told, {}).agent_type == "coder"
    assert claude.HOST.read_event(told | {"agent_type": "tester"}, {}).agent_type == "tester"


def test_a_failed_turn_is_a_subagents_only_if_it_names_the_subagent():
    failure = {"session_id": "s", "hook_event_name": "StopFailure", "error": "rate_limit"}
    for agent_id, scope in ((None, "agent"), ("", "agent"), (7, "agent"), ("a1", "subagent")):
        event = claude.HOST.read_event(failure | {"agent_id": agent_id}, {})
        assert (event.scope, event.ending, event.error) == (scope, "error", "rate_limit")


@pytest.mark.rule("W1", "H1")
def test_a_hook_is_told_what_claude_code_would_tell_it():
    event = substop(
        session_id="s",
        parent_session_id=None,
        run_id=None,
        turn_id="p1",
        cwd="/w",
        last_message="Done.",
        transcript_path="/t/main.jsonl",
        agent_transcript_path="/t/agent.jsonl",
        stop_hook_active=True,
        permission_mode="plan",
        background_tasks=(BackgroundTask(id="b1", type="shell"),),
    )
    assert claude_hooks.write_event(event, "/project") == (
        {
            "session_id": "s",
            "transcript_path": "/t/main.jsonl",
            "cwd": "/w",
            "prompt_id": "p1",
            "permission_mode": "plan",
            "agent_id": "a1",
            "agent_type": "coder",
            "hook_event_name": "SubagentStop",
            "stop_hook_active": True,
            "agent_transcript_path": "/t/agent.jsonl",
            "last_assistant_message": "Done.",
            "background_tasks": [{"id": "b1", "type": "shell", "status": "running"}],
            "session_crons": [],
        },
        {"CLAUDE_PROJECT_DIR": "/project"},
    )


@pytest.mark.rule("W1", "W2", "H3")
@pytest.mark.parametrize("host", [claude_hooks, codex_hooks])
def test_a_subagents_session_is_told_as_that_of_its_parent(host):
    assert host.write_event(substop(), "")[0]["session_id"] == "parent-1"
    assert host.write_event(substop(parent_session_id=None), "")[0]["session_id"] == "child-1"
    assert host.write_event(stop(parent_session_id="x"), "")[0]["session_id"] == "s1"
    start = StartEvent(scope="subagent", session_id="child-1", parent_session_id="parent-1")
    assert host.write_start(start)[0]["session_id"] == "parent-1"
    assert host.write_start(StartEvent(session_id="s1"))[0]["session_id"] == "s1"


@pytest.mark.rule("W1", "C8")
def test_a_main_agent_may_have_a_type_but_never_an_id():
    payload, _ = claude_hooks.write_event(stop(agent_id="a1", agent_type="reviewer"), "")
    assert payload == {
        "session_id": "s1",
        "cwd": "",
        "permission_mode": "default",
        "agent_type": "reviewer",
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "background_tasks": [],
        "session_crons": [],
    }


@pytest.mark.rule("F13-claude", "C8", "H1")
def test_a_start_hook_is_told_what_claude_code_would_tell_it():
    main = StartEvent(session_id="s", cwd="/w", source="resume", agent_id="x")
    assert claude_hooks.write_start(main) == (
        {"session_id": "s", "cwd": "/w", "hook_event_name": "SessionStart", "source": "resume"},
        {"CLAUDE_PROJECT_DIR": "/w"},
    )
    assert claude_hooks.write_start(StartEvent())[0]["source"] == "startup"
    child = StartEvent(scope="subagent", session_id="s", agent_id="a", agent_type="Explore")
    assert claude_hooks.write_start(child)[0] == {
        "session_id": "s",
        "cwd": "",
        "agent_id": "a",
        "agent_type": "Explore",
        "hook_event_name": "SubagentStart",
    }
