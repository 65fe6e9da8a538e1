"""What `notyet status` shows of a place: gates, limits, sessions and the last decisions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from notyet.config.compile import compile_text, examine
from notyet.config.compiled import read_record
from notyet.config.find import state_folder, text_of
from notyet.config.load import NO_LOOK, load
from notyet.core.gate import EVERY_AGENT, Command, machine_of
from notyet.core.limits import History, Limits, limit_in_force
from notyet.core.record import replace as replace_record
from notyet.core.remote import is_remote
from notyet.core.verdict import outcome_words
from notyet.errors import LedgerError
from notyet.hosts import all_hosts
from notyet.hosts.openclaw import OPENCLAW
from notyet.ledger import past_stops

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from notyet.config.load import Setup
    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.ledger.ledger import Ledger
    from notyet.status.report import HostStatus

WITH = "notyet with"
DEFAULT = "default"  # the source of a limit that no file sets
SEEN_RECENTLY = 12 * 3_600.0  # seconds; sessions that were not seen since are not shown
_MOST = 5  # sessions, and decisions
_WOULD_HAVE = {"blocked": "would have blocked", "halted": "would have ended the turn"}


@dataclass(frozen=True, kw_only=True)
class GateHere:
    """A gate of a configuration file, and whether it is in force."""

    name: str
    file: str = ""
    line: int = 0
    stage: int = 0  # gates of one stage run together; 0: not in force
    whom: str = ""
    when: str = ""
    paths: list[str] = field(default_factory=list)
    timeout: float | None = None
    place: str = ""  # the workspace that it runs in, if that is elsewhere
    observe: bool = False
    trusted: bool = True
    hosts: list[str] = field(default_factory=list)
    runs: str = ""  # its command or function, for people only

    def plain(self) -> dict[str, Any]:
        """Return the gate for `--json`."""
        return {name: value for name, value in vars(self).items() if name != "runs"}


@dataclass(frozen=True, kw_only=True)
class Recent:
    """What the ledger says of a project, as `--json` has it; or in `problem` why nothing."""

    path: str
    size: int = 0  # bytes; 0: there is none yet
    sessions: tuple[dict[str, Any], ...] = ()
    decisions: tuple[dict[str, Any], ...] = ()
    words: tuple[str, ...] = ()  # the outcomes of the decisions, for people
    problem: str = ""


def setups_elsewhere(
    cwd: str, environ: Mapping[str, str], known: Collection[str]
) -> dict[str, Setup]:
    """Return what is in force under other hosts than those known, and under `notyet with`.

    The others are hosts whose own hooks notyet runs, as Mux's (J8).
    """
    names = [host.name for host in all_hosts() if host.notyet_runs_hooks]
    found = {
        name: load(cwd, name, environ, patience=NO_LOOK) for name in names if name not in known
    }
    return found | {WITH: load(cwd, "notyet", environ, agent=WITH, patience=NO_LOOK)}


def only_elsewhere(setup: Setup, elsewhere: Mapping[str, Setup]) -> list[tuple[Gate, str]]:
    """Return the gates that are in force, but not in this setup; and under what they run."""
    here = {_key(gate) for gate in setup.gates}
    found: dict[tuple[object, ...], tuple[Gate, list[str]]] = {}
    for name, other in elsewhere.items():
        for gate in other.gates:
            if _key(gate) not in here:
                found.setdefault(_key(gate), (gate, []))[1].append(name)
    return [(gate, f"only under {', '.join(names)}") for gate, names in found.values()]


def _key(gate: Gate) -> tuple[object, ...]:
    source = gate.source
    return (gate.name, source.file, source.line) if source is not None else (gate.name,)


def gates_here(
    setups: Mapping[str, Setup], elsewhere: Mapping[str, Setup] | None = None
) -> list[GateHere]:
    """Return the gates in force for these hosts by stage, then those of untrusted files.

    `elsewhere` are setups of which only the gates in force count.
    """
    found: dict[tuple[object, ...], GateHere] = {}
    gates = [(host, (*_in_force(setup), *_untrusted(setup))) for host, setup in setups.items()]
    gates += [(name, (*_in_force(setup),)) for name, setup in (elsewhere or {}).items()]
    for host, ones in gates:
        for one in ones:
            key = (one.trusted, one.name, one.file, one.line)
            known = found.get(key, one)
            found[key] = replace(known, hosts=[*known.hosts, host])
    return sorted(found.values(), key=lambda one: (not one.trusted, one.stage))


def _in_force(setup: Setup) -> Iterator[GateHere]:
    stages = sorted({(-gate.priority, gate.step) for gate in setup.gates})
    for gate in setup.gates:
        yield _gate(gate, setup.workspace, stages.index((-gate.priority, gate.step)) + 1)


def _untrusted(setup: Setup) -> Iterator[GateHere]:
    for gate, workspace in untrusted_gates(setup):
        yield replace(_gate(gate, workspace, 0), trusted=False)


def untrusted_gates(setup: Setup) -> Iterator[tuple[Gate, str]]:
    """Yield the gates of untrusted files, which are read and not run, and their workspaces."""
    for file in setup.untrusted:
        try:
            text = "" if is_remote(file.path) else text_of(file.path)
            settings = compile_text(text, file.path, file.kind, file.source)
        except (OSError, ValueError):
            continue
        for gate in settings.gates:
            yield gate, settings.workspace


def _gate(gate: Gate, workspace: str, stage: int) -> GateHere:
    place = machine_of(gate, workspace)
    return GateHere(
        name=gate.name,
        file=gate.source.file if gate.source is not None else "",
        line=gate.source.line if gate.source is not None else 0,
        stage=stage,
        whom=agents_of(gate),
        when=gate.when,
        paths=list(gate.paths),
        timeout=gate.timeout,
        place=place.url if place else "",
        observe=gate.observe,
        runs=gate.check.first_line if isinstance(gate.check, Command) else "",
    )


def agents_of(gate: Gate) -> str:
    """Return whose stops a gate is for."""
    match = gate.match
    if match.events == ("agent",):
        agents = "main agent"
    elif match.agents != EVERY_AGENT:
        agents = ", ".join(match.agents)
    else:
        agents = "all" if "agent" in match.events else "subagents"
    return f"{agents} but {', '.join(match.never)}" if match.never else agents


def limits_here(setup: Setup, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return every limit as name, value and source: the file and line that sets it."""
    limits = Limits(**setup.limits)
    sources = {
        name: _source(name, setup.limit_files.get(name, ""), environ) for name in limits._fields
    }
    values = {name: getattr(limits, name) for name in sources} | {"jobs": limits.jobs or "cores"}
    return [_limit(name, values[name], source) for name, source in sources.items()]


