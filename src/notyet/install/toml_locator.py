"""Where the headers, assignments and values of a TOML text begin and end."""

from __future__ import annotations

import re
import tomllib

from notyet.config.document import DEEPEST, TOO_DEEP, BadSyntax, Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.document import Path, Place

_BLANK = re.compile(r"[ \t]*+")
_BLANK_LINES = re.compile(r"(?:[ \t\n]++|#[^\n]*+)*+")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]++")
_SCALAR = re.compile(r"[^,\]}\n#]++")
_QUOTES = ('"""', "'''", '"', "'")
_SPECIAL = {'"': re.compile(r'["\\]'), "'": re.compile("'")}


class Locator:
    """Walks through a text that `tomllib` has accepted, and notes where its keys stand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._offsets: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}  # of the tables in each [[array of tables]] so far
        # For those who change a text: where headers, assignments and values begin and end.
        self.headers: list[tuple[Path, int, int]] = []
        self.assignments: dict[Path, int] = {}
        self.spans: dict[Path, tuple[int, int]] = {}

    def places(self) -> Mapping[Path, Place]:
        table: Path = ()
        while True:
            self._skip(_BLANK_LINES)
            if self._at >= len(self._text):
                break
            start = self._at
            if self._text.startswith("[[", start):
                table = self._next_of_array()
            elif self._text.startswith("[", start):
                table = self._header()
            else:
                self._assignment(table)
                continue
            self.headers.append((table, start, self._at))
        lines = Lines(self._text)
        return {path: lines.place(offset) for path, offset in self._offsets.items()}

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        assert match
        self._at = match.end()
        return match.start()

    def _skip_string(self, quote: str) -> int:
        """Skip a string that `tomllib` has accepted; return where it begins."""
        start = self._at
        self._at += len(quote)
        while True:
            match = _SPECIAL[quote[0]].search(self._text, self._at)
            assert match
            self._at = match.end()
            if match[0] == "\\":
                self._at += 1  # whatever it escapes
            elif self._text.startswith(quote, match.start()):
                break
        self._at = match.start() + len(quote)
        while len(quote) > 1 and self._text.startswith(quote[0], self._at):
            self._at += 1  # up to two more quotes belong to a long string
        return start

    def _header(self) -> Path:
        self._at += 1
        *around, (name, offset) = self._dotted_key()
        self._at += 1
        path = (*self._inside(around), name)
        self._offsets[path] = offset  # its own header says more than a mention before it
        return path

    def _next_of_array(self) -> Path:
        self._at += 2
        *around, (name, offset) = self._dotted_key()
        self._at += 2
        array = (*self._inside(around), name)
        self._offsets.setdefault(array, offset)
        number = self._counts.get(array, 0)
        self._counts[array] = number + 1
        self._offsets[*array, number] = offset
        return (*array, number)

    def _inside(self, keys: list[tuple[str, int]]) -> Path:
        """Return the path that a header's keys lead to: in an array, to its latest table."""
        path: Path = ()
        for name, offset in keys:
            path = (*path, name)
            self._offsets.setdefault(path, offset)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _assignment(self, table: Path) -> None:
        path = table
        start = self._at
        for name, offset in self._dotted_key():
            path = (*path, name)
            self._offsets.setdefault(path, offset)
        self.assignments[path] = start
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _dotted_key(self) -> list[tuple[str, int]]:
        """Return the parts of a key with their offsets; stops at what follows it."""
        keys = []
        while True:
            self._skip(_BLANK)
            keys.append(self._key())
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _key(self) -> tuple[str, int]:
        quote = self._text[self._at]
        start = self._skip_string(quote) if quote in "\"'" else self._skip(_BARE_KEY)
        written = self._text[start : self._at]
        if quote == '"' and "\\" in written:
            return tomllib.loads(f"key = {written}")["key"], start
        return (written[1:-1] if quote in "\"'" else written), start

    def _value(self, path: Path) -> None:
        if len(path) > DEEPEST:
            raise BadSyntax(TOO_DEEP, *Lines(self._text).place(self._at))
        start = self._at
        quote = next((q for q in _QUOTES if self._text.startswith(q, start)), "")
        if self._text[start] == "[":
            self._array(path)
        elif self._text[start] == "{":
            self._inline_table(path)
        elif quote:
            self._skip_string(quote)
        else:
            self._skip(_SCALAR)
        self.spans[path] = (start, start + len(self._text[start : self._at].rstrip()))

    def _array(self, path: Path) -> None:
        self._at += 1
        number = 0
        while True:
            self._skip(_BLANK_LINES)
            if self._text[self._at] == "]":
                self._at += 1
                return
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._offsets[*path, number] = self._at
            self._value((*path, number))
            number += 1

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while True:
            self._skip(_BLANK_LINES)  # newer TOML allows line breaks here
            if self._text[self._at] == "}":
                self._at += 1
                return
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._assignment(path)
