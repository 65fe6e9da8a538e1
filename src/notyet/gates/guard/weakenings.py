"""Find what a change weakens: the entry point of the guard."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from notyet.gates.guard import javascript_tests, lexical_tests, python_tests
from notyet.gates.guard.compared_tests import compare_tests
from notyet.gates.guard.files import (
    BLOCKING,
    is_ci,
    is_conftest,
    is_notyet_config,
    is_read,
    is_script,
    is_settings,
    is_snapshot,
    is_test,
    language,
)
from notyet.gates.guard.found_tests import digest
from notyet.gates.guard.rules import finding, short
from notyet.gates.guard.scripts import compare_conftest, compare_script
from notyet.gates.guard.settings import compare_limits, compare_notyet, compare_settings
from notyet.gates.guard.suppressions import compare_suppressions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from notyet.gates.guard.found_tests import TestsOfFile
    from notyet.gates.guard.rules import Weakening

LARGEST_FILE = 1_000_000  # characters; people do not write larger tests or settings
_LARGEST_CHANGE = 30_000_000
_MOST_FILES = 5_000
_NONE: Mapping[str, str] = {}


def weakenings(
    old: Mapping[str, str],
    new: Mapping[str, str],
    *,
    renames: Mapping[str, str] = _NONE,
    gate_scripts: Collection[str] = (),
    unchanged: Mapping[str, str] = _NONE,
) -> list[Weakening]:
    """Return what checks less in the new texts of changed files than in the old ones.

    A path only in `old` was deleted; `renames` maps old paths to new ones. `gate_scripts` are the
    files that a configured gate runs, `unchanged` the texts of files in which copies of removed
    tests may be. What blocks comes first.
    """
    change = _Change(old, new, renames, frozenset(gate_scripts))
    change.unchanged = [
        tests for path, text in unchanged.items() if (tests := python_tests.tests_of(path, text))
    ]
    found = list(change.findings())
    unique = dict.fromkeys(found)
    return sorted(unique, key=lambda one: (not one.blocks, one.path, one.line, one.rule))


class _Change:
    """The changed files that are read, old and new."""

    def __init__(
        self,
        old: Mapping[str, str],
        new: Mapping[str, str],
        renames: Mapping[str, str],
        gate_scripts: frozenset[str],
    ) -> None:
        self.renames = {a: b for a, b in renames.items() if a in old and b in new}
        self._origins = {b: a for a, b in self.renames.items()}
        self.gate_scripts = gate_scripts
        self.unread: list[str] = []
        self.hidden: list[str] = []  # test files that cannot be read any more
        self.unparsed: list[str] = []
        self.unchanged: list[TestsOfFile] = []
        self.old: dict[str, str] = {}
        self.new: dict[str, str] = {}
        self._choose(old, new)

    def _choose(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Keep the texts that rules read, up to the limits; tests and settings come first."""
        origins = self._origins

        def names(path: str) -> tuple[str, str]:
            return origins.get(path, path), path

        def order(path: str) -> tuple[int, bool, str]:
            # New files come last: however many an agent adds, what was there before is read.
            origin = names(path)[0]
            rank = min(_rank(one, self.gate_scripts) for one in (origin, path))
            return rank, origin not in old, path

        candidates = [
            path
            for path in {**old, **new}
            if path not in self.renames
            and any(is_read(one) or one in self.gate_scripts for one in names(path))
            and (path in origins or old.get(path) != new.get(path))
        ]
        candidates.sort(key=order)
        size = 0
        for number, path in enumerate(candidates):
            origin = origins.get(path, path)
            texts = [side[one] for side, one in ((old, origin), (new, path)) if one in side]
            length = sum(map(len, texts))
            size += length
            too_much = number >= _MOST_FILES or size > _LARGEST_CHANGE
            unreadable = [text for text in texts if len(text) > LARGEST_FILE or "\0" in text]
            if too_much or unreadable:
                size -= length
                hides = unreadable == texts[1:] and is_test(origin, texts[0])
                (self.hidden if hides and not too_much else self.unread).append(path)
                continue
            if origin in old:
                self.old[origin] = old[origin]
            if path in new:
                self.new[path] = new[path]

    def findings(self) -> Iterator[Weakening]:
        """Return what all rules find."""
        yield from self._tests()
        yield from self._snapshots()
        yield from compare_settings(
            {self._now(path, is_settings): t for path, t in self.old.items() if is_settings(path)},
            {path: text for path, text in self.new.items() if is_settings(path)},
        )
        for path, text in self.old.items():
            yield from self._one_file(path, text)
        for path, text in self.new.items():
            if is_conftest(path) and not is_conftest(self._origin(path)):
                yield from compare_conftest(path, "", text)
        yield from compare_suppressions(
            {self._now(path): text for path, text in self.old.items() if language(path)},
            {path: text for path, text in self.new.items() if language(path)},
        )
        if self.unread:
            listed = ", ".join(short(path, 80) for path in self.unread[:3])
            count = f"{len(self.unread)} changed files were not read"
            what = f"{count} (too many, too large or binary): {listed}"
            yield finding("not-read", self.unread[0], 1, what)

    def _now(self, path: str, is_kind: Callable[[str], bool] = bool) -> str:
        """Return what a file is called now; its old name if the new one is not of a kind."""
        now = self.renames.get(path, path)
        return now if is_kind(now) else path

    def _origin(self, path: str) -> str:
        """Return what a file was called; empty if it is new."""
        return self._origins.get(path, path if path in self.old else "")

    def _one_file(self, path: str, text: str) -> Iterator[Weakening]:
        now = self._now(path)
        new = self.new.get(now)
        is_gate_script = path in self.gate_scripts
        if new == text and now == path:
            return
        if is_notyet_config(path) or path.endswith("pyproject.toml"):
            yield from compare_notyet(path, text, new if now == path else None)
        if is_gate_script and now != path:
            yield from compare_script(path, text, None, is_gate_script=True)
        elif is_gate_script or is_ci(path) or is_script(path):
            is_kept = now == path or is_ci(now) or is_script(now)
            yield from compare_script(
                now if is_kept and new is not None else path,
                text,
                new if is_kept else None,
                is_gate_script=is_gate_script,
            )
        if new == text:
            return
        if new is not None and (is_script(path) or is_ci(path)):
            yield from compare_limits(now, text, new)
        if new is not None and is_conftest(now):
            yield from compare_conftest(now, text, new)

    def _tests(self) -> Iterator[Weakening]:
        before: dict[str, TestsOfFile] = {}
        now: dict[str, TestsOfFile] = {}
        for path, text in self.new.items():
            if is_test(path, text):
                tests = _tests_of(path, text)
                if tests:
                    now[path] = tests
                else:
                    self.unparsed.append(path)
        for path, text in self.old.items():
            if not is_test(path, text):
                continue
            tests = _tests_of(path, text)
            if tests is None:
                continue
            if self._now(path) in self.unparsed:
                python = ".".join(map(str, sys.version_info[:2]))
                what = f"Python {python} cannot parse the file, so its tests were not compared"
                version = digest(self.new[self._now(path)])
                yield finding("no-longer-parses", self._now(path), 1, what, version=version)
                continue
            before[path] = tests
        for path in self.hidden:
            what = "the file is too large or binary now, so its tests were not compared"
            may_block = language(path) in BLOCKING
            yield finding("no-longer-parses", path, 1, what, may_block=may_block)
        gone = frozenset(
            path
            for path in before
            if self._now(path) not in self.new
            or (path in self.renames and not is_test(self._now(path)))
        )
        yield from compare_tests(before, now, self.renames, gone, self.unchanged)

    def _snapshots(self) -> Iterator[Weakening]:
        contents = {text for path, text in self.new.items() if is_snapshot(path)}
        for path, text in self.old.items():
            if not is_snapshot(path) or text in contents:
                continue
            now = self._now(path, is_snapshot)
            first = text.strip().split("\n", 1)[0]
            if now not in self.new:
                what = "a file of expected output was deleted"
                yield finding("snapshot-deleted", path, 1, what, before=first)
            else:
                what = "expected output was changed"
                yield finding("snapshot-changed", now, 1, what, before=first)


def _rank(path: str, gate_scripts: frozenset[str]) -> int:
    if path in gate_scripts or is_settings(path) or is_notyet_config(path) or is_conftest(path):
        return 0
    if is_test(path):
        return 1
    return 2 if is_script(path) or is_ci(path) or is_snapshot(path) else 3


def _tests_of(path: str, text: str) -> TestsOfFile | None:
    of = language(path)
    if of == "python":
        return python_tests.tests_of(path, text)
    if of == "javascript":
        return javascript_tests.tests_of(path, text)
    return lexical_tests.tests_of(path, text, of)
