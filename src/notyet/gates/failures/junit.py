"""JUnit XML, as pytest, jest-junit, vitest, surefire, gotestsum and cargo-nextest write it.

The file is read in pieces, with no more in memory than the test that is being read. Entities are
refused, not expanded: a file of a few lines can otherwise grow to any size.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, BinaryIO, Never
from xml.parsers import expat

from notyet.gates.failures.run import Found

if TYPE_CHECKING:
    from collections.abc import Callable

_PIECE = 64 * 1024
_LONGEST_TEXT = 8_000  # characters of one failure
_DEEPEST = 100
_NO_LOAD = ("collection failure", "test suite failed to run", "build failed", "setup failed")


class NotJunit(ValueError):  # noqa: N818  # named after what the file is
    """Why a file is not read; the end of a sentence about it."""


def read_junit(file: BinaryIO, most_bytes: int, relative: Callable[[str], str]) -> Found:
    """Read a report; `relative` cuts the folder of the tree from a path."""
    reader = _Reader(relative)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse_entities
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    left = most_bytes
    try:
        while piece := file.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise NotJunit("has more than the 64 MiB that are read")
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError as why:
        raise NotJunit(f"is not whole XML ({why}); was the command cut off?") from None
    except (ValueError, LookupError) as why:
        # An encoding that Python does not have, or one that is not text.
        raise why if isinstance(why, NotJunit) else NotJunit(f"cannot be decoded: {why}") from None
    if not reader.is_junit:
        raise NotJunit("is XML, but no JUnit report; name the file with the test results")
    return reader.found


def _refuse_entities(*_: object) -> Never:
    raise NotJunit("declares entities, which no test runner does; it is not read")


class _Reader:
    """What was read so far."""

    def __init__(self, relative: Callable[[str], str]) -> None:
        self.found = Found("junit")
        self.found.ran = 0
        self.found.tests = set()
        self.is_junit = False
        self._relative = relative
        self._depth = 0
        self._suites: list[tuple[int | None, int, str]] = []  # own count, count before it, file
        self._suite = ""  # the name of the last one
        self._case: dict[str, str] | None = None
        self._problem = ""
        self._message = ""
        self._text: list[str] = []
        self._length = 0
        self._skipped = False
        self._reading = False
        self._count = 0
        self._names: Counter[str] = Counter()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotJunit("is nested too deeply to be a report")
        if name in {"testsuite", "testsuites"}:
            self.is_junit = True
            own = _own_count(attributes) if name == "testsuite" else None
            self._suite = attributes.get("name", "")
            self._suites.append((own, self._count, attributes.get("file", "")))
        elif name == "testcase" and self._suites:
            self._case, self._problem, self._message = attributes, "", ""
            self._text, self._length, self._skipped = [], 0, False
        elif self._case is not None and name in {"failure", "error"}:
            self._reading = True
            if not self._problem:
                self._problem = name
                self._message = attributes.get("message") or attributes.get("type") or ""
        elif self._case is not None and name == "skipped":
            self._skipped = True

    def text(self, data: str) -> None:
        if self._reading and self._length < _LONGEST_TEXT:
            self._text.append(data[: _LONGEST_TEXT - self._length])
            self._length += len(data)

    def end(self, name: str) -> None:
        self._depth -= 1
        if name in {"failure", "error"}:
            self._reading = False
        elif name == "testcase" and self._case is not None:
            self._end_case(self._case)
            self._case = None
        elif name in {"testsuite", "testsuites"}:
            own, before, _ = self._suites.pop()
            # A suite that counts more than it lists failed outside of its tests.
            if own is not None and own != self._count - before:
                self.found.complete = False

    def _end_case(self, case: dict[str, str]) -> None:
        file = case.get("file") or next((path for *_, path in self._suites[::-1] if path), "")
        place = self._relative(file) or case.get("classname", "")
        if file and case.get("classname") and case["classname"] != place:
            place = f"{place}::{case['classname']}"
        identity = f"{place}::{case.get('name', '')}"
        self._names[identity] += 1
        if self._names[identity] > 1:  # else one that broke could stand for one that was repaired
            identity += f" (number {self._names[identity]})"
        if self._problem:
            self._count += 1
            identity = self._add(identity, case)
            if identity in self.found.load_errors:
                return
        if not self._skipped:
            self.found.ran = (self.found.ran or 0) + 1
            if self.found.tests is not None:
                self.found.tests.add(identity)

    def _add(self, identity: str, case: dict[str, str]) -> str:
        text = "".join(self._text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        said = [line[1:].strip() for line in text.splitlines() if line.startswith("E  ")]
        message = self._message.strip()
        # How vitest reports a file that did not load.
        is_file = self._suite and case.get("name") == case.get("classname") == self._suite
        if is_file or any(word in message.lower() for word in _NO_LOAD):
            place = case.get("file") or case.get("name") or identity
            reason = message if is_file else ""
            reason = reason or " ".join(said) or (lines[-1] if lines else message)
            return self.found.add_load_error(self._relative(place), reason[-200:], text)
        first = next(iter(message.splitlines() or lines), "")
        prefix = "ERROR " if self._problem == "error" and "on setup with" in message else ""
        return self.found.add(f"{prefix}{identity}", first, text)


def _own_count(attributes: dict[str, str]) -> int | None:
    """Return how many failures a suite says it has."""
    counts = [attributes.get(name, "") for name in ("failures", "errors")]
    if not counts[0].isdigit():
        return None
    return sum(int(count[:9]) for count in counts if count.isdigit())
