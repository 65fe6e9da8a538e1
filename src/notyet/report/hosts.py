"""One host as `notyet status` sees it: its program, our entries, what is wrong, and its answer."""

from __future__ import annotations

import os

from notyet.config.load import load
from notyet.core.limits import History, Limits, limit_in_force
from notyet.core.record import Record, replace
from notyet.dialects import PATIENCE, host_face
from notyet.install import host_named
from notyet.install.contents import read_places
from notyet.install.entry import EVENTS, parsed
from notyet.install.fault import Fault, fault, is_bad
from notyet.install.look import Look, judge_of
from notyet.install.registered import registrations
from notyet.install.versions import Version, find_program, version_of
from notyet.report.own import variable_faults
from notyet.report.probe import Probe, ask, probe, probe_faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from notyet.config.load import Setup
    from notyet.core.event import Scope
    from notyet.core.gate import Gate
    from notyet.install.registered import Registration

_MARGIN = 3.0  # seconds before the host's deadline at which the hook answers (E9)
_UNSTARTABLE = {"program-missing", "program-not-executable", "interpreter-missing"}


class HostStatus(Record, kw_only=True):
    """What there is to say about one host, seen from one folder."""

    host: str
    title: str
    is_here: bool  # its program or its settings are
    program: str = ""
    version: str = ""
    registrations: tuple[Registration, ...] = ()
    gates: tuple[str, ...] = ()  # in force here
    faults: tuple[Fault, ...] = ()
    probe: Probe | None = None

    @property
    def is_gating(self) -> bool:
        """Whether nothing keeps gates from gating, as far as this host is concerned."""
        return self.is_here and not is_bad(self.faults)


def look_at(host: str, cwd: str, environ: Mapping[str, str]) -> HostStatus:
    """Look at a host, and send a stop through the installed command that asks nothing."""
    return _look(host, cwd, environ, probe)


def look_and_ask(host: str, cwd: str, environ: Mapping[str, str]) -> HostStatus:
    """Look at a host, and send a stop for which the gates are asked."""
    return _look(host, cwd, environ, ask)


def named(status: HostStatus) -> HostStatus:
    """Return a host that was asked for by its name, and so should be there."""
    if status.is_here:
        return status
    missing = fault(
        "not-registered",
        f"{status.title} was not found: neither its program nor its settings.",
        host=status.host,
        fix=f"install {status.title}, and run: notyet install {status.host}",
    )
    return replace(status, faults=(missing,))


def with_others(statuses: Iterable[HostStatus]) -> list[HostStatus]:
    """Return hosts that were looked at together: one need not be used because another is."""
    looked = list(statuses)
    if not any(status.registrations for status in looked):
        return looked
    return [status if status.registrations else _unused(status) for status in looked]


def _unused(status: HostStatus) -> HostStatus:
    mild = (
        replace(found, level="warning") if found.code == "not-registered" else found
        for found in status.faults
    )
    return replace(status, faults=tuple(mild))


def _look(
    host: str,
    cwd: str,
    environ: Mapping[str, str],
    send: Callable[[Look, Registration], Probe],
) -> HostStatus:
    module = host_named(host)
    contents = read_places(module.places(cwd, environ))
    program = find_program(module.PROGRAM, environ)
    ours = [
        entry
        for content in contents
        if content.document is not None
        for entry in registrations(host, content.place, content.document)
    ]
    is_there = any(
        os.path.isdir(os.path.dirname(content.place.path))
        for content in contents
        if content.place.scope in {"user", "managed"}
    )
    if not program and not is_there and not ours:
        return HostStatus(host=host, title=module.TITLE, is_here=False)
    look = Look(
        host=host,
        title=module.TITLE,
        cwd=cwd,
        environ=environ,
        program=program,
        version=version_of(program, environ) if program else Version(),
        contents=contents,
        registrations=tuple(ours),
    )
    setup = load(cwd, host, {**environ, **look.added})
    faults = [*_program(look), *judge_of(host).faults(look), *_variables(look), *_fits(look, setup)]
    probed = None
    entry = next((entry for entry in ours if entry.event == "Stop"), None)
    if entry is not None and _UNSTARTABLE.isdisjoint(found.code for found in faults):
        probed = send(look, entry)
        faults += probe_faults(look, entry, probed)
    return HostStatus(
        host=host,
        title=look.title,
        is_here=True,
        program=program,
        version=look.version.text,
        registrations=look.registrations,
        gates=tuple(gate.name for gate in setup.gates),
        faults=tuple(faults),
        probe=probed,
    )


