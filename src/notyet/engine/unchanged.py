"""Which gates need not run, because no file changed that they depend on (N1).

A gate depends on the files of a repository, or on those of them that its `paths` name. Git looks
at them before the gates run. A pass is remembered only if a second look, after the gates, finds
the files as they were. Whatever cannot be found out counts as changed, so the gate runs.
"""

from __future__ import annotations

from time import monotonic

from notyet.core.event import stop_of
from notyet.core.gate import Command, can_skip, definition_of, digest_of, folder_of, machine_of
from notyet.core.plan import Wanted, select
from notyet.core.record import variant
from notyet.core.text import listed
from notyet.core.verdict import Allow, Problem
from notyet.errors import LedgerError
from notyet.git.fingerprint import PATIENCE, FileSet, Fingerprinting
from notyet.git.repository import top_of
from notyet.git.run import OUTSIDE, SLOW
from notyet.light import dumps, real_folder
from notyet.run.drive import Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.gate import Gate
    from notyet.core.verdict import Decision, Report
    from notyet.engine.stop import Deadline
    from notyet.ledger import AnyLedger
    from notyet.run.drive import Steps

_RECALLING = 5.0  # seconds for the ledger
_PART = 4  # of the time that is left may be spent on looking; the gates have the rest
_LEAST_LEFT = 0.2  # seconds for the ledger, where looking took all the time
_ENDED = "exit "  # how a report says that a command ran to its end
_GOES_ON = frozenset({"compact", "resume"})  # starts of sessions that began before


def scope_key(parts: tuple[FileSet, ...]) -> str:
    """Return a short name for some files, equal for equal ones in every process."""
    # A folder stands for the repository that it is in.
    keys = [[part.folder if part.paths else top_of(part.folder), *part.paths] for part in parts]
    return digest_of(dumps(keys))


def files_of(gate: Gate, event: StopEvent | StartEvent) -> tuple[FileSet, ...]:
    """Return the files that a gate depends on; empty if unknown, as on another machine.

    The agent's own files always count, wherever the gate runs.
    """
    if event.workspace or machine_of(gate) is not None:
        return ()
    cwd, folder = map(real_folder, (event.cwd, folder_of(gate)))
    # A user's own file lies outside of all projects, and means the one that the agent works in.
    is_users = not _is_inside(cwd, folder) and not top_of(folder)
    # So does a gate made in code. The agent's folder may be another one at every stop.
    is_agents = is_users or not folder
    base = cwd if is_agents else folder
    top = top_of(base)
    # The whole repository of a folder; the folder matters, as git may ignore it.
    parts = [FileSet(base if top else "")]
    if gate.paths and top:
        parts = [FileSet(top if is_agents else base, gate.paths)]
    top_of_agent = top if cwd == base else top_of(cwd)
    if not _is_inside(cwd, base) or top_of_agent != top:
        parts.append(FileSet(cwd if top_of_agent else ""))
    runs_in = real_folder(gate.check.dir) if isinstance(gate.check, Command) else ""
    if runs_in and runs_in != base and not (is_users and _is_inside(runs_in, folder)):
        top_there = top_of(runs_in)
        if top_there != top:
            parts.append(FileSet(runs_in if top_there else ""))
    return tuple(dict.fromkeys(parts)) if all(part.folder for part in parts) else ()


def _is_inside(folder: str, other: str) -> bool:
    """Return True if a folder is another one, or below it."""
    return folder == other or folder.startswith(other.rstrip("/") + "/")


