"""What stands in a host's settings files, as far as it can be read."""

from __future__ import annotations

import os
from importlib import import_module

from notyet.config.document import TOO_DEEP, BadSyntax, Document, Mistake
from notyet.config.readers import read_file, read_json, read_toml
from notyet.core.record import Record, replace
from notyet.install.hooks_file import mistake_of
from notyet.status.faults.fault import Fault, fault
from notyet.status.faults.fault import place as at
from notyet.status.faults.programs import Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from notyet.config.document import Path
    from notyet.install.place import Place
    from notyet.install.registered import Registration

    class Judge(Protocol):
        """What the module must offer that judges a host."""

        OLDEST: tuple[int, ...]  # the first version whose hooks can gate
        ADVISED: tuple[int, ...]  # the first one that loses nothing

        def judged(self, look: Look) -> tuple[Look, list[Fault]]:
            """Judge all but the host's program; return what the host takes, and what is wrong."""

        def variables(self, contents: Sequence[Content]) -> dict[str, tuple[str, str]]:
            """Return the variables that settings add for hooks, with their places."""


_NOT_UTF8 = "is not UTF-8"


class Content(Record, kw_only=True):
    """A settings file: its text and what that says, or in `mistake` why neither is known."""

    place: Place
    text: str = ""
    document: Document | None = None  # None: there is no such file, or it cannot be read
    mistake: Mistake | None = None
    doubt: Mistake | None = None  # why we cannot be sure of it, though its host may be

    @property
    def is_there(self) -> bool:
        """Whether there is such a file."""
        return bool(self.document or self.mistake or self.doubt)

    @property
    def value(self) -> dict[str, Any]:
        """The settings; empty where there are none."""
        return self.document.value if self.document is not None else {}

    def get(self, *path: str) -> Any:
        """Return what stands under these keys; None for nothing."""
        value: Any = self.value
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def where(self, *path: str | int) -> str:
        """Return a key's place as people write it."""
        if self.document is None or not path:
            return at(self.place.path)
        return at(self.place.path, *self.document.locate(_path(path)))


def _path(path: tuple[str | int, ...]) -> Path:
    return path


def read_places(places: Iterable[Place]) -> tuple[Content, ...]:
    """Read every file that is there."""
    return tuple(_read(place) for place in places)


def _read(place: Place) -> Content:
    if not os.path.lexists(place.path):
        return Content(place=place)
    text, mistake = read_file(place.path)
    if text is not None:
        return _parsed(place, text)
    if mistake is not None and mistake.message.startswith(_NOT_UTF8) and place.form == "json":
        # Hosts put a sign in the place of such a byte, and read on.
        with open(place.path, encoding="utf-8", errors="replace") as file:
            return replace(_parsed(place, file.read()), doubt=mistake)
    return Content(place=place, mistake=mistake)


def _parsed(place: Place, text: str) -> Content:
    if not text.strip("\ufeff \t\r\n"):
        return Content(place=place, text=text, document=Document(value={}))
    try:
        document = (read_toml if place.form == "toml" else read_json)(text)
    except BadSyntax as error:
        mistake = mistake_of(place, error)
        if TOO_DEEP in error.message:  # for us, and not for everybody
            return Content(place=place, text=text, doubt=mistake)
        return Content(place=place, text=text, mistake=mistake)
    if not isinstance(document.value, dict):
        kind = type(document.value).__name__
        mistake = Mistake(file=place.path, message=f"it holds a {kind}, not an object")
        return Content(place=place, text=text, mistake=mistake)
    return Content(place=place, text=text, document=document)


JUDGES = {"claude": "notyet.status.faults.claude", "codex": "notyet.status.faults.codex"}


def judge_of(host: str) -> Judge:
    """Return the module that judges a host."""
    judge: Judge = import_module(JUDGES[host])
    return judge


class Look(Record, kw_only=True):
    """One host, seen from one folder."""

    host: str
    title: str
    cwd: str
    environ: Mapping[str, str]
    program: str = ""  # where the host's program is; empty: not on the PATH
    version: Version = Version()
    contents: tuple[Content, ...] = ()
    registrations: tuple[Registration, ...] = ()
    skipped: frozenset[str] = frozenset()  # places of entries that the host would not run

    @property
    def added(self) -> dict[str, str]:
        """The variables that the host's settings add for its hooks."""
        told = judge_of(self.host).variables(self.contents)
        return {name: value for name, (value, _) in told.items()}

    @property
    def environ_of_hooks(self) -> dict[str, str]:
        """What the host's hooks are given."""
        return {**self.environ, **self.added}

    def without(self, paths: Iterable[str]) -> Look:
        """Return the same without what stands in files that the host does not take."""
        dropped = frozenset(paths)
        kept = tuple(r for r in self.registrations if r.place.path not in dropped)
        contents = tuple(
            Content(place=one.place) if one.place.path in dropped else one for one in self.contents
        )
        return replace(self, registrations=kept, contents=contents)

    def only(self, entries: Iterable[Registration]) -> Look:
        """Return the same with these entries of ours and no others."""
        return replace(self, registrations=tuple(entries))

    def invalid(self, mistake: Mistake) -> Fault:
        """Return that the host takes nothing from a file, because it cannot be read."""
        return self.fault(
            "file-invalid",
            f"{self.title} takes nothing from it: {mistake.message}.",
            where=at(mistake.file, mistake.line, mistake.column),
            fix=mistake.hint or "correct it",
        )

    def fault(self, code: str, what: str, *, where: str = "", fix: str = "") -> Fault:
        """Return a fault of this host."""
        return fault(code, what, host=self.host, where=where, fix=fix)


def merged(faults: Iterable[Fault]) -> list[Fault]:
    """Return what is the same at several places once, with the first of them."""
    places: dict[Fault, list[str]] = {}
    for found in faults:
        known = places.setdefault(replace(found, where=""), [])
        if found.where not in known:
            known.append(found.where)
    return [replace(found, where=_places(where)) for found, where in places.items()]


def _places(where: list[str]) -> str:
    more = len(where) - 1
    return where[0] + (f" (and {more} more)" if more else "")
