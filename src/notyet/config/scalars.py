"""Shapes of numbers and time spans."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from math import isnan
from posixpath import isabs, normpath

from notyet.config.document import did_you_mean, nearest
from notyet.core.matcher import glob_error
from notyet.core.record import Record
from notyet.core.remote import LOCAL, is_remote, remote_from
from notyet.light import dumps

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


class Whole(Shape, kw_only=True):
    """A whole number. `never` is one in the range that would make no sense, `because`."""

    least: int = 0
    most: int | None = None
    never: int | None = None
    because: str = ""

    def takes(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        too_much = self.takes(value) and self.most is not None and value > self.most
        if not self.takes(value) or value < self.least or too_much:
            return self.refuse(value, path, found)
        if value == self.never:
            found.append((path, f"{name_of(path)} cannot be {value}: {self.because}", ""))
            return BROKEN
        return value

    def schema(self) -> Schema:
        schema: Schema = {"type": "integer", "minimum": self.least}
        if self.most is not None:
            schema["maximum"] = self.most
        if self.never is not None:
            schema["not"] = {"const": self.never}
        return schema

    def words(self) -> str:
        return f"a whole number {self._range()}"

    def many(self) -> str:
        return f"whole numbers {self._range()}"

    def _range(self) -> str:
        return f"from {self.least} " + ("up" if self.most is None else f"to {self.most}")


class Number(Shape, kw_only=True):
    """A number, whole or not, from 0 up."""

    most: int = HUGE

    def takes(self, value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        if not self.takes(value) or not 0 <= value <= self.most:  # which NaN is not, either
            return self.refuse(value, path, found)
        return value

    def schema(self) -> Schema:
        return {"type": "number", "minimum": 0, "maximum": self.most}

    def words(self) -> str:
        return "a number from 0 up"


_SECONDS = (
    r"(?=[0-9])(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?"
    r"(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)s)?(?:([0-9]{1,9})ms)?"
)
_UNITS = (3600.0, 60.0, 1.0, 0.001)


class Seconds(Shape, kw_only=True):
    """A time span: a number of seconds, or text such as "1h30m". Cleaned, it is a float."""

    most: int = 86400

    def takes(self, value: object) -> bool:
        return isinstance(value, int | float | str) and not isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        seconds = self._seconds(value)
        if seconds is None:
            found.append(
                (
                    path,
                    f"{name_of(path)} is a number of seconds, not {said(value)}",
                    'write it like 90, "90s", "10m", "1h30m" or "500ms"',
                )
            )
            return BROKEN
        if not 0 < seconds <= self.most:  # which NaN is not, either
            limits = f"above 0 and at most {self.most} seconds"
            found.append((path, f"{name_of(path)} is {limits}, not {said(value)}", ""))
            return BROKEN
        return float(seconds)

    def _seconds(self, value: object) -> float | None:
        if isinstance(value, str):
            match = re.fullmatch(_SECONDS, value)
            if not match:
                return None
            return sum(float(n) * unit for n, unit in zip(match.groups(), _UNITS, strict=True) if n)
        return value if isinstance(value, int | float) and self.takes(value) else None

    def schema(self) -> Schema:
        return {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": self.most},
                {"type": "string", "pattern": f"^{_SECONDS}$"},
            ]
        }

    def words(self) -> str:
        return 'seconds, or text like "10m"'


_SPAN = r"([0-9]{1,6})(h|d|w)"
_SECONDS_KEPT = {"h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_SIZE = r"([0-9]{1,9})(kB|KB|MB|GB)"
_BYTES = {"kB": 1_000, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


class Span(Shape, kw_only=True):
    """A long time span: text such as "90d". Cleaned, it is seconds."""

    most: int = 36_500  # days

    def takes(self, value: object) -> bool:
        return isinstance(value, str)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        match = re.fullmatch(_SPAN, value) if isinstance(value, str) else None
        seconds = float(match[1]) * _SECONDS_KEPT[match[2]] if match else 0.0
        if not 0 < seconds <= self.most * _SECONDS_KEPT["d"]:
            message = f"{name_of(path)} is a time span, not {said(value)}"
            found.append((path, message, 'write it like "90d", "12w" or "36h"'))
            return BROKEN
        return seconds

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{_SPAN}$"}

    def words(self) -> str:
        return 'text like "90d"'


class Size(Shape, kw_only=True):
    """A size: a number of bytes, or text such as "256MB". Cleaned, it is bytes."""

    least: int = 0
    most: int = 1_000_000_000_000

    def takes(self, value: object) -> bool:
        return isinstance(value, int | str) and not isinstance(value, bool)

    def check(self, value: Any, path: Path, found: Found) -> Any:
        size = value if self.takes(value) else None
        if isinstance(value, str):
            match = re.fullmatch(_SIZE, value)
            size = int(match[1]) * _BYTES[match[2]] if match else None
        if size is None:
            message = f"{name_of(path)} is a size, not {said(value)}"
            found.append((path, message, 'write it like "256MB", "1GB", or in bytes'))
            return BROKEN
        if not self.least <= size <= self.most:
            limits = f"from {self.least} to {self.most} bytes"
            found.append((path, f"{name_of(path)} is {limits}, not {said(value)}", ""))
            return BROKEN
        return size

    def schema(self) -> Schema:
        return {
            "anyOf": [
                {"type": "integer", "minimum": self.least, "maximum": self.most},
                {"type": "string", "pattern": f"^{_SIZE}$"},
            ]
        }

    def words(self) -> str:
        return 'a size like "256MB"'


class Below(Text, kw_only=True):
    """A path that stays below the file's folder."""

    says: str = "a path below the file's folder"

    def check(self, value: Any, path: Path, found: Found) -> Any:
        clean = super().check(value, path, found)
        if clean is BROKEN:
            return BROKEN
        if isabs(clean) or clean.startswith("~") or normpath(clean).split("/")[0] == "..":
            found.append((path, f"{name_of(path)} is {self.says}, not {said(value)}", ""))
            return BROKEN
        return clean


