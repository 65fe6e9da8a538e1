"""Which gates need not run, because no file changed that they depend on (N1).

A gate depends on the files of a repository, or on those of them that its `paths` name. Git looks
at them before the gates run. A pass is remembered only if a second look, after the gates, finds
the files as they were. Whatever cannot be found out counts as changed, so the gate runs.
"""

from __future__ import annotations

from time import monotonic

from notyet.core.definition import definition_of, digest_of
from notyet.core.event import stop_of
from notyet.core.gate import Command, Function, folder_of, place_of
from notyet.core.plan import select
from notyet.core.record import Record, variant
from notyet.core.verdict import Allow, Problem
from notyet.errors import LedgerError
from notyet.git.look import PATIENCE, Looking, Scope, fingerprint
from notyet.git.place import top_of
from notyet.git.run import OUTSIDE, SLOW
from notyet.light import dumps, join, real_folder
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

_RECALLING = 5.0  # seconds for the ledger
_PART = 4  # of the time that is left may be spent on looking; the gates have the rest
_LEAST_LEFT = 0.2  # seconds for the ledger, where looking took all the time
_ENDED = "exit "  # how a report says that a command ran to its end
_UNREACHED = ("cannot_start", "timeout")
_GOES_ON = frozenset({"compact", "resume"})  # starts of sessions that began before


class FileSet(Record):
    """Some files, here or on another machine."""

    scope: Scope
    machine: Remote | None = None  # None: here

    @property
    def where(self) -> str:
        """The machine, as text; empty: here."""
        return self.machine.machine if self.machine is not None else ""

    @property
    def name(self) -> str:
        """Where the files are, for messages."""
        folder = self.scope.folder
        return self.machine.at(folder).url if self.machine is not None else folder

    @property
    def key(self) -> list[str]:
        """Equal for equal files; a folder stands for the repository that it is in."""
        folder, paths = self.scope.folder, self.scope.paths
        is_whole = self.machine is None and not paths
        return [self.where, top_of(folder) if is_whole else folder, *paths]


def scope_key(parts: tuple[FileSet, ...]) -> str:
    """Return a short name for some files, equal for equal ones in every process."""
    return digest_of(dumps([part.key for part in parts]))


def files_of(gate: Gate, event: StopEvent | StartEvent) -> tuple[FileSet, ...]:
    """Return the files that a gate depends on; empty if that cannot be told.

    The agent's own files always count, wherever the gate runs.
    """
    remote = place_of(gate, event.workspace)
    parts = _files_here(gate, event) if remote is None else _files_there(gate, remote, event)
    return tuple(dict.fromkeys(parts)) if all(part.scope.folder for part in parts) else ()


def _files_here(gate: Gate, event: StopEvent | StartEvent) -> list[FileSet]:
    cwd, folder = map(real_folder, (event.cwd, folder_of(gate)))
    # A user's own file lies outside of all projects, and means the one that the agent works in.
    is_users = not _is_inside(cwd, folder) and not top_of(folder)
    # So does a gate made in code. The agent's folder may be another one at every stop.
    is_agents = is_users or not folder
    base = cwd if is_agents else folder
    top = top_of(base)
    if gate.paths and top:
        parts = [FileSet(Scope(top if is_agents else base, gate.paths))]
    else:
        parts = [_whole(base)]
    if event.workspace:
        parts.append(_workspace(event))
    elif not _is_inside(cwd, base) or top_of(cwd) != top:
        parts.append(_whole(cwd))
    runs_in = real_folder(gate.check.dir) if isinstance(gate.check, Command) else ""
    if runs_in and top_of(runs_in) != top and not (is_users and _is_inside(runs_in, folder)):
        parts.append(_whole(runs_in))
    return parts


def _whole(folder: str) -> FileSet:
    """Return the files of a folder's repository; the folder matters, as git may ignore it."""
    return FileSet(Scope(folder if top_of(folder) else ""))


def _files_there(gate: Gate, remote: Remote, event: StopEvent | StartEvent) -> list[FileSet]:
    machine = remote.at("/")
    parts = [FileSet(Scope(remote.path, gate.paths), machine)]
    if not event.workspace:
        parts.append(_whole(real_folder(event.cwd)))
    elif event.workspace != remote.url:
        parts.append(_workspace(event))
    assert isinstance(gate.check, Command)  # functions run here
    # The folder may be a link, or lie in a repository of its own: only that machine knows.
    folder = join(remote.path, gate.check.dir)
    if folder.rstrip("/") != remote.path.rstrip("/"):
        parts.append(FileSet(Scope(folder), machine))
    return parts


def _workspace(event: StopEvent | StartEvent) -> FileSet:
    """Return the files of an agent that works on another machine."""
    from notyet.core.remote import remote_from

    remote = remote_from(event.workspace)
    return FileSet(Scope(remote.path), remote.at("/"))


