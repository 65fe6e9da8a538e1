"""What the conformance suite for sessions finds, and what it lets pass."""

import asyncio
import os
import sys

import pytest

from notyet.agents import open_session, reopen
from notyet.core.event import Usage
from notyet.core.session import Turn
from notyet.errors import SendError
from notyet.testing import Hang, Say, Scene, Script, ScriptedSession, session_conformance
from notyet.testing import sessions as suite

FAKE = os.path.join(os.path.dirname(__file__), "..", "agents", "fake_cli.py")


def scene(*steps, **settings):
    return Scene(steps=steps, usage=Usage(input=10, total=10), **settings)


def test_the_scripted_session_keeps_every_promise(tmp_path):
    def make(*turns):
        return lambda: ScriptedSession(Script(turns=turns), folder=str(tmp_path))

    session_conformance(
        make(scene(Say("I am there."))),
        slow=make(scene(Hang()), scene(Say("I am there."))),
        refusing=make(scene(Say("I am there."), refuse=1)),
        reopen=reopen,
    )


def test_a_session_with_a_program_keeps_every_promise(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_STATE", str(tmp_path))
    quick, slow = tmp_path / "quick", tmp_path / "slow"
    start = f'exec "{sys.executable}" -I -S "{FAKE}" "$@"\n'
    quick.write_text(f"#!/bin/sh\n{start}")
    # Slow when a conversation begins, and quick when it goes on.
    once = 'case "$*" in *--session-id*) ! [ -e "$0.$6" ] && : > "$0.$6" && exec sleep 60;; esac\n'
    slow.write_text(f"#!/bin/sh\n{once}{start}")
    quick.chmod(0o755)
    slow.chmod(0o755)

    def make(program):
        return lambda: open_session("claude", cwd=str(tmp_path), program=str(program))

    session_conformance(
        make(quick), slow=make(slow), refusing=make(tmp_path / "none"), reopen=reopen
    )


class Broken:
    """A session that breaks about everything."""

    def __init__(self):
        self.id = None
        self.sent = 0
        self.on_news = None

    def ref(self):
        self.sent += 1
        return {"sent": self.sent, "environment": dict(os.environ)}

    async def send(self, prompt, key):
        self.sent += 1
        if self.sent == 1:
            await asyncio.sleep(0.6)
        return Turn(text="x", usage=Usage(total=self.sent), stop_reason="error")

    def knows(self, key):
        return True

    async def abort(self):
        return None

    def transcript(self):
        return "/no/such/file"


def test_all_that_is_broken_is_told_at_once(monkeypatch):
    monkeypatch.setattr(suite, "_PROMPTLY", 1.0)
    with pytest.raises(AssertionError) as told:
        session_conformance(Broken, slow=Broken, refusing=Broken, reopen=lambda ref: Broken())
    text = str(told.value)
    assert text.startswith("the session breaks 10 of 12 promises:")
    for words in (
        "an error has a text: False",
        "the session has an id after its first turn: False",
        "the ref, asked again",
        "before: False, not True",
        "how often it came: 0, not 1",
        "FileNotFoundError",
        "how the aborted turn ended: 'error', not 'cancelled'",
        "what it raised: 'nothing', not 'SendError'",
        "it raised nothing",
    ):
        assert words in text


def test_figures_that_are_sums_are_found():
    class Adding(ScriptedSession):
        __slots__ = ("total",)

        async def send(self, prompt, key):
            turn = await super().send(prompt, key)
            self.total = getattr(self, "total", 0) + turn.usage.total
            return Turn(text=turn.text, usage=Usage(total=self.total))

    with pytest.raises(AssertionError, match="counts the first one again: True, not False"):
        session_conformance(lambda: Adding(Script(turns=(scene(Say("x")),))))


def test_a_session_without_news_and_transcript_is_fine():
    class Plain:
        def __init__(self):
            self.id, self.keys = "plain", set()

        def ref(self):
            return {}

        async def send(self, prompt, key):
            if not prompt:
                raise SendError("nothing to send")
            self.keys.add(key)
            return Turn(text="x")

        def knows(self, key):
            return key in self.keys

        async def abort(self):
            return None

        def transcript(self):
            return None

    session_conformance(Plain)
