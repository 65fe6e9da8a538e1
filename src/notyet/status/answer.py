"""The answer of `notyet status`: are agents checked here? Yes, partly, perhaps or no, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notyet.config.lint import excludes_all
from notyet.core.gate import EVERY_AGENT, machine_of
from notyet.core.limits import Limits
from notyet.core.text import listed, visible
from notyet.core.verdict import UNCHECKED
from notyet.hosts import host_named
from notyet.status.fault import is_bad

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.config.load import Setup
    from notyet.core.event import Scope
    from notyet.core.gate import Gate
    from notyet.status.fault import Fault
    from notyet.status.report import HostStatus

_OFF = ("off-by-variable", "switched-off", "ledger-unusable")  # no gate works then
_NO_HOST = "install a host of: notyet hosts; or run an agent that is checked with: notyet with"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether agents are checked, in a sentence; how to fix a no, and what limits a yes."""

    state: str = "no"  # "yes", "partly" (a yes beside a fault), "perhaps" or "no"
    says: str
    fix: str = ""
    but: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Whether the stops of a host's main agents, or of its subagents, are checked."""

    status: HostStatus
    scope: Scope
    state: str  # "yes", "perhaps", "no", or "none": no gate is for them
    gates: tuple[Gate, ...] = ()  # those that run
    can_block: bool = False
    why: str = ""
    fix: str = ""
    but: str = ""


def answer_of(own: Sequence[Fault], hosts: Sequence[HostStatus], setup: Setup) -> Answer:
    """Answer for these hosts; `setup` is what is in force here, `own` the faults of our side."""
    wired = [status for status in hosts if status.entries]
    stopped = [found for found in own if found.code in _OFF and found.level == "fault"]
    if not setup.gates and not any(one.setup and one.setup.gates for one in wired):
        stopped += [found for found in own if found.level == "fault" or found.code == "no-gates"]
    if stopped:
        return Answer(says=f"no: {_sentence(stopped[0])}", fix=stopped[0].fix)
    if not wired:
        return _no_host([status for status in hosts if status.is_here])
    mains = [coverage(status, "agent") for status in wired]
    others = [coverage(status, "subagent") for status in wired]
    # Main agents decide, unless only subagents have a gate that can block.
    is_main = any(one.can_block for one in mains)
    first, second = (mains, others) if is_main else (others, mains)
    found = _positive(first, second) or _negative([*first, *second], own)
    but = [
        *(one.but for one in first if one.state == "yes" and one.but),
        *_exceptions(first, second, found),
        *(_sentence(one) for one in own if one.level == "fault"),
    ]
    found = replace(found, but=tuple(words for words in but if words not in found.says))
    faults = [*own, *(one for status in hosts for one in status.faults)]
    if found.state != "yes" or not is_bad(faults):
        return found
    fix = next(one.fix for one in faults if one.level == "fault")
    return replace(found, state="partly", says=found.says.replace("yes", "partly", 1), fix=fix)


def _no_host(here: Sequence[HostStatus]) -> Answer:
    """Answer where no host calls notyet; `install` cannot change a settings file that is broken."""
    if not here:
        return Answer(says="no: no host calls notyet here", fix=_NO_HOST)
    install = f"run: notyet install {here[0].host}"
    for one in here[0].faults:
        if one.code == "file-invalid":
            return Answer(says=f"no: {one.what}", fix=f"{one.fix} at {one.where}, then {install}")
    return Answer(says="no: no host calls notyet here", fix=install)


def coverage(status: HostStatus, scope: Scope) -> Coverage:
    """Find out whether the stops of main agents, or of subagents, are checked."""
    every = status.setup.gates if status.setup is not None else ()
    gates = [gate for gate in every if scope in gate.match.events]
    gates = [gate for gate in gates if scope == "agent" or not excludes_all(gate.match)]
    event = host_named(status.host).event_name(scope)
    if not gates or not event:
        return Coverage(status=status, scope=scope, state="none")
    running = tuple(gate for gate in gates if "done" in gate.match.endings)
    can_block = any(not gate.observe for gate in running)
    found = Coverage(status=status, scope=scope, state="no", can_block=can_block)
    for one in status.faults:
        if one.level == "fault" and (not one.events or event in one.events):
            return replace(found, why=_sentence(one), fix=one.fix)
    unsure = next((one for one in status.faults if one.code == "folder-not-accepted"), None)
    if event not in status.reached:
        why = f"{status.title} does not call notyet at {event}."
        return replace(found, why=why, fix=f"run: notyet install {status.host}")
    if not running:
        why = f"{listed([gate.name for gate in gates])}: not for agents that are done"
        return replace(found, why=why, fix='add "done" to `endings`')
    found = replace(found, gates=running)
    why, fix = _powerless(status, running)
    if why:
        return replace(found, why=why, fix=fix)
    if status.reached[event]:
        return replace(found, state="perhaps", why=status.reached[event])
    if unsure is not None:
        return replace(found, state="perhaps", why=unsure.what, fix=unsure.fix)
    return _by_place(found)


