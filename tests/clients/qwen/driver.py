"""Qwen Code, run without a terminal against our model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from clients.model.chat import Chat
from clients.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from clients.runs import Ran

_SETTINGS = {
    "$version": 4,  # which it would add itself
    "security": {"auth": {"selectedType": "openai"}},
    "privacy": {"usageStatisticsEnabled": False},
    "tools": {"useRipgrep": False},  # which not every machine has
    "memory": {"enableManagedAutoMemory": False},  # asks the model once more after a turn
}


class Qwen(World):
    """The real program in a scratch home."""

    HOST: ClassVar[str] = "qwen"
    WIRE: ClassVar[Any] = Chat(
        run=lambda step: ("run_shell_command", {"command": step.command, "is_background": False}),
        spawn=lambda step: (
            "agent",
            {
                "description": "a task",
                "prompt": step.task,
                "subagent_type": "general-purpose",
                "run_in_background": step.background,
            },
        ),
        words=r"^(?:\[Message from parent agent\]: )?(notyet: .*)$",
        frames=("<system-reminder>",),
    )
    HAS_SUBAGENTS: ClassVar[bool] = True
    MOST_BLOCKS: ClassVar[int] = 7
    RESUME: ClassVar[tuple[str, ...]] = ("--continue",)
    SHOWS_NOTES: ClassVar[bool] = True

    def settle_in(self) -> None:
        folder = self.home / ".qwen"
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps(_SETTINGS, indent=2) + "\n")

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return a line with plain output: with JSON, no note is shown."""
        return [str(self.program), "--yolo", *args, "-p", prompt]

    def variables(self, url: str) -> dict[str, str]:
        return {
            "OPENAI_API_KEY": "dummy",
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_MODEL": "fake-model",
        }

    def answer(self, out: str) -> str:
        """Return the last of the answers, which stdout joins; transcripts tell them apart."""
        last = [text for text in map(_last_answer, self.transcripts()) if text]
        delivered = [text for text in last if out.strip().endswith(text)]
        return max(delivered, key=len, default=out.strip())

    def transcripts(self) -> list[Path]:
        return list(self.home.glob(".qwen/projects/*/chats/*.jsonl"))

    def notes(self, ran: Ran) -> list[str]:
        return ran.err.splitlines()


def _last_answer(transcript: Path) -> str:
    entries = [json.loads(line) for line in transcript.read_text().splitlines()]
    said = [
        "".join(part.get("text", "") for part in entry["message"]["parts"])
        for entry in entries
        if entry["type"] == "assistant"
    ]
    return said[-1] if said else ""
