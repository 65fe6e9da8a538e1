"""Am I gated here, now? The answer in one line; the gates and limits in force, and since where."""

from __future__ import annotations

import os

from notyet.config.compile import compile_text
from notyet.config.schema import examine
from notyet.config.store import read_record, state_folder, text_of
from notyet.core.gate import EVERY_AGENT, place_of
from notyet.core.limits import History, Limits, limit_in_force
from notyet.core.record import Record, replace
from notyet.core.remote import is_remote
from notyet.core.text import listed
from notyet.report.faults.fault import is_bad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from notyet.config.setup import Setup
    from notyet.core.gate import Gate
    from notyet.report.faults.fault import Fault
    from notyet.report.hosts import HostStatus

_OFF = ("off-by-variable", "switched-off", "ledger-unusable")  # then no gate sends anybody back
_NO_GATES = "no-gates"
_NOT_THERE = "nothing calls notyet here"
DEFAULT = "default"


class Answer(Record, kw_only=True):
    """Whether agents are gated, in a sentence; what to do if not, and what limits a yes."""

    is_gated: bool
    says: str
    fix: str = ""
    but: tuple[str, ...] = ()


class GateHere(Record, kw_only=True):
    """A gate as somebody wrote it down, and whether it is in force."""

    name: str
    file: str = ""
    line: int = 0
    stage: int = 0  # gates of one stage are asked together; 0: not in force
    whom: str = ""
    when: str = ""
    paths: tuple[str, ...] = ()
    timeout: float | None = None
    place: str = ""  # the workspace that it runs in, if elsewhere
    observe: bool = False
    trusted: bool = True
    hosts: tuple[str, ...] = ()


class LimitHere(Record, kw_only=True):
    """A limit in force, and who says so."""

    name: str
    value: int | bool
    source: str  # a file with its line, or what else


def answered(own: Sequence[Fault], hosts: Sequence[HostStatus], setup: Setup) -> Answer:
    """Say whether the agents of these hosts are gated; `setup` is what is in force here."""
    wired = [status for status in hosts if status.registrations]
    stopped = [found for found in own if found.code in _OFF]
    if not setup.gates and not any(map(_gates, wired)):
        stopped += [found for found in own if found.level == "fault" or found.code == _NO_GATES]
    if stopped:
        return _no(stopped[0])
    if not wired:
        here = [status.host for status in hosts if status.is_here]
        fix = f"run: notyet install {here[0] if here else 'claude'}"
        return Answer(is_gated=False, says=f"no: {_NOT_THERE}", fix=fix)
    good = [status for status in wired if not is_bad(status.faults) and _gates(status)]
    but = [
        found
        for status in wired
        if status not in good
        for found in status.faults
        if found.level == "fault"
    ]
    but += [found for found in own if found.level == "fault"]
    if not good:
        nothing = Answer(is_gated=False, says=f"no: no gate is for {wired[0].title}")
        return _no(but[0]) if but else nothing
    names = {status.host: f"not with {status.title}: " for status in wired}
    return Answer(
        is_gated=True,
        says=_yes(good),
        but=tuple(f"{names.get(found.host, '')}{found.what}" for found in but),
    )


def _no(found: Fault) -> Answer:
    # What is said of a file speaks of "it".
    about = f"{found.where}: " if found.code.startswith("config-") and found.where else ""
    return Answer(is_gated=False, says=f"no: {about}{found.what}", fix=found.fix)


def _gates(status: HostStatus) -> tuple[Gate, ...]:
    return status.setup.gates if status.setup is not None else ()


def _yes(good: list[HostStatus]) -> str:
    titles = listed([status.title for status in good])
    most = max((_gates(status) for status in good), key=len)
    main = [gate for gate in most if "agent" in gate.match.events]
    others = len(most) - len(main)
    if not main:
        return f"yes: {_count(others)} at each stop of subagents of {titles}"
    more = f", and {others} more at those of subagents" if others else ""
    said = f"yes: {_count(len(main))} at each stop of {titles}{more}"
    return f"{said}; none of them holds anybody, they only observe" if _watch_only(most) else said


def _watch_only(gates: Iterable[Gate]) -> bool:
    return all(gate.observe for gate in gates)


def _count(number: int) -> str:
    return "1 gate is asked" if number == 1 else f"{number} gates are asked"


