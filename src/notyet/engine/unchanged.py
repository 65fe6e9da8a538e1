"""Which files a gate depends on: those of a repository, or what its `paths` name there (N1)."""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.core.event import stop_of
from notyet.core.gate import Command, place_of
from notyet.core.plan import select
from notyet.core.record import Record, variant
from notyet.core.verdict import Allow, Problem
from notyet.engine.stop import folder_of
from notyet.errors import LedgerError
from notyet.git.look import PATIENCE, Looking, Scope
from notyet.git.place import top_of
from notyet.git.run import OUTSIDE, SLOW
from notyet.light import real_folder
from notyet.run.drive import Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.remote import Remote
    from notyet.core.verdict import Decision, Report
    from notyet.engine.stop import Deadline
    from notyet.ledger import AnyLedger
    from notyet.run.drive import Line


class Files(Record):
    """Some files, here or on another machine."""

    scope: Scope
    machine: Remote | None = None  # None: here

    @property
    def where(self) -> str:
        """The machine, as text; empty: here."""
        return self.machine.machine if self.machine is not None else ""

    @property
    def name(self) -> str:
        """Where they are, for whoever reads it."""
        folder = self.scope.folder
        return self.machine.at(folder).url if self.machine is not None else folder

    @property
    def key(self) -> list[str]:
        """What is equal for equal files; a folder stands for the repository that it is in."""
        folder, paths = self.scope.folder, self.scope.paths
        is_whole = self.machine is None and not paths
        return [self.where, top_of(folder) if is_whole else folder, *paths]


def scope_key(parts: tuple[Files, ...]) -> str:
    """Return a short name for some files, equal for equal ones in every process."""
    from notyet.core.definition import digest_of
    from notyet.light import dumps

    return digest_of(dumps([part.key for part in parts]))


def files_of(gate: Gate, event: StopEvent | StartEvent) -> tuple[Files, ...]:
    """Return the files that a gate depends on; empty where nobody can tell.

    Those of the agent count in any case, wherever the gate looks: it is asked if they changed.
    """
    remote = place_of(gate, event.workspace)
    parts = _files_here(gate, event) if remote is None else _files_there(gate, remote, event)
    return tuple(dict.fromkeys(parts)) if all(part.scope.folder for part in parts) else ()


def _files_here(gate: Gate, event: StopEvent | StartEvent) -> list[Files]:
    cwd, folder = map(real_folder, (event.cwd, folder_of(gate)))
    # A user's own file lies outside of all projects, and means the one that the agent works in.
    is_users = not _is_inside(cwd, folder) and not top_of(folder)
    # So does one made in code. The folder that the agent is in may be another one at every stop.
    is_agents = is_users or not folder
    base = cwd if is_agents else folder
    top = top_of(base)
    if gate.paths and top:
        parts = [Files(Scope(top if is_agents else base, gate.paths))]
    else:
        parts = [_whole(base)]
    if event.workspace:
        parts.append(_workspace(event))
    elif not _is_inside(cwd, base) or top_of(cwd) != top:
        parts.append(_whole(cwd))
    dir = real_folder(gate.check.dir) if isinstance(gate.check, Command) else ""  # noqa: A001  # its name there
    if dir and top_of(dir) != top and not (is_users and _is_inside(dir, folder)):
        parts.append(_whole(dir))
    return parts


def _whole(folder: str) -> Files:
    """Return the files of the repository that a folder is in; it matters whether git ignores it."""
    return Files(Scope(folder if top_of(folder) else ""))


def _files_there(gate: Gate, remote: Remote, event: StopEvent | StartEvent) -> list[Files]:
    machine = remote.at("/")
    parts = [Files(Scope(remote.path, gate.paths), machine)]
    if not event.workspace:
        parts.append(_whole(real_folder(event.cwd)))
    elif event.workspace != remote.url:
        parts.append(_workspace(event))
    assert isinstance(gate.check, Command)  # functions run here
    # It may be a link, or lie in a repository of its own: that is known only there.
    folder = light.join(remote.path, gate.check.dir)
    if folder.rstrip("/") != remote.path.rstrip("/"):
        parts.append(Files(Scope(folder), machine))
    return parts


def _workspace(event: StopEvent | StartEvent) -> Files:
    """Return the files of an agent that works elsewhere."""
    from notyet.core.remote import remote_from

    remote = remote_from(event.workspace)
    return Files(Scope(remote.path), remote.at("/"))


def _is_inside(folder: str, other: str) -> bool:
    """Tell whether a folder is another one, or below it."""
    return folder == other or folder.startswith(other.rstrip("/") + "/")


# Which gates need not be asked, because nothing changed that they depend on (N1).
#
# What a gate depends on are the files of a repository, or those of them that its `paths` name. They
# are looked at before the gates are asked, and again after: a pass is remembered for files that
# stayed as they were meanwhile. Whatever cannot be told counts as changed, so that the gate is
# asked.


