"""The one line in which a user reads what became of a stop (N3)."""

from __future__ import annotations

from notyet.core.text import first_line
from notyet.core.verdict import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.verdict import Decision

_MOST_BROKEN = 8


def note(decision: Decision) -> str:
    """Return what the user is told about a decision in one line; empty when all is quiet."""
    said = [_note(decision)]
    said += [report.tell_user for report in decision.reports]
    return " | ".join(" ".join(part.split()) for part in said if part.strip())


def _note(decision: Decision) -> str:
    outcome = decision.outcome
    if outcome == "blocked":
        return f"notyet: sent back {decision.count}/{decision.limit}: {_why_blocked(decision)}"
    if outcome == "passed" and decision.count:
        times = "1 send-back" if decision.count == 1 else f"{decision.count} send-backs"
        return f"notyet: passed after {times}"
    if outcome in {"capped", "stuck"}:
        return f"notyet: let go, {outcome}: {decision.why}"
    if outcome == "handed_back":
        return "notyet: let go: the agent says it needs you"
    if outcome == "failed_open":
        return f"notyet: let go unchecked: {_broken(decision)}"
    return ""


def _why_blocked(decision: Decision) -> str:
    reasons = []
    for report in decision.reports:
        if report.status != "blocked" or report.observed:
            continue
        words = report.exit
        if not words or words == "exit 0":
            words = first_line(report.answer.because)  # type: ignore[union-attr]  # a Block
        reasons.append(f"{report.gate} ({words})")
    return ", ".join(reasons) or decision.why


def _broken(decision: Decision) -> str:
    broken = [
        f"{report.gate}: {first_line(str(report.answer))}"
        for report in decision.reports
        if isinstance(report.answer, Problem) and not report.observed
    ]
    return ", ".join(broken[:_MOST_BROKEN]) or decision.why
