"""Shapes of single values: strings, numbers, flags, time spans, sizes, paths and patterns."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from json import dumps
from posixpath import isabs, normpath
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from notyet.config.document import (
    CONTROL,
    HUGE,
    UNUSABLE,
    Path,
    did_you_mean,
    name_of,
    nearest,
    quoted,
    said,
)
from notyet.core.matcher import glob_error
from notyet.core.remote import LOCAL, is_remote, remote_from

if TYPE_CHECKING:
    from collections.abc import Mapping

Found: TypeAlias = list[tuple[Path, str, str]]  # mistakes: path, message, hint
Schema: TypeAlias = dict[str, Any]

BROKEN: Any = object()  # stands for a value that cannot be used
_WORDS_FOR_FLAGS = {"yes": "true", "on": "true", "no": "false", "off": "false"}


class Wrong(Exception):  # noqa: N818  # it never leaves this module
    """What is wrong with a value: `problem` follows the name of its key."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


class Shape(ABC):
    """What a value may be."""

    types: ClassVar[tuple[type, ...]]  # a bool is not an int here
    example: ClassVar[str] = ""  # the hint for every wrong value

    def accepts(self, value: object) -> bool:
        """Return True if a value has the right type, whatever else is wrong with it."""
        if isinstance(value, bool):
            return bool in self.types
        return isinstance(value, self.types)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        """Return the clean value, or BROKEN; add every mistake to `found`."""
        try:
            if not self.accepts(value):
                raise self.wrong(value, self.hint(value))
            return self.parse(value)
        except Wrong as wrong:
            found.append((path, f"{name_of(path)} {wrong.problem}", wrong.hint))
            return BROKEN

    def parse(self, value: Any) -> Any:
        """Return the clean value of one that has the right type. Raises Wrong."""
        return value

    def wrong(self, value: object, hint: str = "") -> Wrong:
        """Return the mistake that a value is something else."""
        return Wrong(f"must be {self.words}, not {said(value)}", self.example or hint)

    def hint(self, value: object) -> str:
        """Return how to write a value of the wrong type."""
        if isinstance(value, str) and self.accepts(_without_quotes(value)):
            return "write it without quotes"
        if isinstance(value, bool | int | float) and self.accepts("1"):
            return "write it in quotes"
        return ""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the JSON Schema."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The name of such a value, for messages and docs."""

    @property
    def plural(self) -> str:
        """The name of several such values."""
        return self.words


