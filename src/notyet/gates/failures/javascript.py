"""The output of jest, vitest and node's own test runner."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from notyet.gates.failures.run import Found, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

_COUNT = re.compile(r"(\d+) ([a-z]+)")

_JEST_TESTS = re.compile(r"^Tests: +(?:(.*), )?(\d+) total$")
_JEST_SUITES = re.compile(r"^Test Suites: +(?:(.*), )?(?:(\d+) of )?(\d+) total$")
_JEST_FILE = re.compile(r"^(FAIL|PASS) +(\S.*?)(?: \(\d[\d.]* m?s\))?$")
_JEST_FAILURE = re.compile(r"^  ● (.+)$")
_JEST_RESULT = re.compile(r"^ +[✓✕○✎] ")
_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "  # as jest writes it
_JEST_AGAIN = "Summary of all failing tests"


def read_jest(lines: Sequence[str]) -> Found | None:
    """Read what jest printed."""
    ends = [at for at, line in enumerate(lines) if _JEST_TESTS.match(line)]
    suites = [at for at, line in enumerate(lines) if _JEST_SUITES.match(line)]
    if not ends or not suites:
        return None
    found = Found("jest")
    end = ends[-1]
    tests, files = _JEST_TESTS.match(lines[end]), _JEST_SUITES.match(lines[suites[-1]])
    counts, suite_counts = _counts(tests and tests[1]), _counts(files and files[1])
    again = next((at for at in range(end) if lines[at] == _JEST_AGAIN), end)
    file, failed_files = "", set()
    marks = [
        at for at in range(again) if _JEST_FILE.match(lines[at]) or _JEST_FAILURE.match(lines[at])
    ]
    for at, after in spans(marks, suites[-1]):
        is_file = _JEST_FILE.match(lines[at])
        if is_file:
            # A configured project prints its name before the path.
            file = is_file[2].rsplit(" ", 1)[-1].removeprefix("./")
            if is_file[1] == "FAIL":
                failed_files.add(file)
            found.claimed.add(at)
            continue
        found.claim(at, after - 1)
        failure = _JEST_FAILURE.match(lines[at])
        if failure and failure[1] != "Console":
            _jest_failure(file, failure[1], lines[at:after], found)
    found.claimed.update(at for at, line in enumerate(lines) if _JEST_RESULT.match(line))
    found.claim(again, end)
    found.claimed.update(suites)
    failed = sum(found.failures.values()) - sum(found.failures[name] for name in found.load_errors)
    # A second summary is another run, or text that a test wrote past jest.
    found.complete = (
        len(ends) == 1
        and failed == counts.get("failed", 0)
        and len(failed_files) == suite_counts.get("failed", 0)
    )
    found.stopped_early = bool(files and files[2])
    found.ran = counts.get("failed", 0) + counts.get("passed", 0)
    return found


def _counts(text: str | None) -> dict[str, int]:
    return {word: int(count[:9]) for count, word in _COUNT.findall(text or "")}


def _jest_failure(file: str, name: str, block: Sequence[str], found: Found) -> None:
    said = [line.strip() for line in block[1:] if line.strip()]
    text = "\n".join(line for line in block if not line.lstrip().startswith("at "))
    if name != "Test suite failed to run":
        found.add(f"{file}{_SEPARATOR}{name}", said[0] if said else "", text)
        return
    if "Details:" in said[:-1]:  # of a file that could not be parsed, after general advice
        said = said[said.index("Details:") + 1 :]
    found.add_load_error(file, said[0] if said else name, text)


_VITEST_FILES = re.compile(r"^ Test Files  (.+)$")
_VITEST_TESTS = re.compile(r"^      Tests  (.+)$")
_VITEST_TOTAL = re.compile(r"\((\d+)\)$")
_VITEST_HEADER = re.compile(r"^⎯+ Failed (Suites|Tests) (\d+) ⎯+$")
_VITEST_END = re.compile(r"^⎯+\[\d+/\d+\]⎯+$")
_VITEST_FAIL = re.compile(r"^ FAIL  (\S.*)$")
_VITEST_SUITE = re.compile(r"^(.+?) \[ .+ \]$")
_VITEST_PROGRESS = re.compile(
    "^ +[\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}\N{MULTIPLICATION SIGN}✓↓·→✗] "
)


def read_vitest(lines: Sequence[str]) -> Found | None:
    """Read what vitest printed."""
    files = [at for at, line in enumerate(lines) if _VITEST_FILES.match(line)]
    tests = [at for at, line in enumerate(lines) if _VITEST_TESTS.match(line)]
    if not files or not tests:
        return None
    found = Found("vitest")
    found.claimed.update(at for at, line in enumerate(lines) if _VITEST_PROGRESS.match(line))
    found.claimed.update((files[-1], tests[-1]))
    announced, top = 0, -1
    # The reports go to stderr: where that stands apart, they come after the summary.
    for at in range(len(lines)):
        header = _VITEST_HEADER.match(lines[at])
        if header:
            announced += int(header[2][:9])
            top = at + 1
            found.claimed.add(at)
        elif top >= 0 and _VITEST_END.match(lines[at]):
            _vitest_block(lines[top:at], found)
            found.claim(top, at)
            top = at + 1
    counts = _counts(lines[tests[-1]])
    found.complete = (
        len(files) == len(tests) == 1
        and sum(found.failures.values()) == announced
        and sum(found.failures.values()) - len(found.load_errors) == counts.get("failed", 0)
    )
    found.stopped_early = not (_adds_up(lines[files[-1]]) and _adds_up(lines[tests[-1]]))
    found.ran = counts.get("failed", 0) + counts.get("passed", 0)
    return found


def _vitest_block(block: Sequence[str], found: Found) -> None:
    """Count the failures of one report; several tests that fail alike share one."""
    begin = next((at for at, line in enumerate(block) if line), 0)
    names = []
    for line in block[begin:]:
        match = _VITEST_FAIL.match(line)
        if not match:
            break
        names.append(match[1])
    rest = block[begin + len(names) :]
    message = next((line for line in rest if line.strip()), "")
    text = "\n".join(block)
    for name in names:
        suite = _VITEST_SUITE.match(name)
        if suite:
            found.add_load_error(suite[1], message, text)
        else:
            found.add(name, message, text)


def _adds_up(line: str) -> bool:
    """Return True if the outcomes of a summary line account for its total."""
    total = _VITEST_TOTAL.search(line)
    return total is None or int(total[1][:9]) == sum(_counts(line).values())


_NODE_COUNT = re.compile(r"^\u2139 (tests|pass|fail|cancelled|skipped|todo) (\d+)$")
_NODE_FAILING = "✖ failing tests:"
_NODE_PLACE = re.compile(r"^test at (.+):\d+:\d+$")
_NODE_RESULT = re.compile(r"^( *)([✖✔﹣⚠]) (.+?) \(\d[\d.]*ms\)(?: # (.*))?$")
_NODE_GROUP = re.compile(r"^( *)▶ (.+)$")
ERROR_LINE = re.compile(r"^(?:\w+ )*\w*(?:Error|Exception)\b(?: \[\w+\])?: .+$")


def read_node(lines: Sequence[str]) -> Found | None:
    """Read what `node --test` printed with its reporter `spec`."""
    marks = [(at, match) for at, line in enumerate(lines) if (match := _NODE_COUNT.match(line))]
    if not {"tests", "pass", "fail"} <= {match[1] for _, match in marks}:
        return None
    found = Found("node")
    counts = {match[1]: int(match[2][:9]) for _, match in marks}
    first = min(at for at, _ in marks)
    failing = [at for at, line in enumerate(lines) if line == _NODE_FAILING]
    leaves, parents = _node_tree(lines[:first], found)
    listed = _node_list(lines, failing[-1] + 1, found) if failing else []
    in_order = [name for _, name, _ in listed] == [path[-1] for path, _ in leaves]
    for at, (file, name, block) in enumerate(listed):
        path, reason = leaves[at] if in_order else ((name,), "")
        message = next((line.strip() for line in block[1:] if line.strip()), "")
        if name == file or name.endswith(f"/{file}"):
            found.add_load_error(file, reason or message, "\n".join(block))
        else:
            found.add(" > ".join((file, *path)), message, "\n".join(block))
    count = sum(found.failures.values())
    # A test fails with its subtests and is counted, but not listed; a group is not even counted.
    found.complete = (
        in_order
        and sum(match[1] == "tests" for _, match in marks) == 1
        and count <= counts.get("fail", 0) + counts.get("cancelled", 0) <= count + parents
    )
    found.ran = counts["pass"] + counts["fail"] - len(found.load_errors)
    found.claimed.update(at for at, _ in marks)
    return found


def _node_tree(lines: Sequence[str], found: Found) -> tuple[list[tuple[tuple[str, ...], str]], int]:
    """Return the failing tests with their groups, and how many groups failed with them."""
    leaves: list[tuple[tuple[str, ...], str]] = []
    groups: list[tuple[int, str]] = []
    parents, reason = 0, ""
    for at, line in enumerate(lines):
        group = _NODE_GROUP.match(line)
        if group:
            indent = len(group[1])
            groups = [(depth, name) for depth, name in groups if depth < indent]
            groups.append((indent, group[2]))
            continue
        result = _NODE_RESULT.match(line)
        if not result:
            if not reason and ERROR_LINE.match(line):
                reason = line
            # What a failed test says stands below it, further to the right.
            if line.startswith("  "):
                found.claimed.add(at)
            continue
        found.claimed.add(at)
        indent, name = len(result[1]), result[3]
        if (indent, name) in groups:
            groups = [(depth, group_name) for depth, group_name in groups if depth < indent]
            parents += result[2] == "✖"
        elif result[2] == "✖" and "TODO" not in (result[4] or ""):
            path = (*(group_name for depth, group_name in groups if depth < indent), name)
            leaves.append((path, reason))
        reason = ""
    return leaves, parents


def _node_list(
    lines: Sequence[str], first: int, found: Found
) -> list[tuple[str, str, Sequence[str]]]:
    """Return file, name and report of each test in node's own list."""
    starts = [at for at in range(first, len(lines) - 1) if _NODE_PLACE.match(lines[at])]
    found.claim(first - 1, len(lines) - 1 if starts else first)
    listed = []
    for at, after in spans(starts, len(lines)):
        place, result = _NODE_PLACE.match(lines[at]), _NODE_RESULT.match(lines[at + 1])
        if place and result and "TODO" not in (result[4] or ""):
            listed.append((place[1], result[3], lines[at + 1 : after]))
    return listed
