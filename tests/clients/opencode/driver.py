"""OpenCode in a scratch home: how it is set up, run, and asked what it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from clients.model.chat import Chat
from clients.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.model.script import Request
    from clients.runs import Ran

# OpenCode installs this from npm where it finds plugins, unless a lock says that it has.
_FETCHED = {"dependencies": {"@opencode-ai/plugin": "1.18.33"}}


class OpenCode(World):
    """What is OpenCode's own way of doing things."""

    HOST: ClassVar[str] = "opencode"
    WIRE = Chat(
        run=lambda step: ("bash", {"command": step.command, "description": "run it"}),
        spawn=lambda step: (
            "task",
            {
                "description": "a task",
                "prompt": step.task,
                "subagent_type": step.agent_type or "general",
            },
        ),
    )
    HAS_SUBAGENTS = True
    NAMES_THREADS = True
    RESUME = ("--continue",)
    LONGEST_RUN = 120.0
    SHOWS_NOTES = True
    SDK: ClassVar[str] = "@ai-sdk/openai-compatible"
    PROVIDER: ClassVar[str] = "fake"
    ITS_FILES: ClassVar[tuple[str, ...]] = ("*",)

    def settle_in(self) -> None:
        """Spare it the network, also for plugins of the project."""
        self.spare_npm(self.home / ".config" / "opencode")

    def spare_npm(self, folder: Path) -> None:
        """Let OpenCode believe that what its plugins need is in this folder."""
        (folder / "node_modules").mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps(_FETCHED))
        lock = {"lockfileVersion": 3, "packages": {"": _FETCHED}}
        (folder / "package-lock.json").write_text(json.dumps(lock))

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return the command line; plain output joins all answers of a turn."""
        return [str(self.program), "run", "--format", "json", *args, prompt]

    def variables(self, url: str) -> dict[str, str]:
        """Return its settings, with the model."""
        provider = {
            "npm": self.SDK,
            "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
            "models": {"fake-model": {"name": "fake"}},
        }
        config = {
            "provider": {self.PROVIDER: provider},
            "model": f"{self.PROVIDER}/fake-model",
            "small_model": f"{self.PROVIDER}/fake-model",
            "autoupdate": False,
            "share": "disabled",
        }
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in off} | {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config)
        }

    def answer(self, out: str) -> str:
        """Return the last text of the main agent."""
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        said = [line["part"]["text"] for line in lines if line["type"] == "text"]
        return said[-1] if said else ""

    def shows_error(self, ran: Ran) -> bool:
        """Return True if it printed an error."""
        return '"type":"error"' in ran.out

    def thread(self, request: Request) -> str:
        """Every request names its session; a subagent has one of its own."""
        is_own = self.PROVIDER.startswith("opencode")
        return request.headers["x-opencode-session" if is_own else "x-session-affinity"]

    def notes(self, ran: Ran) -> list[str]:
        """Return what the plugin wrote for the user."""
        return [line for line in ran.err.splitlines() if line.startswith("notyet: ")]
