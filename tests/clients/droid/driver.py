"""Factory Droid in a scratch home: how it is set up, run, and asked what it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from clients.model.chat import Chat
from clients.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.model.script import Run, Spawn
    from clients.runs import Ran

_SETTINGS = {"cloudSessionSync": False, "enableCompletionBell": False}


def _run(step: Run) -> tuple[str, dict[str, Any]]:
    risk = {"riskLevel": "low", "riskLevelReason": "a test"}
    return "Execute", {"command": step.command, **risk}


def _spawn(step: Spawn) -> tuple[str, dict[str, Any]]:
    of_type = {"subagent_type": step.agent_type or "worker"}
    return "Task", {**of_type, "description": "a part", "prompt": step.task, "await": True}


def _models(url: str) -> dict[str, Any]:
    model = {
        "model": "fake-model",
        "displayName": "Fake",
        "baseUrl": f"{url}/v1",
        "apiKey": "none",
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": 8000,
    }
    return {"customModels": [model]}


class Droid(World):
    """What is Droid's own way of doing things."""

    HOST: ClassVar[str] = "droid"
    WIRE = Chat(run=_run, spawn=_spawn, frames=("<system-reminder>",))
    HAS_SUBAGENTS: ClassVar[bool] = True

    def settle_in(self) -> None:
        """Write settings; where the model is, every run says itself."""
        self.settings.parent.mkdir()
        self.settings.write_text(json.dumps(_SETTINGS, indent=2) + "\n")

    @property
    def settings(self) -> Path:
        return self.home / ".factory" / "settings.json"

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return the command line of `droid exec`."""
        return [str(self.program), "exec", *self.where(url), *args, prompt]

    def where(self, url: str) -> list[str]:
        """Return the options that say where the model is; they hold for this process only."""
        path = self.folder / f"model-{url.rpartition(':')[2]}.json"
        path.write_text(json.dumps(_models(url)))
        return ["--settings", str(path), "-m", "custom:Fake-0", "--auto", "high"]

    def point_at(self, url: str) -> None:
        default = {"sessionDefaultSettings": {"model": "custom:Fake-0"}}
        self.settings.write_text(json.dumps(_SETTINGS | _models(url) | default, indent=2) + "\n")

    def variables(self, url: str) -> dict[str, str]:
        """Return what keeps it from everything but the model."""
        del url
        return {"FACTORY_AIRGAP_ENABLED": "true", "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false"}

    def answer(self, out: str) -> str:
        """Return the final answer, which is all that it prints."""
        return out.strip()

    def notes(self, ran: Ran) -> list[str]:
        """Return nothing: only its terminal shows the words of a hook."""
        del ran
        return []
