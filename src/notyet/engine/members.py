"""Which members of a project changed since a session began (J6).

One look at the repository serves all members: each changed file belongs to the members around it.
What was changed when the session began is remembered by member, with the commit; so is compared
what is changed now. Whatever cannot be found out counts as changed, as it does where settings of
the repository changed, such as `.git/info/exclude`: they can hide files.
"""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.config.members import members_around
from notyet.core.gate import digest_of
from notyet.git.fingerprint import (  # type: ignore[attr-defined]  # `blake2b` is not of ours
    FileSet,
    Fingerprinting,
    blake2b,
)
from notyet.git.run import GitCommand, Output, Unknown, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from notyet.core.event import StopEvent
    from notyet.git.fingerprint import Scan
    from notyet.ledger import AnyLedger

_MOST = 1000  # members with changes that are remembered
_LONGEST = 100  # characters of a name as it is
_MOST_PRINTED = 32 * 1024 * 1024


def changed_members(
    event: StopEvent,
    ledger: AnyLedger,
    patience: float,
    project: tuple[str, Sequence[str], Sequence[str]],
    looked: dict[FileSet, str],
) -> set[str] | None:
    """Return the members that changed since the agent of an event began; None if unknown.

    `project` is its folder, the globs of its members, and those that are trusted. `looked` receives
    the fingerprint of its repository. Raises LedgerError.
    """
    root, globs, known = project
    ends = monotonic() + patience
    files = FileSet(root)
    git = Fingerprinting((files,), patience, {files: [f"{root}/{folder}" for folder in known]})
    try:
        start = ledger.start_of(event, patience)
        (tree,) = git.finish(ends=ends)
    finally:
        git.leave()
    if tree:
        looked[files] = tree
    scan = git.scan_of(files)
    head, _, settings = start.get(_scope(root), "").partition(" ")
    if scan is None or not head or scan.settings != settings:
        return None
    now = _trees(scan, root, globs)
    changed = {folder.removeprefix(f"{root}/") for folder in scan.untracked()}
    for folder in {*now, *known}:
        if now.get(folder, "") != start.get(_scope(root, folder), ""):
            changed.add(folder)
    if light.fsdecode(scan.head) != head:
        committed = _committed(scan, head, ends)
        if committed is None:
            return None
        changed.update(_members_of(committed, scan, root, globs))
    return changed


def members_at_start(scan: Scan | None, root: str, globs: Sequence[str]) -> dict[str, str]:
    """Return what to remember of members when a session begins: scope -> tree."""
    trees = _trees(scan, root, globs) if scan is not None else {}
    if scan is None or len(trees) > _MOST:
        return {_scope(root): ""}
    start = {_scope(root, folder): tree for folder, tree in trees.items()}
    return start | {_scope(root): f"{light.fsdecode(scan.head)} {scan.settings}"}


def _scope(root: str, folder: str = "") -> str:
    """Return the name of what is remembered of a member; without a folder, of the commit."""
    return f"{digest_of(root)} {folder if len(folder) <= _LONGEST else digest_of(folder)}"


def _trees(scan: Scan, root: str, globs: Sequence[str]) -> dict[str, str]:
    """Return a digest of all changes in each member that has any."""
    seen = {}
    for path in sorted(scan.changes):
        for folder in _members_of((path,), scan, root, globs):
            if folder not in seen:
                seen[folder] = blake2b(digest_size=12)
            for part in (path, scan.changes[path]):
                seen[folder].update(b"%d " % len(part) + part)
    return {folder: digest.hexdigest() for folder, digest in seen.items()}


def _members_of(paths: Iterable[bytes], scan: Scan, root: str, globs: Sequence[str]) -> set[str]:
    """Return the members around paths, which are relative to the top of the repository."""
    inside = f"{root}/"
    folders = {light.dirname(f"{scan.top}/{light.fsdecode(path)}") for path in paths}
    below = [folder[len(inside) :] for folder in folders if folder.startswith(inside)]
    return {member for folder in below for member in members_around(folder, globs)}


def _committed(scan: Scan, head: str, ends: float) -> list[bytes] | None:
    """Return the paths that differ between a commit and HEAD; None if unknown."""
    printed = Output(_MOST_PRINTED)
    ask = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", head, "HEAD")
    command = GitCommand(scan.top, ask, printed.take, scan.top)
    try:
        run([command], ends)
    except (Unknown, OSError, ValueError):
        return None
    return bytes(printed).split(b"\0") if command.code == 0 else None
