"""Whether the agents of one host are held at their stops; of main agents, and of subagents."""

from __future__ import annotations

from notyet.core.gate import place_of
from notyet.core.limits import Limits
from notyet.core.note import UNCHECKED
from notyet.core.record import Record, replace
from notyet.core.text import listed
from notyet.report.reached import SCOPES
from notyet.report.whom import leaves_nobody

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from notyet.core.event import Scope
    from notyet.core.gate import Gate
    from notyet.report.faults.fault import Fault
    from notyet.report.hosts import HostStatus

_AT_A_STOP = "done"  # the ending that these hosts' stops have; they tell us of no other
_OF_A_COMMAND = (
    "program-missing",
    "program-not-executable",
    "interpreter-missing",
    "no-reply",
    "asks-otherwise",
)


class Held(Record, kw_only=True):
    """Whether a host's agents are held; and if that is not so, or not known, why."""

    status: HostStatus
    scope: Scope
    can_hold: bool = False  # a gate is for them that could hold them
    state: Literal["yes", "perhaps", "no", "nobody"]  # nobody: no gate is for them
    gates: tuple[Gate, ...] = ()  # that are asked, also if they hold nobody
    why: str = ""
    fix: str = ""
    but: str = ""  # what is not known of some of the gates


def gates_of(status: HostStatus) -> tuple[Gate, ...]:
    """Return the gates in force for a host's agents."""
    return status.setup.gates if status.setup is not None else ()


def held(status: HostStatus, scope: Scope) -> Held:
    """Judge the stops of main agents, or of subagents, by all that is known."""
    every = [gate for gate in gates_of(status) if scope in gate.match.events]
    meant = [gate for gate in every if scope == "agent" or not leaves_nobody(gate.match)]
    asked = tuple(gate for gate in meant if _AT_A_STOP in gate.match.endings)
    can_hold = any(not gate.observe for gate in asked)
    if not meant:
        return _nobody(status, scope, every)
    judged = Held(status=status, scope=scope, can_hold=can_hold, state="no")
    event = next(event for event, whose in SCOPES.items() if whose == scope)
    for found in status.faults:
        if found.level == "fault" and concerns(found, status, event):
            return replace(judged, why=said(found), fix=found.fix)
    if event not in status.reached:
        why = f"{status.title} does not call notyet at {event}."
        return replace(judged, why=why, fix=f"run: notyet install {status.host}")
    judged = replace(judged, gates=asked)
    for why, fix in _unable(status, meant, asked):
        return replace(judged, why=why, fix=fix)
    why = status.reached[event]
    if why:
        return replace(judged, state="perhaps", why=why)
    return _with_places(judged)


def _nobody(status: HostStatus, scope: Scope, every: Sequence[Gate]) -> Held:
    """Judge stops for which there is no gate, or only some that can never be asked."""
    names = [gate.name for gate in every if "agent" not in gate.match.events]
    if not names:
        return Held(status=status, scope=scope, state="nobody")
    verb = "is" if len(names) == 1 else "are"
    why = f"{listed(names)} {verb} never asked: `never` leaves out all that `for` names"
    return Held(status=status, scope=scope, state="no", why=why, fix="change `never`")


def _with_places(judged: Held) -> Held:
    """Judge gates that are asked by where they run: elsewhere, only elsewhere can tell."""
    status = judged.status
    if status.setup is None or _was_asked(status, judged.gates):
        return replace(judged, state="yes")
    holding = [gate for gate in judged.gates if not gate.observe]
    there = {gate.name: place_of(gate, status.setup.workspace) for gate in holding}
    places = dict.fromkeys(place.url for place in there.values() if place is not None)
    if not places:
        return replace(judged, state="yes")
    far = [name for name, place in there.items() if place is not None]
    verb = "runs" if len(far) == 1 else "run"
    why = f"{listed(far)} {verb} on {listed(list(places))}, which was not asked"
    if len(far) < len(holding):
        return replace(judged, state="yes", but=f"perhaps not all: {why}")
    return replace(judged, state="perhaps", why=why, fix="run: notyet status --ask")


def _was_asked(status: HostStatus, gates: Sequence[Gate]) -> bool:
    """Tell whether `--ask` has just asked these gates; it asks as a main agent."""
    is_asked = status.probe is not None and status.probe.asked
    return is_asked and all("agent" in gate.match.events for gate in gates)


def concerns(found: Fault, status: HostStatus, event: str) -> bool:
    """Tell whether something is wrong at an event; what stands at no entry is wrong at each."""
    entries = [entry for entry in status.registrations if entry.where == found.where]
    if found.code in _OF_A_COMMAND:
        lines = {entry.command for entry in entries}
        entries = [entry for entry in status.registrations if entry.command in lines]
    if found.code == "partly-registered":
        return all(entry.event != event for entry in status.registrations)
    return not entries or any(entry.event == event for entry in entries)


def said(found: Fault) -> str:
    """Return what is wrong; what is said of a file speaks of "it"."""
    is_of_a_file = found.code.startswith("config-") and found.where
    return f"{found.where}: {found.what}" if is_of_a_file else found.what


def _unable(
    status: HostStatus, meant: Sequence[Gate], asked: Sequence[Gate]
) -> Iterator[tuple[str, str]]:
    """Say why gates hold nobody although they are in force, and what would change that."""
    if not asked:
        names = listed([gate.name for gate in meant])
        endings = listed(sorted({ending for gate in meant for ending in gate.match.endings}))
        verb = "is" if len(meant) == 1 else "are"
        why = f"{names} {verb} for an ending by {endings}, which no stop of {status.title} has"
        yield why, 'add "done" to `endings`'
    elif all(gate.observe for gate in asked):
        yield "none of them holds anybody, they only observe", "remove `observe`"
    elif status.setup is not None and not Limits(**status.setup.limits).max_blocks:
        yield "max_blocks is 0, so nobody is sent back", "set max_blocks to 1 or more"
    elif status.probe is not None and _was_asked(status, asked):
        said = status.probe.says.removeprefix("notyet: ")
        if said.startswith(UNCHECKED):
            yield f"asked just now, {said}", "see: notyet check"
