"""The real programs as fixtures. Every scenario ends with the same check of what was left."""

from __future__ import annotations

from importlib import import_module

import pytest

from clients.fetching import Wrong
from clients.programs import CLAUDE, CLAUDE_OLD, CODEX, check_given, path_of

# They assert, and are imported later.
pytest.register_assert_rewrite("clients.world", "clients.killed_hook")
CLIENTS = {
    "claude-2.1.325": (CLAUDE, "clients.claude_code.driver", "ClaudeCode"),
    "claude-2.1.197": (CLAUDE_OLD, "clients.claude_code.driver", "ClaudeCode"),
    "codex-0.166.0": (CODEX, "clients.codex.driver", "Codex"),
}
# Where versions cannot differ, only the newest one is tried.
NEWEST = [name for name in CLIENTS if name != "claude-2.1.197"]
newest = pytest.mark.parametrize("client", NEWEST, indirect=True)
newest_claude = pytest.mark.parametrize("claude", ["claude-2.1.325"], indirect=True)


def pytest_configure():
    """Say it once, and not in every test, that a variable names the wrong program."""
    try:
        check_given()
    except Wrong as why:
        raise pytest.UsageError(str(why)) from None


def program_or_skip(program):
    """Return where a program is; skip the test, saying why, where it cannot be had."""
    path = path_of(program)
    if isinstance(path, str):
        pytest.skip(path)
    return path


def world_of(name, folder, mixed_in=None):
    """Return a scratch world of one of the programs."""
    program, module, kind = CLIENTS[name]
    path = program_or_skip(program)
    world = getattr(import_module(module), kind)
    if mixed_in:
        world = type(mixed_in.__name__ + kind, (mixed_in, world), {})
    return world(path, program.version, folder)


@pytest.fixture(params=CLIENTS)
def client(request, tmp_path):
    """Each of the programs."""
    with world_of(request.param, tmp_path).scenario() as world:
        yield world


@pytest.fixture(params=[name for name in CLIENTS if name.startswith("claude")])
def claude(request, tmp_path):
    """Claude Code in each of its versions."""
    with world_of(request.param, tmp_path).scenario() as world:
        yield world


@pytest.fixture(params=[name for name in CLIENTS if name.startswith("codex")])
def codex(request, tmp_path):
    """Codex."""
    with world_of(request.param, tmp_path).scenario() as world:
        yield world