class Files:
    """The files that the gates of one stop depend on, as they look before and after."""

    def __init__(
        self,
        event: StopEvent,
        gates: Sequence[Gate],
        deadline: Deadline,
        looked: Mapping[FileSet, str] = {},
    ) -> None:
        """Take also the fingerprints that are known already."""
        self._event = event
        self._looked = looked
        self._gates = {gate.name: gate for gate in gates if can_skip(gate)}
        self._files = {name: files_of(gate, event) for name, gate in self._gates.items()}
        self._deadline = deadline
        self._look = _Look(self._files, looked)
        self._trees: Mapping[str, str] = {}

    def begin(self) -> Steps[None]:
        """Start git; there is time for other things until `fingerprint`."""
        yield from self._look.begin(self._part_of(PATIENCE))

    def fingerprint(self, running: Sequence[Gate]) -> Steps[None]:
        """Fingerprint the files of gates that are to run."""
        names = {gate.name for gate in running}
        self._files = {name: parts for name, parts in self._files.items() if name in names}
        if self._look.git is None:
            self._look = _Look(self._files, self._looked)
        yield from self._look.finish(self._part_of(PATIENCE))
        self._trees = self._look.trees(self._files)

    def cancel(self) -> None:
        """End what was begun and is not waited for."""
        self._look.leave()

    def tree(self, folder: str) -> str:
        """Return the fingerprint of a folder's repository, if it was looked at; else empty."""
        top = top_of(real_folder(folder))
        for part, tree in self._look.found.items():
            if not part.paths and top_of(part.folder) == top:
                return tree
        return ""

    def recall(self, ledger: AnyLedger, warn: Callable[[str], None]) -> Steps[Mapping[str, str]]:
        """Return the gates that need not run, and why; none if the ledger cannot say."""
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
            warn(f"{error} (so every gate runs)")
            return {}
        return unchanged

    def _part_of(self, patience: float) -> float:
        """Return how long to wait before the gates run, which need most of the time."""
        return self._deadline.left(patience * _PART) / _PART

    def add_to_reports(self, decision: Decision) -> Steps[Decision]:
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
        return self._look.warnings(self._files)


def has_passed(report: Report) -> bool:
    """Return True if a command ran, ended by itself and allowed."""
    ended = report.exit.startswith(_ENDED) and isinstance(report.answer, Allow)
    ended = ended and not report.is_relative
    return ended and not report.spared and not (report.exit != "exit 0" and report.warning)


def has_failed(report: Report) -> bool:
    """Return True if a command ran and did not pass."""
    if report.answer is None or report.spared or has_passed(report):
        return False
    is_cut_off = isinstance(report.answer, Problem) and report.answer.kind == "deadline"
    return not is_cut_off  # which says nothing about the files


def trees_of(files: Mapping[str, tuple[FileSet, ...]], patience: float) -> Steps[dict[str, str]]:
    """Return the fingerprint of each gate's files now; empty where it is unknown."""
    look = _Look(files)
    yield from look.finish(patience)
    return look.trees(files)


class _Look:
    """One look at the files of some gates; git can start before the result is needed."""

    def __init__(
        self, files: Mapping[str, tuple[FileSet, ...]], known: Mapping[FileSet, str] = {}
    ) -> None:
        wanted = dict.fromkeys(part for parts in files.values() for part in parts)
        self._file_sets = [part for part in wanted if part not in known]
        self.git: Fingerprinting | None = None
        self._spent = 0.0  # seconds, on beginning
        self.found = {**known}  # fingerprints; empty where one is unknown
        self._reasons: dict[FileSet, str] = {}  # why it is

    def begin(self, patience: float) -> Steps[None]:
        """Start git on the files."""
        if self._file_sets:
            started = monotonic()
            self.git = yield Call(Fingerprinting, (self._file_sets, patience), Fingerprinting.leave)
            self._spent = monotonic() - started

    def finish(self, patience: float) -> Steps[None]:
        """Wait for git; the time since `begin` does not count."""
        ends = monotonic() + patience - self._spent
        if self.git is None:
            yield from self.begin(patience)
        if self.git is None:
            return
        trees = yield Call(self.git.finish, (self._reasons, ends))
        self.found |= zip(self._file_sets, trees, strict=True)

    def leave(self) -> None:
        """End what was begun, unless it is being finished."""
        if self.git is not None:
            self.git.leave()

    def trees(self, files: Mapping[str, tuple[FileSet, ...]]) -> dict[str, str]:
        """Return one fingerprint for all files of each gate; empty if one of them is unknown."""
        trees = {}
        for name, parts in files.items():
            found = [self.found[part] for part in parts]
            is_known = found and all(found)
            trees[name] = digest_of(dumps([scope_key(parts), found])) if is_known else ""
        return trees

    def changed_after(self, since: float) -> bool:
        """Return True if one of the files, or the commit, changed after a time."""
        return self.git is not None and self.git.newest_change() > since

    def warnings(self, files: Mapping[str, tuple[FileSet, ...]]) -> tuple[str, ...]:
        """Return which files could not be looked at, and why, except for being outside of git."""
        unknown = {
            part: self._reasons.get(part, SLOW) for part, tree in self.found.items() if not tree
        }
        why = {part: reason for part, reason in unknown.items() if reason != OUTSIDE}
        if not why:
            return ()

        gates = [name for name, parts in files.items() if any(part in why for part in parts)]
        places = dict.fromkeys(f"{part.folder} ({reason})" for part, reason in why.items())
        running = f"so these gates run: {listed(gates)}"
        return (f"cannot find out what changed in {listed([*places])}, {running}",)


