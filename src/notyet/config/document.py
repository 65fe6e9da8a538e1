"""`Document`: what a file says, and where each part of it stands."""

from __future__ import annotations

from bisect import bisect_right

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    Path: TypeAlias = tuple[str | int, ...]
    Place: TypeAlias = tuple[int, int]

DEEPEST = 100  # tables and lists inside each other; no configuration needs more
TOO_DEEP = f"tables and lists are nested more than {DEEPEST} deep"


class BadSyntax(ValueError):  # noqa: N818  # named after what happened
    """The text is not what its format demands, so nothing of it can be read."""

    def __init__(self, message: str, line: int = 0, column: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint


class Finding(Record):
    """A mistake that only a reader can see, such as a key written twice; the rest is read."""

    line: int
    column: int
    message: str
    hint: str = ""


class Document(Record, kw_only=True):
    """A file's value, and the place of every key and list item in it."""

    value: Any
    places: Mapping[Path, Place] = {}
    findings: tuple[Finding, ...] = ()

    def locate(self, path: Path) -> Place:
        """Return the line and column of a key or item, or of the closest known thing around it."""
        for length in range(len(path), 0, -1):
            place = self.places.get(path[:length])
            if place:
                return place
        return (1, 1)


class Lines:
    """Turns an offset in a text into a line and a column, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)

    def place(self, offset: int) -> Place:
        """Return the line and the column in characters."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1
