"""What people and programs read about a recorded stop, in `notyet log` and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.core.record import plain
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Halt, Problem

if TYPE_CHECKING:
    from typing import Any

    from notyet.core.verdict import Report
    from notyet.ledger.past_stops import PastStop

_MAX_TEXT = 2_000  # characters of a text in JSON about many stops
_REMARKS = {"asking": "still running", "overridden": "then did not come again"}
_LOST = "lost: the process that ran its gates is gone"
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
    parts = [
        _SKIPPED.get(report.spared, ""),
        report.exit,
        reason if reason != words else "",
        words if report.status == "problem" else "",
        "only observes" if report.observed else "",
        "blocked the agent" if report.held else "",
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


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return bounded(value, _MAX_TEXT)
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    return [_shortened(item) for item in value] if isinstance(value, list) else value


def _json_report(report: Report, *, whole: bool) -> dict[str, Any]:
    words, reason = said(report)
    known = {name: plain(value) for name, value in report.__dict__.items()}
    for name in ("answer", "passed_on", "failed_on", *(() if whole else ("output",))):
        del known[name]
    return {"gate": report.gate, "status": report.status, "said": words, "reason": reason, **known}
