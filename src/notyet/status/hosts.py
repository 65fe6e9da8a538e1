"""At which stops a host is known to reach us, and at which nobody knows."""

from __future__ import annotations

import os

from notyet import hosts
from notyet.config.lint import time_of
from notyet.config.load import NO_LOOK, load
from notyet.core.gate import place_of
from notyet.core.limits import History, Limits, limit_in_force
from notyet.core.record import Record, replace
from notyet.core.text import visible
from notyet.hosts import MARGIN
from notyet.hosts.own_line import own_line
from notyet.install import host_named
from notyet.install.entry import EVENTS, STOPS
from notyet.install.registered import registrations
from notyet.status.faults.entries import install_again, restricts, spoken
from notyet.status.faults.fault import Fault, fault, is_bad
from notyet.status.faults.look import Look, judge_of, read_places
from notyet.status.faults.programs import (
    Version,
    find_program,
    launching_faults,
    program_fault,
    version_of,
)
from notyet.status.own import once_asked, own_faults
from notyet.status.probe import (
    Probe,
    ask,
    is_skipped,
    not_probed,
    probe,
    probe_faults,
    why_not_sent,
)
from notyet.status.waits import time_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from notyet.config.load import Setup
    from notyet.core.event import Scope
    from notyet.install.registered import Registration

SCOPES: dict[str, Scope] = {"Stop": "agent", "SubagentStop": "subagent"}


def reached(look: Look, tried: Mapping[str, str]) -> dict[str, str]:
    """Return the stops at which a line of ours is run; empty where known, else why it is not.

    `tried` are the command lines that a stop was sent through, and those that it was not, with
    the reason.
    """
    known: dict[str, str] = {}
    for event in SCOPES:
        for entry in look.registrations:
            if entry.event == event and entry.command in tried:
                why = _untried(tried[entry.command]) or _left_out(look, entry)
                known[event] = why and known.get(event, why)
    return known


def _untried(why: str) -> str:
    return f"its command was not tried, because {why}" if why else ""


def _left_out(look: Look, entry: Registration) -> str:
    if not restricts(look.host, entry):
        return ""
    return f"the matcher `{visible(str(entry.matcher))}` keeps notyet from those it does not fit"


# Variables that say where our own files are.
_MOVING = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "NOTYET_LEDGER")


class HostStatus(Record, kw_only=True):
    """What there is to say about one host, seen from one folder."""

    host: str
    title: str
    is_here: bool  # its program or its settings are
    program: str = ""
    version: str = ""
    registrations: tuple[Registration, ...] = ()
    gates: tuple[str, ...] = ()  # in force here
    places: Mapping[str, str] = {}  # the workspaces of those of them that run elsewhere
    faults: tuple[Fault, ...] = ()
    probe: Probe | None = None
    reached: Mapping[str, str] = {}  # stops at which it runs us; where nobody knows, why
    cap: int = 0  # blocks in a row after which the host overrides us; 0: none
    setup: Setup | None = None  # what is in force for its agents here

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
    taken, judged = judge_of(host).judged(look)
    lines = _lines(taken)
    config = config_of(lines[0], cwd) if lines else ""
    setup = _setup(taken, lines[0] if lines else None, config or "")
    judged = [_needed(taken, found, setup) for found in judged]
    faults = [*_program(look), *judged, *_own(taken, setup, config or ""), *_fits(taken, setup)]
    probed = None
    tried: dict[str, str] = {}
    for entry in lines:
        if is_skipped(taken, entry) or program_fault(taken, entry) is not None:
            continue
        why = tried[entry.command] = why_not_sent(taken, entry)
        if why:
            faults.append(not_probed(taken, entry, why))
        else:
            answer = (probe if probed else send)(taken, entry)
            probed = probed or answer
            own = config_of(entry, cwd)
            expected = None if own is None else _setup(taken, entry, own)
            faults += probe_faults(taken, entry, answer, expected)
    faults += launching_faults(taken, lines)
    if probed is not None and probed.asked:
        faults = once_asked(faults)
    return HostStatus(
        host=host,
        title=look.title,
        is_here=True,
        program=program,
        version=look.version.text,
        registrations=look.registrations,
        gates=tuple(gate.name for gate in setup.gates),
        places={gate.name: there.url for gate in setup.gates if (there := place_of(gate))},
        faults=tuple(faults),
        probe=probed,
        reached=reached(taken, tried),
        cap=_cap(taken),
        setup=setup,
    )


