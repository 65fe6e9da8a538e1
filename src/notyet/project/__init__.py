"""What a project checks itself with, found in its files: one small module for each ecosystem.

Each offers `proposals(folder)`. Nothing is run to find out, and nothing is believed but the files.
"""

from __future__ import annotations

import os
import re
from importlib import import_module

from notyet.core.record import Record, replace
from notyet.core.text import visible
from notyet.project.folder import Folder, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    from notyet.config.document import Mistake
    from notyet.project.folder import Proposal

    class Ecosystem(Protocol):
        """What the module of an ecosystem must offer."""

        def proposals(self, folder: Folder) -> Iterator[Proposal]:
            """Yield the gates that a folder seems to want."""


ECOSYSTEMS = ("python", "node", "rust", "go", "precommit")
# Asked last, for what nobody found: targets mostly run what the others are about.
FALLBACKS = ("targets", "unittests")
# What hosts no part of a project, or parts that are not the project's own.
_LEFT_OUT = frozenset((
    "bench", "build", "coverage", "dist", "doc", "docs", "env", "example", "examples", "fixtures",
    "node_modules", "site-packages", "target", "test", "testdata", "tests", "third_party",
    "vendor", "venv",
))  # fmt: skip
_MOST_FOLDERS = 50
# What looks into all folders by itself; scripts, targets and modules of a folder are its own.
_WHOLE = frozenset(("mypy", "pre-commit", "pyright", "pytest", "ruff"))
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class Found(Record, kw_only=True):
    """All that was found: the gates in the order of their file, and what could not be read."""

    proposals: tuple[Proposal, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    notes: tuple[str, ...] = ()  # what else a person should know


def look_at(root: str) -> Found:
    """Look at a project and the folders in it, one level down."""
    mistakes: list[Mistake] = []
    notes: list[str] = []
    top = Folder(root)
    found = _found(top, mistakes)
    whole = _WHOLE | ({"cargo"} if at(top.toml("Cargo.toml"), "workspace") is not None else set())
    known = {(one.name, one.tool) for one in found if one.tool in whole}
    for name in _folders(root):
        inner = _found(Folder(root, name), mistakes)
        inner = [one for one in inner if (one.name, one.tool) not in known]
        if _can_be_written(name):
            found += inner
        elif inner:
            notes.append(f"the folder {name} has a name that no gate can have as `dir`; left out")
    return Found(proposals=_named(found), mistakes=tuple(mistakes), notes=tuple(notes))


def _can_be_written(name: str) -> bool:
    """Tell whether a folder's name hides nothing, and means no other folder in a file."""
    return visible(name) == name and not name.startswith("~")


def _found(folder: Folder, mistakes: list[Mistake]) -> list[Proposal]:
    found: list[Proposal] = []
    for name in ECOSYSTEMS:
        found += map(folder.propose, _ecosystem(name).proposals(folder))
    for name in FALLBACKS:
        known = {one.name for one in found}
        offered = list(_ecosystem(name).proposals(folder))
        # `check` says nothing new where there are tests.
        is_known = known | ({"check"} if "tests" in known else set())
        found += [folder.propose(one) for one in offered if one.name not in is_known]
    mistakes += folder.mistakes
    return found


def _ecosystem(name: str) -> Ecosystem:
    module: Ecosystem = import_module(f"notyet.project.{name}")
    return module


def _folders(root: str) -> list[str]:
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError:
        return []
    names = [
        entry.name
        for entry in entries
        if entry.is_dir(follow_symlinks=False)
        and not entry.name.startswith(".")
        and entry.name.lower() not in _LEFT_OUT
    ]
    return names[:_MOST_FOLDERS]


def _named(found: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """Give every proposal a name of its own: tests, web-tests, tests-pytest, ..."""
    plain = [_plain(one) for one in found]
    taken: dict[str, int] = {}
    named = []
    for one, name in zip(found, plain, strict=True):
        longer = f"{name}-{one.tool}" if plain.count(name) > 1 else name
        taken[longer] = taken.get(longer, 0) + 1
        number = taken[longer]
        named.append(replace(one, name=longer if number == 1 else f"{longer}-{number}"))
    return tuple(named)


def _plain(one: Proposal) -> str:
    folder = _NO_NAME.sub("-", one.dir).strip("-")[:40]
    return f"{folder}-{one.name}" if folder else one.name
