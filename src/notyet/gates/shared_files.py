"""The ignored files that a baseline run shares with the work tree, and which of them it may not.

A snapshot has no ignored files, but a test needs `node_modules` or `.env`. Caches are left out.
Everything else is shared if it is as it was when the snapshot was taken, by ctimes, which programs
cannot set back. If it changed there is no baseline: without it, or with what it is now, tests could
fail that did not fail at the start. Only the outputs of tools that build what is missing, as cargo
does, are left out if they changed.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from notyet.git.run import Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.git.snapshot import Snapshot

MOST_ENTRIES = 300_000
MOST_SECONDS = 10.0
MOST_COPIED = 64 * 1024 * 1024  # bytes of one file
_CLOCK = 0.02  # seconds by which ctimes may lag behind the clock
# Results of earlier runs: no run needs them, and they hold results of the files as they are now.
_CACHES = re.compile(
    r"__pycache__|\.(?:cache|hypothesis|pyre|pytype|turbo|gradle|vite|vite-temp|vitest|nyc_output|DS_Store)"
    r"|\.(?:mypy|pytest|ruff|parcel)[_-]cache|\.(?:eslint|stylelint)cache|\.coverage.*|coverage"
    r"|coverage\.(?:xml|json|lcov)|htmlcov|logs|junit.*\.xml|\.testmondata.*"
    r"|.*\.(?:tsbuildinfo|pyc|pyo|log)"
)
# Caches with a .gitignore of their own, so that git names what is in them instead of the folder.
_SELF_IGNORED = frozenset({".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "htmlcov"})
# Build outputs that the tools of these files make anew; those of others are needed as they were.
_REBUILT = {
    "target": ("Cargo.toml", "pom.xml", "build.sbt"),
    "build": ("build.gradle", "build.gradle.kts"),
    "bin": (".csproj", ".fsproj", ".vbproj"),
    "obj": (".csproj", ".fsproj", ".vbproj"),
    "_build": ("mix.exs", "dune-project"),
}
_PACKAGES = frozenset({"site-packages", "dist-packages"})  # folders that hold Python packages
_PYTHON_CACHE = "__pycache__"


class Changed(Exception):  # noqa: N818  # not an error of ours
    """An ignored file cannot be shared; the text says why."""


@dataclass
class Shared:
    """What a run shares with the work tree: paths relative to its root."""

    folders: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)  # caches, of which only the folder is made
    links: list[tuple[str, str]] = field(default_factory=list)  # symlinks in them, with their ends

    def paths(self) -> list[str]:
        """Return all paths."""
        return [*self.folders, *self.files]


def is_cache(path: str) -> bool:
    """Return True if a path is a cache or a report of an earlier run, or in such a cache."""
    *folders, name = path.rstrip("/").split("/")
    return not _SELF_IGNORED.isdisjoint(folders) or _CACHES.fullmatch(name) is not None


def is_rebuilt(root: str, path: str) -> bool:
    """Return True if a path is the output of a tool that builds what is missing."""
    folder, name = os.path.split(os.path.join(root, path.rstrip("/")))
    makers = _REBUILT.get(name, ())
    return bool(makers) and any(there.endswith(makers) for there in os.listdir(folder))


def shared_files(
    snapshot: Snapshot, reports: Sequence[str] = (), at: float | None = None
) -> Shared:
    """Return the ignored files that are as they were, then or `at` a time. Raises Changed, Unknown.

    `reports` are globs, relative to the root, of files that a run writes anew; they are left out.
    """
    walk = _Walk(snapshot, snapshot.at if at is None else at)
    shared = Shared()
    for path in snapshot.ignored():
        name = path.rstrip("/")
        is_folder = path.endswith("/")
        if is_cache(name) or _is_report(snapshot.root, name, reports, is_folder=is_folder):
            shared.emptied += [name] if is_folder else []
            continue
        try:
            _add(walk, name, os.path.join(snapshot.root, name), shared)
        except Changed:
            if not is_rebuilt(snapshot.root, name):
                raise
    return shared


def change_since(snapshot: Snapshot, at: float, reports: Sequence[str] = ()) -> str:
    """Return which ignored file changed after a time, of those that the snapshot knows."""
    try:
        shared_files(snapshot, reports, at)
    except Changed as changed:
        return str(changed)
    except Unknown as unknown:
        return unknown.reason
    return ""


def names_of(snapshot: Snapshot, reports: Sequence[str] = ()) -> list[str]:
    """Return the paths of ignored files that runs may need. Raises Unknown."""
    return sorted(
        name
        for name in (path.rstrip("/") for path in snapshot.ignored())
        if not is_cache(name) and not _matches(name, reports)
    )


def _is_report(root: str, name: str, reports: Sequence[str], *, is_folder: bool) -> bool:
    """Return True for a report, and for a folder with nothing but reports."""
    if not reports:
        return False
    if not is_folder:
        return _matches(name, reports)
    if not any(pattern.startswith(f"{name}/") for pattern in reports):
        return False
    try:
        inside = os.listdir(os.path.join(root, name))
    except OSError:
        return False
    return all(_matches(f"{name}/{one}", reports) for one in inside)


def _matches(name: str, reports: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern.replace("**/", "*")) for pattern in reports)


def _add(walk: _Walk, name: str, full: str, shared: Shared) -> None:
    try:
        about = os.lstat(full)
    except OSError:
        raise Changed(f"{name} was deleted since the session began") from None
    if stat.S_ISDIR(about.st_mode):
        walk.check(name, full, shared)
        shared.folders.append(name)
        return
    if walk.is_new(about):
        raise Changed(f"{name} changed since the session began")
    if stat.S_ISLNK(about.st_mode) and os.path.isdir(full):
        walk.check(name, os.path.realpath(full), shared)
    if stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode):
        shared.files.append(name)


class _Walk:
    """A bounded walk over ignored folders."""

    def __init__(self, snapshot: Snapshot, at: float) -> None:
        self._root = snapshot.root
        self._at = at - _CLOCK
        # An earlier time is before the snapshot, which does not know what there was then.
        self._listed = snapshot.listed() if at >= snapshot.at else {}
        self._left, self._ends = MOST_ENTRIES, monotonic() + MOST_SECONDS

    def is_new(self, about: os.stat_result) -> bool:
        return about.st_ctime >= self._at

    def check(self, name: str, top: str, shared: Shared) -> None:
        """Raise Changed if something in a folder changed, apart from caches."""
        folders = [top]
        while folders:
            folder = folders.pop()
            inside = list(self._entries(name, folder))
            if self.is_new(os.lstat(folder)) and not (
                self._holds_the_same(folder, inside) or self._explained(folder, inside)
            ):
                raise Changed(f"{name} changed since the session began")
            for entry in inside:
                if _CACHES.fullmatch(entry.name):
                    continue
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode):
                    folders.append(entry.path)
                elif self.is_new(about):
                    raise Changed(f"{name} changed since the session began")
                elif stat.S_ISLNK(about.st_mode):
                    shared.links.append((entry.path, os.path.realpath(entry.path)))

    def _entries(self, name: str, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0 or monotonic() > self._ends:
                        raise Changed(f"{name} has too many files to see whether it changed")
                    yield entry
        except OSError:
            raise Changed(f"{name} cannot be read") from None

    def _holds_the_same(self, folder: str, inside: list[os.DirEntry[str]]) -> bool:
        """Return True if nothing but caches came to a folder or went from it."""
        names = self._listed.get(os.path.relpath(folder, self._root) + "/")
        return names is not None and (
            {name for name in names if not is_cache(name)}
            == {entry.name for entry in inside if not is_cache(entry.name)}
        )

    def _explained(self, folder: str, inside: list[os.DirEntry[str]]) -> bool:
        """Return True if a package changed only because Python wrote its cache there.

        A module that was deleted has left its compiled file behind.
        """
        if _PACKAGES.isdisjoint(os.path.dirname(folder).split("/")):
            return False
        names = {entry.name for entry in inside}
        if _PYTHON_CACHE not in names:
            return False
        cache = os.path.join(folder, _PYTHON_CACHE)
        try:
            if not self.is_new(os.lstat(cache)):
                return False
            stems = {name.partition(".")[0] for name in os.listdir(cache)}
        except OSError:
            return False
        return all(f"{stem}.py" in names for stem in stems)
