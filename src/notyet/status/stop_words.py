"""What people and programs read about a recorded stop, in `notyet log` and on the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from notyet.core.record import plain
from notyet.core.text import bounded, clean, first_line, listed, shortened
from notyet.core.verdict import Allow, Block, Halt, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from notyet.core.verdict import Report
    from notyet.ledger.past_stops import PastStop

_MAX_TEXT = 2_000  # characters of a text in JSON about many stops
_REMARKS = {"asking": "still running", "overridden": "then did not come again"}
_LOST = "lost: the process that ran its gates is gone"
_MAX_LINE = 200  # bytes of the line that says why
# How lines look by which tests, compilers and linters say what is wrong; the first counts most.
_TELLING = (
    re.compile(r"^\W*(FAILED|FAIL|ERROR|[Ee]rror|fatal|panic(ked)?)\b"),
    re.compile(r"\w:\d+(:\d+)?:? "),
    re.compile(r"(?i)\b(fail(ed|ure|s)?|error|exception|assert\w*)\b"),
)
_SKIPPED = {
    "passed": "it had passed on the same files before",
    "unchanged": "no file had changed since the agent began",
}


def remark(past: PastStop) -> str:
    """Return what the outcome alone does not say."""
    if past.outcome == "blocked":
        count = f"sent back {past.count}/{past.limit}"
        return count if past.followed else f"{count}, no stop since"
    if past.outcome == "passed":
        times = "send-back" if past.count == 1 else "send-backs"
        return f"after {past.count} {times}" if past.count else ""
    if past.why == "lost":
        return _LOST
    return _REMARKS.get(past.outcome) or past.why


def cause(past: PastStop) -> str:
    """Return in one line why the agent was sent back, or what the outcome alone does not say."""
    if past.outcome != "blocked":
        return remark(past)
    failed = [
        report
        for report in past.reports
        if report.held or (isinstance(report.answer, Block) and not report.observed)
    ]
    if not failed:
        return first_line(past.prompt)
    also = f" (also {listed([report.gate for report in failed[1:]])})" if failed[1:] else ""
    return f"{failed[0].gate}: {telling_line(failed[0])}{also}"


def telling_line(report: Report) -> str:
    """Return the line of a gate's output that says most, or how it ended."""
    words, _ = said(report)
    text = words if report.hidden or report.status == "problem" else report.output or words
    lines = [line.strip() for line in clean(text).splitlines() if line.strip()]
    telling = [line for kind in _TELLING for line in lines if kind.search(line)]
    return shortened((*telling, *lines, report.exit)[0], _MAX_LINE)


def said(report: Report) -> tuple[str, str]:
    """Return what a gate said, and its reason in a word."""
    answer = report.answer
    if isinstance(answer, Block):
        return answer.prompt, answer.reason
    if isinstance(answer, Halt):
        return answer.reason, ""
    if isinstance(answer, Problem):
        return answer.detail, answer.kind
    return (answer.note if isinstance(answer, Allow) else ""), ""


def how(report: Report) -> str:
    """Return why a gate ran or did not, and how that ended."""
    words, reason = said(report)
    has_printed_answer = report.exit == "exit 0" and report.status != "allowed"
    parts = [
        _SKIPPED.get(report.spared, ""),
        "" if has_printed_answer else report.exit,
        reason if reason != words else "",
        words if report.status == "problem" else "",
        "only observes" if report.observed else "",
        "blocked the agent" if report.held else "",
        f"{report.tokens:,} tokens" if report.tokens else "",
        f"on {report.workspace}" if report.workspace else "",
        report.matched,
        report.warning,
    ]
    return "; ".join(part for part in parts if part)


def json_of(past: PastStop, *, whole: bool = False) -> dict[str, Any]:
    """Return a stop as plain types; times are in seconds since 1970."""
    known = {name: plain(past.__dict__[name]) for name in past._fields}
    known["event"] = {
        name: known["event"][name]
        for name, value in past.event.__dict__.items()
        if value != past.event._defaults[name]  # noqa: SLF001  # our own record
    }
    known["reports"] = [_json_report(report, whole=whole) for report in past.reports]
    return known if whole else {name: _shortened(value) for name, value in known.items()}


def whole_json(
    past: PastStop, near: Sequence[PastStop], outputs: Sequence[tuple[str, bool]]
) -> dict[str, Any]:
    """Return all about a stop: with the other stops of its turn, and what its gates printed."""
    known = json_of(past, whole=True)
    known["turn_stops"] = [{"id": one.id, "outcome": one.outcome} for one in near]
    for report, (output, is_pruned) in zip(known["reports"], outputs, strict=True):
        report["output"], report["log_pruned"] = output, is_pruned
    return known


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return bounded(value, _MAX_TEXT)
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    return [_shortened(item) for item in value] if isinstance(value, list) else value


def _json_report(report: Report, *, whole: bool) -> dict[str, Any]:
    words, reason = said(report)
    known = {name: plain(value) for name, value in report.__dict__.items()}
    for name in (
        "answer",
        "is_relative",
        "passed_on",
        "failed_on",
        *(() if whole else ("output",)),
    ):
        del known[name]
    return {"gate": report.gate, "status": report.status, "said": words, "reason": reason, **known}
