"""`notyet replay --run`: asks the gates that have no recorded answer, on today's files."""

from __future__ import annotations

from notyet.cli.ending import ended_in_order
from notyet.cli.waiting import waiting
from notyet.core.record import variant
from notyet.core.text import visible
from notyet.engine import Engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.limits import History, Limits
    from notyet.core.verdict import Report
    from notyet.report.replay import Finding
    from notyet.report.replay_places import Places

    Asked = tuple[StopEvent, History, Limits, Gate]


def ask_missing(findings: Sequence[Finding], places: Places) -> int:
    """Ask each gate whose missing answer matters, once for each place; return how many answered.

    It is asked about the newest stop that it matters for, as that stop would ask it.
    """
    from notyet.checks.orphans import adopt_orphans, sweep

    wanted: dict[tuple[str, str], Asked] = {}
    for finding in findings:
        wanted |= _wanted(finding, places)
    count = 0
    adopt_orphans()  # before the first one is asked (E2)
    with ended_in_order(sweep):
        for (cwd, definition), asked in wanted.items():
            with waiting(f"asking {visible(asked[-1].name)} ..."):
                report = _answer(*asked)
            if report is not None:
                places.answer(cwd, definition, report)
                count += 1
    return count


def _wanted(finding: Finding, places: Places) -> dict[tuple[str, str], Asked]:
    """Return whom to ask about a stop: those of whom it is not known what they say."""
    today = places.today(finding.past) if finding.missing else ""
    if isinstance(today, str):
        return {}
    event = variant(finding.past.event, {"workspace": today.workspace})
    return {
        (event.cwd, today.definitions[missing.gate.name]): (
            event,
            finding.history,
            today.limits,
            missing.gate,
        )
        for missing in finding.missing
        if missing.report is None and today.definitions[missing.gate.name]
    }


def _answer(event: StopEvent, history: History, limits: Limits, gate: Gate) -> Report | None:
    """Ask a gate; None if the stop would not have asked it after all."""
    decision = Engine([gate], limits=limits).decide_sync(event, history, asked="all")
    (report,) = decision.reports or (None,)
    return report if report is not None and report.answer is not None else None
