"""The agents as fixtures: each in a scratch world, behind `notyet acp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from clients.acp import over_acp
from clients.conftest import program_or_skip
from clients.programs import (
    CLAUDE,
    CLAUDE_ACP,
    CODEX,
    CODEX_ACP,
    CODEX_ZED,
    COPILOT,
    DROID,
    GEMINI,
    GOOSE,
    KIMI,
    OPENCODE,
    PI,
    PI_ACP,
    QWEN,
    VIBE,
    Program,
    node_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Kind(NamedTuple):
    """One agent: its program, what drives it, and what speaks ACP for it."""

    program: Program
    world: type
    adapter: Program | None = None


# By the host, as HOSTS chooses, and what is special.
AGENTS = {
    "claude-acp": Kind(CLAUDE, over_acp.ClaudeAcp, CLAUDE_ACP),
    "claude-acp-v2": Kind(CLAUDE, over_acp.ClaudeAcp2, CLAUDE_ACP),
    "codex-acp": Kind(CODEX, over_acp.CodexAcp, CODEX_ACP),
    "codex-acp-v2": Kind(CODEX, over_acp.CodexAcp2, CODEX_ACP),
    "codex-zed": Kind(CODEX_ZED, over_acp.CodexZed),
    "copilot-acp": Kind(COPILOT, over_acp.CopilotAcp),
    "droid-acp": Kind(DROID, over_acp.DroidAcp),
    "gemini-acp": Kind(GEMINI, over_acp.GeminiAcp),
    "goose-acp": Kind(GOOSE, over_acp.GooseAcp),
    "kimi-acp": Kind(KIMI, over_acp.KimiAcp),
    "opencode-acp": Kind(OPENCODE, over_acp.OpenCodeAcp),
    "pi-acp": Kind(PI, over_acp.PiAcp, PI_ACP),
    "qwen-acp": Kind(QWEN, over_acp.QwenAcp),
    "vibe-acp": Kind(VIBE, over_acp.VibeAcp),
}


def acp_world(name: str, folder: Path) -> over_acp.OverAcp:
    """Return a scratch world of one of the agents."""
    kind = AGENTS[name]
    path = program_or_skip(kind.program)
    node = node_of(kind.program)
    own = {}
    if kind.adapter is not None:
        own["adapter"] = program_or_skip(kind.adapter)
        node = node_of(kind.adapter)
    world = type(kind.world.__name__, (kind.world,), own)
    return world(path, kind.program.version, folder, node)


# Zed's own adapter is the older one of two.
_PARAMS = [
    pytest.param(name, marks=pytest.mark.full if name == "codex-zed" else ()) for name in AGENTS
]


@pytest.fixture(params=_PARAMS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[over_acp.OverAcp]:
    """Each of the agents, behind the proxy."""
    with acp_world(request.param, tmp_path).scenario() as world:
        yield world
