"""Agents at work: supervised ones, and others that are being checked or were just sent back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from notyet.core.record import Record
from notyet.ledger.figures import conditions_on
from notyet.ledger.leases import is_over
from notyet.ledger.ledger import ASKER
from notyet.ledger.past_stops import has_lost_asker, read_in

if TYPE_CHECKING:
    import sqlite3

    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import PastStop, StopFilter

WITHIN = 3_600.0  # seconds in which an agent that was sent back is expected to come again
_LONGEST_CHECK = 86_400.0  # seconds; a stop that began before is lost
# The state of a supervised agent is that of its task.
_UNSUPERVISED = (
    "NOT EXISTS (SELECT 1 FROM agents k JOIN tasks t ON t.session_id = k.session_id"
    " WHERE k.id = s.agent)"
)
_CHECKED = (
    f"SELECT s.id, s.agent, s.begun_at, {', '.join(f's.{name}' for name in ASKER.split(', '))}"
    " FROM stops s WHERE s.outcome = 'asking' AND s.begun_at >= ?"
)
_SENT_BACK = (
    "SELECT s.id, s.agent, s.begun_at FROM stops s INDEXED BY stops_by_time"
    " JOIN agents a ON a.id = s.agent WHERE s.begun_at >= ? AND s.outcome = 'blocked'"
    " AND a.blocked = 1 AND a.last_stop = s.id"
)
_BLOCKS = "SELECT id, blocks FROM agents WHERE id IN"
_DRIVEN = "SELECT owner, count(*) FROM tasks WHERE ended_at IS NULL AND owner > 0 GROUP BY owner"


class AgentAtWork(Record, kw_only=True):
    """An agent without a supervisor; its newest stop is being checked, or was sent back."""

    stop: PastStop
    is_checked: bool  # now
    sent_back: int  # in this turn


class AtWork(Record, kw_only=True):
    """The agents without a supervisor that are at work: how many, and the last seen of them."""

    count: int
    agents: tuple[AgentAtWork, ...]


def agents_at_work(ledger: Ledger, wanted: StopFilter, most: int) -> AtWork:
    """Return the agents without a supervisor that are at work, of a host and place."""
    now = time.time()

    def read(db: sqlite3.Connection) -> AtWork:
        conditions = conditions_on(wanted)
        conditions.add(_UNSUPERVISED)
        seen: dict[int, tuple[float, int, bool]] = {}  # by agent: when, the stop, is it checked
        sql = f"{_SENT_BACK} AND {conditions}"
        for stop, agent, at in db.execute(sql, (now - WITHIN, *conditions.values)):
            seen[agent] = at, stop, False
        sql = f"{_CHECKED} AND {conditions}"
        for stop, agent, at, *asker in db.execute(sql, (now - _LONGEST_CHECK, *conditions.values)):
            if not has_lost_asker("asking", *asker):
                seen[agent or -stop] = at, stop, True  # one that was never counted has no number
        shown = sorted(seen.items(), key=lambda item: item[1], reverse=True)[:most]
        if not shown:
            return AtWork(count=0, agents=())
        marks = f"({', '.join('?' * len(shown))})"
        blocks = dict(db.execute(_BLOCKS + marks, [agent for agent, _ in shown]).fetchall())
        stops = {past.id: past for past in read_in(db, [stop for _, (_, stop, _) in shown])}
        agents = tuple(
            AgentAtWork(stop=stops[stop], is_checked=is_checked, sent_back=blocks.get(agent, 0))
            for agent, (_, stop, is_checked) in shown
        )
        return AtWork(count=len(seen), agents=agents)

    return ledger.connection.read(read)


def tasks_at_work(ledger: Ledger) -> int:
    """Return how many tasks are active, of supervisors that live."""

    def count(db: sqlite3.Connection) -> int:
        driven = db.execute(_DRIVEN).fetchall()
        return sum(tasks for owner, tasks in driven if not is_over(db, owner))

    return ledger.connection.read(count)
