"""Runs of a real program: one that is under way, and what came of one that has ended."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clients.model.script import MAIN

if TYPE_CHECKING:
    import subprocess

    from clients.model.server import ModelServer
    from clients.world import World


@dataclass
class Ran:
    """One run of the program, from its start to its end."""

    text: str  # its final answer
    code: int
    out: str
    err: str
    model: ModelServer

    def told(self, actor: str = MAIN) -> list[str]:
        """Return what was news to an actor in each of its requests."""
        return [request.last for request in self.model.asked(actor)]


class Running:
    """A run that is under way."""

    def __init__(self, world: World, process: subprocess.Popen[bytes], model: ModelServer) -> None:
        self.world = world
        self.process = process
        self.model = model
        self._ran: Ran | None = None

    def interrupt(self) -> None:
        """Do as a user who presses Ctrl-C: the whole foreground gets the signal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self, timeout: float | None = None) -> Ran:
        """Wait for its end, for as long as a run of this program takes at most."""
        if self._ran is None:
            self.process.wait(timeout or self.world.LONGEST_RUN)
            out, err = (
                (self.world.logs / f"{self.process.pid}.{name}").read_text(errors="replace")
                for name in ("out", "err")
            )
            text = self.world.answer(out)
            self._ran = Ran(text, self.process.returncode, out, err, self.model)
        return self._ran
