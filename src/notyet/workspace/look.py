"""What the files look like now: one fingerprint for HEAD, index, worktree and untracked content.

`git status` tells what differs from the index, and what differs is read; the index is read too,
and so is what git was told to overlook. A repository can name commands that git runs when it
looks; none of them may run here (see `git`). What we cannot switch off makes the files unknown,
and inside other repositories git is not run at all.
Files that git ignores are not seen; a folder that it ignores as a whole is unknown.
"""

from __future__ import annotations

from time import monotonic

from notyet.core.record import Record
from notyet.paths import real_folder
from notyet.workspace.git import Runs, run
from notyet.workspace.one_look import OneLook
from notyet.workspace.place import Place, refuse_what_hides
from notyet.workspace.repository import top_of
from notyet.workspace.unknown import OUTSIDE, Unknown, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.workspace.content import Contents
    from notyet.workspace.settings import Settings

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
        from notyet.workspace.settings import Settings

        first = [Settings(place) for place in places if not place.is_plain]
        if first:
            run([command for settings in first for command in settings.commands], self._ends)
        for settings in first:
            settings.heed()
        self._unclear = [Settings(place) for place in places if place.is_plain]
        runs.start([command for settings in self._unclear for command in settings.commands])

    def _finish(self, runs: Runs) -> None:
        for look in self._looks.values():
            runs.start(look.read_index(self._ends))
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
            from notyet.workspace.content import Contents

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
