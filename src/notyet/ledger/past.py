"""Looking back: what stops came to. Only reads, and never makes a file that is not there.

`past_find.py` knows which stops are meant, `past_read.py` how they are read, `past_stats.py` what
many of them come to and `past_news.py` what happened since.
"""

from __future__ import annotations

import os

from notyet.core.limits import History
from notyet.core.record import Record
from notyet.ledger import sql
from notyet.ledger.past_odd import Columns
from notyet.ledger.past_read import WHOLE_REPORTS, Past, has_lost_asker, in_utf8, parts, read
from notyet.ledger.rows import HISTORY_COLUMNS, history_of, place_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import Any

    from notyet.ledger.past_stats import GateStats
    from notyet.ledger.sqlite import Ledger

__all__ = [
    "AgentPast", "Past", "Wish", "agents", "around", "below", "gate_stats", "has_unplaced",
    "numbers", "parts", "stop", "stops", "these",
]  # fmt: skip


class Wish(Record, kw_only=True):
    """Which stops somebody wants to see; what is empty does not matter."""

    session: str = ""  # an id, or how it begins
    outcomes: tuple[str, ...] = ()
    host: str = ""
    place: str = ""  # a folder: it and those below
    gate: str = ""  # which has a report, whatever it says
    since: float = 0.0
    until: float = 0.0
    before: int = 0  # stops older than this one
    after: int = 0  # stops newer than this one
    most: int = 20  # -1: all


class AgentPast(Record, kw_only=True):
    """An agent that was seen lately, and what became of its last stop."""

    host: str
    session_id: str
    agent_id: str
    history: History
    seen_at: float
    stop: int  # its newest, 0 for none
    outcome: str
    place: str


def stops(ledger: Ledger, wish: Wish) -> list[Past]:
    """Return the stops that are meant, the newest first, without what their gates printed."""
    from notyet.ledger.past_find import find

    if not os.path.exists(ledger.path):
        return []
    return ledger.file.read(lambda db: read(db, find(db, wish)))


def numbers(ledger: Ledger, wish: Wish) -> list[int]:
    """Return the numbers of the stops that are meant, the newest first."""
    from notyet.ledger.past_find import find

    if not os.path.exists(ledger.path):
        return []
    return ledger.file.read(lambda db: find(db, wish))


def stop(ledger: Ledger, number: int) -> Past | None:
    """Return one stop, whole."""
    if not os.path.exists(ledger.path) or abs(number) >= 1 << 63:
        return None
    found = ledger.file.read(lambda db: read(db, [number], WHOLE_REPORTS))
    return found[0] if found else None


def these(ledger: Ledger, numbers: Sequence[int]) -> list[Past]:
    """Return some stops by their numbers, the newest first, as far as they are there."""
    if not numbers or not os.path.exists(ledger.path):
        return []
    wanted = sorted(numbers, reverse=True)
    return ledger.file.read(lambda db: read(db, wanted))


def around(ledger: Ledger, number: int, most: int = 10) -> list[Past]:
    """Return the other stops of the same turn of the same agent, the oldest first.

    At most so many from before, and so many from after.
    """

    def look(db: sqlite3.Connection) -> list[Past]:
        row = db.execute("SELECT agent, turn FROM stops WHERE id = ?", (number,)).fetchone()
        if row is None or not row[0]:
            return []
        found = [
            stop
            for statement in (_EARLIER, _LATER)
            for (stop,) in db.execute(statement, (row[0], number, row[1], most))
        ]
        return read(db, sorted(found))

    return ledger.file.read(look)


def agents(ledger: Ledger, since: float, place: str = "", most: int = 20) -> list[AgentPast]:
    """Return the agents seen since a moment, the last seen first; of a folder and below it."""
    if not os.path.exists(ledger.path):
        return []
    folders = below(place)

    def look(db: sqlite3.Connection) -> list[AgentPast]:
        found: list[AgentPast] = []
        for row in db.execute(_AGENTS, (since,)):
            agent = _agent_of(db, row)
            if not folders or any(
                agent.place == own or agent.place.startswith(under) for own, under, _ in folders
            ):
                found.append(agent)
                if len(found) == most:
                    break
        return found

    return ledger.file.read(lambda db: in_utf8(db, lambda: look(db)))


def has_unplaced(ledger: Ledger) -> bool:
    """Tell whether there are stops of which nobody knows in which folder they were."""
    if not os.path.exists(ledger.path):
        return False
    return bool(ledger.file.read(lambda db: db.execute(_UNPLACED).fetchone()))


def gate_stats(ledger: Ledger, wish: Wish) -> list[GateStats]:
    """Return what became of each gate's questions, that which took longest first."""
    from notyet.ledger.past_stats import stats

    return list(stats(ledger, wish).gates)


def below(place: str) -> list[tuple[str, str, str]]:
    """Return a folder as it may be stored: it, and the range of what is below; both its names."""
    if not place:
        return []
    names = dict.fromkeys(map(place_text, (os.path.abspath(place), os.path.realpath(place))))
    return [(name, name.rstrip("/") + "/", name.rstrip("/") + "0") for name in names]


_EARLIER = (
    "SELECT id FROM stops INDEXED BY stops_by_agent WHERE agent = ? AND id < ? AND turn = ?"
    " ORDER BY id DESC LIMIT ?"
)
_LATER = _EARLIER.replace("id < ?", "id > ?").replace("id DESC", "id")
_AGENTS = (
    f"SELECT id, host, session_id, agent_id, seen_at, {', '.join(HISTORY_COLUMNS)} FROM agents"
    " INDEXED BY agents_by_time WHERE seen_at >= ? ORDER BY seen_at DESC"
)
_NEWEST = (
    f"SELECT id, place, outcome, {sql.ASKER} FROM stops WHERE agent = ? ORDER BY id DESC LIMIT 1"
)
_UNPLACED = "SELECT 1 FROM stops INDEXED BY stops_by_place WHERE place = '' LIMIT 1"
_AGENT = ("host", "session_id", "agent_id", "seen_at")


def _agent_of(db: sqlite3.Connection, row: tuple[Any, ...]) -> AgentPast:
    agent, *known = row[: len(_AGENT) + 1]
    columns = Columns(_AGENT, known)
    stop, place, *said = db.execute(_NEWEST, (agent,)).fetchone() or (0, "", "")
    try:
        history = history_of(row[len(_AGENT) + 1 :])
    except (TypeError, ValueError, AttributeError):  # an odd row, of which this cannot be known
        history = History()
    return AgentPast(
        host=columns.text("host"),
        session_id=columns.text("session_id"),
        agent_id=columns.text("agent_id"),
        history=history,
        seen_at=columns.number("seen_at"),
        stop=stop,
        outcome="skipped" if has_lost_asker(*said) else str(said[0]),
        place=str(place),
    )
