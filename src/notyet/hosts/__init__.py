"""How each host speaks: one or two modules per dialect, found through these tables.

A dialect has up to four faces, each a few functions of a module:

- functions people wrote for a host's plugin system: `write_call`, `read_return`;
- hook commands people wrote for a host: `write_event`, `read_reply`; and those that it runs when
  an agent starts: `write_start`, `read_context`;
- the host itself, when it calls us: `read_event`, `write_reply`, `write_context`.

Modules are loaded when they are first asked for: a stop meets one or two dialects, not all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.hosts.faces import CommandFace, FunctionFace, HostFace, StartFace

_FUNCTIONS = {"notyet": "native", "openclaw": "openclaw"}
_COMMANDS = {
    "notyet": "native",
    "claude": "claude_hooks",
    "codex": "codex_hooks",
    "mux": "mux",
    "conclaude": "conclaude",
}
_HOSTS = {
    "claude": "claude",
    "codex": "codex",
    "mux": "mux",
    "conclaude": "conclaude",
    "notyet": "native_host",
}
HOSTS = tuple(_HOSTS)
# Seconds that each host waits for a hook that does not say how long it takes (E6, E9).
PATIENCE = {"claude": 600.0, "codex": 600.0, "mux": 10.0, "conclaude": 600.0, "notyet": 600.0}
MARGIN = 3.0  # seconds before a host's deadline at which we must have answered (E9)


class Reply:
    """What a host gets to see of us, and nothing else."""

    def __init__(self, *, stdout: str = "", stderr: str = "", code: int = 0) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reply) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]  # it is compared, and kept nowhere

    def __repr__(self) -> str:
        return f"Reply(stdout={self.stdout!r}, stderr={self.stderr!r}, code={self.code})"


# What lets an agent go without a word. Only of hosts that run their own files themselves: where
# there is no file of ours, there is nothing to ask.
SILENCE = {"claude": Reply(), "codex": Reply(stdout="{}")}


def time_to_answer(patience: float) -> float:
    """Return how long we may take for a host that waits so many seconds (E9)."""
    return patience - min(MARGIN, 0.2 * patience)


def _module(name: str) -> Any:
    return __import__(f"notyet.hosts.{name}", fromlist=("x",))


def function_face(name: str) -> FunctionFace:
    """Return how functions are asked in this dialect."""
    face: FunctionFace = _module(_FUNCTIONS[name])
    return face


def command_face(name: str) -> CommandFace:
    """Return how hook commands are asked in this dialect."""
    face: CommandFace = _module(_COMMANDS[name])
    return face


def start_face(name: str) -> StartFace:
    """Return how start hooks are asked in this dialect; Claude Code and Codex have some."""
    face: StartFace = _module(_COMMANDS[name])
    return face


def host_face(name: str) -> HostFace:
    """Return how this host is understood and answered."""
    face: HostFace = _module(_HOSTS[name])
    return face
