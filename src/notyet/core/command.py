"""`Command`: a check that runs a program; and `Exit`: how a program that was run ended."""

from __future__ import annotations

from notyet.core.address import LOCAL
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.remote import Remote

# Who reads how a command ended (table F); each is a module of `notyet.dialects`.
COMMAND_DIALECTS = ("notyet", "claude", "codex", "mux", "conclaude")


class Command(Record, kw_only=True):
    """A check: run a script in a shell, or a program with its arguments (E8).

    `speaks` says what it is given and how its answer is read. `workspace` says on which machine it
    runs: `ssh://[user@]host[:port]/path`, "local", or nothing: where the agent's files are, unless
    it has a `dir`, which is then a folder here.
    """

    script: str = ""
    argv: tuple[str, ...] = ()
    dir: str = ""  # where it runs; empty: where the agent works (E7)
    workspace: str = ""  # on which machine (M1)
    shell: str = "/bin/sh"
    env: tuple[tuple[str, str], ...] = ()  # on top of what the dialect gives (H)
    speaks: str = "notyet"
    options: Mapping[str, Any] = {}  # what only its dialect knows; read, never changed

    def _validate(self) -> None:
        self.__dict__["argv"] = tuple(self.argv)
        self.__dict__["env"] = tuple((name, value) for name, value in self.env)
        if bool(self.script.strip()) == bool(self.argv):
            raise ValueError("a Command has either a script or an argv, and it is not blank")
        if self.speaks not in COMMAND_DIALECTS:
            known = ", ".join(COMMAND_DIALECTS)
            raise ValueError(f"speaks is one of {known}, not {self.speaks!r}")
        if self.workspace not in {"", LOCAL}:
            from notyet.core.remote import remote_from

            self.__dict__["workspace"] = remote_from(self.workspace).url
        if any("\0" in text for text in (self.script, self.dir, self.shell, *self.argv)):
            raise ValueError("a Command cannot contain a NUL character")

    @property
    def line(self) -> str:
        """The command as a person would write it down, for messages only."""
        return self.script.strip() or " ".join(self.argv)


def where(command: Command, workspace: str = "") -> Remote | None:
    """Return where a command runs, for an agent whose files are in a workspace; None: here.

    One that has a folder and names no machine means a folder on this one.
    """
    chosen = command.workspace or ("" if command.dir else workspace)
    if chosen in {"", LOCAL}:
        return None
    from notyet.core.remote import remote_from

    return remote_from(chosen)


class Exit(Record, kw_only=True):
    """How a command ended: with a code, by a signal, out of time, or it never started."""

    code: int | None = None
    signal: int = 0
    timed_out: bool = False
    cancelled: bool = False
    problem: str = ""  # why it could not be started, or how its exit was lost
    lost: bool = False  # it did start, elsewhere, and nobody heard how it ended
    advice: str = ""  # what a person can do about that; nothing that an agent should try
    stdout: bytes = b""  # bounded: head, a mark, tail
    stderr: bytes = b""
    left_out: int = 0  # bytes of both that were not kept
    seconds: float = 0.0