def _is_inside(folder: str, other: str) -> bool:
    """Return True if a folder is another one, or below it."""
    return folder == other or folder.startswith(other.rstrip("/") + "/")


class Files:
    """The files that the gates of one stop depend on, as they look before and after."""

    def __init__(self, event: StopEvent, gates: Sequence[Gate], deadline: Deadline) -> None:
        self._event = event
        self._gates = {gate.name: gate for gate in gates if can_skip(gate)}
        self._files = {name: files_of(gate, event) for name, gate in self._gates.items()}
        self._deadline = deadline
        self._look: _Look | None = None
        self._seen = _Seen({}, {})
        self._trees: Mapping[str, str] = {}

    def begin(self) -> Line[None]:
        """Start git; there is time for other things until `look`."""
        self._look = _Look(self._files)
        yield from self._look.begin(self._part_of(PATIENCE))

    def look(self, running: Sequence[Gate]) -> Line[None]:
        """Look at the files of gates that are to run."""
        names = {gate.name for gate in running}
        self._files = {name: parts for name, parts in self._files.items() if name in names}
        if self._look is None:
            self._look = _Look(self._files)
        self._seen = yield from self._look.finish(self._part_of(PATIENCE))
        self._trees = self._seen.trees(self._files)

    def leave(self) -> None:
        """End what was begun and is not waited for."""
        if self._look is not None:
            self._look.leave()

    def tree(self, folder: str) -> str:
        """Return the fingerprint of a folder's repository, if it was looked at; else empty."""
        top = top_of(real_folder(folder))
        for part, tree in self._seen.found.items():
            if not part.where and not part.scope.paths and top_of(part.scope.folder) == top:
                return tree
        return ""

    def recall(self, ledger: AnyLedger, warn: Callable[[str], None]) -> Line[Mapping[str, str]]:
        """Return the gates that need not run, and why; none if the ledger cannot say."""
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
            unchanged: Mapping[str, str] = yield Call(ledger.recall, args)
        except LedgerError as error:
            warn(f"{error} (so every gate is asked)")
            return {}
        return unchanged

    def _part_of(self, patience: float) -> float:
        """Return how long to wait before the gates run, which need most of the time."""
        return self._deadline.left(patience * _PART) / _PART

    def seal(self, decision: Decision) -> Line[Decision]:
        """Write into the reports on which files gates failed and passed.

        For a pass, the files are looked at again: one that changed while the gate ran may have
        changed before or after the gate read it.
        """
        ran = [r for r in decision.reports if r.definition and self._trees.get(r.gate)]
        passed = [report.gate for report in ran if has_passed(report)]
        on = {r.gate: {"failed_on": self._trees[r.gate]} for r in ran if has_failed(r)}
        if passed:
            patience = self._deadline.left(PATIENCE)
            after = yield from trees_of({name: self._files[name] for name in passed}, patience)
            same = {name: tree for name, tree in after.items() if tree == self._trees[name]}
            on |= {name: {"passed_on": tree} for name, tree in same.items()}
        unseen = self.warnings
        if not on and not unseen:
            return decision
        reports = tuple(
            variant(report, on[report.gate]) if report.gate in on else report
            for report in decision.reports
        )
        return variant(decision, {"reports": reports, "warnings": (*decision.warnings, *unseen)})

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which files could not be looked at."""
        return self._seen.warnings(self._files)


def can_skip(gate: Gate) -> bool:
    """Return True if a gate depends on files; what a function depends on is not known."""
    return gate.when == "changed" and isinstance(gate.check, Command)


def has_passed(report: Report) -> bool:
    """Return True if a command ran, ended by itself and allowed."""
    ended = report.exit.startswith(_ENDED) and isinstance(report.answer, Allow)
    return ended and not report.spared and not (report.exit != "exit 0" and report.warning)


def has_failed(report: Report) -> bool:
    """Return True if a command ran and did not pass."""
    if report.answer is None or report.spared or has_passed(report):
        return False
    is_cut_off = isinstance(report.answer, Problem) and report.answer.kind == "deadline"
    return not is_cut_off  # which says nothing about the files


def trees_of(files: Mapping[str, tuple[FileSet, ...]], patience: float) -> Line[dict[str, str]]:
    """Return the fingerprint of each gate's files now; empty where that cannot be told."""
    seen = yield from _Look(files).finish(patience)
    return seen.trees(files)


class _Seen(Record):
    """The fingerprints of some files; empty where one cannot be told, and then why."""

    found: Mapping[FileSet, str]
    reasons: Mapping[FileSet, str]

    def trees(self, files: Mapping[str, tuple[FileSet, ...]]) -> dict[str, str]:
        """Return one fingerprint for all files of each gate."""
        return {
            name: _joined(parts, [self.found[part] for part in parts])
            for name, parts in files.items()
        }

    def warnings(self, files: Mapping[str, tuple[FileSet, ...]]) -> tuple[str, ...]:
        """Return which files could not be looked at, and why, except for being outside of git."""
        why = {part: why for part, why in self.reasons.items() if why != OUTSIDE}
        if not why:
            return ()
        from notyet.core.text import listed

        gates = [name for name, parts in files.items() if any(part in why for part in parts)]
        places = dict.fromkeys(f"{part.name} ({reason})" for part, reason in why.items())
        running = f"so these gates are asked: {listed(gates)}"
        return (f"cannot tell what changed in {listed([*places])}, {running}",)


