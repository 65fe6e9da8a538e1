"""Which gates need not be asked, because nothing changed that they depend on (N1).

What a gate depends on are the files of a repository, or those of them that its `paths` name. They
are looked at before the gates are asked, and again after: a pass is remembered for files that
stayed as they were meanwhile. Whatever cannot be told counts as changed, so that the gate is asked.
"""

from __future__ import annotations

import os

from notyet.asking import folder_of
from notyet.checks.drive import Call
from notyet.core.command import Command
from notyet.core.definition import definition_of, digest_of
from notyet.core.event import stop_of
from notyet.core.gate import place_of
from notyet.core.json_text import dumps
from notyet.core.plan import select
from notyet.core.record import Record, variant
from notyet.core.verdict import Allow
from notyet.errors import LedgerError
from notyet.ledger import Wanted
from notyet.workspace import look
from notyet.workspace.look import Scope
from notyet.workspace.repository import repository_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from notyet.checks.drive import Line
    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.remote import Remote
    from notyet.core.verdict import Decision, Report
    from notyet.deadline import Deadline
    from notyet.ledger import AnyLedger

_RECALLING = 5.0  # seconds for the ledger
_PART = 4  # of the time that is left may be spent on looking, so that the gates have the rest
_GOES_ON = frozenset({"compact", "resume"})  # starts of sessions that began before
_ENDED = "exit "  # how a report says that a command ran to its end


class Files(Record):
    """Some files, here or on another machine."""

    scope: Scope
    machine: Remote | None = None  # None: here

    @property
    def where(self) -> str:
        """The machine, as text; empty: here."""
        return self.machine.machine if self.machine is not None else ""


class Remembering:
    """One stop's gates that are asked only when it matters, and the files they depend on."""

    def __init__(self, plan: Plan, deadline: Deadline) -> None:
        self._event = plan.event
        gates = [gate for stage in plan.stages for gate in stage if gate.when == "changed"]
        self._gates = {gate.name: gate for gate in gates}
        self._files = {gate.name: files_of(gate, plan.event) for gate in gates}
        self._deadline = deadline
        self._trees: Mapping[str, str] = {}

    def look(self) -> Line[None]:
        """Look at the files before anybody is asked."""
        self._trees = yield from trees_of(self._files, self._part_of(look.PATIENCE))

    def recall(self, ledger: AnyLedger, warn: Callable[[str], None]) -> Line[Mapping[str, str]]:
        """Return which gates need not be asked, and why; none, where the ledger cannot say."""
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
        """Look again; write into the reports of those that passed on which files they did."""
        passed = [
            report.gate
            for report in decision.reports
            if self._trees.get(report.gate) and report.definition and has_passed(report)
        ]
        if not passed:
            return decision
        patience = self._deadline.left(look.PATIENCE)
        files = {name: self._files[name] for name in passed}
        after = yield from trees_of(files, patience)
        # A file that changed while a gate looked at it may have done so before or after the look.
        kept = {name: tree for name, tree in after.items() if tree == self._trees[name]}
        reports = tuple(
            variant(report, {"passed_on": kept[report.gate]}) if report.gate in kept else report
            for report in decision.reports
        )
        return variant(decision, {"reports": reports})


def has_passed(report: Report) -> bool:
    """Tell whether a command was really asked, ended by itself and had nothing against it."""
    ended = report.exit.startswith(_ENDED) and isinstance(report.answer, Allow)
    is_light = report.exit != "exit 0" and bool(report.warning)  # it failed, and holds nobody
    return ended and not report.spared and not is_light


def remember_start(
    event: StartEvent, gates: Sequence[Gate], ledger: AnyLedger, patience: float
) -> Line[None]:
    """Remember with which files an agent begins. Raises LedgerError."""
    trees = yield from begun_with(event, gates, patience)
    if trees:
        yield Call(ledger.remember_start, (event, trees, patience))


def begun_with(event: StartEvent, gates: Sequence[Gate], patience: float) -> Line[dict[str, str]]:
    """Look at the files that an agent begins with; return fingerprints by scope.

    Nothing where that is not to be remembered: a session that goes on began before.
    """
    if not event.session_id.strip() or (event.scope == "agent" and event.source in _GOES_ON):
        return {}
    asked = [gate for gate in gates if gate.when == "changed"]
    if event.scope == "subagent":  # other gates may be there for those that the session starts
        asked = [*select(stop_of(event), asked)]
    files = {gate.name: files_of(gate, event) for gate in asked}
    trees = yield from trees_of(files, patience)
    return {scope_key(files[name]): tree for name, tree in trees.items()}  # unknown ones too