def _program(look: Look) -> Iterator[Fault]:
    """Judge the host's program and its version."""
    if not look.program:
        what = f"{look.title}'s program is not on the PATH, so that nobody could ask it."
        yield look.fault("program-not-found", what, fix="nothing, if it is started otherwise")
        return
    if look.version.problem:
        what = f"{look.title} did not say its version: {look.version.problem}."
        fix = f"try it: {look.program} --version"
        yield look.fault("version-unknown", what, where=look.program, fix=fix)
        return
    floor = judge_of(look.host)
    parts, fix = look.version.parts, f"upgrade {look.title}"
    for code, least, effect in (
        ("version-too-old", floor.OLDEST, "does not run hooks as notyet needs them"),
        ("version-old", floor.ADVISED, "was not tested, and may lose answers"),
    ):
        if parts < least:
            needed = ".".join(map(str, least))
            what = f"{look.title} {look.version.text} {effect}; {needed} and later do."
            if code == "version-old":
                what = f"{look.title} {look.version.text} is older than {needed}, and {effect}."
            yield look.fault(code, what, where=look.program, fix=fix)
            return


def _variables(look: Look) -> Iterator[Fault]:
    """Say which variables the host's own settings set for its hooks."""
    places = {name: at for name, (_, at) in judge_of(look.host).variables(look.contents).items()}
    for found in variable_faults(look.added, places):
        yield replace(found, host=look.host)


def _fits(look: Look, setup: Setup) -> Iterator[Fault]:
    """Judge whether gates and limits fit into what the host grants."""
    entries = [entry for entry in look.registrations if entry.event in EVENTS]
    scopes: dict[str, Scope] = {"Stop": "agent", "SubagentStop": "subagent"}
    for event, scope in scopes.items():
        entry = next((entry for entry in entries if entry.event == event), None)
        budget = _budget(gate for gate in setup.gates if scope in gate.match.events)
        if entry is not None and budget > _time(look, entry):
            yield look.fault(
                "gates-too-slow",
                f"The gates may take {_seconds(budget)} at {event}, and {look.title} waits "
                f"{_seconds(_time(look, entry))}: what is not finished by then is let go "
                "unchecked.",
                where=entry.where,
                fix=f"give them less `timeout`, or run: notyet install {look.host} --timeout "
                f"{_longer(budget)}",
            )
            break
    environ = {**look.environ, **look.added}
    stop = host_face(look.host).read_event({"hook_event_name": "Stop"}, environ)
    wanted = Limits(**setup.limits)
    cap = getattr(stop, "host_cap", 0)
    number = limit_in_force(replace(wanted, session_ceiling=0), History(), cap).number
    if setup.gates and number < wanted.max_blocks:
        yield look.fault(
            "limit-above-cap",
            f"max_blocks is {wanted.max_blocks}, but {look.title} overrides the {cap + 1}th block "
            f"in a row: notyet stops at {number}.",
            fix=f"set max_blocks to {number} or less",
        )


def _budget(gates: Iterable[Gate]) -> float:
    """Return how long gates may take, all in all: stages follow each other."""
    stages: dict[tuple[int, int], float] = {}
    for gate in gates:
        key = (gate.priority, gate.step)
        longest = float("inf") if gate.timeout is None else gate.timeout
        stages[key] = max(stages.get(key, 0.0), longest)
    return sum(stages.values())


def _time(look: Look, entry: Registration) -> float:
    ours = parsed(entry.command)
    waits = ours.timeout if ours is not None and ours.timeout is not None else PATIENCE[look.host]
    if entry.timeout is not None:
        waits = min(waits, entry.timeout)
    return waits - min(_MARGIN, 0.2 * waits)


def _seconds(number: float) -> str:
    return "for ever" if number == float("inf") else f"{number:g} s"


def _longer(budget: float) -> str:
    return "T" if budget == float("inf") else f"{int(budget + _MARGIN) // 60 + 1}m"
