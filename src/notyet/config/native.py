"""Read `notyet.toml` into `Settings` (J6). A mistake in it does not affect the rest (J7)."""

from __future__ import annotations

import os

from notyet.config.files import parent
from notyet.config.schema import ALL, GATE, MAIN, OBSERVER, SUBAGENTS, examine
from notyet.config.settings import FileObserver, Settings
from notyet.core.gate import EVERY_AGENT, Command, Gate, Match, Source
from notyet.core.remote import LOCAL, is_remote, remote_from
from notyet.core.verdict import OUTCOMES
from notyet.hosts.openclaw import NAME as OPENCLAW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.document import Mistake
    from notyet.config.schema import Examined
    from notyet.core.event import Scope

SLOW = -1  # the priority of gates that run when the quick ones passed
_EVENTS: dict[str, tuple[Scope, ...]] = {
    MAIN: ("agent",),
    SUBAGENTS: ("subagent",),
    ALL: ("agent", "subagent"),
}


def read_native(text: str, file: str, workspace: str = "") -> Settings:
    """Return what a `notyet.toml` says, with every mistake in it; `file` may be an address.

    `workspace` counts instead of the file's own, if there is one.
    """
    examined = examine(text, file, "notyet")
    value = examined.value
    reading = _Reading(file, examined, workspace)
    read = value.get("read", {})
    openclaw = read.get(OPENCLAW, "")
    return Settings(
        file=file,
        gates=reading.gates(),
        limits=value.get("limits", {}),
        ledger=value.get("ledger", {}),
        observers=tuple(
            reading.observer(name, entry) for name, entry in value.get("observers", {}).items()
        ),
        start_tell=value.get("start", {}).get("tell"),
        read_hosts=tuple(dict.fromkeys(read.get("hosts", ()))),
        workspace=(workspace or value.get("workspace", "")) if not is_remote(file) else "",
        openclaw=os.path.join(reading.folder, os.path.expanduser(openclaw)) if openclaw else "",
        reply=value.get("reply", {}),
        mistakes=(*examined.mistakes, *reading.mistakes),
        warnings=tuple(reading.warnings),
    )


class _Reading:
    """One file, and where its commands would run.

    A file in a workspace can name commands for its own machine only: it must not make us connect
    to another one.
    """

    def __init__(self, file: str, examined: Examined, workspace: str) -> None:
        self._file = file
        self._examined = examined
        self.mistakes: list[Mistake] = []
        self.warnings: list[Mistake] = []
        self.home = parent(file) if is_remote(file) else ""  # the workspace that it is in
        self.folder = (
            remote_from(self.home).path if self.home else os.path.dirname(os.path.abspath(file))
        )
        named = workspace or examined.value.get("workspace", LOCAL)
        if self.home and named not in {LOCAL, self.home}:
            message = f"`workspace` has no effect in a file of the workspace {self.home}"
            self.warnings.append(self._examined.mistake(("workspace",), message))
        self.workspace = self.home or ("" if named == LOCAL else named)

    def gates(self) -> tuple[Gate, ...]:
        """Return the gates; none if there is a mistake in the machine they would run on."""
        said = self._examined.document.value if self._examined.document else {}
        if "workspace" in said and "workspace" not in self._examined.value:
            return ()
        entries = self._examined.value.get("gates", {})
        read = [
            self._gate(name, {"run": entry} if isinstance(entry, str) else entry)
            for name, entry in entries.items()
        ]
        return tuple(gate for gate in read if gate is not None)

    def _gate(self, name: str, entry: dict[str, Any]) -> Gate | None:
        named = entry.get("workspace", "")
        if self.home and named not in {"", LOCAL, self.home}:
            message = f"`gates.{name}.workspace` names another machine or folder than the file's"
            hint = f'leave it out, or write "{LOCAL}" for the machine that the file is on'
            self.mistakes.append(
                self._examined.mistake(("gates", name, "workspace"), message, hint)
            )
            return None
        workspace = self.home or named or self.workspace
        full = GATE.filled(entry)
        options = {key: full[key] for key in ("pass_codes", "hint")}
        return Gate(
            name=name,
            check=self._command(entry, workspace, options),
            match=_match(full),
            priority=SLOW if full["slow"] and "priority" not in entry else full["priority"],
            timeout=float(full["timeout"]),
            if_broken=full["if_broken"],
            observe=full["observe"],
            when=full["when"],
            paths=tuple(full["paths"]),
            source=self._source("gates", name),
        )

    def observer(self, name: str, entry: dict[str, Any]) -> FileObserver:
        """Return an observer; it runs on the machine of its file."""
        full = OBSERVER.filled(entry)
        return FileObserver(
            name=name,
            check=self._command(entry, self.home, {}),
            timeout=float(full["timeout"]),
            on=tuple(full.get("on", OUTCOMES)),
            source=self._source("observers", name),
        )

    def _command(self, entry: dict[str, Any], workspace: str, options: dict[str, Any]) -> Command:
        run = entry.get("run", "")
        argv: tuple[str, ...] = () if isinstance(run, str) else tuple(run)
        if "python" in entry:
            # The interpreter is found where the command runs (N4).
            argv = ("python", entry["python"])
            options = options | {
                "python": entry["python"],
                "interpreter": entry.get("interpreter", ""),
            }
        folder = remote_from(workspace).path if is_remote(workspace) else self.folder
        return Command(
            script=run if isinstance(run, str) else "",
            argv=argv,
            dir=os.path.normpath(os.path.join(folder, entry.get("dir", ""))),
            workspace=workspace,
            env=tuple(entry.get("env", {}).items()),
            options=options,
        )

    def _source(self, *path: str) -> Source:
        return Source(self._file, self._examined.line(path))


def _match(full: dict[str, Any]) -> Match:
    whom = full["for"]
    everybody = isinstance(whom, str) and whom in _EVENTS
    return Match(
        events=_EVENTS[whom] if everybody else ("subagent",),
        agents=EVERY_AGENT if everybody else whom,
        never=full["never"],
        endings=full["endings"],
    )