def trees_of(files: Mapping[str, tuple[Files, ...]], patience: float) -> Line[dict[str, str]]:
    """Return what the files of each gate look like now; empty where that cannot be told."""
    there: dict[str, dict[Files, None]] = {}
    for part in dict.fromkeys(part for parts in files.values() for part in parts):
        there.setdefault(part.where, {})[part] = None
    seen: dict[Files, str] = {}
    for parts in there.values():
        scopes = [part.scope for part in parts]
        machine = next(iter(parts)).machine
        if machine is None:
            found = yield Call(look.fingerprints, (scopes, patience))
        else:
            from notyet.workspace.remote import fingerprints_there

            found = yield Call(fingerprints_there, (machine, scopes, patience))
        seen |= zip(parts, found, strict=True)
    return {name: _joined(parts, [seen[part] for part in parts]) for name, parts in files.items()}


def _joined(parts: tuple[Files, ...], seen: list[str]) -> str:
    """Return one text for all of a gate's files, which no other files have."""
    return digest_of(dumps([scope_key(parts), seen])) if seen and all(seen) else ""


def scope_key(parts: tuple[Files, ...]) -> str:
    """Return a short name for some files, equal for equal ones in every process."""
    named = [[part.where, part.scope.folder, *part.scope.paths] for part in parts]
    return digest_of(dumps(named))


def files_of(gate: Gate, event: StopEvent | StartEvent) -> tuple[Files, ...]:
    """Return the files that a gate depends on; empty where nobody can tell.

    Those of the agent count in any case, wherever the gate looks: it is asked if they changed.
    """
    remote = place_of(gate, event.workspace)
    parts = _files_here(gate, event) if remote is None else _files_there(gate, remote, event)
    return tuple(dict.fromkeys(parts)) if all(part.scope.folder for part in parts) else ()


def _files_here(gate: Gate, event: StopEvent | StartEvent) -> list[Files]:
    cwd, folder = map(_real, (event.cwd, folder_of(gate)))
    # A user's own file lies outside of all projects, and means the one that the agent works in.
    is_users = not _is_inside(cwd, folder) and not repository_of(folder)
    base = cwd if is_users or not folder else folder
    top = repository_of(base)
    parts = [Files(Scope(base, gate.paths) if gate.paths and top else Scope(top))]
    if event.workspace:
        parts.append(_workspace(event))
    elif not _is_inside(cwd, base) or repository_of(cwd) != top:
        parts.append(Files(Scope(repository_of(cwd))))
    dir = _real(gate.check.dir) if isinstance(gate.check, Command) else ""  # noqa: A001  # its name there
    if dir and repository_of(dir) != top and not (is_users and _is_inside(dir, folder)):
        parts.append(Files(Scope(repository_of(dir))))
    return parts


def _files_there(gate: Gate, remote: Remote, event: StopEvent | StartEvent) -> list[Files]:
    machine = remote.at("/")
    parts = [Files(Scope(remote.path, gate.paths), machine)]
    if not event.workspace:
        parts.append(Files(Scope(repository_of(_real(event.cwd)))))
    elif event.workspace != remote.url:
        parts.append(_workspace(event))
    assert isinstance(gate.check, Command)  # functions run here
    if gate.check.dir and not _is_inside(gate.check.dir, remote.path):
        parts.append(Files(Scope(gate.check.dir), machine))
    return parts


def _workspace(event: StopEvent | StartEvent) -> Files:
    """Return the files of an agent that works elsewhere."""
    from notyet.core.remote import remote_from

    remote = remote_from(event.workspace)
    return Files(Scope(remote.path), remote.at("/"))


def _is_inside(folder: str, other: str) -> bool:
    """Tell whether a folder is another one, or below it."""
    return folder == other or folder.startswith(other.rstrip("/") + "/")


def _real(folder: str) -> str:
    """Return where a folder really lies; empty for a name that the system cannot take."""
    try:
        return os.path.realpath(folder) if folder else ""
    except (OSError, ValueError):  # a NUL, or half a character
        return ""
