"""`HostStatus`: how one host calls notyet here, and what keeps it from that."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from notyet.config.load import NO_LOOK, load
from notyet.core.gate import place_of
from notyet.hosts import host_named
from notyet.hosts.faults import checks_of
from notyet.install.own_line import own_line
from notyet.status.entries import (
    entry_faults,
    launcher_faults,
    missing_program,
    restricts,
    slow_gates,
    version_faults,
)
from notyet.status.fault import Fault, fault, is_bad, place
from notyet.status.look import look_around
from notyet.status.own import variable_faults
from notyet.status.probe import Probe, ask, masked, probe, probe_faults, why_not_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.config.load import Setup
    from notyet.hosts.faults import Checks
    from notyet.install.settings import Registration
    from notyet.status.look import Look


@dataclass(frozen=True, kw_only=True)
class HostStatus:
    """One host, seen from one folder."""

    host: str
    title: str
    is_here: bool  # its program or its settings are
    program: str = ""
    version: str = ""
    entries: tuple[Registration, ...] = ()
    faults: tuple[Fault, ...] = ()
    probe: Probe | None = None
    reached: Mapping[str, str] = field(default_factory=dict)  # see `_reached`
    cap: int = 0  # blocks in a row after which the host overrides us; 0: none
    setup: Setup | None = None  # what is in force for its agents here

    @property
    def is_gating(self) -> bool:
        """Whether nothing keeps gates from working with this host."""
        return self.is_here and not is_bad(self.faults)

    def plain(self) -> dict[str, Any]:
        """Return the status for `--json`."""
        gates = self.setup.gates if self.setup is not None else ()
        entries = [
            {
                "event": entry.event,
                "command": masked(entry.command),
                "timeout": entry.timeout,
                "scope": entry.place.scope,
                "file": entry.place.path,
                "line": entry.line,
                "column": entry.column,
            }
            for entry in self.entries
        ]
        return {
            "host": self.host,
            "title": self.title,
            "is_here": self.is_here,
            "program": self.program,
            "version": self.version,
            "registrations": entries,
            "gates": [gate.name for gate in gates],
            "places": {gate.name: there.url for gate in gates if (there := place_of(gate))},
            "faults": [found.plain() for found in self.faults],
            "probe": vars(self.probe) if self.probe is not None else None,
            "reached": dict(self.reached),
            "cap": self.cap,
        }


def look_at(
    name: str, cwd: str, environ: Mapping[str, str], *, is_asked: bool = False
) -> HostStatus:
    """Look for faults of a host and send a made-up stop; `is_asked`: the gates run for it."""
    host = host_named(name)
    look = look_around(host, cwd, environ)
    if not look.program and not look.has_settings and not look.entries:
        return HostStatus(host=name, title=host.title, is_here=False)
    look = replace(look, added=checks_of(name).variables(look.contents))
    lines = _lines(look)
    setup = _setup(look, lines[0] if lines else None) or load(cwd, name, environ, patience=NO_LOOK)
    faults = [
        *version_faults(look),
        *_with_levels(look, setup, [*_files(look), *entry_faults(look)]),
        *_merged(look, checks_of(name)),
        *(replace(found, host=name) for found in variable_faults(look.added)),
        *slow_gates(look, setup),
        *launcher_faults(look),
    ]
    first: Probe | None = None
    tried: dict[str, str] = {}  # by command: why it was not tried
    for entry in lines:
        if not checks_of(name).runs(look, entry) or missing_program(look, entry):
            continue
        why = tried[entry.command] = why_not_run(look, entry)
        if why:
            fix = "start the host here once and accept the folder, or keep notyet in its own line"
            what = f"The installed command was not tried, because {why}."
            faults.append(look.entry_fault("not-probed", entry, what, fix))
        else:
            answer = (ask if is_asked and first is None else probe)(look, entry)
            first = first or answer
            faults += probe_faults(look, entry, answer, _setup(look, entry))
    stop = host.read_event({"hook_event_name": next(iter(host.stops))}, look.hook_environ)
    return HostStatus(
        host=name,
        title=host.title,
        is_here=True,
        program=look.program,
        version=look.version,
        entries=look.entries,
        faults=tuple(faults),
        probe=first,
        reached=_reached(look, tried),
        cap=int(getattr(stop, "host_cap", 0)),
        setup=setup,
    )


def not_found(status: HostStatus) -> HostStatus:
    """Return a host that the user named, with a fault if it is not here."""
    if status.is_here:
        return status
    what = f"{status.title} was not found: neither its program nor its settings."
    fix = f"install {status.title}, and run: notyet install {status.host}"
    return replace(status, faults=(fault("not-registered", what, host=status.host, fix=fix),))


def without_unused(statuses: list[HostStatus]) -> list[HostStatus]:
    """Return hosts that were looked at together: those without an entry need none."""
    if not any(status.entries for status in statuses):
        return statuses
    return [
        status
        if status.entries
        else replace(status, faults=tuple(_mild(f, "not-registered") for f in status.faults))
        for status in statuses
    ]


def _mild(found: Fault, code: str) -> Fault:
    return replace(found, level="warning") if found.code == code else found


def _files(look: Look) -> Iterator[Fault]:
    for content in look.contents:
        mistake = content.mistake
        if mistake is not None:
            yield look.fault(
                "file-invalid",
                f"{look.host.title} cannot read this file: {mistake.message}.",
                where=place(mistake.file, mistake.line, mistake.column),
                fix=mistake.hint or "correct it",
            )


def _with_levels(look: Look, setup: Setup, faults: list[Fault]) -> Iterator[Fault]:
    """Yield faults; those that keep no gate from working become warnings."""
    missing = look.missing(look.host.stops)
    scopes = {look.host.stops[event] for event in missing}
    is_needed = any(scopes & set(gate.match.events) for gate in setup.gates)
    has_broken_file = any(found.code == "file-invalid" for found in faults)
    for found in faults:
        is_unneeded = found.code == "partly-registered" and setup.gates and not is_needed
        if is_unneeded or (found.code == "file-invalid" and not missing):
            yield replace(found, level="warning")
        elif found.code != "not-registered" or not has_broken_file:  # the file explains it
            yield found


def _merged(look: Look, checks: Checks) -> Iterator[Fault]:
    """Yield the host's own faults once for all entries; mild if another entry runs instead."""
    running = {entry.event for entry in look.entries if checks.runs(look, entry)}
    found: dict[tuple[str, str], Fault] = {}
    for one in checks.faults(look):
        known = found.setdefault((one.code, one.what), one)
        events = tuple(dict.fromkeys((*known.events, *one.events)))
        found[one.code, one.what] = replace(known, events=events)
    for one in found.values():
        is_covered = bool(one.events) and running.issuperset(one.events)
        yield replace(one, level="warning") if is_covered else one


