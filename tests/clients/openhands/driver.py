"""OpenHands: the agent of a small program that uses its SDK, and its own command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from clients.model.chat import Chat
from clients.world import World

_AGENT = Path(__file__).with_name("agent.py")


class OpenHands(World):
    """The real SDK in a scratch home."""

    HOST: ClassVar[str] = "openhands"
    WIRE: ClassVar[Any] = Chat(
        run=lambda step: ("shell", {"command": step.command}),
        words=r"^\[Stop hook feedback\] (.*)$",
    )
    RESUME: ClassVar[tuple[str, ...]] = ("--resume",)
    LONGEST_RUN: ClassVar[float] = 120.0  # loading it takes some seconds of work

    def settle_in(self) -> None:
        """Make the folder that it makes itself, and keeps its conversations in."""
        (self.home / ".openhands").mkdir()

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        return [str(self.program), str(_AGENT), *args, prompt]

    def put_on_path(self, folder: Path) -> None:
        program = folder / "agent"
        program.write_text(f'#!/bin/sh\nexec {self.program} {_AGENT} "$@"\n')
        program.chmod(0o755)

    def variables(self, url: str) -> dict[str, str]:
        return {
            "LLM_BASE_URL": f"{url}/v1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it is downloaded
            "OPENHANDS_SUPPRESS_BANNER": "1",
            "PYTHONWARNINGS": "ignore",  # it does not know the price of our model
        }

    def answer(self, out: str) -> str:
        return out.strip()


class OpenHandsCli(OpenHands):
    """The real command line in a scratch home."""

    ITS_FILES: ClassVar[tuple[str, ...]] = ("oh_editor_history_*",)

    WIRE: ClassVar[Any] = Chat(
        run=lambda step: ("terminal", {"command": step.command, "security_risk": "LOW"}),
        words=r"^\[Stop hook feedback\] (.*)$",
    )

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        own = ("--headless", "--json", "--override-with-envs")
        return [str(self.program), *own, *args, "-t", prompt]

    def variables(self, url: str) -> dict[str, str]:
        return super().variables(url) | {"LLM_API_KEY": "dummy", "LLM_MODEL": "openai/fake-model"}

    def answer(self, out: str) -> str:
        """Return the last message of the agent; texts for people stand between the events."""
        events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        said = [event["llm_message"]["content"] for event in events if _is_answer(event)]
        return said[-1][0]["text"] if said else ""


def _is_answer(event: dict[str, Any]) -> bool:
    return event["kind"] == "MessageEvent" and event["source"] == "agent"
