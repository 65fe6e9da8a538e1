"""Hook commands that people wrote for hosts: how their answers are read, and which become gates."""

import pytest

from notyet.core.event import StartEvent
from notyet.core.gate import Source, why_not
from notyet.hosts import command_dialect, host_named, start_dialect
from notyet.hosts.hook_commands import gates, is_notyets, starters
from support import stop, substop
from wire import check_reading, ended, gate_of, name_of, replies, starts, vectors

REPLIES = [
    pytest.param(speaks, vector, id=vector["id"])
    for speaks in ("claude", "codex", "mux", "notyet")
    for vector in replies(speaks)
]
STARTS = [
    pytest.param(speaks, vector, id=vector["id"])
    for speaks in ("claude", "codex")
    for vector in starts(speaks)
]


@pytest.mark.parametrize(("speaks", "vector"), REPLIES)
def test_an_answer_is_read_as_its_host_reads_it(speaks, vector):
    reading = command_dialect(speaks).read_reply(gate_of(speaks, vector), ended(vector["exit"]))
    check_reading(reading, vector["expect"])


@pytest.mark.parametrize(("speaks", "vector"), STARTS)
def test_a_start_hook_gives_the_agent_what_its_host_would_give_it(speaks, vector):
    reading = start_dialect(speaks).read_context(ended(vector["exit"]), vector["start"])
    assert reading.context == vector["expect"]["context"]


@pytest.mark.rule("F13-claude", "F13-codex")
@pytest.mark.parametrize("speaks", ["claude", "codex"])
def test_what_we_tell_a_starting_agent_is_read_as_context(speaks):
    for scope, other in (("agent", "subagent"), ("subagent", "agent")):
        reply = host_named(speaks).write_context("Tests first.", StartEvent(scope=scope))
        told = ended({"code": reply.code, "stdout": reply.stdout})
        assert start_dialect(speaks).read_context(told, scope).context == "Tests first."
        assert start_dialect(speaks).read_context(told, other).context == ""
    long = host_named(speaks).write_context("漢" * 9_001, StartEvent()).stdout
    told = start_dialect(speaks).read_context(ended({"code": 0, "stdout": long}), "agent").context
    assert len(told) < 9_001


def read(speaks, settings, entries=gates):
    complaints = []
    found = entries(
        speaks,
        settings,
        "/p/settings.json",
        lambda path: path[-1] + 1,
        lambda path, words: complaints.append((list(path), words)),
    )
    return found, complaints


def seen(gate):
    return {
        "name": gate.name,
        "script": gate.check.script,
        "argv": list(gate.check.argv),
        "shell": gate.check.shell,
        "timeout": gate.timeout,
        "observe": gate.observe,
        "events": list(gate.match.events),
        "agents": list(gate.match.agents),
        "kind": gate.match.kind,
        "line": gate.source.line,
    }


@pytest.mark.parametrize("vector", vectors("hooks", "gates.json"), ids=name_of)
def test_a_hooks_block_gives_the_gates_that_its_host_would_run(vector):
    found, complaints = read(vector["speaks"], vector["settings"])
    assert len(found) == len(vector["gates"])
    for gate, expected in zip(found, vector["gates"], strict=True):
        assert seen(gate) | expected == seen(gate)
        assert gate.check.speaks == vector["speaks"]
        assert (gate.priority, gate.step, gate.if_broken) == (0, 0, "allow")
        assert gate.source == Source("/p/settings.json", gate.source.line)
        assert len(gate.name) <= 80
    assert len(complaints) == len(vector["complaints"])
    for (path, words), (where, what) in zip(complaints, vector["complaints"], strict=True):
        assert path == where
        assert what in words


@pytest.mark.rule("D4", "D5")
@pytest.mark.parametrize(
    ("speaks", "matcher", "kind", "applies"),
    [
        ("claude", "general", "general-purpose", False),
        ("claude", "general-purpose", "general-purpose", True),
        ("mux", "general|Explore", "Explore", True),
        ("codex", "code-reviewer", "my-code-reviewer2", True),
        ("codex", "default", "default", True),
        ("codex", "def", "default", False),
        ("codex", "", None, True),
        ("claude", "*", None, True),
        ("claude", "Explore", None, False),
    ],
)
def test_a_matcher_chooses_subagents_and_says_nothing_about_the_main_agent(
    speaks, matcher, kind, applies
):
    command = {"matcher": matcher, "hooks": [{"type": "command", "command": "lint"}]}
    (main, sub), _ = read(speaks, {"hooks": {"Stop": [command], "SubagentStop": [command]}})
    assert (why_not(sub, substop(agent_type=kind)) == "") == applies
    assert why_not(main, stop()) == ""
    assert why_not(main, substop(agent_type=kind)) != ""
    assert why_not(sub, stop()) != ""


@pytest.mark.parametrize(
    ("speaks", "handler", "own"),
    [
        ("claude", {"command": "/a b/notyet", "args": ["hook"]}, True),
        ("claude", {"command": "sh", "args": ["-c", "notyet hook"]}, True),
        ("claude", {"command": "lint", "args": ["hook"]}, False),
        ("codex", {"command": "notyet hook", "args": ["x"]}, True),
        ("codex", {"command": "notyet", "args": ["hook"]}, False),
    ],
)
def test_an_entry_without_a_shell_is_known_by_its_arguments(speaks, handler, own):
    assert is_notyets(speaks, handler) == own


def begun(starter):
    return {
        "name": starter.name,
        "script": starter.check.script,
        "timeout": starter.timeout,
        "scope": starter.scope,
        "matcher": starter.matcher,
        "kind": starter.kind,
        "line": starter.source.line,
    }


@pytest.mark.parametrize("vector", vectors("hooks", "starters.json"), ids=name_of)
def test_a_hooks_block_gives_the_starters_that_its_host_would_run(vector):
    found, complaints = read(vector["speaks"], vector["settings"], starters)
    assert len(found) == len(vector["starters"])
    for starter, expected in zip(found, vector["starters"], strict=True):
        assert begun(starter) | expected == begun(starter)
        assert starter.check.speaks == vector["speaks"]
    assert len(complaints) == len(vector["complaints"])
    for (path, words), (where, what) in zip(complaints, vector["complaints"], strict=True):
        assert path == where
        assert what in words
