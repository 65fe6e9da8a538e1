import asyncio
import os
import signal
import sys

import pytest

from notyet.agents import open_session
from notyet.run import agent_program as orphans
from notyet.run import agent_program as running

FAKE = os.path.join(os.path.dirname(__file__), "fake_cli.py")


@pytest.fixture
def fake_program(tmp_path, monkeypatch):
    """A program that can be started instead of claude."""
    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setenv("FAKE_STATE", str(state))
    path = tmp_path / "fake claude"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{FAKE}" "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def fake_claude(fake_program, tmp_path):
    """What makes a session with that program."""

    def make(**settings):
        settings = {"cwd": str(tmp_path), "program": fake_program} | settings
        return open_session("claude", folder=str(tmp_path / "transcripts"), **settings)

    return make


@pytest.fixture
def impatient(monkeypatch):
    """Who does not go when told to politely is killed soon; and has all the time to die of it."""
    steps = ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, 20.0))
    for module in (orphans, running):
        monkeypatch.setattr(module, "STEPS", steps)


@pytest.fixture
def aborted():
    """Sends a prompt, and aborts its turn when there is news of this kind."""

    async def call(session, prompt, kind="accepted"):
        heard, listens = [], session.on_news

        def on_news(news):
            heard.append(news.kind)
            if listens:
                listens(news)

        session.on_news = on_news
        sending = asyncio.create_task(session.send(prompt, "slow"))
        while kind not in heard:
            await asyncio.sleep(0.01)
        await session.abort()
        return await sending

    return call


@pytest.fixture
def run():
    """Runs a coroutine, but not for ever."""

    def call(coroutine, seconds=40):
        async def bounded():
            return await asyncio.wait_for(coroutine, seconds)

        return asyncio.run(bounded())

    return call
