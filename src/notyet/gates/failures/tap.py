"""Output in the Test Anything Protocol."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.gates.failures.javascript import ERROR_LINE
from notyet.gates.failures.run import Found

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSION = re.compile(r"^TAP version \d+$")
_PLAN = re.compile(r"^( *)1\.\.(\d+)(?: *#.*)?$")
_RESULT = re.compile(r"^( *)(not )?ok\b(?: (\d+))?(?: -)?(?: (.*))?$")
_DIRECTIVE = re.compile(r" # *(SKIP|TODO|time=)\S*(?: .*)?$", re.IGNORECASE)
_COUNT = re.compile(r"^# (tests|pass|fail|cancelled) +(\d+)$")
_PLACE = re.compile(r"^ *location: '(.+):\d+:\d+'$")
_FIELD = re.compile(r"^ *(error|message): (.*)$")


@dataclass
class _Test:
    name: str
    failed: bool
    at: int
    children: list[_Test] = field(default_factory=list)
    skipped: bool = False
    file: str = ""
    message: str = ""
    because_of_children: bool = False
    detail: str = ""


def read_tap(lines: Sequence[str]) -> Found | None:
    """Read a stream of TAP, with the nested tests that node and others write."""
    plans = [match for line in lines if (match := _PLAN.match(line)) and not match[1]]
    versions = sum(bool(_VERSION.match(line)) for line in lines)
    if not plans or not (versions or any(_RESULT.match(line) for line in lines)):
        return None
    found = Found("tap")
    tests = _tests(lines, found)
    leaves = parents = 0
    waiting: list[tuple[_Test, tuple[str, ...]]] = [(test, ()) for test in reversed(tests)]
    ran = 0
    while waiting:
        test, path = waiting.pop()
        here: tuple[str, ...] = (*path, test.name)
        waiting += [(child, here) for child in reversed(test.children)]
        ran += not test.skipped and not test.children
        if not test.failed:
            continue
        if test.because_of_children:
            parents += 1
            continue
        leaves += 1
        if test.file and (test.name == test.file or test.name.endswith(f"/{test.file}")):
            found.add_load_error(test.file, test.message, test.detail)
            ran -= 1
        else:
            parts = (test.file, *here) if test.file else here
            found.add(" > ".join(parts), test.message, test.detail)
    counts = {match[1]: int(match[2][:9]) for line in lines if (match := _COUNT.match(line))}
    planned = sum(int(match[2][:9]) for match in plans)
    own = counts.get("fail", 0) + counts.get("cancelled", 0)
    found.complete = (
        len(plans) == 1
        and versions <= 1
        and planned == len(tests)
        and (
            "fail" not in counts
            or leaves <= own <= leaves + parents
            or own == len([test for test in tests if test.failed])
        )
    )
    found.stopped_early = any(line.startswith("Bail out!") for line in lines)
    found.claimed.update(at for at, line in enumerate(lines) if _COUNT.match(line))
    found.ran = ran
    return found


def _tests(lines: Sequence[str], found: Found) -> list[_Test]:
    """Return the outermost tests; the results of nested ones stand before their parent's."""
    levels: dict[int, list[_Test]] = {}
    last: _Test | None = None
    reason, block_end = "", ""
    # tape names its tests in comments, and its results after what they compare. The comments of
    # node repeat names, or are what a test printed.
    is_named = not any(line.lstrip().startswith("# Subtest") for line in lines)
    group = ""
    for at, line in enumerate(lines):
        if block_end and last is not None:
            found.claimed.add(at)
            _read_field(line, last)
            if line == block_end:
                block_end = ""
                last.detail = "\n".join(lines[last.at : at])
            continue
        if last is not None and line.strip() == "---" and line.startswith(" "):
            block_end = line.replace("---", "...")
            found.claimed.add(at)
            continue
        if line.startswith("# "):
            if not reason and ERROR_LINE.match(line[2:]):
                reason = line[2:]
            elif is_named and not _COUNT.match(line):
                group = line[2:].strip()
            continue
        result = _RESULT.match(line)
        if not result:
            continue
        found.claimed.add(at)
        last = _test(result, at, levels, group)
        if last.failed and reason:
            last.message = reason
        reason = ""
    return levels.get(0, [])


def _test(result: re.Match[str], at: int, levels: dict[int, list[_Test]], group: str) -> _Test:
    indent = len(result[1])
    name = result[4] or ""
    directive = _DIRECTIVE.search(name)
    word = directive[1].upper() if directive else ""
    if directive:
        name = name[: directive.start()]
    test = _Test(
        name=f"{group} > {name.strip()}" if group and not indent else name.strip(),
        failed=bool(result[2]) and word not in {"SKIP", "TODO"},
        skipped=word == "SKIP",
        at=at,
    )
    for deeper in sorted(level for level in levels if level > indent):
        test.children += levels.pop(deeper)
    levels.setdefault(indent, []).append(test)
    return test


def _read_field(line: str, test: _Test) -> None:
    place, said = _PLACE.match(line), _FIELD.match(line)
    if place and not test.file:
        test.file = place[1]
    elif "subtestsFailed" in line and line.strip() == "failureType: 'subtestsFailed'":
        test.because_of_children = True
    elif said and not test.message:
        test.message = said[2].strip("'\"") if said[2] not in {"|-", "|", ">-", ">"} else " "
    elif test.message == " " and line.strip():
        test.message = line.strip()
