"""The real programs as fixtures. Every scenario ends with the same check of what was left."""

from __future__ import annotations

import os
import signal
from importlib import import_module

import pytest

from clients.programs import CLAUDE, CLAUDE_OLD, CODEX, path_of

pytest.register_assert_rewrite("clients.world")  # it asserts, and is imported later
CLIENTS = {
    "claude-2.1.325": (CLAUDE, "clients.claude_code.driver", "ClaudeCode"),
    "claude-2.1.197": (CLAUDE_OLD, "clients.claude_code.driver", "ClaudeCode"),
    "codex-0.166.0": (CODEX, "clients.codex.driver", "Codex"),
}


def _world(name, folder):
    program, module, kind = CLIENTS[name]
    path = path_of(program)
    if isinstance(path, str):
        pytest.skip(path)
    world = getattr(import_module(module), kind)(path, program.version, folder)
    try:
        yield world
        world.check()
    finally:
        for pid in world.processes():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=CLIENTS)
def client(request, tmp_path):
    """Each of the programs."""
    yield from _world(request.param, tmp_path)


@pytest.fixture(params=[name for name in CLIENTS if name.startswith("claude")])
def claude(request, tmp_path):
    """Claude Code in each of its versions."""
    yield from _world(request.param, tmp_path)


@pytest.fixture(params=[name for name in CLIENTS if name.startswith("codex")])
def codex(request, tmp_path):
    """Codex."""
    yield from _world(request.param, tmp_path)