def _lines(look: Look) -> list[Registration]:
    """Return one entry for each command line that runs at a stop, those of main agents first."""
    stops = [entry for event in look.host.stops for entry in look.entries if entry.event == event]
    return list({entry.command: entry for entry in reversed(stops)}.values())[::-1]


def _setup(look: Look, entry: Registration | None) -> Setup | None:
    """Return what is in force for an entry's command; None if only a shell can tell."""
    line = own_line(entry.command) if entry is not None else None
    config = line.config if line is not None else ""
    if config is None:
        return None
    name = look.host.name if line is None else line.host or look.host.name
    name = line.verb if line is not None and line.verb != "hook" else name
    only = os.path.join(look.cwd, config) if config else ""
    return load(look.cwd, name, look.environ, only=only, patience=NO_LOOK)


def _reached(look: Look, tried: Mapping[str, str]) -> dict[str, str]:
    """Return the stops at which our entries run; the value is empty, or why that is unsure."""
    known: dict[str, str] = {}
    for event in look.host.stops:
        for entry in look.entries:
            if entry.event == event and entry.command in tried:
                why = tried[entry.command]
                why = f"its command was not tried, because {why}" if why else ""
                if not why and restricts(look.host, entry):
                    why = f"the matcher {entry.matcher!r} keeps notyet from agents that do not fit"
                known[event] = why and known.get(event, why)
    return known