def _limit(name: str, value: int | str, source: str) -> dict[str, Any]:
    return {"name": name, "value": value, "source": source}


def _source(name: str, path: str, environ: Mapping[str, str]) -> str:
    """Return where a limit is set, in the trusted text of its file."""
    if not path:
        return DEFAULT
    known = read_record(state_folder(environ), path)
    try:
        if known is not None and not known.is_sealed:
            text = known.content
        else:
            text = "" if is_remote(path) else text_of(path)
    except OSError:
        text = ""
    examined = examine(text, path, "notyet") if text else None
    document = examined.document if examined is not None else None
    if examined is None or document is None:
        return path
    if name in examined.value.get("limits", {}):
        return f"{path}:{document.locate(('limits', name))[0]}"
    line = document.locate(("read", OPENCLAW))[0]
    return f"{examined.value.get('read', {}).get(OPENCLAW, '')} ({path}:{line})"


def caps_here(hosts: Iterable[HostStatus]) -> list[dict[str, Any]]:
    """Return what the hosts' own caps leave of `max_blocks` (B8)."""
    caps = []
    for status in hosts:
        if status.setup is None or not status.cap:
            continue
        wanted = replace_record(Limits(**status.setup.limits), session_ceiling=0)
        most = limit_in_force(replace_record(wanted, max_blocks=10**9), History(), status.cap)
        source = f"{status.title} may override block {status.cap} in a row"
        if most.number < wanted.max_blocks:
            source = f"{source}: less than max_blocks"
        caps.append(_limit(f"{status.host} cap", most.number, source))
    return caps


def recent(
    ledger: Ledger, place: str, now: float, setups: Mapping[str, Setup], caps: Mapping[str, int]
) -> Recent:
    """Return the sessions and decisions of a folder and those below; write nothing."""
    size = size_of(ledger.path)
    if ledger.connection.is_file and (not size or not os.path.exists(ledger.path)):
        return Recent(path=ledger.path)
    fallback = next(iter(setups.values()))

    def session(agent: past_stops.PastAgent) -> dict[str, Any]:
        limits = Limits(**setups.get(agent.host, fallback).limits)
        limit = limit_in_force(limits, agent.history, caps.get(agent.host, 0))
        return {
            "host": agent.host,
            "session_id": agent.session_id,
            "agent_id": agent.agent_id,
            "turn": agent.history.turn,
            "used": agent.history.blocks,
            "limit": limit.number,
            "source": limit.source,
            "session_blocks": agent.history.session_blocks,
            "outcome": agent.outcome,
            "seen_at": agent.seen_at,
        }

    try:
        agents = past_stops.agents(ledger, now - SEEN_RECENTLY, place, _MOST)
        stops = past_stops.stops(ledger, past_stops.StopFilter(place=place, most=_MOST))
    except LedgerError as error:
        return Recent(path=ledger.path, size=size, problem=error.detail)
    return Recent(
        path=ledger.path,
        size=size,
        sessions=tuple(map(session, agents)),
        decisions=tuple(map(_decision, stops)),
        words=tuple(outcome_words(stop.outcome, stop.why) for stop in stops),
    )


def _decision(stop: past_stops.PastStop) -> dict[str, Any]:
    reports = [one for one in stop.reports if one.status not in {"allowed", "not_asked"}]
    gates = ", ".join(f"{report.gate} {_did(report)}" for report in reports)
    return {
        "id": stop.id,
        "at": stop.ended_at or stop.begun_at,
        "host": stop.host,
        "session_id": stop.session_id,
        "agent_id": stop.agent_id,
        "outcome": stop.outcome,
        "count": stop.count,
        "limit": stop.limit,
        "why": gates or stop.why or ", ".join(report.gate for report in stop.reports),
    }


def _did(report: Report) -> str:
    return _WOULD_HAVE.get(report.status, report.status) if report.observed else report.status


def size_of(path: str) -> int:
    """Return the bytes of a ledger with the files that SQLite keeps beside it."""
    total = 0
    for name in (path, f"{path}-wal", f"{path}-shm"):
        try:
            total += os.stat(name).st_size
        except OSError:
            continue
    return total


def near(path: str, cwd: str) -> str:
    """Return a path as short as a person in a folder writes it."""
    if cwd and path.startswith(cwd.rstrip("/") + "/"):
        return path.removeprefix(cwd.rstrip("/") + "/")
    home = os.path.expanduser("~")
    return f"~{path.removeprefix(home)}" if len(home) > 1 and path.startswith(f"{home}/") else path
