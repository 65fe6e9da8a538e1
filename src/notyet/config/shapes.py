"""Shapes: what a value may be. Checks, JSON Schema and docs are made from shapes.

`check` finds every mistake at once, and drops what is broken so that its neighbours survive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json import dumps
from posixpath import isabs, normpath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from notyet.config.document import (
    CONTROL,
    HUGE,
    UNUSABLE,
    Path,
    described,
    did_you_mean,
    name_of,
    nearest,
    quoted,
)
from notyet.core.matcher import glob_error
from notyet.core.remote import LOCAL, is_remote, remote_from

if TYPE_CHECKING:
    from collections.abc import Mapping

Problems: TypeAlias = list[tuple[Path, str, str]]  # path, message, hint

BROKEN: Any = object()  # stands for a value that cannot be used
_MOST_HINTS = 200  # a hint for each of many thousand unknown keys would take minutes
_MOST_LISTED = 12  # known keys in a hint
_WORDS_FOR_FLAGS = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def check(value: Any, shape: Shape) -> tuple[Any, Problems]:
    """Return what is right in a value, or None, and every mistake: its path, message and hint."""
    problems: Problems = []
    clean = shape.check(value, (), problems)
    return (None if clean is BROKEN else clean), problems


class ShapeError(ValueError):
    """What is wrong with a value: `problem` follows the name of its key."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


class Shape:
    """What a value may be; this one, anything."""

    types: ClassVar[tuple[type, ...]] = (object,)
    example: ClassVar[str] = ""  # the hint for every wrong value

    def accepts(self, value: object) -> bool:
        """Return True if a value has the right type, whatever else is wrong with it."""
        is_number = isinstance(value, bool) and int in self.types  # as Python sees it
        return isinstance(value, self.types) and not is_number

    def check(self, value: Any, path: Path, problems: Problems) -> Any:
        """Return the clean value, or BROKEN; add every mistake to `problems`."""
        try:
            if not self.accepts(value):
                raise self.wrong(value, self.hint(value))
            return self.parse(value)
        except ShapeError as wrong:
            problems.append((path, f"{name_of(path)} {wrong.problem}", wrong.hint))
            return BROKEN

    def parse(self, value: Any) -> Any:
        """Return the clean value of one that has the right type. Raises ShapeError."""
        return value

    def wrong(self, value: object, hint: str = "") -> ShapeError:
        """Return the mistake that a value is something else."""
        return ShapeError(f"must be {self.words}, not {described(value)}", self.example or hint)

    def hint(self, value: object) -> str:
        """Return how to write a value of the wrong type."""
        if isinstance(value, str) and self.accepts(_without_quotes(value)):
            return "write it without quotes"
        if isinstance(value, bool | int | float) and self.accepts("1"):
            return "write it in quotes"
        return ""

    @property
    def words(self) -> str:
        """The name of such a value, for messages and docs."""
        return "anything"


