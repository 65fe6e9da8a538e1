"""Names of files as people write them down, and paste them."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

from notyet import light
from notyet.config.files import CONCLAUDE, FOLDERS, NAME
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias

    Path: TypeAlias = tuple[str | int, ...]
    Place: TypeAlias = tuple[int, int]


def is_config_name(path: str) -> bool:
    """Tell whether a path can only be meant as a file of configuration, not as a folder."""
    folder, name = light.split(path)
    return name in (NAME, *CONCLAUDE) or light.basename(folder) in FOLDERS


def quoted(word: str) -> str:
    """Return a word as it can be pasted into a shell."""
    if all(sign.isalnum() or sign in "-_./:@[]" for sign in word) and word.isascii():
        return word if "[" not in word else f"'{word}'"
    return "'" + word.replace("'", "'\\''") + "'"


_LONGEST = 40  # a longer word is no typo of a key of ours, and comparing it would cost


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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean ...?` for a word that is nearly a known one, else an empty text."""
    near = nearest(word, known)
    return f"did you mean `{near}`?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that somebody who wrote this one may have meant; empty for none."""
    return _nearest(word, tuple(known))


@lru_cache(maxsize=256)  # who writes a typo once writes it in every entry
def _nearest(word: str, known: tuple[str, ...]) -> str:
    folded = _folded(word)
    if not folded or len(folded) > _LONGEST:
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
    return "".join(character for character in word.lower() if character not in "_- .")


def _distance(one: str, other: str) -> int:
    """Count the letters to add, drop, change or swap with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            swapped = i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted
            row.append(min(cost, last[j - 2] + 1) if swapped else cost)
    return row[-1]


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
