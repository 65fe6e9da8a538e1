"""What users are told once, at a stop of the main agent (N3): what else was not checked.

Hosts show a user nothing of a subagent's stop, and its parent only reads the report. So subagents
that did not pass are named at the next stop. Gates that a session skips because it changed no file
are named at its first such stop.
"""

from __future__ import annotations

from notyet.core.text import first_line, listed, shortened
from notyet.core.verdict import LOUD, UNPASSED, in_log
from notyet.ledger.stop_rows import key_text
from notyet.light import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision

_MOST_TOLD = 5  # subagents in one line
_STOP = (
    "SELECT stops.outcome, stops.why, stops.event, agents.agent_id FROM stops"
    " JOIN agents ON agents.id = stops.agent WHERE stops.id = ?"
)
_FAILED = (
    "SELECT gate FROM reports WHERE stop = ? AND observed = 0"
    " AND (status = 'blocked' OR held = 1) ORDER BY position"
)
_UNCHANGED_BEFORE = (
    "SELECT agent_id <> '' OR EXISTS (SELECT 1 FROM stops JOIN reports ON reports.stop = stops.id"
    " WHERE stops.agent = agents.id AND stops.id < ? AND stops.outcome IN ('passed', 'skipped')"
    " AND reports.status = 'unchanged' AND reports.observed = 0) FROM agents WHERE id = ?"
)
_MAIN_AGENT = "SELECT id FROM agents WHERE host = ? AND session_id = ? AND agent_id = ''"
_NEVER = 2**62  # more than any stop has as its number
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


def unchanged_in(db: sqlite3.Connection, decision: Decision, agent: int) -> tuple[str, ...]:
    """Return the gates of a session's first stop that skips some as unchanged; else none.

    The files are then those that the session began with, so that once is enough.
    """
    names = [r.gate for r in decision.reports if r.spared == "unchanged" and not r.observed]
    if not names or decision.outcome not in {"passed", "skipped"}:
        return ()
    before = decision.stop or _NEVER
    row = db.execute(_UNCHANGED_BEFORE, (before, agent)).fetchone()
    return () if row is not None and row[0] else tuple(names)


def preview_unchanged(
    db: sqlite3.Connection, event: StopEvent, decision: Decision
) -> tuple[str, ...]:
    """Return the same for a stop that is not recorded."""
    if event.agent_id:
        return ()
    row = db.execute(_MAIN_AGENT, (key_text(event.host), key_text(event.session_id))).fetchone()
    return unchanged_in(db, decision, row[0] if row is not None else 0)


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
