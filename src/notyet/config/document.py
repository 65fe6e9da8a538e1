"""What a file says and where: values with positions, and mistakes with hints."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from math import isnan
from typing import TYPE_CHECKING, Any, TypeAlias

from notyet.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Path: TypeAlias = tuple[str | int, ...]  # of keys and list indexes
Position: TypeAlias = tuple[int, int]  # line and column, from 1

HUGE = 10**15
UNUSABLE = re.compile("[\0\ud800-\udfff]")  # characters that no program can be given
CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")
_SHOWN = 40  # characters of a value in a message
_LONGEST_TYPO = 40
_ALIKE = 0.66  # how similar a typo is to the word that was meant


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
    """A text breaks the rules of its format. A reader raises it if it can read nothing at all."""

    def __init__(self, message: str, line: int = 0, column: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint

    def in_file(self, file: str) -> Mistake:
        """Return it as a mistake of a file."""
        return Mistake(
            file=file, line=self.line, column=self.column, message=self.message, hint=self.hint
        )


class Document(Record, kw_only=True):
    """A file's value, and the position of every key and list item in it."""

    value: Any
    positions: Mapping[Path, Position] = {}
    findings: tuple[BadSyntax, ...] = ()  # such as a key written twice; the rest is read

    def locate(self, path: Path) -> Position:
        """Return the line and column of a key or item, or of the closest known thing around it."""
        for length in range(len(path), -1, -1):
            position = self.positions.get(path[:length])
            if position:
                return position
        return (1, 1)


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


def described(value: object) -> str:
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
    near = nearest(word, tuple(known))
    return f"did you mean `{near}`?" if near else ""


@lru_cache(maxsize=256)  # a file often has the same typo in every entry
def nearest(word: str, known: tuple[str, ...]) -> str:
    """Return the known word that was probably meant by this one; empty for none."""
    folded = {_folded(candidate): candidate for candidate in reversed(known)}
    typo = _folded(word)
    if not typo or len(typo) > _LONGEST_TYPO:
        return ""
    near = get_close_matches(typo, folded, n=1, cutoff=_ALIKE)
    return folded[near[0]] if near else ""


def _folded(word: str) -> str:
    """Return a word without case and separators: `maxBlocks` and `max-blocks` are the same."""
    return re.sub("[_ .-]", "", word.lower())
