"""`Folder`: the files of a project. `Proposal`: a gate that they suggest."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notyet.config.document import BadSyntax, Document
from notyet.config.readers import read_file, read_json, read_toml, read_yaml
from notyet.core import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from notyet.config.document import Mistake


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A command or preset that checks a project, and the line of a file that shows it."""

    name: str  # what it is about: tests, lint, types, format, build, ...
    tool: str  # pytest, npm, make, ...
    run: str = ""  # a script for a shell
    uses: str = ""  # instead of `run`: a preset
    file: str  # below the project's folder
    line: int = 1
    dir: str = ""  # where it runs, below the project's folder
    paths: tuple[str, ...] = ()  # all that it depends on, where that is evident
    install: str = ""  # the command that installs what it needs
    is_installed: bool = True  # False: the files show that `install` was not run yet

    @property
    def shown(self) -> str:
        """What a person reads: the command, or the preset."""
        return self.run or f"uses {self.uses}"


_NOTHING = Document(value={})
_PLAIN = re.compile(r"[\w .+@-]*")
_COMMANDS = ("Makefile", "justfile", "tox.ini", "tox.toml", "noxfile.py", "pyproject.toml")


class Folder:
    """Reads each file of a folder once; one that cannot be read is a mistake, and empty."""

    def __init__(self, root: str, name: str = "") -> None:
        self.root = root
        self.name = name  # of a folder in the project; empty for the project's own
        self.path = os.path.join(root, name)
        self.mistakes: list[Mistake] = []
        self._texts: dict[str, str] = {}
        self._documents: dict[str, Document] = {}

    def has(self, name: str) -> bool:
        """Return True if there is such a file."""
        return os.path.isfile(os.path.join(self.path, name))

    def first(self, *names: str) -> str:
        """Return the first of these files that is there; empty for none."""
        return next(filter(self.has, names), "")

    def above(self, name: str) -> str:
        """Return the path to a file in here or in the project's folder; empty for none."""
        if os.path.exists(os.path.join(self.path, name)):
            return name
        is_there = self.name and os.path.exists(os.path.join(self.root, name))
        return os.path.relpath(os.path.join(self.root, name), self.path) if is_there else ""

    def text(self, name: str) -> str:
        """Return the text of a file; empty if it is not there."""
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def toml(self, name: str) -> Document:
        """Return a TOML file; an empty one if it is not there."""
        return self._parsed(name, read_toml)

    def json(self, name: str) -> Document:
        """Return a JSON file; an empty one if it is not there."""
        return self._parsed(name, read_json)

    def yaml(self, name: str) -> Document:
        """Return a YAML file; an empty one if it is not there."""
        return self._parsed(name, read_yaml)

    def sign(self, text: str) -> tuple[str, int] | None:
        """Return the file and line that show a sign; None if it is not there.

        A sign is `FILE`, `*.END`, `FILE#key/key` or `FILE: pattern`, where the pattern matches a
        line. `FILE` may be a folder, too.
        """
        name, is_pattern, pattern = text.partition(": ")
        name, is_key, keys = name.partition("#")
        if name.startswith("*"):
            found = next(self.names(name[1:]), "")
            return (found, 1) if found else None
        if is_key:
            document = self.toml(name) if name.endswith(".toml") else self.json(name)
            path = tuple(keys.split("/"))
            return (name, document.locate(path)[0]) if at(document, *path) is not None else None
        if is_pattern:
            lines = enumerate(self.text(name).splitlines(), 1)
            line = next((number for number, line in lines if re.search(pattern, line)), 0)
            return (name, line) if line else None
        return (name, 1) if os.path.exists(os.path.join(self.path, name)) else None

    def own_commands(self) -> Iterator[tuple[str, str]]:
        """Yield the names and texts of files in which a project writes what it runs."""
        for name in _COMMANDS:
            yield name, self.text(name)
        for inner in ("scripts", os.path.join(".github", "workflows")):
            for name in Folder(self.path, inner).names(""):
                yield os.path.join(inner, name), self.text(os.path.join(inner, name))

    def propose(self, proposal: Proposal) -> Proposal:
        """Return a proposal of this folder as one of the project."""
        is_plain = _PLAIN.fullmatch(self.name)  # other names may mean something in a glob
        paths = tuple(os.path.join(self.name, path) for path in proposal.paths if is_plain)
        return replace(proposal, file=self.place(proposal.file), dir=self.name, paths=paths)

    def place(self, name: str) -> str:
        """Return the name of a file below the project's folder."""
        return os.path.normpath(os.path.join(self.name, name))

    def names(self, pattern_end: str) -> Iterator[str]:
        """Yield the names of files here that end so, in order."""
        try:
            found = sorted(os.listdir(self.path))
        except OSError:
            return
        yield from (name for name in found if name.endswith(pattern_end) and self.has(name))

    def _read(self, name: str) -> str:
        if not self.has(name):
            return ""
        text, mistake = read_file(os.path.join(self.path, name))
        if mistake is not None:
            self.mistakes.append(record.replace(mistake, file=self.place(name)))
        return text or ""

    def _parsed(self, name: str, read: Callable[[str], Document]) -> Document:
        if name not in self._documents:
            document = _NOTHING
            text = self.text(name)
            try:
                document = read(text) if text.strip() else _NOTHING
            except BadSyntax as bad:
                self.mistakes.append(bad.in_file(self.place(name)))
            self._documents[name] = document if isinstance(document.value, dict) else _NOTHING
        return self._documents[name]


def at(document: Document, *keys: str) -> object:
    """Return the value under these keys of a document; None for nothing."""
    value = document.value
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
