"""What the files look like now: one fingerprint for HEAD, index, worktree and untracked content.

`git status` and `git ls-files` tell what is in the index and what differs from it, and what differs
is read. What git was told to overlook is read too. A repository can name commands that git runs
when it looks; none of them may run here (see `git`). What we cannot switch off makes the
files unknown, and inside other repositories git is not run at all.
Files that git ignores are not seen; a folder that it ignores as a whole is unknown.
"""

from __future__ import annotations

import os
from time import monotonic

from notyet.core.record import Record
from notyet.workspace.content import Contents, Reading, blake2b
from notyet.workspace.git import Command, Output, run
from notyet.workspace.place import Place, look_closer, refuse_what_hides
from notyet.workspace.repository import repository_of
from notyet.workspace.unknown import (
    IGNORED,
    LINKED,
    NOT_NAMED,
    OUTSIDE,
    REFUSED,
    TOO_MUCH,
    Unknown,
    reason_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE = 20.0  # seconds for git
STATUS = (
    *("--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"),
    # What submodules look like inside, git would find out by running itself in them.
    "--ignore-submodules=dirty",
)
_MOST_STATUS = 32 * 1024 * 1024  # bytes
_MOST_INDEX = 512 * 1024 * 1024  # bytes; they are not kept
_MOST_HIDDEN = 200_000  # entries of the index that git was told to overlook
_PLAIN = frozenset({b"H 100644 ", b"H 100755 ", b"H 120000 "})
_CONFLICT = b"M "  # these the status tells
_NEW = b"? "  # before the path in porcelain v2
_FIELDS = {b"1": 8, b"u": 10}  # spaces before the path in porcelain v2
_HEAD = (b"# branch.oid ", b"# branch.head ")  # how far the others are is no matter of the files
_WILD = "*?[\\"
_NOT_IGNORED = 1  # how `git check-ignore` exits
ANY = "any"  # stands for whatever is in a folder


class Scope(Record):
    """Which files count: those of the repository of a folder, or what `paths` name below it."""

    folder: str
    paths: tuple[str, ...] = ()  # git's globs, from the folder on; they enter no other repository


def fingerprint(folder: str, patience: float = PATIENCE) -> str:
    """Return a short text that changes when the files do; empty when that cannot be told."""
    return fingerprints((Scope(folder),), patience)[0]


def fingerprints(
    scopes: Sequence[Scope],
    patience: float = PATIENCE,
    reasons: dict[Scope, str] | None = None,
) -> list[str]:
    """Return the fingerprint of each scope, all within the same time.

    `reasons` is told why, for those that are unknown.
    """
    failed: dict[Scope, str] = {}
    seen: dict[Scope, str] = {}
    try:
        _look_at_all(scopes, monotonic() + patience, seen, failed)
    except (Unknown, OSError, ValueError) as error:
        failed = dict.fromkeys(scopes, reason_of(error)) | failed
        seen = {}
    if reasons is not None:
        reasons.update(failed)
    return [seen.get(scope, "") for scope in scopes]


def simplest(scope: Scope) -> Scope:
    """Return the scope that all have that name the same paths."""
    return Scope(scope.folder, tuple(sorted({*scope.paths})))


def _look_at_all(
    scopes: Sequence[Scope], ends: float, seen: dict[Scope, str], failed: dict[Scope, str]
) -> None:
    """Look at all the places together; those that say the same are one."""
    places: dict[str, Place] = {}
    where: dict[Scope, Place] = {}
    for scope in scopes:
        try:
            where[scope] = _place_of(scope, places)
        except (Unknown, OSError, ValueError) as error:
            failed[scope] = reason_of(error)
    unclear = [place for place in places.values() if not place.is_clear]
    if unclear:
        look_closer(unclear, ends)
    looks: dict[Scope, _Look] = {}
    chosen: dict[Scope, _Look] = {}
    for scope, place in where.items():
        if place.unknown:
            failed[scope] = place.unknown
            continue
        what = _what(scope, place)
        chosen[scope] = looks[what] = looks.get(what) or _Look(place, what)
        chosen[scope].begin_in(os.path.realpath(scope.folder))
    run((command for look in looks.values() for command in look.commands), ends)
    unsure = [command for look in looks.values() for command in look.doubts()]
    if unsure:
        run(unsure, ends)
    contents = Contents(ends)
    for scope, look in chosen.items():
        try:
            look.expect_seen(os.path.realpath(scope.folder))
            seen[scope] = look.fingerprint(contents)
        except (Unknown, OSError) as error:
            failed[scope] = reason_of(error)


def _place_of(scope: Scope, places: dict[str, Place]) -> Place:
    root = repository_of(scope.folder)
    if not root:
        raise Unknown(OUTSIDE)
    refuse_what_hides(scope.folder)
    if root not in places:
        places[root] = Place(root)
    return places[root]


def _what(scope: Scope, place: Place) -> Scope:
    """Return the scope that all have that show the same."""
    folder = os.path.realpath(scope.folder) if scope.paths else place.root
    return simplest(Scope(folder, scope.paths))


class _Look:
    """One look at the files of a place, or at some of them."""

    def __init__(self, place: Place, scope: Scope) -> None:
        self._place = place
        self._folder, self._paths = scope.folder, scope.paths
        self._status = Output(_MOST_STATUS)
        self._index = _Index()
        self._ignored: dict[str, Command] = {}
        self._known = ""
        # Narrowed, a commit that leaves these files alone is no change.
        status = ("status", *STATUS) if scope.paths else ("status", *STATUS, "--branch")
        index = ("ls-files", "--full-name", "-v", "--stage", "-z")
        globs = ("--", *(f":(glob){path}" for path in scope.paths)) if scope.paths else ()
        self.commands = (
            Command(scope.folder, (*status, *globs), self._status.take, place.root),
            Command(scope.folder, (*index, *globs), self._index.take, place.root),
        )

    def begin_in(self, folder: str) -> None:
        """Say in which folder somebody works who wants to know: it must not be ignored."""
        if folder != self._place.root:
            self._index.unmet[folder] = os.fsencode(os.path.relpath(folder, self._place.top))

    def doubts(self) -> Iterator[Command]:
        """Yield what asks whether git ignores the folders in which it knows no file."""
        for folder in self._index.unmet:
            ask = ("check-ignore", "--quiet", "--", os.path.join(folder, ANY))
            root = self._place.root
            self._ignored[folder] = Command(root, ask, self._status.take, root)
            yield self._ignored[folder]

    def expect_seen(self, folder: str) -> None:
        """Raise Unknown if git ignores a folder: then all in it could change unseen."""
        ignored = self._ignored.get(folder)
        if ignored is not None and ignored.code != _NOT_IGNORED:
            raise Unknown(IGNORED if ignored.code == 0 else _why(ignored))

    def fingerprint(self, contents: Contents) -> str:
        """Return what the files come to, once git has told; raises Unknown if it has not."""
        self._known = self._known or self._taken(contents)
        return self._known

    def _taken(self, contents: Contents) -> str:
        for command in self.commands:
            if command.code != 0:
                raise Unknown(_why(command))
        entries, changed = _read_status(bytes(self._status))
        others = [*self._led_into()]
        is_new = entries.startswith(_NEW) or b"\0" + _NEW in entries
        if self._paths and not (others or is_new or self._index.is_filled):
            raise Unknown(NOT_NAMED)
        seen = blake2b(digest_size=12)
        for part in (self._place.said, entries, self._index.digest()):
            seen.update(b"%d " % len(part) + part)
        reading = Reading(contents, os.fsencode(self._place.top))
        hidden = reading.present(self._index.hidden)
        for path in dict.fromkeys((*changed, *hidden, *others)):
            content = reading.content(path)
            seen.update(b"%d %b%d " % (len(path), path, len(content)) + content)
        return seen.hexdigest()

    def _led_into(self) -> Iterator[bytes]:
        """Yield the other repositories that a path leads into by name; globs do not get there."""
        for path in self._paths:
            wild = min((path.find(mark) for mark in _WILD if mark in path), default=len(path))
            named = path if wild == len(path) else path[:wild].rpartition("/")[0]
            place = os.path.normpath(os.path.join(self._folder, named))
            while place.startswith(f"{self._place.top.rstrip('/')}/"):
                if os.path.islink(place):  # what it leads to is named by no glob
                    raise Unknown(LINKED)
                if os.path.lexists(os.path.join(place, ".git")):
                    yield os.fsencode(os.path.relpath(place, self._place.top))
                place = os.path.dirname(place)


class _Index:
    """The entries of the index, digested as they come; those git does not look at are kept."""

    def __init__(self) -> None:
        self.hidden: list[bytes] = []
        self.unmet: dict[str, bytes] = {}  # folders in which no entry was met yet
        self.is_filled = False
        self._seen = blake2b(digest_size=16)
        self._left = _MOST_INDEX
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """Read one piece."""
        self._left -= len(chunk)
        self._seen.update(chunk)
        text = self._rest + chunk
        *entries, self._rest = text.split(b"\0")
        self.is_filled = True
        for folder, name in [*self.unmet.items()]:
            if b"\t%b/" % name in text:
                del self.unmet[folder]
        plain = _PLAIN
        odd = [entry for entry in entries if entry[:9] not in plain]
        self.hidden += [entry.partition(b"\t")[2] for entry in odd if entry[:2] != _CONFLICT]
        if self._left < 0 or len(self.hidden) > _MOST_HIDDEN:
            raise Unknown(TOO_MUCH)

    def digest(self) -> bytes:
        """Return what stands for all entries."""
        return self._seen.digest()


def _why(command: Command) -> str:
    """Return why a command has not told what it should."""
    return command.reason if command.code is None else REFUSED


def _read_status(status: bytes) -> tuple[bytes, list[bytes]]:
    """Return the entries that count, and the paths whose content git has not hashed for us."""
    entries, changed = [], []
    for entry in status.split(b"\0"):
        kind = entry[:1]
        if kind == b"?":
            changed.append(entry[2:])
        elif kind in _FIELDS:
            changed.append(entry.split(b" ", _FIELDS[kind])[-1])
        elif not entry.startswith(_HEAD):
            continue
        entries.append(entry)
    return b"\0".join(entries), changed
