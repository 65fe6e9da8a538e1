"""What an agent changed: the files of its repository now, against those when its session began."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.config.find import state_folder, user_folder
from notyet.git.run import Unknown
from notyet.git.snapshot import Snapshot, remove, take
from notyet.git.snapshot_store import find, root_for, snapshots_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.gates.question import Question

ELSEWHERE = "the files are on another machine"
NOT_GIT = "the folder is not in a git repository"
NO_STATE = "there is no folder for notyet's state (set HOME or XDG_STATE_HOME)"
SESSION = "the session began"
_TAKING = 60.0  # seconds to look at the files as they are now


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What changed between two snapshots of a work tree."""

    root: str
    start: Snapshot
    now: Snapshot
    old: tuple[str, ...] = ()  # paths that changed, as they were called at the start
    new: tuple[str, ...] = ()  # the same, as they are called now
    renames: Mapping[str, str] = field(default_factory=dict)  # old path: new path
    since: str = SESSION

    @property
    def is_from_start(self) -> bool:
        """Return False if the last commit stands for the start."""
        return self.since == SESSION


def root_of(question: Question) -> str:
    """Return the top of the repository that a gate is about. Raises Unknown outside of git."""
    if question.event.workspace:
        raise Unknown(ELSEWHERE)
    cwd = question.event.cwd or os.getcwd()
    root = root_for(question.folder, cwd, user_folder(os.environ) or "/")
    if not root:
        raise Unknown(NOT_GIT)
    return root


def start_of(question: Question, root: str) -> Snapshot:
    """Return the snapshot of when the agent began. Raises Unknown with the reason."""
    event = question.event
    return find(
        _state(),
        host=event.host,
        session_id=event.session_id,
        agent_id=event.agent_id or "",
        parent_session_id=event.parent_session_id or "",
        task_id=event.task_id or "",
        root=root,
    )


@contextmanager
def as_it_is(root: str) -> Iterator[Snapshot]:
    """Take a snapshot of the files as they are, for a while. Raises Unknown."""
    folder = snapshots_folder(_state())
    os.makedirs(folder, 0o700, exist_ok=True)
    passing = os.path.join(folder, f".{secrets.token_hex(12)}")
    snapshot = take(root, passing, _TAKING)
    try:
        yield snapshot
    finally:
        remove(passing)


@contextmanager
def changes_since_start(
    question: Question, *, or_commit: bool = False, root: str = ""
) -> Iterator[Changes]:
    """Compare the files with those at the start; by default, of the gate's repository.

    With `or_commit`, the last commit stands for a start of which there is no snapshot, and no file
    for a commit that there is not. Raises Unknown.
    """
    root = root or root_of(question)
    since = SESSION
    with as_it_is(root) as now:
        try:
            start = start_of(question, root)
        except Unknown as unknown:
            if not or_commit:
                raise
            start = commit(now, now.head) if now.head else _nothing(now)
            since = f"the last commit ({unknown.reason})"
        yield compared(start, now, since)


def compared(start: Snapshot, now: Snapshot, since: str) -> Changes:
    """Return what changed between two snapshots. Raises Unknown."""
    found = start.diff(now)
    return Changes(
        root=now.root,
        start=start,
        now=now,
        old=tuple(change.old for change in found if change.old),
        new=tuple(change.new for change in found if change.new),
        renames={change.old: change.new for change in found if change.status == "R"},
        since=since,
    )


def commit(near: Snapshot, name: str) -> Snapshot:
    """Return a commit of the same repository as a snapshot. Raises Unknown."""
    tree = near.git("rev-parse", "--verify", "--end-of-options", f"{name}^{{tree}}")
    return Snapshot(root=near.root, tree=tree.decode().strip(), head=name, objects=near.objects)


def _nothing(near: Snapshot) -> Snapshot:
    """Return an empty snapshot; git knows the empty tree without having stored it."""
    tree = near.git("hash-object", "-t", "tree", os.devnull)
    return Snapshot(root=near.root, tree=tree.decode().strip(), objects=near.objects)


def _state() -> str:
    state = state_folder(os.environ)
    if not state:
        raise Unknown(NO_STATE)
    return state
