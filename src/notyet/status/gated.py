"""For whose stops gates are, in words; and which are for nobody's."""

from __future__ import annotations

import os

from notyet.config.compile import compile_text
from notyet.config.find import state_folder, text_of
from notyet.config.lint import excludes_all
from notyet.config.records import read_record
from notyet.config.schema import examine
from notyet.core.gate import EVERY_AGENT, place_of
from notyet.core.limits import History, Limits, limit_in_force
from notyet.core.note import UNCHECKED
from notyet.core.record import Record, replace
from notyet.core.remote import is_remote
from notyet.core.text import listed, visible
from notyet.hosts.openclaw import NAME as OPENCLAW
from notyet.status.hosts import SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Literal

    from notyet.config.settings import Setup
    from notyet.core.event import Scope
    from notyet.core.gate import Gate, Match
    from notyet.status.faults.fault import Fault
    from notyet.status.hosts import HostStatus


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


def stops_of_subagents(gates: Sequence[Gate]) -> str:
    """Say at which stops of subagents gates are asked; each at its own, if they differ."""
    kinds = list(dict.fromkeys(_subagents(gate.match) for gate in gates))
    return f"each stop of {kinds[0]}" if len(kinds) == 1 else f"stops of {listed(kinds)}"


def _subagents(match: Match) -> str:
    names = "" if match.agents == EVERY_AGENT else f"{_shown(match.agents)} "
    return f"{names}subagents" + (f" but {_shown(match.never)}" if match.never else "")


def _shown(patterns: Sequence[str]) -> str:
    return ", ".join(map(visible, patterns))


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
    meant = [gate for gate in every if scope == "agent" or not excludes_all(gate.match)]
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


_OFF = ("off-by-variable", "switched-off", "ledger-unusable")  # then no gate sends anybody back
_NO_GATES = "no-gates"
_NOT_THERE = "nothing calls notyet here"
_WITHOUT_A_HOST = "install Claude Code or Codex, or run an agent that is gated with: notyet with"
_NOT = {"no": "not", "perhaps": "perhaps not"}
DEFAULT = "default"


class Answer(Record, kw_only=True):
    """Whether agents are gated, in a sentence; what to do if not, and what limits a yes."""

    state: Literal["yes", "perhaps", "no"] = "no"
    says: str
    fix: str = ""
    but: tuple[str, ...] = ()

    @property
    def is_gated(self) -> bool:
        """Whether somebody is known to be held when a gate fails."""
        return self.state == "yes"


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
    if not setup.gates and not any(map(gates_of, wired)):
        stopped += [found for found in own if found.level == "fault" or found.code == _NO_GATES]
    if stopped:
        return Answer(says=f"no: {said(stopped[0])}", fix=stopped[0].fix)
    if not wired:
        here = [status.host for status in hosts if status.is_here]
        fix = f"run: notyet install {here[0]}" if here else _WITHOUT_A_HOST
        return Answer(says=f"no: {_NOT_THERE}", fix=fix)
    mains = [held(status, "agent") for status in wired]
    others = [held(status, "subagent") for status in wired]
    # Main agents decide, unless only subagents have a gate that could hold them.
    is_main = any(one.can_hold for one in mains)
    judged, rest = (mains, others) if is_main else (others, mains)
    found = _said(judged, rest, is_main=is_main) or _no([*judged, *rest], own)
    wrong = [said(one) for one in own if one.level == "fault"]
    but = [*_left(judged, rest, found, is_main=is_main), *wrong]
    return replace(found, but=tuple(words for words in but if words not in found.says))


def _said(judged: Sequence[Held], rest: Sequence[Held], *, is_main: bool) -> Answer | None:
    """Say by how many gates stops are held, or perhaps; None if they are not."""
    state = "yes" if any(one.state == "yes" for one in judged) else "perhaps"
    good = [one for one in judged if one.state == state]
    if not good:
        return None
    titles = listed([one.status.title for one in good])
    most = max((one.gates for one in good), key=len)
    if state == "perhaps":
        are = "1 gate is" if len(most) == 1 else f"{len(most)} gates are"
        whose = titles if is_main else f"subagents of {titles}"
        why = f"perhaps: {are} for the stops of {whose}, but {good[0].why}"
        return Answer(state="perhaps", says=why, fix=good[0].fix)
    hosts = {one.status.host for one in good}
    alike = [one.gates for one in rest if one.state == "yes" and one.status.host in hosts]
    more = max((sum(gate not in most for gate in gates) for gates in alike), default=0)
    also = f", and {more} more at those of subagents" if is_main and more else ""
    return Answer(state="yes", says=f"yes: {_asked(most, titles, is_main=is_main)}{also}")


def _no(judged: Sequence[Held], own: Sequence[Fault]) -> Answer:
    """Say why nobody is held."""
    for one in judged:
        if one.gates and one.why:
            asked = _asked(one.gates, one.status.title, is_main=one.scope == "agent")
            return Answer(says=f"no: {asked}; {one.why}", fix=one.fix)
        if one.why:
            return Answer(says=f"no: {one.why}", fix=one.fix)
    known = [*own, *(found for one in judged for found in one.status.faults)]
    for found in known:
        if found.level == "fault":
            return Answer(says=f"no: {said(found)}", fix=found.fix)
    return Answer(says=f"no: no gate is for {judged[0].status.title}")


def _left(
    judged: Sequence[Held], rest: Sequence[Held], found: Answer, *, is_main: bool
) -> Iterator[str]:
    """Say of whom that is not so, and why."""
    yield from (one.but for one in judged if one.state == "yes" and one.but)
    other = [one for one in judged if one.state not in {found.state, "nobody"}]
    for one in other:
        yield f"{_NOT[one.state]} with {one.status.title}: {one.why}"
    told = {one.status.host for one in other}
    for one in rest:
        if one.state in {found.state, "nobody"} or one.status.host in told:
            continue
        if one.state == "yes":
            title = one.status.title if is_main else "the main agent"
            yield _asked(one.gates, title, is_main=not is_main)
        else:
            who = f"subagents of {one.status.title}" if is_main else "the main agent"
            yield f"{_NOT[one.state]} {who}: {one.why}"


def _asked(gates: Sequence[Gate], titles: str, *, is_main: bool) -> str:
    """Say how many gates are asked, and at whose stops."""
    count = "1 gate is asked" if len(gates) == 1 else f"{len(gates)} gates are asked"
    whose = f"each stop of {titles}" if is_main else f"{stops_of_subagents(gates)} of {titles}"
    return f"{count} at {whose}"


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
    line = document.locate(("read", OPENCLAW))[0]
    return f"{examined.value.get('read', {}).get(OPENCLAW, '')} ({path}:{line})"


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
