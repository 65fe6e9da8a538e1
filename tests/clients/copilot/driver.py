"""GitHub Copilot CLI in a scratch home: how it is set up, run, and asked what it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from clients.model.chat import Chat
from clients.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.runs import Ran


class CopilotCli(World):
    """The real program in a scratch home."""

    HOST: ClassVar[str] = "copilot"
    WIRE: ClassVar[Any] = Chat(
        run=lambda step: ("bash", {"command": step.command, "description": "a command"}),
        spawn=lambda step: (
            "task",
            {
                "name": "helper",
                "description": "a task",
                "prompt": step.task,
                "agent_type": step.agent_type or "general-purpose",
                "mode": "background" if step.background else "sync",
            },
        ),
        words=r"^<current_datetime>[^<]*</current_datetime>\s*(notyet: .*)$",
    )
    HAS_SUBAGENTS: ClassVar[bool] = True
    MOST_BLOCKS: ClassVar[int] = 8
    RESUME: ClassVar[tuple[str, ...]] = ("--continue",)
    ITS_FILES: ClassVar[tuple[str, ...]] = ("node-compile-cache/*",)

    @property
    def config(self) -> Path:
        return self.home / ".copilot" / "config.json"

    def settle_in(self) -> None:
        """Trust the project: elsewhere, its hooks are skipped."""
        self.config.parent.mkdir()
        self.trust_project()

    def trust_project(self) -> None:
        self.config.write_text(json.dumps({"trustedFolders": [str(self.project)]}))

    def distrust_project(self) -> None:
        self.config.write_text("{}")

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        del url
        return [
            str(self.program),
            "--allow-all-tools",
            "--output-format",
            "json",
            *args,
            "-p",
            prompt,
        ]

    def variables(self, url: str) -> dict[str, str]:
        """Return what leads it to the model; it unpacks itself into the cache, once for all."""
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "fake-model",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "XDG_CACHE_HOME": str(self.program.parent / "cache"),
        }

    def answer(self, out: str) -> str:
        """Return what the main agent said last."""
        entries = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        said = [
            entry["data"]["content"]
            for entry in entries
            if entry["type"] == "assistant.message" and "agentId" not in entry
        ]
        return said[-1] if said else ""

    def notes(self, ran: Ran) -> list[str]:
        """Return nothing: it shows no words of a hook."""
        del ran
        return []
