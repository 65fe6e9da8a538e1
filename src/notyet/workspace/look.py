"""What the files look like now: one fingerprint for HEAD, index, worktree and untracked content.

`git status` and `git ls-files` tell what is in the index and what differs from it, and what differs
is read. What git was told to overlook is read too. A repository can name commands that git runs
when it looks; none of them may run here (see `git`). What we cannot switch off makes the
files unknown, and inside other repositories git is not run at all.
Files that git ignores are not seen.
"""

from __future__ import annotations

import os
from time import monotonic

from notyet.core.record import Record
from notyet.workspace.content import Contents, Reading, blake2b
from notyet.workspace.git import Command, Output, Unknown, run
from notyet.workspace.place import Place, look_closer, refuse_what_hides
from notyet.workspace.repository import repository_of

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
_FIELDS = {b"1": 8, b"u": 10}  # spaces before the path in porcelain v2
_HEAD = (b"# branch.oid ", b"# branch.head ")  # how far the others are is no matter of the files
_WILD = "*?[\\"


class Scope(Record):
    """Which files count: those of the repository of a folder, or what `paths` name below it."""

    folder: str
    paths: tuple[str, ...] = ()  # git's globs, from the folder on; they enter no other repository


def fingerprint(folder: str, patience: float = PATIENCE) -> str:
    """Return a short text that changes when the files do; empty when that cannot be told."""
    return fingerprints((Scope(folder),), patience)[0]


def fingerprints(scopes: Sequence[Scope], patience: float = PATIENCE) -> list[str]:
    """Return the fingerprint of each scope, all within the same time."""
    ends = monotonic() + patience
    looks: dict[Scope, _Look] = {}
    places: dict[str, Place] = {}
    for scope in dict.fromkeys(scopes):
        try:
            looks[scope] = _look(scope, places)
        except (Unknown, OSError, ValueError):
            continue
    try:
        return [*map(_seen(looks, ends).get, scopes, [""] * len(scopes))]
    except (Unknown, OSError, ValueError):
        return [""] * len(scopes)


def simplest(scope: Scope) -> Scope:
    """Return the scope that all have that name the same paths."""
    return Scope(scope.folder, tuple(sorted({*scope.paths})))


def _look(scope: Scope, places: dict[str, Place]) -> _Look:
    root = repository_of(scope.folder)
    if not root:
        raise Unknown
    refuse_what_hides(scope.folder)
    if root not in places:
        places[root] = Place(root)
    folder = os.path.realpath(scope.folder) if scope.paths else root
    return _Look(places[root], folder, simplest(scope).paths)


def _seen(looks: dict[Scope, _Look], ends: float) -> dict[Scope, str]:
    """Look at all the places together; those that say the same are one."""
    unsure = {look.place.root: look.place for look in looks.values() if not look.place.is_plain}
    sure = {place.root for place in look_closer([*unsure.values()], ends)} if unsure else set()
    same = {
        look.key: look for look in looks.values() if look.place.is_plain or look.place.root in sure
    }
    run((command for look in same.values() for command in look.commands), ends)
    contents = Contents(ends)
    known = {}
    for key, look in same.items():
        try:
            known[key] = look.fingerprint(contents)
        except (Unknown, OSError):
            continue
    return {scope: known.get(look.key, "") for scope, look in looks.items()}


class _Look:
    """One look at the files of a place, or at some of them."""

    def __init__(self, place: Place, folder: str, paths: tuple[str, ...]) -> None:
        self.place = place
        self.key = (place.root, folder, paths)
        self._folder = folder
        self._paths = paths
        self._status = Output(_MOST_STATUS)
        self._index = _Index()
        # Narrowed, a commit that leaves these files alone is no change.
        status = ("status", *STATUS) if paths else ("status", *STATUS, "--branch")
        index = ("ls-files", "--full-name", "-v", "--stage", "-z")
        globs = ("--", *(f":(glob){path}" for path in paths)) if paths else ()
        self.commands = (
            Command(folder, (*status, *globs), self._status.take, place.ceiling),
            Command(folder, (*index, *globs), self._index.take, place.ceiling),
        )

    def fingerprint(self, contents: Contents) -> str:
        """Return what the files come to, once git has told; raises Unknown if it has not."""
        if any(command.code != 0 for command in self.commands):
            raise Unknown
        entries, changed = _read_status(bytes(self._status))
        seen = blake2b(digest_size=12)
        for part in (self.place.said, entries, self._index.digest()):
            seen.update(b"%d " % len(part) + part)
        reading = Reading(contents, os.fsencode(self.place.top))
        hidden = reading.present(self._index.hidden)
        for path in dict.fromkeys((*changed, *hidden, *self._led_into())):
            content = reading.content(path)
            seen.update(b"%d %b%d " % (len(path), path, len(content)) + content)
        return seen.hexdigest()

    def _led_into(self) -> Iterator[bytes]:
        """Yield the other repositories that a path leads into by name; globs do not get there."""
        for path in self._paths:
            wild = min((path.find(mark) for mark in _WILD if mark in path), default=len(path))
            named = path if wild == len(path) else path[:wild].rpartition("/")[0]
            place = os.path.normpath(os.path.join(self._folder, named))
            while place.startswith(f"{self.place.top.rstrip('/')}/"):
                if os.path.lexists(os.path.join(place, ".git")):
                    yield os.fsencode(os.path.relpath(place, self.place.top))
                place = os.path.dirname(place)


class _Index:
    """The entries of the index, digested as they come; those git does not look at are kept."""

    def __init__(self) -> None:
        self.hidden: list[bytes] = []
        self._seen = blake2b(digest_size=16)
        self._left = _MOST_INDEX
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """Read one piece."""
        self._left -= len(chunk)
        self._seen.update(chunk)
        *entries, self._rest = (self._rest + chunk).split(b"\0")
        plain = _PLAIN
        odd = [entry for entry in entries if entry[:9] not in plain]
        self.hidden += [entry.partition(b"\t")[2] for entry in odd if entry[:2] != _CONFLICT]
        if self._left < 0 or len(self.hidden) > _MOST_HIDDEN:
            raise Unknown

    def digest(self) -> bytes:
        """Return what stands for all entries."""
        return self._seen.digest()


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