_RECALLING = 5.0  # seconds for the ledger
_PART = 4  # of the time that is left may be spent on looking, so that the gates have the rest
_ENDED = "exit "  # how a report says that a command ran to its end


class Remembering:
    """One stop's gates that are asked only when it matters, and the files they depend on."""

    def __init__(self, event: StopEvent, gates: Sequence[Gate], deadline: Deadline) -> None:
        self._event = event
        self._gates = {gate.name: gate for gate in gates if may_be_spared(gate)}
        self._files = {name: files_of(gate, event) for name, gate in self._gates.items()}
        self._deadline = deadline
        self._look: _Look | None = None
        self._trees: Mapping[str, str] = {}
        self.warnings: tuple[str, ...] = ()  # that files could not be looked at

    def begin(self) -> Line[None]:
        """Begin to look at the files before anybody is asked; there is time for other things."""
        self._look = _Look(self._files)
        yield from self._look.begin(self._part_of(PATIENCE))

    def look(self, plan: Plan) -> Line[None]:
        """Look at the files of those who may be asked."""
        asked = {gate.name for stage in plan.stages for gate in stage}
        self._files = {name: parts for name, parts in self._files.items() if name in asked}
        if self._look is None:
            self._look = _Look(self._files)
        seen = yield from self._look.finish(self._part_of(PATIENCE))
        self._trees = seen.trees(self._files)
        self.warnings = seen.warnings(self._files)

    def leave(self) -> None:
        """End what was begun and nobody waits for."""
        if self._look is not None:
            self._look.leave()

    def recall(self, ledger: AnyLedger, warn: Callable[[str], None]) -> Line[Mapping[str, str]]:
        """Return which gates need not be asked, and why; none, where the ledger cannot say."""
        from notyet.core.definition import definition_of
        from notyet.ledger.passes import Wanted

        wanted = [
            Wanted(
                gate=name,
                definition=definition_of(self._gates[name]),
                scope=scope_key(self._files[name]),
                tree=tree,
            )
            for name, tree in self._trees.items()
            if tree
        ]
        if not wanted:
            return {}
        try:
            args = (self._event, wanted, self._part_of(_RECALLING))
            spared: Mapping[str, str] = yield Call(ledger.recall, args)
        except LedgerError as error:
            warn(f"{error} (so every gate is asked)")
            return {}
        return spared

    def _part_of(self, patience: float) -> float:
        """Return how long to wait before the gates are asked, who need most of the time."""
        return self._deadline.left(patience * _PART) / _PART

    def seal(self, decision: Decision) -> Line[Decision]:
        """Write into the reports on which files gates failed, and on which they passed.

        For those that passed, the files are looked at again.
        """
        asked = [r for r in decision.reports if r.definition and self._trees.get(r.gate)]
        passed = [report.gate for report in asked if has_passed(report)]
        on = {r.gate: {"failed_on": self._trees[r.gate]} for r in asked if has_failed(r)}
        if passed:
            patience = self._deadline.left(PATIENCE)
            after = yield from trees_of({name: self._files[name] for name in passed}, patience)
            # A file that changed while a gate looked at it may have done so before or after that.
            kept = {name: tree for name, tree in after.items() if tree == self._trees[name]}
            on |= {name: {"passed_on": tree} for name, tree in kept.items()}
        if not on and not self.warnings:
            return decision
        reports = tuple(
            variant(report, on[report.gate]) if report.gate in on else report
            for report in decision.reports
        )
        warnings = (*decision.warnings, *self.warnings)
        return variant(decision, {"reports": reports, "warnings": warnings})


def may_be_spared(gate: Gate) -> bool:
    """Tell whether there are files by which a gate may be spared.

    A function is asked always: nobody knows what it is made of.
    """
    return gate.when == "changed" and isinstance(gate.check, Command)


def has_passed(report: Report) -> bool:
    """Tell whether a command was really asked, ended by itself and had nothing against it."""
    ended = report.exit.startswith(_ENDED) and isinstance(report.answer, Allow)
    is_light = report.exit != "exit 0" and bool(report.warning)  # it failed, and holds nobody
    return ended and not report.spared and not is_light


def has_failed(report: Report) -> bool:
    """Tell whether a command was really asked, and cannot be said to have passed."""
    if report.answer is None or report.spared or has_passed(report):
        return False
    is_cut_off = isinstance(report.answer, Problem) and report.answer.kind == "deadline"
    return not is_cut_off  # which says nothing of the files


def trees_of(files: Mapping[str, tuple[Files, ...]], patience: float) -> Line[dict[str, str]]:
    """Return what the files of each gate look like now; empty where that cannot be told."""
    seen = yield from _Look(files).finish(patience)
    return seen.trees(files)