def _without_quotes(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if re.fullmatch("-?[0-9]{1,9}", text) else text


class Anything(Shape):
    """A value that only another program checks."""

    types = (object,)
    words = "anything"

    def accepts(self, value: object) -> bool:  # noqa: ARG002  # whatever it is
        return True

    def schema(self) -> Schema:
        return {}


@dataclass(frozen=True, kw_only=True)
class Text(Shape):
    """A text. `pattern` must fit all of it; `says` names such a text."""

    types = (str,)
    blank: bool = False  # whether it may be
    most: int = 0  # characters; 0: any number
    line: bool = False  # one line, without control characters
    pattern: str = ""
    says: str = "a string"

    def parse(self, value: str) -> str:
        if not self.blank and not value.strip():
            raise Wrong("must not be blank")
        if UNUSABLE.search(value):
            raise Wrong("contains a NUL character or an unpaired surrogate")
        if self.line and CONTROL.search(value):
            raise Wrong("contains a line break or control character")
        if self.most and len(value) > self.most:
            raise Wrong(f"is longer than {self.most} characters")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise self.wrong(value)
        return value

    def schema(self) -> Schema:
        schema: Schema = {"type": "string"}
        if self.pattern:
            schema["pattern"] = f"^(?:{self.pattern})$"
        elif not self.blank:
            schema["pattern"] = r"\S"
        if self.most:
            schema["maxLength"] = self.most
        return schema

    @property
    def words(self) -> str:
        return self.says

    @property
    def plural(self) -> str:
        return "strings" if self.says == "a string" else self.says


@dataclass(frozen=True, kw_only=True)
class PathBelow(Text):
    """A path that stays below the file's folder."""

    says: str = "a path below the file's folder"

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        if isabs(clean) or clean.startswith("~") or normpath(clean).split("/")[0] == "..":
            raise self.wrong(value)
        return clean


@dataclass(frozen=True, kw_only=True)
class FileGlob(PathBelow):
    """A glob of files below the file's folder, in git's syntax."""

    line: bool = True
    says: str = "a glob of files below the file's folder"

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        problem = glob_error(clean)
        if problem:
            raise Wrong(f"is not a valid pattern: {problem}")
        if clean.startswith((":", "!")):
            why, hint = "files cannot be left out", "name the files that count"
        elif "\\" in clean:
            why, hint = "folders are separated by /", _meant(clean.replace("\\", "/"))
        elif any("**" in part and part != "**" for part in clean.split("/")):
            parts = [_between_slashes(part) for part in clean.split("/")]
            why, hint = "** stands alone between slashes", _meant("/".join(parts))
        else:
            return clean
        raise Wrong(f"is {said(value)}, but {why}", hint)

    @property
    def plural(self) -> str:
        return "globs of files"


def _between_slashes(part: str) -> str:
    """Return `src/**/*.py` for `src**.py`."""
    before, stars, after = part.partition("**")
    if not stars or part == stars:
        return part
    after = after.replace("*", "")
    return "/".join(filter(None, (before, stars, after and f"*{after}")))


def _meant(text: str) -> str:
    return f'did you mean "{text}"?'


@dataclass(frozen=True, kw_only=True)
class Workspace(Text):
    """A folder on this machine or behind SSH. Cleaned, its address is canonical."""

    line: bool = True
    says: str = f'"ssh://[user@]host[:port]/path" or "{LOCAL}"'

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        if clean == LOCAL:
            return clean
        try:
            return remote_from(clean).url
        except ValueError as error:
            why, _, hint = str(error).partition("; ")
            raise Wrong(f"is {said(value)}: {why}", meant_workspace(clean) or hint) from None

    def schema(self) -> Schema:
        return {"type": "string", "pattern": rf"^(?:{LOCAL}|ssh://[^/\s]+/.*)$"}


def meant_workspace(text: str) -> str:
    """Return a hint for a workspace written as `scp` takes it, or with a slash too few."""
    host, colon, path = text.partition(":")
    if is_remote(text) or not colon or not path.startswith("/") or path.startswith("//"):
        return ""
    meant = f"ssh:/{path}" if host == "ssh" else f"ssh://{host}{path}"
    try:
        remote_from(meant)
    except ValueError:
        return ""
    return _meant(meant)


class Flag(Shape):
    """true or false."""

    types = (bool,)
    words = "true or false"

    def hint(self, value: object) -> str:
        meant = _WORDS_FOR_FLAGS.get(value.lower()) if isinstance(value, str) else None
        return f"write {meant}" if meant else super().hint(value)

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Choice(Shape):
    """One of a few words."""

    types = (str,)
    options: tuple[str, ...]

    def parse(self, value: str) -> str:
        if value not in self.options:
            raise self.wrong(value, did_you_mean(value, self.options))
        return value

    def hint(self, value: object) -> str:  # noqa: ARG002  # quotes make no word of it
        return ""

    def schema(self) -> Schema:
        return {"enum": list(self.options)}

    @property
    def words(self) -> str:
        *others, last = map(dumps, self.options)
        return f"{', '.join(others)} or {last}" if others else last


@dataclass(frozen=True, kw_only=True)
class Glob(Shape):
    """A pattern for names. One that is nearly a word of `unlike` was meant to be that word."""

    types = (str,)
    words = "a pattern"
    plural = "patterns"
    unlike: tuple[str, ...] = ()

    def parse(self, value: str) -> str:
        problem = glob_error(value) if not UNUSABLE.search(value) else "it is not readable text"
        if problem:
            raise Wrong(f"is not a valid pattern: {problem}")
        word = "" if any(sign in value for sign in "*?[") else nearest(value, self.unlike)
        if word:
            hint = f"write {dumps(word)}, or a list of patterns to mean kinds of subagents"
            raise Wrong(f"is {quoted(value)}, which looks like {dumps(word)}", hint)
        return value

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, kw_only=True)
class Whole(Shape):
    """A whole number. `never` is one in the range that makes no sense, `because`."""

    types = (int,)
    least: int = 0
    most: int | None = None
    never: int | None = None
    because: str = ""

    def parse(self, value: int) -> int:
        if value < self.least or (self.most is not None and value > self.most):
            raise self.wrong(value)
        if value == self.never:
            raise Wrong(f"cannot be {value}: {self.because}")
        return value

    def schema(self) -> Schema:
        schema: Schema = {"type": "integer", "minimum": self.least}
        if self.most is not None:
            schema["maximum"] = self.most
        if self.never is not None:
            schema["not"] = {"const": self.never}
        return schema

    @property
    def words(self) -> str:
        return f"a whole number {self._range}"

    @property
    def plural(self) -> str:
        return f"whole numbers {self._range}"

    @property
    def _range(self) -> str:
        if self.most is None:
            return f"of at least {self.least}"
        return f"from {self.least} to {self.most}"


