"""What a file says and where: values with positions, and mistakes with hints."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from math import isnan
from typing import TYPE_CHECKING, Any, TypeAlias

from notyet.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Path: TypeAlias = tuple[str | int, ...]  # of keys and list indexes
Place: TypeAlias = tuple[int, int]  # line and column, from 1

DEEPEST = 100  # tables and lists inside each other
TOO_DEEP = f"tables and lists are nested more than {DEEPEST} deep"
HUGE = 10**15
UNUSABLE = re.compile("[\0\ud800-\udfff]")  # characters that no program can be given
CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")
_SHOWN = 40  # characters of a value in a message
_LONGEST_TYPO = 40


class Mistake(Record, kw_only=True):
    """Something wrong in a file. Lines and columns count from 1; 0: not known."""

    file: str
    line: int = 0
    column: int = 0
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}"
            if self.column:
                place += f":{self.column}"
        return f"{place}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class BadSyntax(ValueError):  # noqa: N818  # named after what happened
    """The text breaks the rules of its format, so nothing of it can be read."""

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
    """Converts an offset in a text to a line and a column, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> Place:
        """Return the line and the column in characters."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def name_of(path: Path) -> str:
    """Return a path as people write it: `gates.tests.pass_codes[2]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        is_plain = _PLAIN_KEY.fullmatch(part) and len(part) <= 2 * _SHOWN
        text += ("." if text else "") + (part if is_plain else quoted(part))
    return f"`{text}`" if text else "the file"


def quoted(text: str) -> str:
    """Return a text for a message: short, on one line, in quotes."""
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 1] + "…"
    shown = UNUSABLE.sub("\ufffd", text)
    return '"' + CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", shown) + '"'


def said(value: object) -> str:
    """Describe a value for a message, in words that fit every format."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if isinstance(value, float) and isnan(value):
            return "nan"
        return str(value) if abs(value) < HUGE else "a huge number"
    for kind, words in ((type(None), "null"), (list, "a list"), (dict, "a table")):
        if isinstance(value, kind):
            return words
    return "a date or time"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean ...?` for a word that is nearly a known one, else an empty text."""
    near = nearest(word, known)
    return f"did you mean `{near}`?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that was probably meant by this one; empty for none."""
    return _nearest(word, tuple(known))


@lru_cache(maxsize=256)  # a file often has the same typo in every entry
def _nearest(word: str, known: tuple[str, ...]) -> str:
    folded = _folded(word)
    if not folded or len(folded) > _LONGEST_TYPO:
        return ""
    allowed = 1 + (len(folded) > 4) + (len(folded) > 8)  # noqa: PLR2004  # longer words, more typos
    best, best_distance = "", allowed + 1
    for candidate in known:
        other = _folded(candidate)
        if other == folded:
            return candidate
        if abs(len(other) - len(folded)) > allowed or min(len(other), len(folded)) <= allowed:
            continue  # a short word with so many typos could be anything
        distance = _distance(folded, other)
        if distance < best_distance:
            best, best_distance = candidate, distance
    return best


def _folded(word: str) -> str:
    """Return a word without case and separators: `maxBlocks` and `max-blocks` are the same."""
    return re.sub("[_ .-]", "", word.lower())


def _distance(one: str, other: str) -> int:
    """Count the letters to add, drop, change or swap with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            is_swap = i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted
            row.append(min(cost, last[j - 2] + 1) if is_swap else cost)
    return row[-1]
