import asyncio
import os
import sys

import pytest

from notyet.agents import open_session

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
def run():
    """Runs a coroutine, but not for ever."""

    def call(coroutine, seconds=40):
        async def bounded():
            return await asyncio.wait_for(coroutine, seconds)

        return asyncio.run(bounded())

    return call
