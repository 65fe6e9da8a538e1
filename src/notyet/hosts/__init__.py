"""The hosts: programs that run agents and call notyet when an agent starts or stops.

`TABLE` has one row per host. `host_named` loads a host's module and returns its `Host`, which is
data plus, where data is not enough, methods of its own. `command_face` returns the module that
runs hook commands people wrote for a host, so that a hook written for one host runs under all.

To add a host, write a module with its `HOST` (`gemini` is the shortest), add a row here, record
payloads and replies in tests/vectors, and describe it in docs/how-to.

Modules are loaded on demand: a stop needs one or two of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.hosts.hook_commands import CommandFace, FunctionFace, StartFace
    from notyet.hosts.host import Host

MARGIN = 3.0  # seconds before a host's deadline at which we must have answered (E9)


class Reply:
    """What a host gets from us: stdout, stderr and the exit code."""

    def __init__(self, *, stdout: str = "", stderr: str = "", code: int = 0) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reply) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"Reply(stdout={self.stdout!r}, stderr={self.stderr!r}, code={self.code})"


class Row:
    """What the hook must know of a host before it loads the host's module.

    `hooks` is the module that runs hook commands written for the host. `timeout` is how many
    seconds the host waits for a hook whose registration does not say (E6, E9). `silence` is the
    stdout that allows a stop without a word; None: that depends on more. `reads_files`: notyet
    runs the hooks in the host's own files, because the host does not (J8). `is_command`: hosts can
    also call `notyet NAME EVENT`.
    """

    def __init__(
        self,
        module: str,
        *,
        hooks: str = "",
        timeout: float = 600.0,
        silence: str | None = None,
        reads_files: bool = False,
        is_command: bool = False,
    ) -> None:
        self.module = module
        self.hooks = hooks
        self.timeout = timeout
        self.silence = silence
        self.reads_files = reads_files
        self.is_command = is_command


TABLE = {
    "claude": Row("claude", hooks="claude.hooks", silence=""),
    "codex": Row("codex", hooks="codex.hooks", silence="{}"),
    "mux": Row("mux", hooks="mux", timeout=10.0, reads_files=True),
    "conclaude": Row("conclaude", hooks="conclaude", reads_files=True, is_command=True),
    "notyet": Row("native_host", hooks="native"),
    "gemini": Row("gemini", timeout=60.0, silence=""),
}
HOSTS = tuple(TABLE)
DEFAULT = "claude"  # the host that speaks as a payload in which nothing tells another
PATIENCE = {name: row.timeout for name, row in TABLE.items()}
SILENCE = {
    name: Reply(stdout=row.silence) for name, row in TABLE.items() if row.silence is not None
}
_FUNCTIONS = {"notyet": "native", "openclaw": "openclaw"}  # dialects of Python functions


def time_to_answer(patience: float) -> float:
    """Return how many seconds we may take if the host waits for `patience` seconds (E9)."""
    return patience - min(MARGIN, 0.2 * patience)


def _module(name: str) -> Any:
    return __import__(f"notyet.hosts.{name}", fromlist=("x",))


def host_named(name: str) -> Host:
    """Return a host by its name. Raises KeyError."""
    host: Host = _module(TABLE[name].module).HOST
    return host


def all_hosts() -> list[Host]:
    """Return every host; loads all of their modules."""
    return [host_named(name) for name in TABLE]


def command_face(name: str) -> CommandFace:
    """Return the module that runs hook commands written for this host."""
    face: CommandFace = _module(TABLE[name].hooks)
    return face


def start_face(name: str) -> StartFace:
    """Return the module that runs start hooks; Claude Code and Codex have some."""
    face: StartFace = _module(TABLE[name].hooks)
    return face


def function_face(name: str) -> FunctionFace:
    """Return the module that calls Python functions written in this dialect."""
    face: FunctionFace = _module(_FUNCTIONS[name])
    return face
