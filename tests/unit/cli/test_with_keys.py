"""The keyboard and the signals of `notyet with`, and what it finds of others."""

import asyncio
import os
import pty
import termios
import tomllib

import pytest

from notyet import Engine, Ledger
from notyet.agents import reopen
from notyet.agents.script import script_from
from notyet.agents.scripted import ScriptedSession
from notyet.cli.main import main
from notyet.cli.recovery import resume_command
from notyet.cli.with_agent import keys as with_keys
from notyet.cli.with_agent.keys import Keyboard
from notyet.supervise import Supervisor
from notyet.supervise.actions import PROGRAM
from with_runs import HANGS

ESCAPE = b"\x1b"


@pytest.fixture
def keyboard(monkeypatch):
    """A keyboard whose terminal is ours: its keys, the terminal, and what came of them."""
    ours, theirs = pty.openpty()
    monkeypatch.setattr(with_keys, "is_foreground", lambda _fd: True)
    yield ours, theirs
    for fd in (ours, theirs):
        os.close(fd)


async def come_true(condition):
    """Wait until something has happened, on a machine that is busy."""
    ends = asyncio.get_running_loop().time() + 30
    while not condition():
        assert asyncio.get_running_loop().time() < ends, "it never came true"
        await asyncio.sleep(0.005)


def listening(theirs, heard):
    keys = Keyboard(asyncio.get_running_loop(), lambda: heard.append(1), theirs)
    keys.listen()
    return keys


def test_escape_is_heard_and_the_terminal_is_as_before(keyboard):
    ours, theirs = keyboard
    before = termios.tcgetattr(theirs)
    heard = []

    async def press():
        keys = listening(theirs, heard)
        os.write(ours, ESCAPE)
        await come_true(lambda: heard)
        keys.restore()
        keys.restore()

    asyncio.run(press())
    assert heard == [1]
    assert termios.tcgetattr(theirs) == before


@pytest.mark.parametrize("key", [b"\x1b[A", b"words\n", b"\x1bOP", b"\x1bx", b"\x1b\x1b[A"])
def test_other_keys_are_not(keyboard, key):
    ours, theirs = keyboard
    heard = []

    async def press():
        keys = listening(theirs, heard)
        os.write(ours, key)
        await asyncio.sleep(0.2)
        os.write(ours, b"more" + ESCAPE)
        await come_true(lambda: heard)
        keys.restore()

    asyncio.run(press())
    assert heard == [1]


def left_behind(label="lost", **fields):
    """Leave a task unfinished, as a process that was killed does."""

    async def work():
        ledger = Ledger()
        async with Supervisor(Engine(ledger=ledger), ledger, reopen, program=PROGRAM) as here:
            session = ScriptedSession(script_of(HANGS))
            handle = await (
                here.spawn(session, "Look.", label=label, **fields)
                if fields
                else here.launch(session, "Look.", label=label)
            )
            await come_true(lambda: session.prompts)
            return handle.task_id

    return asyncio.run(work())


def script_of(text):
    return script_from(tomllib.loads(text), "test")


@pytest.mark.rule("K18")
def test_what_others_left_is_ended_and_told_once(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lost, sub = left_behind(), left_behind("a subagent", agent_type="coder")
    assert main(["tasks"]) == 0
    said = capsys.readouterr()
    assert f"{lost} (lost) was left by a dead process, and is interrupted" in said.err
    assert f"{sub} (a subagent) was left" in said.err
    assert said.out.count("interrupted") == 2
    assert "undelivered: the program that takes its result is not running" in said.out
    assert main(["tasks"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ({"agent": "claude", "args": []}, "notyet with claude --resume s1 'go on'"),
        (
            {"agent": "codex", "args": ["-m", "a b"]},
            "notyet with codex --resume s1 'go on' -- -m 'a b'",
        ),
        ({"id": 1}, ""),
    ],
)
def test_how_to_go_on(ref, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resume_command(ref, "s1", str(tmp_path)) == words
    assert resume_command(ref, "", str(tmp_path)) == ""