class Files(Below, kw_only=True):
    """A glob of files below the file's folder, as git takes it."""

    line: bool = True
    says: str = "a glob of files below the file's folder"

    def check(self, value: Any, path: Path, found: Found) -> Any:
        clean = super().check(value, path, found)
        if clean is BROKEN:
            return BROKEN
        problem = glob_error(clean)
        if problem:
            found.append((path, f"{name_of(path)} is no pattern: {problem}", ""))
            return BROKEN
        hint, why = _meant_files(clean)
        if why:
            found.append((path, f"{name_of(path)} is {said(value)}, {why}", hint))
            return BROKEN
        return clean

    def many(self) -> str:
        return "globs of files"


def _meant_files(glob: str) -> tuple[str, str]:
    """Return what was meant by a glob that git would take otherwise, and why it is wrong."""
    if glob.startswith((":", "!")):
        return "name the files that count", "which would leave files out"
    if "\\" in glob:
        return _hint(glob.replace("\\", "/")), "and folders are told apart by /"
    parts = glob.split("/")
    strange = [part for part in parts if "**" in part and part != "**"]
    if not strange:
        return "", ""
    meant = [part if part not in strange else _apart(part) for part in parts]
    return _hint("/".join(meant)), "and ** stands for folders, between slashes"


def _apart(part: str) -> str:
    before, _, after = part.partition("**")
    after = after.replace("*", "")
    return "/".join([*([before] if before else []), "**", *([f"*{after}"] if after else [])])


def _hint(meant: str) -> str:
    return f'did you mean "{meant}"?'


class Workspace(Text, kw_only=True):
    """Where files are: here, or in a folder that is reached over SSH. Cleaned, it is canonical."""

    line: bool = True
    says: str = f'"ssh://[user@]host[:port]/path", or "{LOCAL}"'

    def check(self, value: Any, path: Path, found: Found) -> Any:
        clean = super().check(value, path, found)
        if clean is BROKEN or clean == LOCAL:
            return clean
        try:
            return remote_from(clean).url
        except ValueError as error:
            why, _, hint = str(error).partition("; ")
            found.append(
                (path, f"{name_of(path)} is {said(value)}: {why}", meant_workspace(clean) or hint)
            )
            return BROKEN

    def schema(self) -> Schema:
        return {"type": "string", "pattern": rf"^(?:{LOCAL}|ssh://[^/\s]+/.*)$"}


def meant_workspace(text: str) -> str:
    """Guess at a workspace that is written as `scp` takes it, or with a slash too few."""
    host, colon, path = text.partition(":")
    meant = f"ssh://{host}{path}"
    if is_remote(text) or not colon or not path.startswith("/") or path.startswith("//"):
        return ""
    if host == "ssh":
        meant = f"ssh:/{path}"
    try:
        remote_from(meant)
    except ValueError:
        return ""
    return f'did you mean "{meant}"?'
