"""Looking back: what stops came to. Only reads, and never makes a file that is not there.

`past_find.py` knows which stops are meant, `past_stats.py` what many of them come to.
"""

from __future__ import annotations

import os

from notyet.core.json_text import loads
from notyet.core.record import Record
from notyet.ledger.past_event import event_of
from notyet.ledger.rows import (
    HISTORY_COLUMNS,
    REPORT_COLUMNS,
    STOP_COLUMNS,
    history_of,
    place_text,
    report_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.limits import History
    from notyet.core.verdict import Report
    from notyet.ledger.past_stats import GateStats
    from notyet.ledger.sqlite import Ledger

_AT_ONCE = 500  # rows in one statement


class Past(Record, kw_only=True):
    """One stop as the ledger has it; `outcome` is "asking" while it is not decided."""

    id: int
    host: str
    session_id: str
    agent_id: str  # "" for the main agent
    scope: str
    place: str  # the folder of the agent; "" for stops before version 6
    turn: int
    begun_at: float
    ended_at: float | None
    outcome: str
    verdict: str
    prompt: str
    reason: str
    why: str
    count: int
    limit: int
    limit_source: str
    warnings: tuple[str, ...]
    repeated: int  # how often its answer was given again (B12)
    followed: bool  # a later stop of this agent is known
    task: str  # of a supervised agent
    reports: tuple[Report, ...]
    event: StopEvent


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
    return ledger.file.read(lambda db: _read(db, find(db, wish), _SHORT_REPORTS))


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
    found = ledger.file.read(lambda db: _read(db, [number], _REPORTS))
    return found[0] if found else None


def these(ledger: Ledger, numbers: Sequence[int]) -> list[Past]:
    """Return some stops by their numbers, the newest first, as far as they are there."""
    if not numbers or not os.path.exists(ledger.path):
        return []
    wanted = sorted(numbers, reverse=True)
    return ledger.file.read(lambda db: _read(db, wanted, _SHORT_REPORTS))


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
        return _read(db, sorted(found), _SHORT_REPORTS)

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

    return ledger.file.read(look)


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


_STOP = ", ".join(f"s.{name}" for name in STOP_COLUMNS)
_READ = f"""
SELECT s.id, a.host, a.session_id, a.agent_id, s.place, s.begun_at, s.ended_at, s.repeated, s.event,
  EXISTS (SELECT 1 FROM stops n WHERE n.agent = s.agent AND n.id > s.id), {_STOP}
FROM stops s LEFT JOIN agents a ON a.id = s.agent WHERE s.id IN
"""
_REPORTS = f"SELECT {', '.join(REPORT_COLUMNS)} FROM reports WHERE stop IN"
_SHORT_REPORTS = _REPORTS.replace(" output,", " '',")
_EARLIER = (
    "SELECT id FROM stops INDEXED BY stops_by_agent WHERE agent = ? AND id < ? AND turn = ?"
    " ORDER BY id DESC LIMIT ?"
)
_LATER = _EARLIER.replace("id < ?", "id > ?").replace("id DESC", "id")
_AGENTS = (
    f"SELECT id, host, session_id, agent_id, seen_at, {', '.join(HISTORY_COLUMNS)} FROM agents"
    " INDEXED BY agents_by_time WHERE seen_at >= ? ORDER BY seen_at DESC"
)
_NEWEST = "SELECT id, outcome, place FROM stops WHERE agent = ? ORDER BY id DESC LIMIT 1"


def _agent_of(db: sqlite3.Connection, row: tuple[Any, ...]) -> AgentPast:
    agent, host, session_id, agent_id, seen_at, *history = row
    newest = db.execute(_NEWEST, (agent,)).fetchone() or (0, "", "")
    return AgentPast(
        host=host,
        session_id=session_id,
        agent_id=agent_id,
        history=history_of(tuple(history)),
        seen_at=seen_at,
        stop=newest[0],
        outcome=newest[1],
        place=newest[2],
    )


def _read(db: sqlite3.Connection, ids: Sequence[int], reports: str) -> list[Past]:
    found: dict[int, Past] = {}
    for some in parts(ids):
        marks = f"({', '.join('?' * len(some))})"
        said: dict[int, list[Report]] = {}
        for row in db.execute(f"{reports} {marks} ORDER BY stop, position", some):
            said.setdefault(row[0], []).append(report_of(row))
        for row in db.execute(_READ + marks, some):
            found[row[0]] = _past_of(row, tuple(said.get(row[0], ())))
    return [found[number] for number in ids if number in found]


def parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Give many numbers in lists that one statement can take."""
    for at in range(0, len(ids), _AT_ONCE):
        yield ids[at : at + _AT_ONCE]


def _past_of(row: tuple[Any, ...], reports: tuple[Report, ...]) -> Past:
    host, session_id, agent_id, place = row[1:5]
    begun_at, ended_at, repeated, text, followed = row[5:10]
    known = dict(zip(STOP_COLUMNS, row[10:], strict=True))
    event = event_of(text)
    if host is None:  # let go before its agent was ever counted
        host, session_id, agent_id = event.host, event.session_id, event.agent_id or ""
        followed = True  # nobody knows
    return Past(
        id=row[0],
        host=host,
        session_id=session_id,
        agent_id=agent_id,
        scope=event.scope,
        place=place,
        turn=known["turn"],
        begun_at=begun_at,
        ended_at=ended_at,
        outcome=known["outcome"],
        verdict=known["verdict"],
        prompt=known["prompt"],
        reason=known["reason"],
        why=known["why"],
        count=known["count"],
        limit=known["max_blocks"],
        limit_source=known["limit_source"],
        warnings=tuple(loads(known["warnings"])),
        repeated=repeated,
        followed=bool(followed),
        task=event.task_id or "",
        reports=reports,
        event=event,
    )
