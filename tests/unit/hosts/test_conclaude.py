"""Commands of a `.conclaude.yaml`: what they are told, and what their ending means."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from notyet import Allow, Block, Halt
from notyet.core.event import BackgroundTask
from notyet.core.gate import Command, Exit, Gate
from notyet.core.verdict import Problem
from notyet.hosts.conclaude import HOST
from notyet.hosts.conclaude import hooks as conclaude
from notyet.hosts.hook_answers import HookAnswer
from notyet.hosts.host import Reply
from support import stop, substop

VECTORS = Path(__file__).parents[2] / "vectors" / "conclaude"
FILE = "/home/u/proj/.conclaude.yaml"


def vectors(name):
    return json.loads((VECTORS / name).read_text())


def command(options, timeout=30):
    check = Command(script="npm test", speaks="conclaude", options=options)
    return Gate(name="g", check=check, timeout=timeout)


def ended(fields):
    streams = {name: fields.get(name, "").encode() for name in ("stdout", "stderr")}
    return Exit(**(fields | streams))


@pytest.mark.rule(
    "F1-conclaude-stop", "F1-conclaude-subagent",
    "F2-conclaude-stop", "F2-conclaude-subagent",
    "F3-conclaude-stop", "F3-conclaude-subagent",
    "F4-conclaude-stop", "F4-conclaude-subagent",
    "F5-conclaude-stop", "F5-conclaude-subagent",
    "F6-conclaude-stop", "F6-conclaude-subagent",
    "F7-conclaude-stop", "F7-conclaude-subagent",
    "F8-conclaude-stop", "F8-conclaude-subagent",
    "F9-conclaude-stop", "F9-conclaude-subagent",
    "F10-conclaude-stop", "F10-conclaude-subagent",
    "F11-conclaude-stop", "F11-conclaude-subagent",
    "F12-conclaude-stop", "F12-conclaude-subagent",
    "F13-conclaude-stop", "F13-conclaude-subagent",
    "F14-conclaude-stop", "F14-conclaude-subagent",
)  # fmt: skip
@pytest.mark.parametrize("vector", vectors("replies.json"), ids=lambda vector: vector["id"])
def test_only_the_exit_of_a_command_is_its_answer(vector):
    expect = vector["expect"]
    answer = Block(expect["prompt"]) if expect["answer"] == "block" else Allow()
    reading = conclaude.read_reply(command(vector["options"]), ended(vector["exit"]))
    assert reading == HookAnswer(answer=answer, warning=expect.get("warning", ""))


def test_every_cell_has_a_vector_and_every_vector_its_cell():
    columns = ("stop", "subagent")
    cells = {f"F{row}-conclaude-{column}" for row in range(1, 15) for column in columns}
    marks = test_only_the_exit_of_a_command_is_its_answer.pytestmark
    marked = {cell for mark in marks if mark.name == "rule" for cell in mark.args}
    assert cells == marked == {vector["id"].split()[0] for vector in vectors("replies.json")}


@pytest.mark.rule("E4")
@pytest.mark.parametrize("vector", vectors("messages.json"), ids=lambda vector: vector["id"])
def test_the_message_of_a_failure_is_composed_as_the_file_wishes(vector):
    options = vector["options"] | {"section": "stop"}
    reading = conclaude.read_reply(command(options), ended(vector["exit"]))
    assert reading.answer == Block(vector["expect"])
    options = vector["options"] | {"section": "subagentStop"}
    reading = conclaude.read_reply(command(options), ended(vector["exit"]))
    assert reading == HookAnswer(answer=Block(vector["expect"]), warning=vector["expect"])


@pytest.mark.parametrize("section", ["stop", "subagentStop", "infinite"])
def test_a_command_that_we_cut_off_ourselves_does_not_block(section):
    gate = command({"section": section, "message": "m"})
    answer = conclaude.read_reply(gate, Exit(cancelled=True, signal=15)).answer
    assert answer == Problem("deadline", "it was ended before it could answer")


@pytest.mark.rule("F10-conclaude-stop", "E9")
def test_a_command_without_a_timeout_has_one_where_the_host_waits_no_longer():
    gate = command({"section": "stop"}, timeout=None)
    ended = Exit(timed_out=True, signal=15, seconds=57.04)
    answer = conclaude.read_reply(gate, ended).answer
    assert answer.prompt.startswith("Command timed out after 57.04 seconds: ")


@pytest.mark.rule("G4")
@pytest.mark.parametrize(
    ("verdict", "note", "reply"),
    [
        (Allow(), "", Reply()),
        (Allow(), "passed after a block", Reply(stderr="passed after a block\n")),
        (Block("Run the tests.", reason="logged"), "", Reply(stderr="Run the tests.\n", code=2)),
        (Block("Run them."), "sent back 1/3", Reply(stderr="Run them.\n", code=2)),
        (Block("\x1b[31mred\x1b[0m \ud800"), "", Reply(stderr="red\n", code=2)),
        (Block("\x00"), "", Reply(stderr="Not yet.\n", code=2)),
        (Halt("enough"), "", Reply(stderr="enough\n")),
        (Halt(), "", Reply()),
        (Halt("enough"), "halted", Reply(stderr="halted\nenough\n")),
    ],
)
def test_a_host_is_answered_by_the_exit_code(verdict, note, reply):
    assert HOST.write_reply(verdict, note, stop(), {}) == reply


@pytest.mark.rule("W4")
def test_a_command_gets_the_payload_of_claude_code_and_it_reads_back():
    event = substop(
        host="conclaude",
        parent_session_id=None,
        run_id=None,
        turn_id="p1",
        cwd="/home/u/proj",
        permission_mode="plan",
        host_cap=8,  # of Claude Code, which calls us
        stop_hook_active=True,
        last_message="Done.",
        transcript_path="/t/main.jsonl",
        agent_transcript_path="/t/agent.jsonl",
        background_tasks=(BackgroundTask(id="b1", type="shell"),),
    )
    payload, _ = conclaude.write_event(event, "/home/u/proj")
    assert payload["hook_event_name"] == "SubagentStop"
    assert payload["agent_transcript_path"] == "/t/agent.jsonl"
    assert payload["background_tasks"] == [{"id": "b1", "type": "shell", "status": "running"}]
    again = HOST.read_event(json.loads(json.dumps(payload)), {})
    assert again.__replace__(raw=None) == event


@pytest.mark.rule("H3")
def test_a_subagents_command_gets_all_ten_variables():
    event = substop(
        cwd="/w", agent_name="coder", transcript_path="/t/m", agent_transcript_path="/t/a"
    )
    payload, environ = conclaude.write_event(event, "/home/u/proj")
    told = json.loads(environ.pop("CONCLAUDE_PAYLOAD_JSON"))
    assert told == payload | {"subagent_type": "coder"}
    assert told["agent_type"] == "coder"
    assert environ == {
        "CONCLAUDE_AGENT": "coder",
        "CONCLAUDE_AGENT_ID": "a1",
        "CONCLAUDE_AGENT_NAME": "coder",
        "CONCLAUDE_AGENT_TRANSCRIPT_PATH": "/t/a",
        "CONCLAUDE_CONFIG_DIR": "/home/u/proj",
        "CONCLAUDE_CWD": "/w",
        "CONCLAUDE_HOOK_EVENT": "SubagentStop",
        "CONCLAUDE_SESSION_ID": "parent-1",
        "CONCLAUDE_TRANSCRIPT_PATH": "/t/m",
    }


@pytest.mark.rule("H3")
def test_without_a_name_the_id_stands_for_it_and_a_stop_gets_what_applies():
    _, environ = conclaude.write_event(substop(), "/p")
    assert environ["CONCLAUDE_AGENT_NAME"] == "a1"
    assert "CONCLAUDE_AGENT" not in environ
    _, environ = conclaude.write_event(stop(cwd="/w"), "/p")
    assert set(environ) == {
        f"CONCLAUDE_{name}"
        for name in ("CONFIG_DIR", "CWD", "HOOK_EVENT", "PAYLOAD_JSON", "SESSION_ID")
    }
    assert "subagent_type" not in environ["CONCLAUDE_PAYLOAD_JSON"]


def test_a_failed_turn_says_its_error():
    for error, told in (("rate_limit", "rate_limit"), (None, "unknown")):
        payload, environ = conclaude.write_event(stop(ending="error", error=error), "/p")
        assert payload["hook_event_name"] == "StopFailure"
        assert payload["error"] == environ["CONCLAUDE_STOP_ERROR"] == told


@pytest.mark.rule("H3")
@pytest.mark.parametrize(
    "text",
    ["x" * 3_000_000, "😀" * 100_000, "nul \0 nul", "a \ud800", "caf\udce9", "\n\t'\"$(x)"],
    ids=["long", "wide", "nul", "surrogate", "not UTF-8", "shell"],
)
def test_no_value_keeps_a_command_from_starting(text):
    tasks = tuple(BackgroundTask(id=text[:5000] + str(n), type="shell") for n in range(300))
    event = substop(
        agent_id=text,
        agent_name=text,
        agent_type=text,
        session_id=text,
        cwd=text,
        transcript_path=text,
        agent_transcript_path=text,
        last_message=text,
        background_tasks=tasks,
    )
    _, environ = conclaude.write_event(event, text)
    assert all(len(os.fsencode(value)) <= 100_000 for value in environ.values())
    script = (
        "import json, os; told = json.loads(os.environ['CONCLAUDE_PAYLOAD_JSON']);"
        "assert told['agent_type'] == told['subagent_type'], told;"
        "assert told['hook_event_name'] == 'SubagentStop', told"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True)
    assert done.returncode == 0, done.stderr
