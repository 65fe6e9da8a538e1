"""Reads `notyet.toml` into `Settings` (J6). What is wrong in it never takes the rest down (J7)."""

from __future__ import annotations

import os

from notyet.config.schema import examine
from notyet.config.schema_native import ALL, GATE, MAIN, OBSERVER, SUBAGENTS
from notyet.config.settings import FileObserver, Settings
from notyet.core.command import Command
from notyet.core.gate import EVERY_AGENT, Gate, Match, Source
from notyet.core.verdict import OUTCOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.core.event import Scope

SLOW = -1  # the priority of gates that are asked when the quick ones passed
_EVENTS: dict[str, tuple[Scope, ...]] = {
    MAIN: ("agent",),
    SUBAGENTS: ("subagent",),
    ALL: ("agent", "subagent"),
}


def read_native(text: str, file: str) -> Settings:
    """Return what a `notyet.toml` says, with every mistake in it."""
    examined = examine(text, file, "notyet")
    value = examined.value
    folder = os.path.dirname(os.path.abspath(file))

    def source(*path: str) -> Source:
        line = examined.document.locate(path)[0] if examined.document else 0
        return Source(file, line)

    read = value.get("read", {})
    openclaw = read.get("openclaw", "")
    return Settings(
        file=file,
        gates=tuple(
            _gate(name, {"run": entry} if isinstance(entry, str) else entry, folder, source)
            for name, entry in value.get("gates", {}).items()
        ),
        limits=value.get("limits", {}),
        observers=tuple(
            _observer(name, entry, folder, source)
            for name, entry in value.get("observers", {}).items()
        ),
        start_tell=value.get("start", {}).get("tell"),
        read_hosts=tuple(dict.fromkeys(read.get("hosts", ()))),
        openclaw=os.path.join(folder, os.path.expanduser(openclaw)) if openclaw else "",
        reply=value.get("reply", {}),
        mistakes=examined.mistakes,
    )


def _gate(name: str, entry: dict[str, Any], folder: str, source: Any) -> Gate:
    full = GATE.filled(entry)
    options = {key: full[key] for key in ("pass_codes", "hint", "paths", "when")}
    return Gate(
        name=name,
        check=_command(entry, folder, options),
        match=_match(full),
        priority=SLOW if full["slow"] and "priority" not in entry else full["priority"],
        timeout=float(full["timeout"]),
        if_broken=full["if_broken"],
        observe=full["observe"],
        source=source("gates", name),
    )


def _observer(name: str, entry: dict[str, Any], folder: str, source: Any) -> FileObserver:
    full = OBSERVER.filled(entry)
    return FileObserver(
        name=name,
        check=_command(entry, folder, {}),
        timeout=float(full["timeout"]),
        on=tuple(full.get("on", OUTCOMES)),
        source=source("observers", name),
    )


def _match(full: dict[str, Any]) -> Match:
    whom = full["for"]
    everybody = isinstance(whom, str) and whom in _EVENTS
    return Match(
        events=_EVENTS[whom] if everybody else ("subagent",),
        agents=EVERY_AGENT if everybody else whom,
        never=full["never"],
        endings=full["endings"],
    )


def _command(entry: dict[str, Any], folder: str, options: dict[str, Any]) -> Command:
    run = entry.get("run", "")
    argv: tuple[str, ...] = () if isinstance(run, str) else tuple(run)
    if "python" in entry:
        # Which Python is found out later, where the command is run (N4).
        argv = ("python", entry["python"])
        options = options | {
            "python": entry["python"],
            "interpreter": entry.get("interpreter", ""),
        }
    return Command(
        script=run if isinstance(run, str) else "",
        argv=argv,
        dir=os.path.normpath(os.path.join(folder, entry.get("dir", ""))),
        env=tuple(entry.get("env", {}).items()),
        options=options,
    )
