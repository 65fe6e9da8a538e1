"""The output of pytest and unittest."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from notyet.gates.failures.run import Found, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUMMARY = re.compile(r"^(?:=+ )?(no tests ran|\d[\w, ]*) in \d[\d.]*s(?: \(\d[\d:]*\))?(?: =+)?$")
_COUNT = re.compile(r"(\d+) ([a-z]+(?: [a-z]+)?)")
_SHORT_SUMMARY = re.compile(r"^=+ short test summary info =+$")
_SECTION = re.compile(r"^={3,} (?!short test summary)\S.* ={3,}$")
_REPORTS = re.compile(r"^=+ (?:ERRORS|FAILURES|PASSES|warnings summary(?: \(final\))?) =+$")
_HEADING = re.compile(r"^_+ (.+) _+$")
_CAPTURED = re.compile(r"^-+ Captured .+ -+$")
# A line with nothing but "E" is an empty line of an error message.
_PROGRESS = re.compile(r"^(?!E$)(?:\S+\.\w+ )?[.FEsxXRPpu,]+(?: +\[ *\d+(?:%|/\d+)\])?$")
_PREAMBLE = re.compile(
    r"^(?:platform|plugins:|rootdir:|configfile:|cachedir:|hypothesis profile) ?.*$"
)
_VERBOSE = re.compile(
    r"^(?:\[gw\d+\] \[ *\d+%\] )?(?:(?P<before>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) )?"
    r"(?P<node>\S+::.*?)"
    r"(?: (?P<after>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|SUBFAIL(?:ED)?|SUBPASS(?:ED)?)\b.*)?$"
)
_STOPPED = re.compile(r"^!{2,} .+ !{2,}$")
_USAGE = re.compile(
    r"^(?:ERROR: usage: .*|ERROR: (?:file or directory )?not found: .*"
    r"|ImportError while loading conftest .*|.*pytest: error: .*|.*__main__\.py: error: .*)$"
)
_OUTCOMES = {
    "failed": ("failed",),
    "errors": ("error", "errors"),
    "passed": ("passed",),
    "expected": ("xfailed", "xpassed"),
}


def read_pytest(lines: Sequence[str]) -> Found | None:
    """Read what pytest printed; its own list of failures is the one that counts."""
    summaries = [at for at, line in enumerate(lines) if _is_summary(line)]
    internal = [at for at, line in enumerate(lines) if line.startswith("INTERNALERROR>")]
    usage = [at for at, line in enumerate(lines) if _USAGE.match(line)]
    if internal or (usage and (not summaries or lines[summaries[-1]].startswith("no tests"))):
        return _not_started(lines, internal or usage)
    if not summaries:
        return None
    found = Found("pytest")
    end = summaries[-1]
    counts = _counts(lines[end])
    listed = next((at for at in range(end, -1, -1) if _SHORT_SUMMARY.match(lines[at])), end)
    first = _reports_begin(lines, listed)
    for at in range(first):
        verbose = _VERBOSE.match(lines[at])
        line = lines[at]
        if (
            _PROGRESS.match(line)
            or _PREAMBLE.match(line)
            or (verbose and (verbose["before"] or verbose["after"]))
        ):
            found.claimed.add(at)
    found.claim(first, end)
    # A second summary is another run of pytest, unless a failing test printed it.
    captured = next((at for at in range(first, end) if _CAPTURED.match(lines[at])), end)
    found.complete = all(at > captured for at in summaries[:-1])
    if any(_SECTION.match(line) or _HEADING.match(line) for line in lines[listed + 1 : end]):
        found.complete = False
    reports = _Reports(lines[first:listed])
    passed = [entry for line in lines[listed:end] if (entry := _entry(line, reports, found))]
    entries = sum(found.failures.values())
    found.complete &= entries == counts["failed"] + counts["errors"]
    found.stopped_early = any(_STOPPED.match(line) for line in lines[listed:end])
    parts = sum(line.startswith("SUBFAIL") for line in lines[listed:end])  # no tests of their own
    found.ran = counts["failed"] - parts + counts["passed"] + counts["expected"]
    verbose_names = _verbose_passes(lines[:first])
    for names in (passed, verbose_names):
        if len(names) == counts["passed"] and names:
            found.tests = {*names, *found.failures}
    return found


def _is_summary(line: str) -> bool:
    match = _SUMMARY.match(line)
    if not match:
        return False
    known = {word for words in _OUTCOMES.values() for word in words} | {"skipped", "deselected"}
    words = [word for _, word in _COUNT.findall(match[1])]
    return match[1] == "no tests ran" or any(word in known for word in words)


def _counts(line: str) -> dict[str, int]:
    match = _SUMMARY.match(line)
    said = {word: int(count[:9]) for count, word in _COUNT.findall(match[1] if match else "")}
    return {name: sum(said.get(word, 0) for word in words) for name, words in _OUTCOMES.items()}


def _not_started(lines: Sequence[str], where: Sequence[int]) -> Found:
    found = Found("pytest")
    found.ran = 0
    found.complete = False
    internal = lines[where[-1]].startswith("INTERNALERROR>")
    place = "pytest (internal error)" if internal else "pytest"
    rest = lines[where[0] : where[0] + 200]
    reason = next((line[1:].strip() for line in reversed(rest) if line.startswith("E  ")), "")
    message = lines[where[-1]].removeprefix("INTERNALERROR>").removeprefix("ERROR:").strip()
    found.add_load_error(place, reason or message, "\n".join(rest))
    found.claimed.update(where)
    return found


def _reports_begin(lines: Sequence[str], listed: int) -> int:
    """Return where the reports on failures begin: after the last progress of the tests.

    A test that prints what looks like a report does so before that, or inside a report.
    """
    headers = [at for at in range(listed) if _REPORTS.match(lines[at])]
    progress = [
        at
        for at in range(listed)
        if lines[at] and (_PROGRESS.match(lines[at]) or lines[at].endswith("%]"))
    ]
    last = max((at for at in progress if headers and at < headers[-1]), default=-1)
    return next((at for at in headers if at > last), listed)


def _verbose_passes(lines: Sequence[str]) -> list[str]:
    matches = [match for line in lines if (match := _VERBOSE.match(line))]
    return [match["node"] for match in matches if "PASSED" in (match["before"], match["after"])]


def _entry(line: str, reports: _Reports, found: Found) -> str:
    """Count a line of pytest's list; return the name of the test if it passed."""
    word, _, rest = line.partition(" ")
    if word == "PASSED":
        return _split(rest)[0]
    if line.startswith("SUBFAIL"):
        # The message and the arguments of a subtest stand before the name of its test.
        words = line.split(" ")
        at = next((at for at, part in enumerate(words) if at and "::" in part), 0)
        node, message = _split(" ".join(words[at:]))
        part = " ".join(words[:at]).removeprefix("SUBFAILED").removeprefix("SUBFAIL").strip()
        report = reports.take(node, f" {part}")
        found.add(f"{node} {part}", report.message or message, report.text)
    elif word == "FAILED":
        node, message = _split(rest)
        report = reports.take(node)
        found.add(node, report.message or message, report.text)
    elif word == "ERROR":
        node, message = _split(rest)
        report = reports.take_error(node)
        if "::" in node:
            found.add(f"ERROR {node}", report.message or message, report.text)
        else:
            # Without reports (--tb=no), pytest cuts the message, by which such errors differ.
            found.complete &= bool(report.whole_message)
            found.add_load_error(node, report.whole_message or message, report.text)
    return ""


