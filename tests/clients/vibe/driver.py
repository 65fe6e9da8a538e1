"""Mistral Vibe, run without a terminal against our model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from clients.model.chat import Call, Chat
from clients.world import World

if TYPE_CHECKING:
    from clients.model.script import Run, Spawn
    from clients.runs import Ran

WAIT = "wait for news"  # a step `Run(WAIT)` waits for a subagent
_MODEL = {"name": "fake-model", "provider": "fakep", "alias": "fake"}


def _run(step: Run) -> Call:
    if step.command == WAIT:
        return "wait", {"timeout_ms": 60_000}
    return "bash", {"command": step.command}


def _spawn(step: Spawn) -> Call:
    child = f"{{name: 'helper', message: {step.task!r}}}"
    return "run_typescript", {
        "code": f"async function main() {{ return await tools.agents.spawn({child}); }}"
    }


class _Chat(Chat):
    def prompts(self, texts: list[str]) -> list[str]:
        """Return the last of our prompts: no answer stands between one and the next."""
        return super().prompts(texts)[-1:]


class Vibe(World):
    """The real program in a scratch home."""

    HOST: ClassVar[str] = "vibe"
    WIRE: ClassVar[Any] = _Chat(
        run=_run, spawn=_spawn, words=r"^((?:Your task: |Your previous answer |notyet: ).*)$"
    )
    MOST_BLOCKS: ClassVar[int] = 3
    RESUME: ClassVar[tuple[str, ...]] = ("--continue",)

    def settle_in(self) -> None:
        (self.home / ".vibe").mkdir()

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        """Return a line with plain output, which is the last answer."""
        return [str(self.program), "--auto-approve", *args, "-p", prompt]

    def variables(self, url: str) -> dict[str, str]:
        provider = {"name": "fakep", "api_base": f"{url}/v1", "api_key_env_var": ""}
        return {
            "MISTRAL_API_KEY": "dummy",  # else it looks for one in a keyring
            "VIBE_ACTIVE_MODEL": "fake",
            "VIBE_MODELS": json.dumps([_MODEL]),
            "VIBE_PROVIDERS": json.dumps([provider]),
            "VIBE_ENABLE_TELEMETRY": "false",
            "VIBE_ENABLE_UPDATE_CHECKS": "false",
        }

    def answer(self, out: str) -> str:
        return out.strip()

    def notes(self, ran: Ran) -> list[str]:
        return []
