"""How each host speaks: one module per dialect, found through one table.

A dialect has up to four faces, each a few functions of its module:

- functions people wrote for a host's plugin system: `write_call`, `read_return`;
- hook commands people wrote for a host: `write_event`, `read_reply`; and those that it runs when
  an agent starts: `write_start`, `read_context`;
- the host itself, when it calls us: `read_event`, `write_reply`, `write_context`.

Modules are loaded when they are first asked for: a stop meets one or two dialects, not all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from notyet.core.command import Exit
    from notyet.core.event import Scope, StartEvent, StopEvent
    from notyet.core.gate import Gate
    from notyet.core.verdict import Allow, Block, Halt, Problem
    from notyet.dialects.reply import Reading, Reply

    Payload = Mapping[str, Any]

    class FunctionFace(Protocol):
        """How Python functions are asked in a dialect."""

        def write_call(self, event: StopEvent) -> Callable[[], tuple[Any, ...]]:
            """Return what gives the arguments of one call, each time the callee's own copies."""

        def read_return(self, returned: object) -> tuple[Allow | Block | Halt | Problem, str]:
            """Return the answer, and a warning for the function's author."""

    class CommandFace(Protocol):
        """How hook commands are asked in a dialect (tables F, H, W)."""

        def write_event(
            self, event: StopEvent, folder: str
        ) -> tuple[dict[str, Any], dict[str, str]]:
            """Return what a command gets on its stdin, and in its environment.

            `folder` is that of the file the gate is written in.
            """

        def read_reply(self, gate: Gate, exit: Exit) -> Reading:  # noqa: A002  # its name in our words
            """Read how a command ended."""

    class StartFace(Protocol):
        """How hook commands are asked when an agent starts; Claude Code and Codex have some."""

        def write_start(self, event: StartEvent) -> tuple[dict[str, Any], dict[str, str]]:
            """Return what a command gets on its stdin, and in its environment."""

        def read_context(self, exit: Exit, scope: Scope) -> Reading:  # noqa: A002  # its name in our words
            """Read how a command ended, and what it gives the agent (F13)."""

    class HostFace(Protocol):
        """How a host calls us, and what it understands (tables G, W)."""

        def read_event(
            self, payload: Payload, environ: Mapping[str, str]
        ) -> StopEvent | StartEvent | None:
            """Read a host's payload; None for an event that is not about starting or stopping."""

        def write_reply(
            self,
            verdict: Allow | Block | Halt,
            note: str,
            event: StopEvent,
            settings: Mapping[str, str],
        ) -> Reply:
            """Return what the host gets: stdout, stderr and the exit code."""

        def write_context(self, text: str, event: StartEvent) -> Reply:
            """Return what puts a text before a starting agent's first request."""


_MODULES = {
    "notyet": "native",
    "openclaw": "openclaw",
    "claude": "claude",
    "codex": "codex",
    "mux": "mux",
    "conclaude": "conclaude",
}
# Seconds that each host waits for a hook that does not say how long it takes (E6, E9).
PATIENCE = {"claude": 600.0, "codex": 600.0, "mux": 10.0, "conclaude": 600.0, "notyet": 600.0}
HOSTS = ("claude", "codex", "mux", "conclaude", "notyet")
MARGIN = 3.0  # seconds before a host's deadline at which we must have answered (E9)


def time_to_answer(patience: float) -> float:
    """Return how long we may take for a host that waits so many seconds (E9)."""
    return patience - min(MARGIN, 0.2 * patience)


def dialect(name: str) -> Any:
    """Return a dialect's module; which of its faces it has is said in the tables above."""
    return __import__(f"notyet.dialects.{_MODULES[name]}", fromlist=("x",))


def function_face(name: str) -> FunctionFace:
    """Return how functions are asked in this dialect."""
    face: FunctionFace = dialect(name)
    return face


def command_face(name: str) -> CommandFace:
    """Return how hook commands are asked in this dialect."""
    face: CommandFace = dialect(name)
    return face


def start_face(name: str) -> StartFace:
    """Return how start hooks are asked in this dialect."""
    face: StartFace = dialect(name)
    return face


def host_face(name: str) -> HostFace:
    """Return how this host is understood and answered."""
    face: HostFace = dialect(name)
    return face
