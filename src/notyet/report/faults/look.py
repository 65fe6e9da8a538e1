"""`Look`: everything that was read and asked about one host, for those who judge it."""

from __future__ import annotations

from importlib import import_module

from notyet.core.record import Record, replace
from notyet.report.faults.contents import Content
from notyet.report.faults.fault import Fault, fault
from notyet.report.faults.fault import place as at
from notyet.report.faults.versions import Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    from notyet.config.mistakes import Mistake
    from notyet.install.registered import Registration

    class Judge(Protocol):
        """What the module must offer that judges a host."""

        OLDEST: tuple[int, ...]  # the first version whose hooks can gate
        ADVISED: tuple[int, ...]  # the first one that loses nothing

        def judged(self, look: Look) -> tuple[Look, list[Fault]]:
            """Judge all but the host's program; return what the host takes, and what is wrong."""

        def variables(self, contents: Sequence[Content]) -> dict[str, tuple[str, str]]:
            """Return the variables that settings add for hooks, with their places."""


JUDGES = {"claude": "notyet.report.faults.claude", "codex": "notyet.report.faults.codex"}


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