class Number(Shape):
    """A number from 0 up, whole or not."""

    types = (int, float)
    words = "a number of at least 0"

    def parse(self, value: float) -> float:
        if not 0 <= value <= HUGE:  # False for NaN too
            raise self.wrong(value)
        return value

    def schema(self) -> Schema:
        return {"type": "number", "minimum": 0, "maximum": HUGE}


_SECONDS = (
    r"(?=[0-9])(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?"
    r"(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)s)?(?:([0-9]{1,9})ms)?"
)
_DAYS = r"([0-9]{1,6})(h|d|w)"
_BYTES = r"([0-9]{1,9})(kB|KB|MB|GB)"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_BYTE_UNITS = {"kB": 1_000, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


def _measured(text: str, pattern: str, units: Mapping[str, Any]) -> Any:
    """Return the number that a text such as "1h30m" stands for; None if it does not fit."""
    if not re.fullmatch(pattern, text):
        return None
    return sum(float(n) * units[unit] for n, unit in re.findall("([0-9.]+)([a-zA-Z]+)", text))


@dataclass(frozen=True, kw_only=True)
class Seconds(Shape):
    """A time span: a number of seconds, or text such as "1h30m". Cleaned, it is a float."""

    types = (int, float, str)
    words = 'seconds or a time like "10m"'
    example = 'write it like 90, "90s", "10m", "1h30m" or "500ms"'
    most: int = 86_400

    def parse(self, value: float | str) -> float:
        seconds = _measured(value, _SECONDS, _UNITS) if isinstance(value, str) else value
        if seconds is None:
            raise self.wrong(value)
        if not 0 < seconds <= self.most:  # True for NaN too
            raise Wrong(f"must be above 0 and at most {self.most} seconds, not {said(value)}")
        return float(seconds)

    def schema(self) -> Schema:
        number = {"type": "number", "exclusiveMinimum": 0, "maximum": self.most}
        return {"anyOf": [number, {"type": "string", "pattern": f"^{_SECONDS}$"}]}


class Age(Shape):
    """A long time span: text such as "90d". Cleaned, it is a number of seconds."""

    types = (str,)
    words = 'a time like "90d"'
    example = 'write it like "90d", "12w" or "36h"'
    _most_days = 36_500

    def parse(self, value: str) -> float:
        seconds = _measured(value, _DAYS, _UNITS)
        if not seconds or seconds > self._most_days * _UNITS["d"]:
            raise self.wrong(value)
        return float(seconds)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{_DAYS}$"}


@dataclass(frozen=True, kw_only=True)
class Size(Shape):
    """A size: a number of bytes, or text such as "256MB". Cleaned, it is bytes."""

    types = (int, str)
    words = 'a size like "256MB"'
    example = 'write it like "256MB", "1GB", or in bytes'
    least: int = 0
    most: int = 1_000_000_000_000

    def parse(self, value: int | str) -> int:
        size = _measured(value, _BYTES, _BYTE_UNITS) if isinstance(value, str) else value
        if size is None:
            raise self.wrong(value)
        if not self.least <= size <= self.most:
            raise Wrong(f"must be {self.least} to {self.most} bytes, not {said(value)}")
        return int(size)

    def schema(self) -> Schema:
        number = {"type": "integer", "minimum": self.least, "maximum": self.most}
        return {"anyOf": [number, {"type": "string", "pattern": f"^{_BYTES}$"}]}
