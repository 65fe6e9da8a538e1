"""What people read about how a gate went: a mark, a word, and the line that sums it up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from notyet.core.text import clean
from notyet.core.verdict import Block, Halt, Problem

if TYPE_CHECKING:
    from notyet.core.verdict import Report

MARKS = {"allowed": "✓", "blocked": "✗", "halted": "■", "problem": "!", "not_asked": "-"}
RESULTS = {
    "allowed": ("passed", "green"),
    "blocked": ("failed", "red"),
    "halted": ("halted", "red"),
    "problem": ("broken", "yellow"),
    "not_asked": ("not run", "dim"),
    "remembered": ("passed before", "green"),
    "unchanged": ("unchanged", "dim"),
}
_RESULT_LINE = re.compile(
    r"\b(pass(ed|ing|es)?|fail(ed|ing|ures?|s)?|errors?|ok|warnings?|problems?|issues?|checks?)\b",
    re.IGNORECASE,
)
_MAX_SUMMARY = 100  # characters


def result(report: Report) -> tuple[str, str]:
    """Return the result of a gate in a word or two, and its colour."""
    if report.observed and isinstance(report.answer, Block | Halt):
        return "would fail", "cyan"
    return RESULTS.get(report.status, (report.status, "dim"))


def how_it_ended(report: Report) -> str:
    """Return the problem of a gate that ran, the line that sums up its output, or its exit code."""
    if isinstance(report.answer, Problem):
        return report.answer.kind.replace("_", " ")
    return summed_up(report.output) or (report.exit if report.exit != "exit 0" else "")


def summed_up(output: str) -> str:
    """Return the last line of an output if it sums it up, as test runners and linters do."""
    lines = clean(output[-10_000:]).split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "").strip(" =-*\t")
    is_summary = len(last) <= _MAX_SUMMARY and _RESULT_LINE.search(last)
    return " ".join(last.split()) if is_summary else ""
