"""Readers of TOML, JSON and YAML: what a text says, and the line and column of every key."""

from __future__ import annotations

import json
import os
import re
import tomllib
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NoReturn

from notyet.config.document import BadSyntax, Document, Mistake, Path, Position, name_of
from notyet.config.find import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

BYTE_ORDER_MARK = "\ufeff"
DEEPEST = 100  # tables and lists inside each other
TOO_DEEP = f"tables and lists are nested more than {DEEPEST} deep"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_file(path: str) -> tuple[str | None, Mistake | None]:
    """Return a file's text, or the one reason why it cannot be read."""
    try:
        text = text_of(path)
        text.encode()
    except UnicodeEncodeError as error:
        return None, _not_utf8(text, error.start).in_file(path)
    except OSError as error:
        message = "is a folder, not a file" if os.path.isdir(path) else _reason(error)
        return None, Mistake(file=path, message=message)
    except ValueError:
        return None, Mistake(file=path, message="cannot be read: no file can have this name")
    return text, None


def _reason(error: OSError) -> str:
    reason = str(error.strerror)
    return (
        reason.removeprefix("it ") if reason.startswith("it is ") else f"cannot be read: {reason}"
    )


def _not_utf8(text: str, at: int) -> BadSyntax:
    if text.encode("utf-8", "surrogateescape").startswith(_UTF16):
        return BadSyntax("is UTF-16 text", hint="save it as UTF-8")
    message = f"is not UTF-8: byte 0x{ord(text[at]) & 0xFF:02x}"
    return BadSyntax(message, *Lines(text).position(at), "save it as UTF-8")


class Lines:
    """Converts an offset in a text to a line and a column, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, offset: int) -> Position:
        """Return the line and the column in characters."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


