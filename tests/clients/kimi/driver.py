"""Kimi Code in a scratch home: how it is set up, run, and asked what it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from clients.model.chat import Chat
from clients.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.model.script import Run, Spawn
    from clients.runs import Ran

_CONFIG = """\
# The model of the tests; where it is, every run says itself.
default_model = "fake"
telemetry = false

[models.fake]
provider = "tests"
model = "fake-model"
max_context_size = 100000

[providers.tests]
type = "openai"
api_key = "none"
"""


def _run(step: Run) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": step.command}


def _spawn(step: Spawn) -> tuple[str, dict[str, Any]]:
    of_type = {"subagent_type": step.agent_type or "coder"}
    return "Agent", {**of_type, "description": "a part", "prompt": step.task}


class KimiCode(World):
    """What is Kimi Code's own way of doing things."""

    HOST: ClassVar[str] = "kimi"
    WIRE = Chat(run=_run, spawn=_spawn, frames=("<system-reminder>",))
    ASKS_ONCE: ClassVar[bool] = True
    MOST_BLOCKS: ClassVar[int] = 1
    RESUME: ClassVar[tuple[str, ...]] = ("--continue",)

    def settle_in(self) -> None:
        """Write the settings."""
        self.config.parent.mkdir()
        self.config.write_text(_CONFIG)

    @property
    def config(self) -> Path:
        return self.home / ".kimi-code" / "config.toml"

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return the command line of a run without a terminal."""
        del url
        return [str(self.program), *args, "--output-format", "stream-json", "-p", prompt]

    def variables(self, url: str) -> dict[str, str]:
        """Return what leads it to the model."""
        return {"OPENAI_BASE_URL": f"{url}/v1"}

    def answer(self, out: str) -> str:
        """Return the final answer; it prints those before, too."""
        entries = [json.loads(line) for line in out.splitlines()]
        said = [entry.get("content") for entry in entries if entry["role"] == "assistant"]
        return (said[-1] or "").strip() if said else ""

    def notes(self, ran: Ran) -> list[str]:
        """Return nothing: it shows no words of a hook."""
        del ran
        return []
