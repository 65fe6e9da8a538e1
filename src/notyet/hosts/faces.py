"""The faces that a dialect can have, for type checkers and for whoever writes one.

No hook imports this: `typing` alone would cost it more than all of its work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from notyet.core.event import Scope, StartEvent, StopEvent
    from notyet.core.gate import Exit, Gate
    from notyet.core.verdict import Allow, Block, Halt, Problem
    from notyet.hosts.answers import Reading


class FunctionFace(Protocol):
    """How Python functions are asked in a dialect."""

    def write_call(self, event: StopEvent) -> Callable[[], tuple[Any, ...]]:
        """Return what gives the arguments of one call, each time the callee's own copies."""

    def read_return(self, returned: object) -> tuple[Allow | Block | Halt | Problem, str]:
        """Return the answer, and a warning for the function's author."""


class CommandFace(Protocol):
    """How hook commands are asked in a dialect (tables F, H, W)."""

    def write_event(self, event: StopEvent, folder: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what a command gets on its stdin, and in its environment.

        `folder` is that of the file the gate is written in.
        """

    def read_reply(self, gate: Gate, exit: Exit) -> Reading:  # noqa: A002  # its name in our words
        """Read how a command ended."""

    def gates(
        self, settings: Mapping[str, Any], file: str, line_of: Callable[[Any], int]
    ) -> list[Gate]:
        """Return the gates of a file in the host's own format; only a host that has one."""


class StartFace(Protocol):
    """How hook commands are asked when an agent starts; Claude Code and Codex have some."""

    def write_start(self, event: StartEvent) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what a command gets on its stdin, and in its environment."""

    def read_context(self, exit: Exit, scope: Scope) -> Reading:  # noqa: A002  # its name in our words
        """Read how a command ended, and what it gives the agent (F13)."""