class _Seen(Record):
    """What some files look like; empty where that cannot be told, and then why."""

    found: Mapping[Files, str]
    reasons: Mapping[Files, str]

    def trees(self, files: Mapping[str, tuple[Files, ...]]) -> dict[str, str]:
        """Return what the files of each gate look like."""
        return {
            name: _joined(parts, [self.found[part] for part in parts])
            for name, parts in files.items()
        }

    def warnings(self, files: Mapping[str, tuple[Files, ...]]) -> tuple[str, ...]:
        """Say which files could not be looked at, and why; outside of git that is no news."""
        why = {part: why for part, why in self.reasons.items() if why != OUTSIDE}
        if not why:
            return ()
        from notyet.core.text import listed

        gates = [name for name, parts in files.items() if any(part in why for part in parts)]
        places = dict.fromkeys(f"{part.name} ({reason})" for part, reason in why.items())
        asked = f"so these gates are asked: {listed(gates)}"
        return (f"cannot tell what changed in {listed([*places])}, {asked}",)


class _Look:
    """A look at all files within one time: here first, and elsewhere with what is left of it."""

    def __init__(self, files: Mapping[str, tuple[Files, ...]]) -> None:
        self._here: list[Files] = []
        self._there: dict[str, list[Files]] = {}
        for part in dict.fromkeys(part for parts in files.values() for part in parts):
            where = self._there.setdefault(part.where, []) if part.where else self._here
            where.append(part)
        self._looking: Looking | None = None
        self._spent = 0.0  # seconds, on beginning

    def begin(self, patience: float) -> Line[None]:
        """Have git begin with what is here."""
        if self._here:
            started = monotonic()
            scopes = [part.scope for part in self._here]
            self._looking = yield Call(Looking, (scopes, patience), Looking.leave)
            self._spent = monotonic() - started

    def finish(self, patience: float) -> Line[_Seen]:
        """Wait for git, and look elsewhere; what was done since it has begun costs no patience."""
        ends = monotonic() + patience - self._spent
        if self._looking is None:
            yield from self.begin(patience)
        seen = _Seen({}, {})
        if self._looking is not None:
            why: dict[Scope, str] = {}
            trees = yield Call(self._looking.finish, (why, ends))
            seen = _seen(self._here, trees, why)
        for parts in self._there.values():
            why = {}
            trees = [""] * len(parts)
            left = ends - monotonic()
            if left > 0:
                from notyet.git.remote import fingerprints_there

                scopes = [part.scope for part in parts]
                trees = yield Call(fingerprints_there, (parts[0].machine, scopes, left, why))
            there = _seen(parts, trees, why)
            seen = _Seen({**seen.found, **there.found}, {**seen.reasons, **there.reasons})
        return seen

    def leave(self) -> None:
        """End what was begun, unless it is being finished."""
        if self._looking is not None:
            self._looking.leave()


def _seen(parts: Sequence[Files], trees: Sequence[str], why: Mapping[Scope, str]) -> _Seen:
    found = dict(zip(parts, trees, strict=True))
    unknown = [part for part, tree in found.items() if not tree]
    return _Seen(found, {part: why.get(part.scope, SLOW) for part in unknown})


def _joined(parts: tuple[Files, ...], seen: list[str]) -> str:
    """Return one text for all of a gate's files, which no other files have."""
    if not seen or not all(seen):
        return ""
    from notyet.core.definition import digest_of
    from notyet.light import dumps

    return digest_of(dumps([scope_key(parts), seen]))


_LEAST_LEFT = 0.2  # seconds for the ledger, where looking took all the time
_GOES_ON = frozenset({"compact", "resume"})  # starts of sessions that began before


def remember_start(
    event: StartEvent, gates: Sequence[Gate], ledger: AnyLedger, patience: float
) -> Line[None]:
    """Remember with which files an agent begins, within a time. Raises LedgerError."""
    ends = monotonic() + patience
    trees = yield from begun_with(event, gates, patience)
    if trees:
        left = max(_LEAST_LEFT, ends - monotonic())
        yield Call(ledger.remember_start, (event, trees, left))


def begun_with(event: StartEvent, gates: Sequence[Gate], patience: float) -> Line[dict[str, str]]:
    """Look at the files that an agent begins with; return fingerprints by scope.

    Nothing where that is not to be remembered: a session that goes on began before.
    """
    if not event.session_id.strip() or (event.scope == "agent" and event.source in _GOES_ON):
        return {}
    asked = [gate for gate in gates if may_be_spared(gate)]
    if event.scope == "subagent":  # other gates may be there for those that the session starts
        asked = [*select(stop_of(event), asked)]
    files = {gate.name: files_of(gate, event) for gate in asked}
    trees = yield from trees_of(files, patience)
    return {scope_key(files[name]): tree for name, tree in trees.items()}  # unknown ones too
