"""A fingerprint of the files of a repository, or of some of them."""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.core.record import Record
from notyet.git.index import LIST, Listing, blake2b, exact, led_into
from notyet.git.place import Place, refuse_what_hides, top_of
from notyet.git.run import (
    IGNORED,
    NOT_NAMED,
    OUTSIDE,
    REFUSED,
    Command,
    Output,
    Runs,
    Unknown,
    reason_of,
    run,
)
from notyet.light import real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from notyet.git.content import Contents
    from notyet.git.place import Settings

STATUS = (
    *("--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"),
    # What submodules look like inside, git would find out by running itself in them.
    "--ignore-submodules=dirty",
)
ANY = "any"  # stands for whatever is in a folder
_MOST_STATUS = 32 * 1024 * 1024  # bytes
_NEW = b"? "  # before the path in porcelain v2
_FIELDS = {b"1": 8, b"u": 10}  # spaces before the path in porcelain v2
_HEAD = (b"# branch.oid ", b"# branch.head ")  # how far the others are is no matter of the files
_NOT_IGNORED = 1  # how `git check-ignore` exits


class OneLook:
    """One look at the files of a place, or at some of them."""

    def __init__(self, place: Place, scope: Scope) -> None:
        self._place = place
        self._folder, self._paths = scope.folder, scope.paths
        self._globs = ("--", *(f":(glob){path}" for path in scope.paths)) if scope.paths else ()
        self._status = Output(_MOST_STATUS)
        self._begun: dict[str, bytes] = {}  # where somebody works who wants to know
        self._commands: list[Command] = []
        self._index: Listing | None = None
        self._ignored: dict[str, Command] = {}
        self._known = ""

    def begin_in(self, folder: str) -> None:
        """Say in which folder somebody works who wants to know: it must not be ignored."""
        if folder != self._place.root:
            inside = f"{self._place.top.rstrip('/')}/"
            self._begun[folder] = light.fsencode(folder.removeprefix(inside))

    def begin(self) -> Iterator[Command]:
        """Yield what git is asked at once."""
        # Narrowed, a commit that leaves these files alone is no change.
        branch = () if self._paths else ("--branch",)
        yield self._command(("status", *STATUS, *branch), self._status.take)
        yield self._list()

    def _list(self) -> Command:
        self._index = listing = Listing(self._begun)
        more = exact(self._folder, self._paths, self._place.top)
        return self._command(LIST, listing.take_chunk, more)

    def _command(
        self, args: tuple[str, ...], take: Callable[[bytes], None], more: Sequence[str] = ()
    ) -> Command:
        command = Command(self._folder, (*args, *self._globs, *more), take, self._place.root)
        self._commands.append(command)
        return command

    def doubts(self) -> Iterator[Command]:
        """Yield what asks whether git ignores the folders in which it knows no file."""
        for folder in self._index.unmet if self._index is not None else ():
            ask = ("check-ignore", "--quiet", "--", light.join(folder, ANY))
            root = self._place.root
            self._ignored[folder] = Command(root, ask, self._status.take, root)
            yield self._ignored[folder]

    def expect_seen(self, folder: str) -> None:
        """Raise Unknown if git ignores a folder: then all in it could change unseen."""
        ignored = self._ignored.get(folder)
        if ignored is not None and ignored.code != _NOT_IGNORED:
            raise Unknown(IGNORED if ignored.code == 0 else _why(ignored))

    def fingerprint(self, read: Callable[[], Contents]) -> str:
        """Return what the files come to, once git has told; raises Unknown if it has not.

        `read` is asked for what reads files, where there is something to be read.
        """
        self._known = self._known or self._taken(read)
        return self._known

    def _taken(self, read: Callable[[], Contents]) -> str:
        for command in self._commands:
            if command.code != 0:
                raise Unknown(_why(command))
        if self._place.unknown:
            raise Unknown(self._place.unknown)
        index = self._index
        assert index is not None  # it was begun
        entries, changed = _read_status(bytes(self._status))
        others = self._led_into() if self._paths else []
        is_new = entries.startswith(_NEW) or b"\0" + _NEW in entries
        if self._paths and not (others or is_new or index.is_filled):
            raise Unknown(NOT_NAMED)
        seen = blake2b(digest_size=12)
        for part in (self._place.said, entries, index.digest()):
            seen.update(b"%d " % len(part) + part)
        if changed or index.hidden or others:
            from notyet.git.content import Reading

            reading = Reading(read(), light.fsencode(self._place.top))
            hidden = dict.fromkeys(reading.present(index.hidden))
            for path in dict.fromkeys((*changed, *hidden, *others)):
                content = reading.content(path, is_listed=path not in hidden)
                seen.update(b"%d %b%d " % (len(path), path, len(content)) + content)
        return seen.hexdigest()

    def _led_into(self) -> list[bytes]:
        return [*led_into(self._folder, self._paths, self._place.top)]


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