def gates_here(setups: Mapping[str, Setup]) -> list[GateHere]:
    """Return every gate that is in force for one of these hosts, by stage; then those that wait."""
    found: dict[tuple[object, ...], GateHere] = {}
    for host, setup in setups.items():
        for one in (*_in_force(setup), *_untrusted(setup)):
            key = (one.trusted, one.name, one.file, one.line)
            known = found.get(key, one)
            found[key] = replace(known, hosts=(*known.hosts, host))
    return sorted(found.values(), key=lambda one: (not one.trusted, one.stage))


def _in_force(setup: Setup) -> Iterator[GateHere]:
    keys = sorted({_stage(gate) for gate in setup.gates})
    for gate in setup.gates:
        yield _gate(gate, setup.workspace, keys.index(_stage(gate)) + 1)


def _stage(gate: Gate) -> tuple[int, int]:
    return -gate.priority, gate.step


def _gate(gate: Gate, workspace: str, stage: int) -> GateHere:
    place = place_of(gate, workspace)
    return GateHere(
        name=gate.name,
        file=gate.source.file if gate.source is not None else "",
        line=gate.source.line if gate.source is not None else 0,
        stage=stage,
        whom=whom(gate),
        when=gate.when,
        paths=gate.paths,
        timeout=gate.timeout,
        place=place.url if place else "",
        observe=gate.observe,
    )


def _untrusted(setup: Setup) -> Iterator[GateHere]:
    """Return the gates of files that nobody trusted; these are read, and nothing of them is run."""
    for file in setup.untrusted:
        if is_remote(file.path):  # nobody asked that machine
            continue
        try:
            settings = compile_text(text_of(file.path), file.path, file.kind, file.tree)
        except (OSError, ValueError):
            continue
        for gate in settings.gates:
            yield replace(_gate(gate, settings.workspace, 0), trusted=False)


def whom(gate: Gate) -> str:
    """Say for whose stops a gate is."""
    match = gate.match
    if match.events == ("agent",):
        said = "main agent"
    elif match.agents != EVERY_AGENT:
        said = ", ".join(match.agents)
    else:
        said = "all" if "agent" in match.events else "subagents"
    return f"{said} but {', '.join(match.never)}" if match.never else said


def limits_here(setup: Setup, environ: Mapping[str, str]) -> list[LimitHere]:
    """Return every limit, and the file and line that says so."""
    limits = Limits(**setup.limits)
    return [
        LimitHere(
            name=name,
            value=getattr(limits, name),
            source=_source(name, setup.limit_files.get(name, ""), environ),
        )
        for name in limits._fields
    ]


def _source(name: str, path: str, environ: Mapping[str, str]) -> str:
    """Return where a limit stands: in the text that was trusted, which is the one in force."""
    if not path:
        return DEFAULT
    known = read_record(state_folder(environ), path)
    text = known.content if known is not None else _text_of(path)
    examined = examine(text, path, "notyet") if text else None
    document = examined.document if examined is not None else None
    if examined is None or document is None:
        return path
    if name in examined.value.get("limits", {}):
        return f"{path}:{document.locate(('limits', name))[0]}"
    line = document.locate(("read", "openclaw"))[0]
    return f"{examined.value.get('read', {}).get('openclaw', '')} ({path}:{line})"


def _text_of(path: str) -> str:
    """Return what a file of the user's own says, of which nothing is kept."""
    try:
        return "" if is_remote(path) else text_of(path)
    except OSError:
        return ""


def caps_here(hosts: Iterable[HostStatus]) -> list[LimitHere]:
    """Return what hosts' own caps leave of `max_blocks` (B8)."""
    caps = []
    for status in hosts:
        if status.setup is None or not status.cap:
            continue
        wanted = replace(Limits(**status.setup.limits), session_ceiling=0)
        limit = limit_in_force(wanted, History(), status.cap)
        source = f"{status.title} overrides the {_nth(status.cap + 1)} block in a row"
        if limit.number < wanted.max_blocks:
            source = f"{source}: less than max_blocks"
        most = limit_in_force(replace(wanted, max_blocks=10**9), History(), status.cap).number
        caps.append(LimitHere(name=f"{status.host} cap", value=most, source=source))
    return caps


def _nth(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def size_of(path: str) -> int:
    """Return how many bytes a ledger takes, with what SQLite keeps beside it."""
    total = 0
    for name in (path, f"{path}-wal", f"{path}-shm"):
        try:
            total += os.stat(name).st_size
        except OSError:
            continue
    return total
