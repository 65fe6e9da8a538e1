"""The files that an agent changed, for gates that are about these alone.

They are compared with the snapshot of the session's start, else with the last commit. Where no
snapshot of the files can be taken, such as with submodules, `git status` says what differs from the
last commit.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.gates.session import changes_since_start
from notyet.git.run import Unknown
from notyet.git.snapshot import quoted_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from notyet.gates.question import Question
    from notyet.gates.working_tree import WorkingTree

_HUNK = re.compile(rb"^@@ -\d++(?:,\d++)? \+(\d++)(?:,(\d++))? @@", re.MULTILINE)
_LARGEST = 16 * 1024 * 1024  # bytes of a file that is read to see whether it changed
_WHOLE = range(1, 2**62)  # line numbers
_DIFF = ("-U0", "--text", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")


@dataclass(frozen=True, kw_only=True)
class ChangedFiles:
    """The files of a repository that changed, and the lines that were added to them."""

    tree: WorkingTree
    since: str  # with what they are compared: "the session began", "the last commit (...)"
    names: tuple[str, ...]  # below the root; removed ones, too
    base: str = ""  # a tree or a commit
    objects: str = ""  # a folder with objects of the base that the repository does not have
    before: Mapping[str, str] = field(default_factory=dict)  # name in the base, of those it has

    def existing(self) -> list[str]:
        """Return those that are there; not submodules and other folders."""
        paths = ((name, os.path.join(self.tree.root, name)) for name in self.names)
        return [
            name
            for name, path in paths
            if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))
        ]

    def regular(self) -> list[str]:
        """Return those that have content of their own: no links, pipes or devices."""
        paths = ((name, os.path.join(self.tree.root, name)) for name in self.names)
        return [name for name, path in paths if os.path.isfile(path) and not os.path.islink(path)]

    def added_lines(self, name: str) -> list[range]:
        """Return the numbers of the lines of a regular file that the base does not have."""
        old = self.before.get(name)
        if old is None:
            return [_WHOLE]
        more = {}
        if self.objects:
            more["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = quoted_path(self.objects)
        ask = ("--literal-pathspecs", "diff", *_DIFF, f"{self.base}:{old}", "--", name)
        return [
            range(int(first), int(first) + int(count or 1))
            for first, count in _HUNK.findall(self.tree.git(*ask, environ=more))
        ]


def changed_files(question: Question, tree: WorkingTree) -> ChangedFiles:
    """Return what changed since the session began, else since the last commit. Raises Unclear."""
    try:
        with changes_since_start(question, or_commit=True, root=tree.root) as changes:
            renamed = {new: old for old, new in changes.renames.items()}
            known = {*changes.old}
            before = {name: renamed.get(name, name) for name in changes.new}
            return ChangedFiles(
                tree=tree,
                since=changes.since,
                names=tuple(sorted({*changes.old, *changes.new})),
                base=changes.start.tree,
                # A commit is compared by way of the other snapshot, and has no objects to add.
                objects=""
                if changes.start.objects == changes.now.objects
                else changes.start.objects,
                before={name: old for name, old in before.items() if old in known},
            )
    except Unknown as unknown:
        return _uncommitted(tree, unknown.reason)


def _uncommitted(tree: WorkingTree, why: str) -> ChangedFiles:
    status = tree.status()
    tracked = {*status.changed, *status.unmerged} if status.commit else set()
    return ChangedFiles(
        tree=tree,
        since=f"the last commit ({why})",
        names=tuple(sorted({*status.changed, *status.unmerged, *status.untracked})),
        base="HEAD",
        before={name: name for name in tracked if tree.has(f"HEAD:{name}")},
    )


def contents_of(folder: str, files: Iterable[str]) -> dict[str, str]:
    """Return what tells whether each file was rewritten: a digest, of large ones the time."""
    found = {}
    for name in files:
        path = os.path.join(folder, name)
        try:
            about = os.lstat(path)
            if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST:
                found[name] = f"{about.st_mode} {about.st_size} {about.st_mtime_ns}"
                continue
            with open(path, "rb") as file:
                digest = hashlib.blake2b(file.read()).hexdigest()
            found[name] = f"{about.st_mode} {digest}"
        except OSError:  # removed meanwhile, or not ours to read
            found[name] = ""
    return found
