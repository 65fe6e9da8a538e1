"""Shapes of single values: what a key may hold, said once for checks, JSON Schema and docs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from math import isnan

from notyet.config.mistakes import did_you_mean, nearest
from notyet.core.glob import glob_error
from notyet.core.json_text import dumps
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from notyet.config.document import Path

    Found: TypeAlias = list[tuple[Path, str, str]]
    Schema: TypeAlias = dict[str, Any]

BROKEN: Any = object()  # stands for a value that cannot be used; whoever holds it drops it
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_$-]+")
_SHOWN = 40
HUGE = 10**15
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # what no program can be given
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")

_YES_OR_NO = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def name_of(path: Path) -> str:
    """Write a path as people do: `gates.tests.pass_codes[2]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        plain = _PLAIN_KEY.fullmatch(part) and len(part) <= 2 * _SHOWN
        text += ("." if text else "") + (part if plain else quoted(part))
    return f"`{text}`" if text else "the file"


def quoted(text: str) -> str:
    """Return a text as it may stand in a message: short, on one line, in quotes."""
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 1] + "…"
    shown = _NO_TEXT.sub("\ufffd", text)
    return '"' + _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", shown) + '"'


def said(value: object) -> str:
    """Say what a value is, in words that fit every format."""
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if isinstance(value, float) and isnan(value):
            return "no number at all (nan)"
        return str(value) if abs(value) < HUGE else "a huge number"
    for kind, words in ((type(None), "nothing"), (list, "a list"), (dict, "a table")):
        if isinstance(value, kind):
            return words
    return "a date or time"


class Shape(Record, ABC):
    """What a value may be. Every kind of shape says the four things below."""

    @abstractmethod
    def takes(self, value: object) -> bool:
        """Tell whether a value is of the right type, whatever else is wrong with it."""

    def check(self, value: Any, path: Path, found: Found) -> Any:
        """Return the clean value, or BROKEN; add every mistake to `found`."""
        if not self.takes(value):
            return self.refuse(value, path, found)
        return value

    @abstractmethod
    def schema(self) -> Schema:
        """Return the JSON Schema."""

    @abstractmethod
    def words(self) -> str:
        """Say what it is, for messages and docs."""

    def many(self) -> str:
        """Say what several of it are."""
        return self.words()

    def refuse(self, value: object, path: Path, found: Found) -> Any:
        """Add that the value is not what it should be."""
        hint = ""
        if isinstance(value, str) and self.takes(_unquoted(value)):
            hint = "write it without quotes"
        elif isinstance(value, bool | int | float) and self.takes("1"):
            hint = "write it in quotes"
        found.append((path, f"{name_of(path)} is {self.words()}, not {said(value)}", hint))
        return BROKEN


def _unquoted(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if re.fullmatch("-?[0-9]{1,9}", text) else text


class Anything(Shape):
    """Whatever it is, it is somebody else's to check."""

    def takes(self, _value: object) -> bool:
        return True

    def schema(self) -> Schema:
        return {}

    def words(self) -> str:
        return "anything"


class Text(Shape, kw_only=True):
    """A text. `pattern` must fit all of it; `says` names such a text."""

    blank: bool = False  # whether it may be
    most: int = 0  # characters; 0: any number
    line: bool = False  # one line, without control characters
    pattern: str = ""
    says: str = "text"

    def takes(self, value: object) -> bool:
        return isinstance(value, str)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if not isinstance(value, str):
            return self.refuse(value, path, found)
        problem, hint = self._problem(value)
        if problem:
            found.append((path, f"{name_of(path)} {problem}", hint))
            return BROKEN
        return value

    def _problem(self, value: str) -> tuple[str, str]:
        if not self.blank and not value.strip():
            return "is blank", ""
        if _NO_TEXT.search(value):
            return "contains a character that no program can be given", "NUL, or half a pair"
        if self.line and _CONTROL.search(value):
            return "contains a line break or control character", ""
        if self.most and len(value) > self.most:
            return f"is longer than {self.most} characters", ""
        if self.pattern and not re.fullmatch(self.pattern, value):
            return f"is {self.says}, not {said(value)}", ""
        return "", ""

    def schema(self) -> Schema:
        schema: Schema = {"type": "string"}
        if self.pattern:
            schema["pattern"] = f"^(?:{self.pattern})$"
        elif not self.blank:
            schema["pattern"] = r"\S"
        if self.most:
            schema["maxLength"] = self.most
        return schema

    def words(self) -> str:
        return self.says

    def many(self) -> str:
        return "texts" if self.says == "text" else self.says


class Flag(Shape):
    """true or false."""

    def takes(self, value: object) -> bool:
        return isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if isinstance(value, str) and value.lower() in _YES_OR_NO:
            message = f"{name_of(path)} is {self.words()}, not {said(value)}"
            found.append((path, message, f"write {_YES_OR_NO[value.lower()]}"))
            return BROKEN
        return super().check(value, path, found)

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def words(self) -> str:
        return "true or false"


class Choice(Shape):
    """One of a few words."""

    options: tuple[str, ...]

    def takes(self, value: object) -> bool:
        return isinstance(value, str)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if isinstance(value, str) and value in self.options:
            return value
        hint = did_you_mean(value, self.options) if isinstance(value, str) else ""
        found.append((path, f"{name_of(path)} is {self.words()}, not {said(value)}", hint))
        return BROKEN

    def schema(self) -> Schema:
        return {"enum": list(self.options)}

    def words(self) -> str:
        *others, last = [dumps(word) for word in self.options]
        return f"{', '.join(others)} or {last}" if others else last


class Glob(Shape, kw_only=True):
    """A pattern. One that looks like a word of `unlike` was meant to be that word."""

    unlike: tuple[str, ...] = ()

    def takes(self, value: object) -> bool:
        return isinstance(value, str)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if not isinstance(value, str):
            return self.refuse(value, path, found)
        problem = glob_error(value) if not _NO_TEXT.search(value) else "it is not readable text"
        if problem:
            found.append((path, f"{name_of(path)} is no pattern: {problem}", ""))
            return BROKEN
        word = "" if any(sign in value for sign in "*?[") else nearest(value, self.unlike)
        if word:
            message = f"{name_of(path)} is {quoted(value)}, which looks like {dumps(word)}"
            hint = f"write {dumps(word)}, or a list of patterns to mean kinds of subagents"
            found.append((path, message, hint))
            return BROKEN
        return value

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}

    def words(self) -> str:
        return "a pattern"

    def many(self) -> str:
        return "patterns"
