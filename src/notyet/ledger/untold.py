"""Subagents that did not pass: their user is told at the next stop of the main agent (N3).

Hosts show a user nothing of a subagent's stop, and its parent only reads the report.
"""

from __future__ import annotations

from notyet.core.text import first_line, listed, shortened
from notyet.core.verdict import LOUD, UNPASSED, in_log
from notyet.light import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

_MOST_TOLD = 5  # subagents in one line
_STOP = (
    "SELECT stops.outcome, stops.why, stops.event, agents.agent_id FROM stops"
    " JOIN agents ON agents.id = stops.agent WHERE stops.id = ?"
)
_FAILED = (
    "SELECT gate FROM reports WHERE stop = ? AND observed = 0"
    " AND (status = 'blocked' OR held = 1) ORDER BY position"
)
_TOLD = "UPDATE agents SET told = ? WHERE id = ?"


def tell(db: sqlite3.Connection, untold: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return a line for each agent whose last stop did not pass, and mark all as told."""
    lines = []
    for agent, stop in untold:
        db.execute(_TOLD, (stop, agent))
        line = _line(db, stop)
        if line:
            lines.append(line)
    if len(lines) > _MOST_TOLD:
        more = f"{len(lines) - _MOST_TOLD} more subagents did not pass (notyet log)"
        return (*lines[:_MOST_TOLD], more)
    return tuple(lines)


def _line(db: sqlite3.Connection, stop: int) -> str:
    row = db.execute(_STOP, (stop,)).fetchone()
    if row is None or row[0] not in LOUD:  # it was pruned, passed, or goes on
        return ""
    outcome, why, stored, agent_id = row
    event = loads(stored)
    names = (event.get(name) for name in ("agent_name", "label", "agent_type"))
    who = shortened(str(next(filter(None, names), agent_id)), 40)
    failed = [gate for (gate,) in db.execute(_FAILED, (stop,)).fetchall()]
    what = f"{listed(failed)} failed" if failed and LOUD[outcome] == UNPASSED else first_line(why)
    return f"subagent {who}: {LOUD[outcome]}: {what}{in_log(stop)}"