def goes_on(event: StartEvent) -> bool:
    """Return True for the start of a session that began before."""
    return event.scope == "agent" and event.source in _GOES_ON


def remember_start(
    event: StartEvent,
    gates: Sequence[Gate],
    ledger: AnyLedger,
    patience: float,
    *,
    since: float | None = None,
    members: Sequence[tuple[str, Sequence[str]]] = (),
    roots: Sequence[str] = (),
) -> Steps[Literal["first", "late", "known"]]:
    """Remember with which files an agent begins, within a time. Raises LedgerError.

    `members` are the folders of projects with members, and their globs; `roots` are repositories
    that a snapshot is taken of. Return whether this is the first start of the agent.
    `since` is when its host began, if that is known: a session cannot begin with files that changed
    after that. Its start may have been planted, so its files count as unknown.
    """
    ends = monotonic() + patience
    trees, is_late = yield from _begun_with(
        event, gates, patience, since, members=members, roots=roots
    )
    if not trees:
        return "known"
    left = max(_LEAST_LEFT, ends - monotonic())
    is_first: bool = yield Call(ledger.remember_start, (event, trees, left))
    if not is_first:
        return "known"
    return "late" if is_late else "first"


def _begun_with(
    event: StartEvent,
    gates: Sequence[Gate],
    patience: float,
    since: float | None,
    *,
    members: Sequence[tuple[str, Sequence[str]]],
    roots: Sequence[str],
) -> Steps[tuple[dict[str, str], bool]]:
    """Return the fingerprints that an agent begins with, by scope, unknown ones included.

    Empty where they are not to be remembered: a session that goes on began before. Return also
    whether the files changed after its host began.
    """
    if not event.session_id.strip() or goes_on(event):
        return {}, False
    skippable = [gate for gate in gates if can_skip(gate)]
    if event.scope == "subagent":  # a session's start stands for its subagents' gates too
        skippable = [*select(stop_of(event), skippable)]
    files = {gate.name: files_of(gate, event) for gate in skippable}
    files |= {f"files of {root}": (FileSet(root),) for root in roots}
    projects = {f"members of {root}": (FileSet(root),) for root, _ in members}
    look = _Look(files | projects)
    yield from look.finish(patience)
    is_late = since is not None and not event.agent_id and look.changed_after(since)
    found = {scope_key(files[name]): tree for name, tree in look.trees(files).items()}
    if members:
        from notyet.engine.members import members_at_start

        for root, globs in members:
            scan = look.git.scan_of(FileSet(root)) if look.git is not None else None
            found |= members_at_start(scan, root, globs)
    return (dict.fromkeys(found, "") if is_late else found), is_late
