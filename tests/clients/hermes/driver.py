"""Hermes, run without a terminal against our model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.model.chat import Call, Chat
from clients.world import World

if TYPE_CHECKING:
    from clients.model.script import Run, Write
    from clients.runs import Ran

_CONFIG = """\
model:
  default: fake-model
  provider: custom
  api_key: x
  base_url: ${FAKE_MODEL}/v1
agent:
  verify_on_stop: false  # else it sends its agent back itself, before it runs hooks
lsp:
  enabled: false  # else it installs language servers with npm
security:
  tirith_enabled: false  # else it downloads a scanner
"""


def _run(step: Run) -> Call:
    """Write a file with Hermes' own tool: it takes only that for an edit."""
    name = step.command.removeprefix("touch ")
    return "write_file", {"path": name, "content": "x\n"}


def _edit(step: Write) -> Call:
    return "write_file", {"path": step.path, "content": step.text}


class Hermes(World):
    """The real program in a scratch home."""

    HOST: ClassVar[str] = "hermes"
    WIRE: ClassVar[Any] = Chat(run=_run, edit=_edit)
    RESUME: ClassVar[tuple[str, ...]] = ("--continue",)
    LONGEST_RUN: ClassVar[float] = 150.0

    def settle_in(self) -> None:
        (self.home / ".hermes").mkdir()
        (self.home / ".hermes" / "config.yaml").write_text(_CONFIG)

    def line(self, prompt: str, args: tuple[str, ...], url: str) -> list[str]:
        own = ("-Q", "--yolo", "--accept-hooks")
        return [str(self.program), "chat", "-q", prompt, *own, *args]

    def variables(self, url: str) -> dict[str, str]:
        return {"FAKE_MODEL": url}

    def answer(self, out: str) -> str:
        """Return the last line: the edits are printed before it."""
        return (out.strip().splitlines() or [""])[-1]

    def notes(self, ran: Ran) -> list[str]:
        return []