def _powerless(status: HostStatus, running: Sequence[Gate]) -> tuple[str, str]:
    """Return why gates that run send no agent back, and the fix; both empty if they do."""
    if all(gate.observe for gate in running):
        return "they only observe", "remove `observe`"
    if status.setup is not None and not Limits(**status.setup.limits).max_blocks:
        return "max_blocks is 0, so no agent is sent back", "set max_blocks to 1 or more"
    probed = status.probe.says.removeprefix("notyet: ") if status.probe is not None else ""
    if _was_asked(status, running) and probed.startswith(UNCHECKED):
        return f"they ran just now: {probed}", "see: notyet check"
    return "", ""


def _by_place(found: Coverage) -> Coverage:
    """Return a coverage that is certain only for gates that run on this machine."""
    status = found.status
    if status.setup is None or _was_asked(status, found.gates):
        return replace(found, state="yes")
    blocking = [gate for gate in found.gates if not gate.observe]
    places = {gate.name: machine_of(gate, status.setup.workspace) for gate in blocking}
    remote = {name: there.url for name, there in places.items() if there is not None}
    where = listed(list(dict.fromkeys(remote.values())))
    why = f"{listed(list(remote))}: runs on {where}, which was not connected to"
    if len(remote) < len(blocking):
        return replace(found, state="yes", but=f"perhaps not all: {why}" if remote else "")
    return replace(found, state="perhaps", why=why, fix="run: notyet status --ask")


def _was_asked(status: HostStatus, gates: Sequence[Gate]) -> bool:
    """Return True if `--ask` ran these gates, as for a main agent."""
    is_asked = status.probe is not None and status.probe.asked
    return is_asked and all("agent" in gate.match.events for gate in gates)


def _positive(first: Sequence[Coverage], second: Sequence[Coverage]) -> Answer | None:
    """Return a yes or a perhaps; None if there is neither."""
    state = "yes" if any(one.state == "yes" for one in first) else "perhaps"
    good = [one for one in first if one.state == state]
    if not good:
        return None
    gates = max((one.gates for one in good), key=len)
    titles = listed([one.status.title for one in good])
    if state == "perhaps":
        words = f"{_number(gates)} for {_stops(gates, titles, good[0].scope)}, but {good[0].why}"
        return Answer(state=state, says=f"perhaps: {words}", fix=good[0].fix)
    hosts = {one.status.host for one in good}
    alike = [one.gates for one in second if one.state == "yes" and one.status.host in hosts]
    more = max((sum(gate not in gates for gate in others) for others in alike), default=0)
    is_main = good[0].scope == "agent"
    also = f", those of subagents by {more} more" if is_main and more else ""
    return Answer(state=state, says=f"yes: {_checked(gates, titles, good[0].scope)}{also}")


def _negative(coverages: Sequence[Coverage], own: Sequence[Fault]) -> Answer:
    for one in coverages:
        if one.gates and one.why:
            checked = _checked(one.gates, one.status.title, one.scope)
            return Answer(says=f"no: {checked}, but {one.why}", fix=one.fix)
        if one.why:
            return Answer(says=f"no: {one.why}", fix=one.fix)
    for found in (*own, *(found for one in coverages for found in one.status.faults)):
        if found.level == "fault":
            return Answer(says=f"no: {_sentence(found)}", fix=found.fix)
    return Answer(says=f"no: no gate is for {coverages[0].status.title}")


def _exceptions(
    first: Sequence[Coverage], second: Sequence[Coverage], found: Answer
) -> Iterator[str]:
    """Yield whose stops the answer is not true of, and why."""
    named = set()
    for one in (*first, *second):
        if one.state in {found.state, "none"} or one.status.host in named:
            continue
        title = one.status.title
        whose = f"main agents of {title}" if one.scope == "agent" else f"subagents of {title}"
        whose = title if one in first else whose
        if one in first:
            named.add(one.status.host)
        if one.state == "yes":
            yield _checked(one.gates, title, one.scope)
        else:
            yield f"{'perhaps ' if one.state == 'perhaps' else ''}not {whose}: {one.why}"


def _sentence(found: Fault) -> str:
    """Return the sentence of a fault; that of a configuration file needs its name."""
    is_about_file = found.code.startswith("config-") and found.where
    return f"{found.where}: {found.what}" if is_about_file else found.what


def _number(gates: Sequence[Gate]) -> str:
    return "1 gate is" if len(gates) == 1 else f"{len(gates)} gates are"


def _checked(gates: Sequence[Gate], titles: str, scope: Scope) -> str:
    count = "1 gate" if len(gates) == 1 else f"{len(gates)} gates"
    return f"{_stops(gates, titles, scope)} are checked by {count}"


def _stops(gates: Sequence[Gate], titles: str, scope: Scope) -> str:
    if scope == "agent":
        return f"stops of {titles}"
    kinds = dict.fromkeys(_subagents(gate) for gate in gates)
    return f"stops of {listed(list(kinds))} of {titles}"


def _subagents(gate: Gate) -> str:
    match = gate.match
    names = "" if match.agents == EVERY_AGENT else f"{', '.join(map(visible, match.agents))} "
    never = f" except {', '.join(map(visible, match.never))}" if match.never else ""
    return f"{names}subagents{never}"
