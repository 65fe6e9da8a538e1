"""goose, run without a terminal against our model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from clients.model.chat import Chat
from clients.world import World

if TYPE_CHECKING:
    from clients.runs import Ran

# A hook's words, or those of `notyet with`, and what goose adds to them.
_WORDS = (
    r"^(?:Stop hook `notyet` blocked ending this turn:\n\n)?(notyet: .*?)"
    r"(?:\n\nAddress this policy hook denial before trying to stop again\.|\n<turn-context>|$)"
)


class Goose(World):
    """The real program in a scratch home."""

    HOST: ClassVar[str] = "goose"
    WIRE: ClassVar[Any] = Chat(
        run=lambda step: ("shell", {"command": step.command}),
        spawn=lambda step: ("delegate", {"instructions": step.task}),
        words=_WORDS,
    )
    MOST_BLOCKS: ClassVar[int] = 8
    RESUME: ClassVar[tuple[str, ...]] = ("--resume",)

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        return [str(self.program), "run", "--output-format", "json", *args, "-t", prompt]

    def variables(self, url: str) -> dict[str, str]:
        return {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "fake-model",
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "OPENAI_HOST": url,
            "OPENAI_API_KEY": "dummy",
        }

    def answer(self, out: str) -> str:
        """Return the last text of the assistant."""
        start = out.find("{")
        if start < 0:
            return ""
        messages = json.JSONDecoder().raw_decode(out[start:])[0]["messages"]
        said = [
            part["text"]
            for message in messages
            if message["role"] == "assistant"
            for part in message["content"]
            if part["type"] == "text"
        ]
        return said[-1] if said else ""

    def shows_error(self, ran: Ran) -> bool:
        return ran.text.startswith("Ran into this error: ")  # and it exits with 0