# What the files look like now: one fingerprint for HEAD, index, worktree and untracked content.
#
# `git status` tells what differs from the index, and what differs is read; the index is listed too,
# and so is what git was told to overlook. A repository can name commands that git runs when it
# looks; none of them may run here (see `git`). What we cannot switch off makes the files unknown,
# and inside other repositories git is not run at all.
# Files that git ignores are not seen; a folder that it ignores as a whole is unknown.


PATIENCE = 20.0  # seconds for git


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
    return Looking(scopes, patience).finish(reasons)


def simplest(scope: Scope) -> Scope:
    """Return the scope that all have that name the same paths."""
    return Scope(scope.folder, tuple(sorted({*scope.paths})))


class Looking:
    """A look at some scopes that has begun: git is at work, and there is time for other things.

    Those that say the same are looked at once. Whoever begins a look finishes it or leaves it.
    """

    def __init__(self, scopes: Sequence[Scope], patience: float) -> None:
        self._scopes = scopes
        self._ends = monotonic() + patience
        self._failed: dict[Scope, str] = {}
        self._folders: dict[Scope, str] = {}  # where they really lie
        self._looks: dict[Scope, OneLook] = {}
        self._chosen: dict[Scope, OneLook] = {}
        self._unclear: list[Settings] = []
        self._contents: Contents | None = None
        self._runs: list[Runs] = []  # one, until somebody takes it
        try:
            self._begin()
        except (Unknown, OSError, ValueError) as error:
            self._fail(error)

    def finish(
        self, reasons: dict[Scope, str] | None = None, ends: float | None = None
    ) -> list[str]:
        """Return the fingerprint of each scope; `reasons` is told why, for those unknown.

        `ends` is until when to wait, where that is not known before.
        """
        seen: dict[Scope, str] = {}
        if self._runs:
            runs = self._runs.pop()
            if ends is not None:
                self._ends = runs.ends = ends
            try:
                self._finish(runs)
                seen = self._seen()
            except (Unknown, OSError, ValueError) as error:
                self._fail(error)
            finally:
                runs.leave()
        if reasons is not None:
            reasons.update(self._failed)
        return [seen.get(scope, "") for scope in self._scopes]

    def leave(self) -> None:
        """End what was begun, unless it is being finished; nobody wants to know any more."""
        if self._runs:
            self._runs.pop().leave()

    def _fail(self, error: Exception) -> None:
        self._failed = dict.fromkeys(self._scopes, reason_of(error)) | self._failed

    def _begin(self) -> None:
        places: dict[str, Place] = {}
        where: dict[Scope, Place] = {}
        for scope in self._scopes:
            try:
                folder = real_folder(scope.folder)
                where[scope] = _place_of(folder, places)
                self._folders[scope] = folder
            except (Unknown, OSError, ValueError) as error:
                self._failed[scope] = reason_of(error)
        if not places:
            return
        runs = Runs(places, self._ends)
        self._runs.append(runs)
        unclear = [place for place in places.values() if not place.is_clear]
        if unclear:
            self._look_closer(unclear, runs)
        for scope, place in where.items():
            if place.unknown:
                self._failed[scope] = place.unknown
                continue
            what = _what(scope, self._folders[scope], place)
            look = self._looks[what] = self._looks.get(what) or OneLook(place, what)
            self._chosen[scope] = look
            look.begin_in(self._folders[scope])
        runs.start([command for look in self._looks.values() for command in look.begin()])

    def _look_closer(self, places: list[Place], runs: Runs) -> None:
        """Ask git what the settings mean: first where they may name a command, else meanwhile."""
        from notyet.git.place import Settings

        first = [Settings(place) for place in places if not place.is_plain]
        if first:
            run([command for settings in first for command in settings.commands], self._ends)
        for settings in first:
            settings.heed()
        self._unclear = [Settings(place) for place in places if place.is_plain]
        runs.start([command for settings in self._unclear for command in settings.commands])

    def _finish(self, runs: Runs) -> None:
        runs.finish()
        for settings in self._unclear:
            settings.heed()
        unsure = [command for look in self._looks.values() for command in look.doubts()]
        if unsure:
            run(unsure, self._ends)

    def _seen(self) -> dict[Scope, str]:
        seen = {}
        for scope, look in self._chosen.items():
            try:
                look.expect_seen(self._folders[scope])
                seen[scope] = look.fingerprint(self._read)
            except (Unknown, OSError) as error:
                self._failed[scope] = reason_of(error)
        return seen

    def _read(self) -> Contents:
        """Return what reads files, for all that look."""
        if self._contents is None:
            from notyet.git.content import Contents

            self._contents = Contents(self._ends)
        return self._contents


def _place_of(folder: str, places: dict[str, Place]) -> Place:
    root = top_of(folder)
    if not root:
        raise Unknown(OUTSIDE)
    refuse_what_hides(folder)
    if root not in places:
        places[root] = Place(root)
    return places[root]


def _what(scope: Scope, folder: str, place: Place) -> Scope:
    """Return the scope that all have that show the same."""
    return simplest(Scope(folder if scope.paths else place.root, scope.paths))
