"""`notyet replay --run`: asks the gates that have no recorded answer, on today's files."""

from __future__ import annotations

from notyet.cli.ending import ended_in_order
from notyet.cli.waiting import waiting
from notyet.core.record import variant
from notyet.core.text import visible
from notyet.engine import Engine
from notyet.report.replay import Today

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.report.replay import Finding
    from notyet.report.replay_places import Places


def ask_missing(findings: Sequence[Finding], places: Places) -> int:
    """Ask each gate whose missing answer matters, once for each place; return how many.

    It is asked about the newest stop that it matters for.
    """
    wanted: dict[tuple[str, str], tuple[StopEvent, Gate]] = {}
    for finding in findings:
        today = places.today(finding.past) if finding.missing else ""
        if isinstance(today, Today):
            event = variant(finding.past.event, {"workspace": today.workspace})
            for missing in finding.missing:
                definition = today.definitions[missing.gate.name]
                if definition:
                    wanted[event.cwd, definition] = (event, missing.gate)
    with ended_in_order():
        for (cwd, definition), (event, gate) in wanted.items():
            with waiting(f"asking {visible(gate.name)} ..."):
                decision = Engine([gate]).decide_sync(event, asked="all")
            places.answer(cwd, definition, decision.reports[0])
    return len(wanted)