_TOML_ERROR = re.compile(r"(.*?),? \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_TUPLE = re.compile(r"\((?:'[^']*+',? ?)++\)")  # how `tomllib` names a key: ('gates', 'tests')
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_ENDLESS_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+((?:{_KEY_PART}){{{DEEPEST}}})", re.MULTILINE)


def read_toml(text: str) -> Document:
    """Return what a TOML text says, and where. Raises BadSyntax."""
    findings: tuple[BadSyntax, ...] = ()
    if text.startswith(BYTE_ORDER_MARK):
        text = text[1:]
        message = "the file begins with a byte order mark, which TOML does not allow"
        findings = (BadSyntax(message, 1, 1, "save it as UTF-8 without one"),)
    text = text.replace("\r\n", "\n")
    endless = _ENDLESS_KEY.search(text)  # `tomllib` would take hours for one of a megabyte
    if endless:
        raise BadSyntax(TOO_DEEP, *Lines(text).position(endless.start(1)))
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise BadSyntax(TOO_DEEP) from None
    except ValueError as error:
        raise _toml_error(str(error), text) from None
    finder = _PositionFinder(text)
    finder.read_toml()
    return Document(value=value, positions=finder.positions(), findings=findings)


def _toml_error(message: str, text: str) -> BadSyntax:
    match = _TOML_ERROR.fullmatch(message)
    if not match:
        return BadSyntax(f"invalid TOML: {message}")
    message, line, column = match.groups()
    if line is None:
        line, column = Lines(text).position(len(text.rstrip()))
    message = _TUPLE.sub(
        lambda names: name_of(tuple(re.findall("'([^']*)'", names[0]))),
        message[:1].lower() + message[1:],
    )
    return BadSyntax(f"invalid TOML: {message}", int(line), int(column))


def read_json(text: str) -> Document:
    """Return what a JSON text says, and where. Raises BadSyntax."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise BadSyntax(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise _json_error(error, text) from None
    except ValueError as error:
        raise BadSyntax(f"invalid JSON: {str(error).partition(';')[0]}") from None
    finder = _PositionFinder(text)
    finder.read_value(())
    return Document(value=value, positions=finder.positions(), findings=tuple(finder.findings))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _json_error(error: json.JSONDecodeError, text: str) -> BadSyntax:
    at, hint = error.pos, ""
    message = re.sub(" (?:starting )?at$", "", error.msg[:1].lower() + error.msg[1:])
    comma = re.compile(r",\s*[]}]").search(text, len(text[:at].rstrip(" \t\r\n,")))
    if text.startswith(("//", "/*", "#"), at):
        message, hint = "JSON has no comments", "remove the comment"
    elif comma and comma.start() <= at < comma.end():
        at = comma.start()
        message, hint = f'trailing comma before "{comma[0][-1]}"', "remove the last comma"
    elif text.startswith("'", at):
        hint = "write strings in double quotes"
    return BadSyntax(f"invalid JSON: {message}", *Lines(text).position(at), hint)


def read_yaml(text: str) -> Document:
    """Return what a YAML text says, and where. Raises BadSyntax."""
    # Here, because a hook reads TOML and JSON too, and has only the standard library.
    from notyet.config.yaml_reader import read

    return read(text)


READERS: dict[str, Callable[[str], Document]] = {
    "toml": read_toml,
    "json": read_json,
    "yaml": read_yaml,
}

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_STRING = (
    r'"""(?:[^"\\]++|\\[\s\S]|"{1,2}+(?!"))*+"{3,5}'
    r"|'''(?:[^']++|'{1,2}+(?!'))*+'{3,5}"
    r'|"(?:[^"\\]++|\\[\s\S])*+"'
    r"|'[^']*+'"
)
_KEY = re.compile(rf"{_STRING}|[A-Za-z0-9_-]++")
_SCALAR = re.compile(rf"{_STRING}|[^,\]}}\n#]++")


class _PositionFinder:
    """Finds the keys and list items in a text of TOML or JSON that a parser has accepted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines = Lines(text)
        self._offsets: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}  # of the tables in each [[array of tables]] so far
        self.findings: list[BadSyntax] = []

    def positions(self) -> dict[Path, Position]:
        """Return the line and column of everything that was found."""
        return {path: self._lines.position(offset) for path, offset in self._offsets.items()}

    def read_toml(self) -> None:
        """Read headers and assignments to the end."""
        table: Path = ()
        while sign := self._next():
            if sign != "[":
                self._assignment(table, set())
                continue
            is_array = self._text.startswith("[[", self._at)
            self._at += 1 + is_array
            table = self._header(is_array=is_array)
            self._at += 1 + is_array

    def read_value(self, path: Path) -> None:
        """Read a value and what it holds."""
        if len(path) > DEEPEST:
            raise BadSyntax(TOO_DEEP, *self._lines.position(self._at))
        opening = self._next()
        if opening not in ("[", "{"):
            self._match(_SCALAR)
            return
        self._at += 1
        number = 0
        seen: set[Path] = set()
        while (sign := self._next()) not in ("]", "}"):
            if sign == ",":
                self._at += 1
            elif opening == "{":
                self._assignment(path, seen)
            else:
                self._offsets[*path, number] = self._at
                self.read_value((*path, number))
                number += 1
        self._at += 1

    def _next(self) -> str:
        """Return the next character after blanks and comments; empty at the end."""
        self._match(_BLANK)
        return self._text[self._at : self._at + 1]

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match
        self._at = match.end()
        return match[0]

    def _keys(self) -> list[tuple[str, int]]:
        """Return the parts of a dotted key with their offsets."""
        keys = []
        while True:
            self._next()
            start = self._at
            keys.append((_name(self._match(_KEY)), start))
            if self._next() != ".":
                return keys
            self._at += 1

    def _assignment(self, table: Path, seen: set[Path]) -> None:
        *around, (name, offset) = self._keys()
        path = table
        for part, start in around:
            path = (*path, part)
            self._offsets.setdefault(path, start)
        path = (*path, name)
        if path in seen:  # only in JSON
            message = f"{name_of(path)} is written twice; the last one counts"
            position = self._lines.position(offset)
            self.findings.append(BadSyntax(message, *position, "remove one of them"))
        seen.add(path)
        self._offsets[path] = offset
        self._at += 1  # the equals sign or colon
        self.read_value(path)

    def _header(self, *, is_array: bool) -> Path:
        *around, (name, offset) = self._keys()
        path: Path = ()
        for part, start in around:
            path = (*path, part)
            self._offsets.setdefault(path, start)
            if path in self._counts:  # its latest table is meant
                path = (*path, self._counts[path] - 1)
        path = (*path, name)
        if not is_array:
            self._offsets[path] = offset  # its own header says more than a mention before it
            return path
        self._offsets.setdefault(path, offset)
        number = self._counts.get(path, 0)
        self._counts[path] = number + 1
        self._offsets[*path, number] = offset
        return (*path, number)


def _name(written: str) -> str:
    """Return the key that a part of a dotted key stands for."""
    if written[0] not in "\"'":
        return written
    if written[0] == "'" or "\\" not in written:
        return written[1:-1]
    try:
        name: Any = json.loads(written, strict=False)
    except ValueError:  # TOML has \U and \e too
        name = tomllib.loads(f"key = {written}")["key"]
    return str(name)
