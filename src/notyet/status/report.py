"""`notyet status` as a whole: gather the facts of each host, judge them, and answer."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from notyet import __version__
from notyet.config.find import root_of
from notyet.config.load import NO_LOOK, load
from notyet.core.gate import machine_of
from notyet.hosts import host_named
from notyet.install.notyet_line import notyet_line
from notyet.install.settings import installable
from notyet.ledger.connection import default_path
from notyet.ledger.ledger import Ledger
from notyet.status.answer import answer_of
from notyet.status.facts import gather
from notyet.status.fault import Fault, fault
from notyet.status.host_faults import host_faults, missing_program, restricts, running_entries
from notyet.status.notyet_faults import notyet_faults
from notyet.status.overview import (
    caps_here,
    gates_here,
    limits_here,
    only_elsewhere,
    recent,
    setups_elsewhere,
)
from notyet.status.probe import Probe, ask, probe, probe_faults, why_not_run, without_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.load import Setup
    from notyet.install.settings import Registration
    from notyet.status.facts import HostFacts


@dataclass(frozen=True, kw_only=True)
class HostStatus:
    """How one host calls notyet in one folder, and what keeps it from that."""

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

    def plain(self) -> dict[str, Any]:
        """Return the status for `--json`."""
        gates = self.setup.gates if self.setup is not None else ()
        entries = [
            {
                "event": entry.event,
                "command": without_values(entry.command),
                "timeout": entry.timeout,
                "scope": entry.file.scope,
                "file": entry.file.path,
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
            "places": {gate.name: there.url for gate in gates if (there := machine_of(gate))},
            "faults": [found.plain() for found in self.faults],
            "probe": vars(self.probe) if self.probe is not None else None,
            "reached": dict(self.reached),
            "cap": self.cap,
        }


class StatusReport:
    """All that was found, for people and for programs."""

    def __init__(
        self, cwd: str, environ: Mapping[str, str], hosts: list[HostStatus], ledger_path: str = ""
    ) -> None:
        self.cwd, self.hosts = cwd, hosts
        wired = {one.host: one.setup for one in hosts if one.entries and one.setup is not None}
        setup = next(iter(wired.values()), None)
        setup = setup or load(cwd, hosts[0].host, environ, patience=NO_LOOK)
        self.setups: dict[str, Setup] = wired or {hosts[0].host: setup}
        self.elsewhere = setups_elsewhere(cwd, environ, self.setups)
        others = only_elsewhere(setup, self.elsewhere)
        self.faults = notyet_faults(cwd, environ, setup, others)
        self.answer = answer_of(self.faults, hosts, setup)
        self.gates = gates_here(self.setups, self.elsewhere)
        self.limits = limits_here(setup, environ)
        self.limits += caps_here(status for status in hosts if status.entries)
        self.is_well = self.answer.state == "yes"
        self.variables = sorted(name for name in environ if name.startswith("NOTYET_"))
        ledger = Ledger(ledger_path or default_path(environ), patience=1.0, repair=False)
        caps = {status.host: status.cap for status in hosts}
        try:
            place = root_of(os.path.realpath(cwd))
            self.recent = recent(ledger, place, time.time(), self.setups, caps)
        finally:
            ledger.close()

    def plain(self) -> dict[str, Any]:
        """Return everything for `--json`."""
        return {
            "notyet": __version__,
            "folder": self.cwd,
            "ok": self.is_well,
            "gated": self.answer.state == "yes",
            "answer": asdict(self.answer) | {"but": list(self.answer.but)},
            "faults": [one.plain() for one in self.faults],
            "gates": [one.plain() for one in self.gates],
            "limits": self.limits,
            "hosts": [status.plain() for status in self.hosts],
            "sessions": list(self.recent.sessions),
            "decisions": list(self.recent.decisions),
            "ledger": {"path": self.recent.path, "size": self.recent.size},
            "variables": self.variables,
        }


def report_on(cwd: str, environ: Mapping[str, str], ledger_path: str) -> StatusReport:
    """Look at all hosts, as `notyet status` without options does, and at the stops of a ledger."""
    hosts = [look_at(name, cwd, environ) for name in installable()]
    return StatusReport(cwd, environ, without_unused(hosts), ledger_path)


def look_at(
    name: str, cwd: str, environ: Mapping[str, str], *, is_asked: bool = False
) -> HostStatus:
    """Look for faults of a host and send a made-up stop; `is_asked`: the gates run for it."""
    host = host_named(name)
    facts = gather(host, cwd, environ)
    if not facts.is_here:
        return HostStatus(host=name, title=host.title, is_here=False)
    lines = _lines(facts)
    setup = _setup(facts, lines[0]) if lines else None
    setup = setup or load(cwd, name, environ, patience=NO_LOOK)
    faults = [*host_faults(facts, setup)]
    first: Probe | None = None
    tried: dict[str, str] = {}  # by command: why it was not tried
    running = running_entries(facts)
    for entry in lines:
        if entry not in running or missing_program(facts, entry):
            continue
        why = tried[entry.command] = why_not_run(facts, entry)
        if why:
            fix = "start the host here once and accept the folder, or keep notyet in its own line"
            what = f"The installed command was not tried, because {why}."
            faults.append(facts.entry_fault("not-probed", entry, what, fix))
        else:
            answer = (ask if is_asked and first is None else probe)(facts, entry)
            first = first or answer
            faults += probe_faults(facts, entry, answer, _setup(facts, entry))
    stop = host.read_event({host.fields["event"][0]: next(iter(host.stops))}, facts.hook_environ)
    return HostStatus(
        host=name,
        title=host.title,
        is_here=True,
        program=facts.program,
        version=facts.version,
        entries=facts.entries,
        faults=tuple(faults),
        probe=first,
        reached=_reached(facts, tried),
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
    """Return hosts that were looked at together: beside one with an entry, others need none."""
    if not any(status.entries for status in statuses):
        return statuses
    return [
        status
        if status.entries
        else replace(
            status,
            faults=tuple(
                replace(one, level="warning") if one.code == "not-registered" else one
                for one in status.faults
            ),
        )
        for status in statuses
    ]


def _lines(facts: HostFacts) -> list[Registration]:
    """Return one entry for each command line that runs at a stop, those of main agents first."""
    stops = [entry for event in facts.host.stops for entry in facts.entries if entry.event == event]
    return list({entry.command: entry for entry in reversed(stops)}.values())[::-1]


def _setup(facts: HostFacts, entry: Registration) -> Setup | None:
    """Return what is in force for an entry's command; None if only a shell can tell."""
    line = notyet_line(entry.command)
    if line is None or line.config is None:
        return None
    name = (line.host or facts.host.name) if line.verb == "hook" else line.verb
    only = os.path.join(facts.cwd, line.config) if line.config else ""
    return load(facts.cwd, name, facts.environ, only=only, patience=NO_LOOK)


def _reached(facts: HostFacts, tried: Mapping[str, str]) -> dict[str, str]:
    """Return the stops at which our entries run; the value is empty, or why that is unsure."""
    known: dict[str, str] = {}
    for event in facts.host.stops:
        for entry in facts.entries:
            if entry.event == event and entry.command in tried:
                why = tried[entry.command]
                why = f"its command was not tried, because {why}" if why else ""
                if not why and restricts(facts.host, entry):
                    why = (
                        f"the matcher {entry.matcher!r} keeps notyet from agents that do not match"
                    )
                known[event] = why and known.get(event, why)
    return known
