"""Compile the text of a configuration file of any kind into `Settings`."""

from __future__ import annotations

import os
import re
from shlex import quote

from notyet.config.document import BadSyntax, Mistake
from notyet.config.files import (
    LOCAL_TREE,
    ConfigFile,
)
from notyet.config.native import read_native
from notyet.config.readers import read_file, read_json
from notyet.config.schema import examine
from notyet.config.settings import Settings
from notyet.core.gate import Command, Gate, Match, Source
from notyet.core.record import replace
from notyet.core.remote import is_remote, remote_from
from notyet.hosts import command_face
from notyet.hosts.files import EXECUTABLE, format_of, host_of
from notyet.hosts.hook_commands import gates, starters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.document import Path
    from notyet.config.files import Tree


_SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
_LONGEST_SCRIPT = 100_000  # bytes; the system refuses an argument of 128 KiB


def compile_text(
    text: str, path: str, kind: str, tree: Tree = LOCAL_TREE, *, workspace: str = ""
) -> Settings:
    """Return what a file of this kind says, with every mistake in it.

    The path of a file in a workspace is its address; what it names runs there (M1). `workspace`
    replaces the one that a `notyet.toml` names for all of its gates.
    """
    if kind == "notyet":
        settings = read_native(text, path, workspace)
        if is_remote(path):
            return _without_openclaw(settings) if settings.openclaw else settings
        return _with_openclaw(settings) if settings.openclaw else settings
    host, form = host_of(kind), format_of(kind)
    if form == EXECUTABLE:
        settings = _executable(text, path, kind, tree)
    elif form == host.name:
        settings = _own_format(text, path, host.name)
    else:
        settings = _hooks(text, path, host.name, form)
    return _moved(settings, path, kind) if is_remote(path) else settings


def _moved(settings: Settings, path: str, kind: str) -> Settings:
    """Return settings whose commands run in the workspace of their file."""
    project = ConfigFile(path=path, kind=kind).project

    def there(check: Any) -> Any:
        return replace(check, workspace=project, dir="")

    return replace(
        settings,
        gates=tuple(replace(gate, check=there(gate.check)) for gate in settings.gates),
        starters=tuple(replace(one, check=there(one.check)) for one in settings.starters),
    )


def _hooks(text: str, path: str, speaks: str, form: str) -> Settings:
    examined = examine(text, path, form)
    warnings: list[Mistake] = []

    def complain(where: Path, message: str) -> None:
        warnings.append(examined.mistake(where, message))

    stops = gates(speaks, examined.value, path, examined.line, complain)
    starts = starters(speaks, examined.value, path, examined.line, complain)
    return Settings(
        file=path,
        gates=tuple(stops),
        starters=tuple(starts),
        mistakes=examined.mistakes,
        warnings=tuple(warnings),
    )


def _own_format(text: str, path: str, host: str) -> Settings:
    examined = examine(text, path, host)
    found = command_face(host).gates(examined.value, path, examined.line)
    return Settings(
        file=path,
        gates=tuple(found),
        notifications=examined.value.get("notifications") or {},
        mistakes=examined.mistakes,
    )


def _executable(text: str, path: str, kind: str, tree: Tree) -> Settings:
    """Return the gate for an executable such as `.mux/stop` (J3).

    Of a shell script, the trusted text runs, whatever the file says by then. Another program can
    only run by its path, so it does not run at all once it changed.
    """
    itself = remote_from(path).path if is_remote(path) else path
    if tree.exists(path) and not tree.is_executable(path):
        hint = f"run chmod +x {quote(itself)}"
        mistake = Mistake(file=path, message="is not executable, so it does not run", hint=hint)
        return Settings(file=path, mistakes=(mistake,))
    shell = _shell_of(text)
    host = host_of(kind)
    by_text = Command(argv=(shell, "-c", text, itself), speaks=host.name) if shell else None
    gate = Gate(
        name=f"{host.name} {'/'.join(path.split('/')[-2:])}",
        check=by_text or Command(argv=(itself,), speaks=host.name, options={"by_path": True}),
        match=Match(events=("subagent" if "-subagent-" in kind else "agent",)),
        timeout=host.timeout,
        source=Source(path, 1),
    )
    return Settings(file=path, gates=(gate,))


def _shell_of(text: str) -> str:
    """Return the shell of a script that can run as text; empty for any other program.

    Without a `#!` line it is bash, as in hosts.
    """
    if len(text.encode("utf-8", "surrogateescape")) > _LONGEST_SCRIPT or "\0" in text:
        return ""
    if "BASH_SOURCE" in text:  # it wants the path of its file
        return ""
    first = text.partition("\n")[0]
    if not first.startswith("#!"):
        return "bash"
    words = first[2:].split()
    names = [os.path.basename(word) for word in words]
    if names[:1] == ["env"]:
        names = names[1:]
    return names[0] if len(names) == 1 and names[0] in _SHELLS else ""


def _with_openclaw(settings: Settings) -> Settings:
    """Return settings with the limit of steer-restarts from OpenClaw's file (J9)."""
    text, mistake = read_file(settings.openclaw)
    number = None if text is None else _steer_restarts(text)
    limits = dict(settings.limits)
    if number is not None:
        limits.setdefault("max_blocks", number)
    elif mistake is None:
        where = "agents.defaults.subagents.maxSteerRestarts"
        mistake = Mistake(file=settings.openclaw, message=f"has no whole number at {where}")
    mistakes = settings.mistakes if mistake is None else (*settings.mistakes, mistake)
    return replace(settings, limits=limits, mistakes=mistakes)


def _without_openclaw(settings: Settings) -> Settings:
    """Return settings without OpenClaw's limit: its file would be on another machine."""
    message = "`read.openclaw` has no effect in a file of a workspace"
    warning = Mistake(file=settings.file, message=message)
    return replace(settings, openclaw="", warnings=(*settings.warnings, warning))


def _steer_restarts(text: str) -> int | None:
    """Return the limit in OpenClaw's file, which may be JSON5 or YAML."""
    try:
        value: Any = read_json(text).value
    except BadSyntax:
        bare = re.sub(r"//[^\n]*|/\*.*?\*/|(?:^|(?<=\s))#[^\n]*", "", text, flags=re.DOTALL)
        found = re.findall(r"""\bmaxSteerRestarts["']?\s*:\s*(\d{1,9})\b""", bare)
        return int(found[0]) if len(found) == 1 else None
    for key in ("agents", "defaults", "subagents", "maxSteerRestarts"):
        value = value.get(key) if isinstance(value, dict) else None
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return int(value) if is_number else None