class _Look:
    """A look at all files within one time: here first, then on other machines."""

    def __init__(self, files: Mapping[str, tuple[FileSet, ...]]) -> None:
        self._here: list[FileSet] = []
        self._there: dict[str, list[FileSet]] = {}
        for part in dict.fromkeys(part for parts in files.values() for part in parts):
            where = self._there.setdefault(part.where, []) if part.where else self._here
            where.append(part)
        self._looking: Looking | None = None
        self._spent = 0.0  # seconds, on beginning

    def begin(self, patience: float) -> Line[None]:
        """Start git on the files here."""
        if self._here:
            started = monotonic()
            scopes = [part.scope for part in self._here]
            self._looking = yield Call(Looking, (scopes, patience), Looking.leave)
            self._spent = monotonic() - started

    def finish(self, patience: float) -> Line[_Seen]:
        """Wait for git, then look on other machines; the time since `begin` does not count."""
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


def _seen(parts: Sequence[FileSet], trees: Sequence[str], why: Mapping[Scope, str]) -> _Seen:
    found = dict(zip(parts, trees, strict=True))
    unknown = [part for part, tree in found.items() if not tree]
    return _Seen(found, {part: why.get(part.scope, SLOW) for part in unknown})


def _joined(parts: tuple[FileSet, ...], seen: list[str]) -> str:
    """Return one fingerprint for all of a gate's files."""
    if not seen or not all(seen):
        return ""
    return digest_of(dumps([scope_key(parts), seen]))


def tree_for_stuck(
    planned: Plan,
    gates: Sequence[Gate],
    reports: Sequence[Report],
    deadline: Deadline,
    files: Files | None,
) -> Line[str]:
    """Return the fingerprint by which a blocked agent may be stuck (B6); empty if unknown.

    It covers the files of the gates that block, which must be known, and the agent's own, here and
    in its workspace: an agent that changes them is not stuck, even if a gate did not get them yet.
    `files` were looked at before the gates, as far as gates depend on them.
    """
    from notyet.core.settle import blocks, needs_tree

    answered = gates[: len(reports)]
    if not needs_tree(planned, answered, reports):
        return ""
    event = planned.event
    own = None
    if event.workspace:
        from notyet.core.remote import remote_from

        own = remote_from(event.workspace)
    places: dict[Remote | None, None] = {}
    for gate, report in zip(answered, reports, strict=True):
        if blocks(gate, report):
            remote = place_of(gate, event.workspace)
            # A function most likely reads the agent's files.
            places[own if isinstance(gate.check, Function) else remote] = None
            if remote is not None and _may_be_unreachable(report):
                return ""  # another try could take long, and the agent's host waits
    trees = []
    for place in dict.fromkeys((*places, own, None)):
        wait = deadline.left(PATIENCE)
        if place is None:
            tree = files.tree(event.cwd) if files is not None else ""
            tree = tree or (yield Call(fingerprint, (event.cwd, wait)))
        else:
            from notyet.git.remote import fingerprint_there

            tree = yield Call(fingerprint_there, (place, wait))
        if not tree and place in places:
            return ""
        trees.append(tree)
    return " ".join(filter(None, trees))


def _may_be_unreachable(report: Report) -> bool:
    return report.exit == "lost" or getattr(report.answer, "kind", "") in _UNREACHED


def remember_start(
    event: StartEvent, gates: Sequence[Gate], ledger: AnyLedger, patience: float
) -> Line[None]:
    """Remember with which files an agent begins, within a time. Raises LedgerError."""
    ends = monotonic() + patience
    trees = yield from _begun_with(event, gates, patience)
    if trees:
        left = max(_LEAST_LEFT, ends - monotonic())
        yield Call(ledger.remember_start, (event, trees, left))


def _begun_with(event: StartEvent, gates: Sequence[Gate], patience: float) -> Line[dict[str, str]]:
    """Return the fingerprints that an agent begins with, by scope, unknown ones included.

    Empty where they are not to be remembered: a session that goes on began before.
    """
    if not event.session_id.strip() or (event.scope == "agent" and event.source in _GOES_ON):
        return {}
    skippable = [gate for gate in gates if can_skip(gate)]
    if event.scope == "subagent":  # a session's start stands for its subagents' gates too
        skippable = [*select(stop_of(event), skippable)]
    files = {gate.name: files_of(gate, event) for gate in skippable}
    trees = yield from trees_of(files, patience)
    return {scope_key(files[name]): tree for name, tree in trees.items()}
