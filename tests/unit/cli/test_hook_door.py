"""The door of `notyet hook`: what it answers by itself, and that the line would answer the same."""

import os
import re

import pytest

from hook_runs import ask, in_bytes, new_project, payload, run_hook, stops, trust
from notyet.config.off import switch_off
from notyet.core.record import replace
from notyet.hook import hook as hook_answer
from notyet.hook import main as hook
from notyet.hook.payload import HostCall, Options
from notyet.hook.process import OutOfTime

GATE = '[gates.g]\nrun = "exit 1"\nwhen = "always"\n'
EVENTS = ("Stop", "SubagentStop", "SessionStart", "SubagentStart")


@pytest.fixture
def place(tmp_path):
    """A folder in which nothing is configured."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def alone(monkeypatch):
    """The door alone: there is no line behind it."""
    monkeypatch.setattr(hook_answer, "reply_of", lambda _: pytest.fail("the door did not answer"))


@pytest.fixture
def gone_on(monkeypatch):
    """The calls that the door let through to the line."""
    calls = []
    answered = hook_answer.reply_of

    def noting(call):
        calls.append(call)
        return answered(call)

    monkeypatch.setattr(hook_answer, "reply_of", noting)
    return calls


@pytest.fixture
def late():
    """What the time runs out in, in a process that has begun no stop in the ledger yet."""

    def hanging(*_, **__):
        raise OutOfTime

    return hanging


def by_the_line(content, *argv, environ=None):
    """Answer without the door."""
    given = os.environ if environ is None else environ
    call = HostCall(Options(argv), given, lambda: in_bytes(content))
    return hook_answer.reply_of(hook_answer.Hook(call))


def unnumbered(reply):
    """Return a reply without the number of its stop."""
    texts = [re.sub(r" \(notyet log \d+\)", "", text) for text in (reply.stdout, reply.stderr)]
    return replace(reply, stdout=texts[0], stderr=texts[1])


@pytest.mark.rule("A10")
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("host", ["claude", "codex"])
def test_where_nothing_is_configured_the_door_answers_as_the_line_would(place, alone, host, event):
    content = payload(host, place, hook_event_name=event)
    at_the_door = ask(content, "--host", host)
    assert ask(content) == at_the_door  # by the payload alone
    assert at_the_door.stderr == ""
    hook_of_line = hook_answer.Hook(
        HostCall(Options(["--host", host]), os.environ, lambda: in_bytes(content))
    )
    assert hook_of_line.answer() == at_the_door
    assert not os.path.exists(os.environ["XDG_STATE_HOME"])


@pytest.mark.rule("A10")
def test_where_no_gate_is_for_subagents_the_door_answers_as_the_line_would(tmp_path, gone_on):
    project = new_project(tmp_path / "p", GATE)
    child = payload("claude", project, hook_event_name="SubagentStop", agent_id="a1")
    assert ask(child) == by_the_line(child)
    assert len(gone_on) == 1  # that of the line alone
    assert stops() == []


@pytest.mark.parametrize("more", ['for = "subagents"\n', '\n[observers.o]\nrun = "true"\n'])
def test_a_file_that_says_something_for_subagents_is_for_the_line(tmp_path, gone_on, more):
    project = new_project(tmp_path / "p", GATE + more)
    ask(payload("claude", project, hook_event_name="SubagentStop", agent_id="a1"))
    assert len(gone_on) == 1


def _trusted_and_gone(place, environ):
    new_project(place, GATE)
    (place / "notyet.toml").unlink()


def _in_a_folder_around(place, environ):
    new_project(place.parent, GATE)


def _not_trusted(place, environ):
    new_project(place, GATE, trusted=False)


def _of_the_user(place, environ):
    own = os.path.join(environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(own)
    with open(os.path.join(own, "notyet.toml"), "w") as file:
        file.write(GATE)


def _where_the_host_says_that_its_project_is(place, environ):
    environ["CLAUDE_PROJECT_DIR"] = str(new_project(place.parent / "other", GATE))


def _switched_off_here(place, environ):
    switch_off(str(place), 0.0, environ)


def _switched_off_by_a_variable(place, environ):
    environ["NOTYET_DISABLE"] = "1"


def _inside_a_gate(place, environ):
    environ["NOTYET_INSIDE"] = "1"


def _supervised(place, environ):
    environ["NOTYET_SUPERVISED"] = "nobody"


WORLDS = [
    _trusted_and_gone,
    _in_a_folder_around,
    _not_trusted,
    _of_the_user,
    _where_the_host_says_that_its_project_is,
    _switched_off_here,
    _switched_off_by_a_variable,
    _inside_a_gate,
    _supervised,
]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__.strip("_"))
def test_the_door_lets_through_what_the_line_has_something_to_say_of(place, gone_on, world):
    environ = dict(os.environ)
    world(place, environ)
    reply = ask(payload("claude", place), "--host", "claude", environ=environ)
    assert len(gone_on) == 1
    assert (reply.stdout, reply.stderr) != ("", "")


@pytest.mark.parametrize(
    "fields",
    [
        {"cwd": None},
        {"cwd": ""},
        {"cwd": "  "},
        {"cwd": "."},
        {"cwd": "/nowhere/at/all"},
        {"cwd": "/\0"},
        {"cwd": "/\ud800"},
        {"cwd": 1},
        {"session_id": ["s"]},
        {"stop_hook_active": "yes"},
        {"hook_event_name": "StopFailure"},
        {"hook_event_name": "PreToolUse"},
        {"hook_event_name": None},
        {"hook_event_name": {}},
        {"agent_stop_cause": "done"},  # of a host whose agents cannot be held
    ],
    ids=repr,
)
def test_what_is_unusual_in_a_payload_is_for_the_line(place, gone_on, monkeypatch, fields):
    monkeypatch.chdir(place)
    content = payload("claude", place) | fields
    assert unnumbered(ask(content)) == unnumbered(by_the_line(content))
    assert len(gone_on) == 2


@pytest.mark.parametrize(
    "argv",
    [
        ["--nonsense"],
        ["--host", "nobody"],
        ["--host", "mux"],
        ["--host", "conclaude"],
        ["--host", "notyet"],
        ["--event", "SubagentStop"],
        ["--agent", "coder"],
        ["--config", "/nowhere/notyet.toml"],
    ],
    ids=" ".join,
)
def test_what_is_unusual_on_the_command_line_is_for_the_line(place, gone_on, argv):
    content = payload("claude", place)
    assert unnumbered(ask(content, *argv)) == unnumbered(by_the_line(content, *argv))
    assert len(gone_on) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'\xef\xbb\xbf{"a": 1}'])
def test_what_is_no_event_is_for_the_line(gone_on, content):
    assert ask(content) == by_the_line(content)
    assert len(gone_on) == 2


@pytest.mark.rule("E9")
def test_a_stop_that_runs_out_of_time_at_the_door_is_let_go_and_written_down(
    place, monkeypatch, late
):
    monkeypatch.setattr(hook, "projects_files", late)
    reply = ask(payload("claude", place))
    assert "no answer within the 600 s that the host waits" in reply.stdout
    assert stops() == [("skipped", "deadline")]


@pytest.mark.rule("E9")
def test_a_host_that_takes_too_long_to_say_what_it_wants_is_let_go(late):
    reply = hook.reply_to(HostCall(Options(["--host", "claude"]), os.environ, late))
    assert "no answer within" in reply.stdout
    assert stops() == [("skipped", "deadline")]


def test_a_fault_at_the_door_is_left_to_the_line(place, monkeypatch):
    monkeypatch.setattr(hook, "projects_files", lambda *_, **__: 1 / 0)
    reply = ask(payload("codex", place))
    assert (reply.stdout, reply.stderr) == ("{}", "")


def test_a_changed_file_is_said_to_a_subagent_too(tmp_path):
    project = new_project(tmp_path / "p", GATE)
    (project / "notyet.toml").write_text(GATE + "# changed\n")
    done = run_hook(payload("claude", project, hook_event_name="SubagentStop"), "--host", "claude")
    assert b"changed since it was trusted" in done.stdout
    trust(project / "notyet.toml")
    done = run_hook(payload("claude", project, hook_event_name="SubagentStop"), "--host", "claude")
    assert (done.stdout, done.stderr) == (b"", b"")