def _split(rest: str) -> tuple[str, str]:
    """Return the name of a test and its message; the parameters in a name may contain " - "."""
    dash = rest.find(" - ")
    bracket = rest.find("[")
    if 0 <= bracket < dash:
        close = rest.find("] - ", bracket)
        if close < 0 and rest.endswith("]"):
            return rest, ""
        dash = close + 1 if close >= 0 else dash
    return (rest, "") if dash < 0 else (rest[:dash], rest[dash + 3 :])


class _Report:
    """The part of the output about one failure."""

    def __init__(self, heading: str, lines: Sequence[str]) -> None:
        self.heading = heading.replace("::", ".")
        self.lines = lines
        self.text = "\n".join([heading, *lines])
        said = [line[1:].strip() for line in lines if line.startswith("E ") and line[1:].strip()]
        self.message = said[0] if said else ""
        self.whole_message = " ".join(said)[-200:]


class _Reports:
    """The reports on failures, each of which is taken once."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._reports: defaultdict[str, list[_Report]] = defaultdict(list)
        headings = [_HEADING.match(line) for line in lines]
        starts = [at for at, line in enumerate(lines) if headings[at] or _REPORTS.match(line)]
        for at, after in spans(starts, len(lines)):
            heading = headings[at]
            if heading:
                report = _Report(heading[1], lines[at + 1 : after])
                self._reports[report.heading].append(report)

    def take(self, node: str, part: str = "") -> _Report:
        path, _, name = node.partition("::")
        return self._take({name.replace("::", ".") + part}, path)

    def take_error(self, node: str) -> _Report:
        path, _, name = node.partition("::")
        name = name.replace("::", ".")
        return self._take(
            {
                f"ERROR at setup of {name}",
                f"ERROR at teardown of {name}",
                f"ERROR collecting {node}",
            },
            path,
        )

    def _take(self, headings: set[str], path: str) -> _Report:
        same = [report for heading in headings for report in self._reports.get(heading, ())]
        there = [
            report for report in same if any(line.startswith(f"{path}:") for line in report.lines)
        ]
        for report in [*there, *same][:1]:
            self._reports[report.heading].remove(report)
            return report
        return _Report("", ())


_RAN = re.compile(r"^Ran (\d+) tests? in \d[\d.]*s$")
_RESULT = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((.+)\))?$")
_RESULT_COUNT = re.compile(r"([a-z ]+)=(\d+)")
_RULE = "=" * 70
_BLOCK = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (.+)$")
_NAME = re.compile(r"^(\S+) \(([\w.]+)\)(?: (.*))?$")
_OUTCOME = re.compile(r"\.\.\. (?:ok|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)?$")


def read_unittest(lines: Sequence[str]) -> Found | None:
    """Read what `python -m unittest` printed."""
    ends = [
        (at, after)
        for at, line in enumerate(lines)
        if _RAN.match(line)
        for after in range(at + 1, min(at + 4, len(lines)))
        if _RESULT.match(lines[after])
    ]
    if not ends:
        return None
    ran_at, end = ends[-1]
    found = Found("unittest")
    ran, result = _RAN.match(lines[ran_at]), _RESULT.match(lines[end])
    counts = {
        name.strip(): int(count[:9])
        for name, count in _RESULT_COUNT.findall((result and result[1]) or "")
    }
    starts = [at for at in range(ran_at - 1) if lines[at] == _RULE and _BLOCK.match(lines[at + 1])]
    not_loaded = 0
    for at, after in spans(starts, ran_at):
        not_loaded += _unittest_block(lines[at + 1 : after], found)
    wanted = ("failures", "errors", "unexpected successes")
    # Another result is another run, or text that a test printed: the failures cannot be counted.
    found.complete = len(ends) == 1 and sum(found.failures.values()) == sum(
        counts.get(name, 0) for name in wanted
    )
    found.ran = int(ran[1][:9] if ran else 0) - counts.get("skipped", 0) - not_loaded
    found.claim(starts[0] if starts else ran_at, end)
    found.claimed.update(at for at, line in enumerate(lines[:end]) if _OUTCOME.search(line))
    return found


def _unittest_block(block: Sequence[str], found: Found) -> int:
    """Count one failure; return 1 if it stands for a file that did not load."""
    match = _BLOCK.match(block[0])
    title = match[2] if match else block[0]
    files = [at for at, line in enumerate(block) if line.startswith("  File ")]
    after = block[files[-1] + 1 :] if files else block[1:]
    message = next((line for line in after if line[:1].strip() and set(line) != {"-"}), "")
    text = "\n".join(block)
    named = _NAME.match(title)
    if not named:
        found.add(title, message, text)
        return 0
    method, where, part = named[1], named[2], named[3] or ""
    if "_FailedTest" in where:
        found.add_load_error(method, message, text)
        return 1
    if method in {"setUpClass", "setUpModule", "tearDownClass", "tearDownModule"}:
        found.add_load_error(where, f"{method}: {message}", text)
        return 0
    # Until Python 3.10 the class stands in parentheses, since then the whole name.
    whole = where if where.endswith(f".{method}") else f"{where}.{method}"
    found.add(f"{whole} {part}", message, text)
    return 0
