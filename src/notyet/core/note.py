"""The one line that tells a user what a stop came to (N3)."""

from __future__ import annotations

from notyet.core.text import first_line, listed
from notyet.core.verdict import Block, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.verdict import Decision, Report

# Causes of a skipped stop that the user should know of; the others are quiet.
_UNMEANT = frozenset({"ledger", "no-session", "duplicate"})
UNCHECKED = "NOT CHECKED"


def note(decision: Decision) -> str:
    """Return what the user is told about a decision in one line; empty when all is quiet."""
    said = [_note(decision)]
    if decision.overridden:
        against = f"although stop {decision.overridden} had sent it back"
        said.append(f"notyet: the host let the agent go {against}")
    said += dict.fromkeys(report.tell_user for report in decision.reports)
    return " | ".join(" ".join(part.split()) for part in said if part.strip())


def _note(decision: Decision) -> str:
    outcome = decision.outcome
    if outcome == "blocked":
        sent_back = f"notyet: sent back {decision.count}/{decision.limit}"
        return f"{sent_back}: {_why_blocked(decision)}{_also_broken(decision)}"
    if outcome == "passed" and decision.count:
        times = "1 send-back" if decision.count == 1 else f"{decision.count} send-backs"
        return f"notyet: passed after {times}{_failed_lightly(decision)}"
    if outcome == "passed" and _failed_lightly(decision):
        return f"notyet: passed{_failed_lightly(decision)}"
    if outcome in {"capped", "stuck"}:
        return f"notyet: NOT PASSED: {decision.why}{_also_broken(decision)}"
    if outcome == "handed_back":
        return f"notyet: NOT PASSED: the agent says it needs you{_also_broken(decision)}"
    if outcome == "halted":
        broken = _also_broken(decision)
        return f"notyet: ended by a gate{broken}" if broken else ""
    if outcome == "failed_open" and _blocking(decision):
        return f"notyet: {UNCHECKED}: {decision.why}{_also_broken(decision)}"
    if outcome == "failed_open":
        broken = listed([f"{report.gate}: {_words(report)}" for report in _broken(decision)])
        return f"notyet: {UNCHECKED}: {broken or decision.why}"
    if outcome == "skipped" and decision.why in _UNMEANT:
        return f"notyet: {UNCHECKED}: {listed(decision.warnings) or decision.why}"
    return ""


def _why_blocked(decision: Decision) -> str:
    blocking = [f"{report.gate} ({_words(report)})" for report in _blocking(decision)]
    return listed(blocking) or decision.why


def _blocking(decision: Decision) -> list[Report]:
    return [
        report
        for report in decision.reports
        if report.held or (isinstance(report.answer, Block) and not report.observed)
    ]


def _failed_lightly(decision: Decision) -> str:
    failed = [report.gate for report in decision.reports if report.failed_lightly]
    return f"; failed, but cannot hold: {listed(failed)}" if failed else ""


def _words(report: Report) -> str:
    """Return in a few words why a gate blocks, or its problem."""
    if not isinstance(report.answer, Block):
        return first_line(str(report.answer))
    # A command that answers in words exits with 0, which would say nothing.
    how = report.exit if report.exit not in {"", "exit 0"} else first_line(report.answer.because)
    if not report.workspace:
        return how
    from notyet.core.remote import remote_from

    return f"{how}, on {remote_from(report.workspace).destination}"


def _also_broken(decision: Decision) -> str:
    broken = [report.gate for report in _broken(decision)]
    return f"; broken: {listed(broken)}" if broken else ""


def _broken(decision: Decision) -> list[Report]:
    """Return the gates with a problem that did not block."""
    return [
        report
        for report in decision.reports
        if isinstance(report.answer, Problem) and not report.observed and not report.held
    ]
