"""Gemini CLI in a scratch home: how it is set up, run, and asked what it did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from clients.model import gemini
from clients.world import NOTYET, World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.runs import Ran

_SETTINGS = {
    "model": {"name": "gemini-2.5-flash"},  # else it asks a model which one to ask
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "tools": {"useRipgrep": False},  # which not every machine has
    "security": {"auth": {"selectedType": "gemini-api-key"}},
}
_SHOWN = ("Hook system message: ", "[WARNING] Agent execution blocked: ")


class GeminiCli(World):
    """What is Gemini CLI's own way of doing things."""

    HOST: ClassVar[str] = "gemini"
    WIRE = gemini
    HAS_SUBAGENTS: ClassVar[bool] = True
    RESUME: ClassVar[tuple[str, ...]] = ("--resume", "latest")
    SHOWS_NOTES: ClassVar[bool] = True
    ITS_FILES: ClassVar[tuple[str, ...]] = ("gemini-*", "gemini-*/*", "node-compile-cache/*")

    def settle_in(self) -> None:
        """Write the settings, and trust the project."""
        self.settings.parent.mkdir()
        self.settings.write_text(json.dumps(_SETTINGS, indent=2) + "\n")
        self.trust_project()

    @property
    def settings(self) -> Path:
        return self.home / ".gemini" / "settings.json"

    @property
    def trusted(self) -> Path:
        return self.home / ".gemini" / "trustedFolders.json"

    @property
    def path(self) -> str:
        """A PATH with notyet and Gemini CLI on it, as on the machine of somebody who has them."""
        folder = self.folder / "bin"
        if not folder.exists():
            folder.mkdir()
            (folder / "gemini").symlink_to(self.program)
        return f"{folder}:{NOTYET.parent}:{self.environ['PATH']}"

    def trust_project(self) -> None:
        """Let Gemini CLI run here: elsewhere it refuses to without a terminal."""
        self.trusted.write_text(json.dumps({str(self.project): "TRUST_FOLDER"}))

    def configure(self, **tables: Any) -> None:
        """Add to the user's settings."""
        settings = json.loads(self.settings.read_text())
        self.settings.write_text(json.dumps(settings | tables, indent=2) + "\n")

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return the command line of a run; its stream tells answers apart, plain text does not."""
        del url
        return [str(self.program), "--yolo", "-o", "stream-json", *args, "-p", prompt]

    def variables(self, url: str) -> dict[str, str]:
        """Return what leads it to the model."""
        return {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "NODE_COMPILE_CACHE": str(self.tmp / "node-compile-cache"),
        }

    def answer(self, out: str) -> str:
        """Return the final answer, after anything else that happened."""
        pieces: list[str] = []
        for line in out.splitlines():
            entry = json.loads(line)
            if entry.get("role") == "assistant":
                pieces.append(entry["content"])
            elif entry["type"] != "result":
                pieces = []
        return "".join(pieces).strip()

    def notes(self, ran: Ran) -> list[str]:
        """Return what it wrote to stderr of our notes."""
        found = []
        for line in ran.err.splitlines():
            found += [line.removeprefix(mark) for mark in _SHOWN if line.startswith(mark)]
        return found
