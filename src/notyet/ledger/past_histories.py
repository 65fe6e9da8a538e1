"""The history of an agent at a past stop, and at a stop that would come now.

The ledger keeps one History per agent, which changes with every stop. The history before a past
stop is computed from that stop and those around it.
"""

from __future__ import annotations

from notyet.core.limits import History, open_turn
from notyet.core.record import Record, variant
from notyet.ledger import Begun
from notyet.ledger.ledger import find_agent, with_stored_turn_id
from notyet.ledger.past_stops import parts
from notyet.ledger.transitions import NOT_SENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.ledger.ledger import Ledger

_BLOCKED = frozenset({"blocked", "overridden"})


class CountedStop(Record, kw_only=True):
    """A past stop, with the history before it."""

    stop: int
    agent: int  # its row; 0 if it was never counted
    turn: int
    outcome: str  # as it was decided, also if it was overridden later
    history: History  # without repeats, for which see `repeat_key`
    repeat_key: str = ""
    is_first: bool = True  # of its turn


def counted_stops(ledger: Ledger, stops: Sequence[int]) -> dict[int, CountedStop]:
    """Return these stops with their histories, and all others of the same agents."""

    def look(db: sqlite3.Connection) -> dict[int, CountedStop]:
        agents: dict[int, int] = {}
        found: dict[int, CountedStop] = {}
        for some in parts(stops):
            marks = f"({', '.join('?' * len(some))})"
            agents |= dict(db.execute(_AGENTS + marks, some).fetchall())
        for agent, session_blocks in agents.items():
            rows = db.execute(_STOPS, (agent,)).fetchall()
            found |= {known.stop: known for known in _of_agent(agent, session_blocks, rows)}
        return found

    return ledger.connection.read(look)


_AGENTS = (
    "SELECT DISTINCT agents.id, session_blocks FROM stops JOIN agents ON agents.id = stops.agent"
    " WHERE stops.id IN "
)
_STOPS = (
    "SELECT id, turn, outcome, why, count, max_blocks, limit_source, extend, repeat_key"
    " FROM stops WHERE agent = ? ORDER BY id"
)


def original_outcome(outcome: str, why: str) -> str:
    """Return the original outcome of a stop that was overridden, or not sent back after all."""
    if outcome == "overridden" or (outcome == "failed_open" and why.startswith(NOT_SENT)):
        return "blocked"
    return outcome


def _of_agent(
    agent: int, session_blocks: int, rows: Sequence[tuple[Any, ...]]
) -> list[CountedStop]:
    """Return the stops of an agent, the oldest first."""
    # Only the current sum is stored, and older stops may be pruned: count backwards.
    spent = sum(original_outcome(row[2], row[3]) in _BLOCKED for row in rows)
    total = max(0, session_blocks - spent)
    found = []
    turn, extend, seen = -1, 0, 0
    for stop, number, outcome, why, count, limit, source, extended, repeat_key in rows:
        was = original_outcome(outcome, why)
        is_block = was in _BLOCKED
        blocks = max(0, count - is_block)
        if not number:  # skipped
            found.append(
                CountedStop(stop=stop, agent=agent, turn=0, outcome=was, history=History())
            )
            continue
        if number != turn:
            turn, extend, seen = number, 0, 0
        if source == "extended by a gate":  # perhaps by a pruned stop
            extend = max(extend, limit)
        found.append(
            CountedStop(
                stop=stop,
                agent=agent,
                turn=number,
                outcome=was,
                history=History(turn=number, blocks=blocks, session_blocks=total, extend=extend),
                repeat_key=repeat_key,
                is_first=not seen and not blocks,
            )
        )
        total += is_block
        extend = max(extend, extended)
        seen += 1
    return found


_WAS_BLOCKED = "SELECT 1 FROM stops WHERE id = ? AND outcome = 'blocked'"
_WRITE_NOTHING = "UPDATE stops SET outcome = outcome WHERE 1 = 0"


def preview_begin(ledger: Ledger, event: StopEvent, patience: float | None = None) -> Begun:
    """Return what `begin` would return, without entering the stop.

    Never a repetition of another stop. Raises LedgerError as `begin` would, also if the file can be
    read but not written.
    """
    event = with_stored_turn_id(event)

    def look(db: sqlite3.Connection) -> Begun:
        db.execute(_WRITE_NOTHING)
        agent = find_agent(db, event)
        history = open_turn(agent.history, event)
        overridden = 0
        if history.turn != agent.history.turn and agent.history.blocked:
            was_blocked = db.execute(_WAS_BLOCKED, (agent.last_stop,)).fetchone()
            overridden = agent.last_stop if was_blocked else 0
        return Begun(stop=0, history=history, overridden=overridden)

    begun = ledger.connection.write(look, patience)
    return variant(begun, {"warnings": ledger.connection.take_warnings()})
