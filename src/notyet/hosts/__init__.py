"""The hosts: programs that run agents and call notyet when an agent starts or stops.

Each has a module, or a package, of its name, whose `HOST` says what is special about it. A package
may have more modules: `hooks` is the dialect of hook commands that people wrote for the host, so
that a hook written for one host runs under all; `settings` and `faults` are for `install` and
`status`. `openclaw`, `neovate` and `plugins` are dialects of handlers, not hosts;
`known_programs` lists programs that run agents without being hosts.

To add a host, write a module with its `HOST` and run `make docs`, which renews the list below and
`signs`: docs/how-to/add-a-host.md.

Modules are loaded on demand: a stop needs one or two of them.
"""

from __future__ import annotations

from sys import modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.hosts.hook_commands import CommandDialect, FunctionDialect, StartDialect
    from notyet.hosts.host import Host

HOSTS = (
    "claude",
    "codex",
    "copilot",
    "cursor",
    "devin",
    "droid",
    "gemini",
    "goose",
    "hermes",
    "kimi",
    "opencode",
    "openhands",
    "pi",
    "qwen",
    "vibe",
    "vscode",
    "mux",
    "conclaude",
    "notyet",
    "unknown",
)
DEFAULT = "claude"
LEAST_TIMEOUT = 10.0  # seconds that every host waits for a hook
MARGIN = 3.0  # seconds before a host's deadline at which we must have answered (E9)


def time_to_answer(patience: float) -> float:
    """Return how many seconds we may take if the host waits for `patience` seconds (E9)."""
    return patience - min(MARGIN, 0.2 * patience)


def _module(name: str) -> Any:
    name = f"notyet.hosts.{name}"
    if name not in modules:
        __import__(name)
    return modules[name]


def host_named(name: str) -> Host:
    """Return a host by its name. Raises KeyError."""
    if name not in HOSTS:
        raise KeyError(name)
    host: Host = _module(name).HOST
    return host


def all_hosts() -> list[Host]:
    """Return every host; loads all of their modules."""
    return [host_named(name) for name in HOSTS]


def _hooks(name: str) -> Any:
    if not hasattr(_module(name), "__path__"):
        return _module(name)
    try:
        return _module(f"{name}.hooks")
    except ModuleNotFoundError:  # we run no hooks that were written for it
        return _module(name)


def command_dialect(name: str) -> CommandDialect:
    """Return what translates for hook commands written for this host."""
    dialect: CommandDialect = _hooks(name)
    return dialect


def start_dialect(name: str) -> StartDialect:
    """Return what translates for start hooks; Claude Code and Codex have some."""
    dialect: StartDialect = _hooks(name)
    return dialect


def function_dialect(name: str) -> FunctionDialect:
    """Return what translates for Python functions written for this plugin system."""
    dialect: FunctionDialect = _hooks(name)
    return dialect