def _without_quotes(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if re.fullmatch("-?[0-9]{1,9}", text) else text


def _plural(words: str) -> str:
    """Return `strings or tables` for `a string or a table`."""
    return re.sub(r"\ba ((?:whole )?\w+)", r"\1s", words)


@dataclass(frozen=True, kw_only=True)
class Text(Shape):
    """A string. `pattern` must fit all of it; `words` names such a string."""

    types = (str,)
    blank: bool = False  # whether it may be
    most: int = 0  # characters; 0: any number
    line: bool = False  # one line, without control characters
    pattern: str = ""
    words: str = "a string"

    def parse(self, value: str) -> str:
        if not self.blank and not value.strip():
            raise ShapeError("must not be blank")
        if UNUSABLE.search(value):
            raise ShapeError("contains a NUL character or an unpaired surrogate")
        if self.line and CONTROL.search(value):
            raise ShapeError("contains a line break or control character")
        if self.most and len(value) > self.most:
            raise ShapeError(f"is longer than {self.most} characters")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise self.wrong(value)
        return value


@dataclass(frozen=True, kw_only=True)
class PathBelow(Text):
    """A path that stays below the file's folder."""

    words: str = "a path below the file's folder"

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        if isabs(clean) or clean.startswith("~") or normpath(clean).split("/")[0] == "..":
            raise self.wrong(value)
        return clean


@dataclass(frozen=True, kw_only=True)
class FileGlob(PathBelow):
    """A glob of files below the file's folder, in git's syntax."""

    line: bool = True
    words: str = "a glob of files below the file's folder"

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        problem = glob_error(clean)
        if problem:
            raise ShapeError(f"is not a valid pattern: {problem}")
        if clean.startswith((":", "!")):
            why, hint = "files cannot be left out", "name the files that count"
        elif "\\" in clean:
            why, hint = "folders are separated by /", _meant(clean.replace("\\", "/"))
        elif any("**" in part and part != "**" for part in clean.split("/")):
            why, hint = "** must stand alone between slashes", 'write it like "src/**/*.py"'
        else:
            return clean
        raise ShapeError(f"is {described(value)}, but {why}", hint)


@dataclass(frozen=True, kw_only=True)
class FolderGlob(FileGlob):
    """A glob of folders below the file's folder."""

    words: str = "a glob of folders below the file's folder"

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        parts = clean.split("/")
        if ".." in parts:
            raise self.wrong(value)
        names = [part for part in parts if part not in {"", "."}]
        if not names:
            raise ShapeError("must name folders below the file's own", 'write it like "packages/*"')
        return "/".join(names)


def _meant(text: str) -> str:
    return f'did you mean "{text}"?'


@dataclass(frozen=True, kw_only=True)
class Workspace(Text):
    """A folder on this machine or behind SSH. Cleaned, its address is canonical."""

    line: bool = True
    words: str = f'"ssh://[user@]host[:port]/path" or "{LOCAL}"'

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        if clean == LOCAL:
            return clean
        try:
            return remote_from(clean).url
        except ValueError as error:
            why, _, hint = str(error).partition("; ")
            raise ShapeError(
                f"is {described(value)}: {why}", meant_workspace(clean) or hint
            ) from None


@dataclass(frozen=True, kw_only=True)
class Address(Text):
    """An address of another program. It may hold a password, so that no mistake shows it."""

    line: bool = True
    schemes: tuple[str, ...]
    words: str = "an address"

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        scheme, _, place = clean.partition("://")
        if scheme not in self.schemes or not place:
            raise ShapeError(f"must be {self.words}", "write the whole address, with ://")
        return clean


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


@dataclass(frozen=True)
class Choice(Shape):
    """One of a few words."""

    types = (str,)
    options: tuple[str, ...]

    def parse(self, value: str) -> str:
        if value not in self.options:
            raise self.wrong(value, did_you_mean(value, self.options))
        return value

    @property
    def words(self) -> str:
        *others, last = map(dumps, self.options)
        return f"{', '.join(others)} or {last}" if others else last


@dataclass(frozen=True, kw_only=True)
class Glob(Shape):
    """A pattern for names. One that is nearly a word of `unlike` was meant to be that word."""

    types = (str,)
    words = "a pattern"
    unlike: tuple[str, ...] = ()

    def parse(self, value: str) -> str:
        problem = glob_error(value) if not UNUSABLE.search(value) else "it is not readable text"
        if problem:
            raise ShapeError(f"is not a valid pattern: {problem}")
        word = "" if any(sign in value for sign in "*?[") else nearest(value, self.unlike)
        if word:
            hint = f"write {dumps(word)}, or a list of patterns to mean kinds of subagents"
            raise ShapeError(f"is {quoted(value)}, which looks like {dumps(word)}", hint)
        return value


@dataclass(frozen=True, kw_only=True)
class CommandGlob(Text):
    """A glob of commands, on one line."""

    line: bool = True

    def parse(self, value: str) -> str:
        clean = super().parse(value)
        problem = glob_error(clean)
        if problem:
            raise ShapeError(f"is not a valid pattern: {problem}")
        return clean


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
            raise ShapeError(f"cannot be {value}: {self.because}")
        return value

    @property
    def words(self) -> str:
        if self.most is None:
            return f"a whole number of at least {self.least}"
        return f"a whole number from {self.least} to {self.most}"


class Number(Shape):
    """A number from 0 up, whole or not."""

    types = (int, float)
    words = "a number of at least 0"

    def parse(self, value: float) -> float:
        if not 0 <= value <= HUGE:  # False for NaN too
            raise self.wrong(value)
        return value


_TIMES = MappingProxyType(
    {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
)
_CENTURY = 36_500 * 86_400


class Measure(Shape):
    """A number, or text with units such as "1h30m" or "256MB"."""

    pattern: ClassVar[str]
    units: ClassVar[Mapping[str, float]]

    def number(self, value: float | str) -> float:
        """Return the number that a text stands for. Raises ShapeError."""
        if not isinstance(value, str):
            return value
        if not re.fullmatch(self.pattern, value):
            raise self.wrong(value)
        parts = re.findall("([0-9.]+)([a-zA-Z]+)", value)
        return sum(float(number) * self.units[unit] for number, unit in parts)


@dataclass(frozen=True, kw_only=True)
class Seconds(Measure):
    """A time span: a number of seconds, or text such as "1h30m". Cleaned, it is a float."""

    types = (int, float, str)
    words = 'seconds or a time like "10m"'
    example = 'write it like 90, "90s", "10m", "1h30m" or "500ms"'
    pattern = (
        r"(?=[0-9])(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?"
        r"(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)s)?(?:([0-9]{1,9})ms)?"
    )
    units = _TIMES
    most: int = 86_400

    def parse(self, value: float | str) -> float:
        seconds = self.number(value)
        if not 0 < seconds <= self.most:  # True for NaN too
            raise ShapeError(
                f"must be above 0 and at most {self.most} seconds, not {described(value)}"
            )
        return float(seconds)


class Age(Measure):
    """A long time span: text such as "90d". Cleaned, it is a number of seconds."""

    types = (str,)
    words = 'a time like "90d"'
    example = 'write it like "90d", "12w" or "36h"'
    pattern = "([0-9]{1,6})(h|d|w)"
    units = _TIMES

    def parse(self, value: str) -> float:
        seconds = self.number(value)
        if not 0 < seconds <= _CENTURY:
            raise self.wrong(value)
        return seconds


@dataclass(frozen=True, kw_only=True)
class Size(Measure):
    """A size: a number of bytes, or text such as "256MB". Cleaned, it is bytes."""

    types = (int, str)
    words = 'a size like "256MB"'
    example = 'write it like "256MB", "1GB", or in bytes'
    pattern = "([0-9]{1,9})(kB|KB|MB|GB)"
    units = MappingProxyType({"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9})
    least: int = 0
    most: int = 1_000_000_000_000

    def parse(self, value: int | str) -> int:
        size = self.number(value)
        if not self.least <= size <= self.most:
            raise ShapeError(f"must be {self.least} to {self.most} bytes, not {described(value)}")
        return int(size)


@dataclass(frozen=True, kw_only=True)
class ListOf(Shape):
    """A list. `whole`: one broken item breaks it, because the rest would mean something else."""

    types = (list,)
    item: Shape
    least: int = 0
    whole: bool = True

    def check(self, value: Any, path: Path, problems: Problems) -> Any:
        if super().check(value, path, problems) is BROKEN:
            return BROKEN
        items = [self.item.check(item, (*path, at), problems) for at, item in enumerate(value)]
        kept = [item for item in items if item is not BROKEN]
        return BROKEN if self.whole and len(kept) < len(items) else kept

    def parse(self, value: list[Any]) -> list[Any]:
        if len(value) < self.least:
            raise ShapeError("must not be empty", "leave it out for the default")
        return value

    @property
    def words(self) -> str:
        return f"a list of {_plural(self.item.words)}"


@dataclass(frozen=True, kw_only=True)
class MapOf(Shape):
    """A table whose keys are names that people choose. `whole` as for lists."""

    types = (dict,)
    item: Shape
    key: Shape = field(default_factory=Text)
    whole: bool = False

    def check(self, value: Any, path: Path, problems: Problems) -> Any:
        if super().check(value, path, problems) is BROKEN:
            return BROKEN
        kept = {}
        for key, item in value.items():
            is_good = self.key.check(key, (*path, key), problems) is not BROKEN
            clean = self.item.check(item, (*path, key), problems)
            if is_good and clean is not BROKEN:
                kept[key] = clean
        return BROKEN if self.whole and len(kept) < len(value) else kept

    @property
    def words(self) -> str:
        return f"a table of {_plural(self.item.words)}"


@dataclass(frozen=True)
class Field:
    """A key of a table. Without a good value for a `vital` one, the table is dropped whole."""

    shape: Shape
    doc: str = ""
    default: Any = None  # for docs and `Table.filled`; None: there is none
    required: bool = False
    vital: bool = False
    also: tuple[str, ...] = ()  # other names for it that people try


@dataclass(frozen=True, kw_only=True)
class Table(Shape):
    """A table with known keys; `open` ones may hold more, which is kept as it is."""

    types = (dict,)
    words = "a table"
    fields: Mapping[str, Field] = field(default_factory=dict)
    open: bool = False
    nulls: bool = False  # null (YAML's `key:`) is the same as no key
    one_of: tuple[str, ...] = ()  # exactly one of these keys
    apart: tuple[tuple[str, str], ...] = ()  # pairs of keys that exclude each other
    needs: tuple[tuple[str, str], ...] = ()  # the first key means nothing without the second
    if_is: tuple[tuple[str, str, str], ...] = ()  # where this key is this word, that key is needed

    def check(self, value: Any, path: Path, problems: Problems) -> Any:
        if super().check(value, path, problems) is BROKEN:
            return BROKEN
        if self.nulls:
            value = {key: item for key, item in value.items() if item is not None}
        is_broken = False
        clean = {}
        for key, item in value.items():
            known = self.fields.get(key)
            if known is not None:
                kept = known.shape.check(item, (*path, key), problems)
                if kept is not BROKEN:
                    clean[key] = kept
                is_broken = is_broken or (kept is BROKEN and (known.vital or known.required))
            elif self.open:
                clean[key] = item
            else:
                hint = self._hint_for(key) if len(problems) < _MOST_HINTS else ""
                message = f"{name_of((*path, key))} is not a known key"
                problems.append(((*path, key), message, hint))
        return BROKEN if self._is_incomplete(value, path, problems) or is_broken else clean

    def _meant(self, key: str) -> str:
        """Return the key that was probably meant by an unknown one; empty for none."""
        for name, known in self.fields.items():
            if key in known.also:
                return name
        return nearest(key, tuple(self.fields))

    def _hint_for(self, key: str) -> str:
        meant = self._meant(key)
        if meant:
            return f"did you mean `{meant}`?"
        is_short = 0 < len(self.fields) <= _MOST_LISTED
        return f"known keys: {', '.join(self.fields)}" if is_short else ""

    def _is_incomplete(self, value: dict[str, Any], path: Path, problems: Problems) -> bool:
        """Add what is wrong with keys that depend on each other; return True if that is fatal."""
        wanted = {key for key, known in self.fields.items() if known.required}
        wanted |= {need for key, word, need in self.if_is if value.get(key) == word}
        missing = [key for key in self.fields if key in wanted and key not in value]
        given = [key for key in value if key in self.one_of]
        # A misspelt key is not reported as missing too.
        unknown = () if self.open else [key for key in value if key not in self.fields]
        misspelt = {self._meant(key) for key in unknown}
        problems += [
            (path, f"{name_of(path)} needs `{key}`", "") for key in missing if key not in misspelt
        ]
        if self.one_of and not given and misspelt.isdisjoint(self.one_of):
            *most, last = (f"`{key}`" for key in self.one_of)
            names = f"{', '.join(most)} or {last}" if most else last
            problems.append((path, f"{name_of(path)} needs {names}", ""))
        for one, other in [(extra, given[0]) for extra in given[1:]] + list(self.apart):
            if one in value and other in value:
                message = f"{name_of(path)} has both `{other}` and `{one}`"
                problems.append(((*path, one), message, "keep one of them"))
        problems += [
            ((*path, key), f"{name_of((*path, key))} has no effect without `{need}`", "")
            for key, need in self.needs
            if key in value and need not in value
        ]
        return bool(missing) or (bool(self.one_of) and len(given) != 1)

    def filled(self, clean: dict[str, Any]) -> dict[str, Any]:
        """Return a clean table with the defaults of the keys it does not have."""
        defaults = {k: f.default for k, f in self.fields.items() if f.default is not None}
        return defaults | clean


@dataclass(frozen=True)
class Either(Shape):
    """One of several shapes; a value is checked against those of its own type."""

    shapes: tuple[Shape, ...]

    def accepts(self, value: object) -> bool:
        return any(shape.accepts(value) for shape in self.shapes)

    def check(self, value: Any, path: Path, problems: Problems) -> Any:
        clean: Any = BROKEN
        trial: Problems = []
        for shape in filter(lambda shape: shape.accepts(value), self.shapes):
            trial = []
            clean = shape.check(value, path, trial)
            if not trial:
                return clean
        problems += trial
        return clean if trial else super().check(value, path, problems)

    @property
    def words(self) -> str:
        return " or ".join(shape.words for shape in self.shapes)