def _needed(look: Look, found: Fault, setup: Setup) -> Fault:
    """Return a fault as it is, or milder if no gate is for the stops that we are not called at."""
    if found.code != "partly-registered" or not setup.gates:
        return found
    known = {entry.event for entry in look.registrations}
    missed = {scope for event, scope in SCOPES.items() if event not in known}
    is_needed = any(missed & set(gate.match.events) for gate in setup.gates)
    return found if is_needed else replace(found, level="warning")


def _lines(look: Look) -> list[Registration]:
    """Return an entry for each command line that is run at a stop, those of main agents first."""
    stops = [entry for event in STOPS for entry in look.registrations if entry.event == event]
    return list({entry.command: entry for entry in reversed(stops)}.values())[::-1]


def config_of(entry: Registration, cwd: str) -> str | None:
    """Return the file that a command uses instead of others: empty for none, None if unknown."""
    line = own_line(entry.command)
    config = line.config if line is not None else ""
    return os.path.join(cwd, config) if config else config


def _setup(look: Look, entry: Registration | None, config: str) -> Setup:
    """Return what is in force for an entry's command."""
    host = look.host if entry is None else spoken(look, entry)
    return load(look.cwd, host, look.environ_of_hooks, only=config, patience=NO_LOOK)


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


def _own(look: Look, setup: Setup, config: str) -> Iterator[Fault]:
    """Say what is wrong on our own side only if this host calls us."""
    if not look.added and not config:
        return
    places = {name: at for name, (_, at) in judge_of(look.host).variables(look.contents).items()}
    here = load(look.cwd, look.host, look.environ, patience=NO_LOOK)
    known = own_faults(look.cwd, look.environ, here)
    moved = ", ".join(name for name in _MOVING if name in look.added)
    remove = f"remove {moved} from the `env` of {look.title}'s settings"
    for found in own_faults(look.cwd, look.environ_of_hooks, setup, places, config):
        if found not in known:
            is_moved = bool(moved) and not config and found.code != "off-by-variable"
            yield replace(found, host=look.host, fix=remove if is_moved else found.fix)


def _fits(look: Look, setup: Setup) -> Iterator[Fault]:
    """Judge whether gates and limits fit into what the host grants."""
    entries = [entry for entry in look.registrations if entry.event in EVENTS]
    for event, scope in SCOPES.items():
        entry = next((entry for entry in entries if entry.event == event), None)
        budget = time_of(gate for gate in setup.gates if scope in gate.match.events)
        if entry is not None and budget > time_for(look.host, entry):
            yield look.fault(
                "gates-too-slow",
                f"The gates may take {_seconds(budget)} at {event}, and {look.title} waits "
                f"{_seconds(time_for(look.host, entry))}: what is not finished by then is let go "
                "unchecked.",
                where=entry.where,
                fix=f"give them less `timeout`, or {install_again(look, entry, _longer(budget))}",
            )
            break
    wanted = Limits(**setup.limits)
    cap = _cap(look)
    number = limit_in_force(replace(wanted, session_ceiling=0), History(), cap).number
    if setup.gates and number < wanted.max_blocks:
        yield look.fault(
            "limit-above-cap",
            f"max_blocks is {wanted.max_blocks}, but {look.title} overrides the {cap + 1}th block "
            f"in a row: notyet stops at {number}.",
            fix=f"set max_blocks to {number} or less",
        )


def _cap(look: Look) -> int:
    stop = hosts.host_named(look.host).read_event(
        {"hook_event_name": "Stop"}, look.environ_of_hooks
    )
    return int(getattr(stop, "host_cap", 0))


def _seconds(number: float) -> str:
    return "for ever" if number == float("inf") else f"{number:g} s"


def _longer(budget: float) -> str:
    return "T" if budget == float("inf") else f"{int(budget + MARGIN) // 60 + 1}m"
