"""The failures in the text that test runners and linters print."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from notyet.gates.failures.javascript import read_jest, read_node, read_vitest
from notyet.gates.failures.linters import read_eslint, read_mypy, read_ruff, read_tsc
from notyet.gates.failures.native import read_cargo, read_go
from notyet.gates.failures.python import read_pytest, read_unittest
from notyet.gates.failures.run import Found, Run
from notyet.gates.failures.tap import read_tap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_MOST_TEXT = 32 * 1024 * 1024  # characters; more is not read at all
_LONGEST_LINE = 4_000
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_ERROR_WORDS = re.compile(
    r"(?:\b|_)(?:errors?|fail(?:s|ed|ures?|ing)?|fatal|panic(?:ked)?|segfault|segmentation|exceptions?"
    r"|abort(?:ed)?|traceback|unexpected|unhandled|uncaught|threshold|not met|not reached|not found"
    r"|timed out|timeout|killed|crash(?:ed)?|core dumped|cannot|can't|could not|unable|denied)\b"
    r"|[A-Z]\w*(?:Error|Exception)\b",
    re.IGNORECASE,
)
_NO_ERRORS = re.compile(r"\b(?:0|no) (?:errors?|fail(?:ed|ures?|ing)?|problems?)\b", re.IGNORECASE)

# Runners stand before linters: the text of a failing test may quote what a linter prints.
_READERS: tuple[Callable[[Sequence[str]], Found | None], ...] = (
    read_pytest,
    read_unittest,
    read_jest,
    read_vitest,
    read_node,
    read_tap,
    read_go,
    read_cargo,
    read_ruff,
    read_mypy,
    read_eslint,
    read_tsc,
)


def read_output(text: str, roots: Sequence[str] = ()) -> Run | None:
    """Return the failures in the output of a check, or None if no known tool printed it.

    `roots` are the folders of the tree, which are cut from paths, so that runs in different folders
    can be compared.
    """
    if len(text) > _MOST_TEXT:
        return None
    found, lines = _parts(text, roots)
    if not found:
        return None
    errors = list(error_lines(lines))
    if len(found) == 1:
        return found[0].run(errors)
    return _joined([part.run() for part in found], Found("").run(errors))


def _parts(text: str, roots: Sequence[str]) -> tuple[list[Found], list[str]]:
    """Return what each known tool printed, and the lines that are not about that."""
    lines = _lines(text, roots)
    found = []
    for read in _READERS:
        part = read(lines)
        if part is not None:
            found.append(part)
            lines = ["" if at in part.claimed else line for at, line in enumerate(lines)]
    return found, lines


def other_errors(text: str, roots: Sequence[str] = ()) -> list[str]:
    """Return the lines with words of failure beside those that a known tool printed."""
    return list(error_lines(_parts(text[:_MOST_TEXT], roots)[1]))


def error_lines(lines: Iterable[str]) -> Iterable[str]:
    """Return the lines with words of failure."""
    return (
        line for line in lines if line and _ERROR_WORDS.search(line) and not _NO_ERRORS.search(line)
    )


def _lines(text: str, roots: Sequence[str]) -> list[str]:
    text = _ESCAPE.sub("", text)
    for root in sorted({root.rstrip("/") for root in roots}, key=len, reverse=True):
        if root:
            text = text.replace(f"file://{root}/", "").replace(f"{root}/", "")
            text = re.sub(re.escape(root) + r"(?![\w.-])", ".", text)
    # Progress bars overwrite their line: only what stays visible counts.
    return [
        line.rstrip("\r").rpartition("\r")[2].rstrip()[:_LONGEST_LINE] for line in text.split("\n")
    ]


def _joined(runs: Sequence[Run], beside: Run) -> Run:
    """Return several tools' runs as one, each identity with the name of its tool."""
    failures: Counter[str] = Counter()
    messages, details = {}, {}
    for run in runs:
        failures.update({f"{run.tool}: {name}": count for name, count in run.failures.items()})
        messages.update({f"{run.tool}: {name}": text for name, text in run.messages.items()})
        details.update({f"{run.tool}: {name}": text for name, text in run.details.items()})
    counts = [run.ran for run in runs if run.ran is not None]
    return Run(
        tool="+".join(run.tool for run in runs),
        failures=failures,
        messages=messages,
        details=details,
        ran=sum(counts) if counts else None,
        complete=all(run.complete for run in runs),
        stopped_early=any(run.stopped_early for run in runs),
        load_errors=frozenset(f"{run.tool}: {name}" for run in runs for name in run.load_errors),
        other_errors=beside.other_errors,
        printed=beside.printed,
    )
