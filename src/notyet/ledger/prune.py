"""Removing what is old, or too much: a batch at a time, so that nobody who writes has to wait.

Each batch is one transaction. Whoever dies in its midst has removed nothing, and two who prune
at once take turns. Pages that become free are used again; only `shrink` makes the file smaller.
"""

from __future__ import annotations

import time

from notyet.core.record import Record
from notyet.errors import LedgerError
from notyet.ledger import sql
from notyet.ledger.logs import make_room
from notyet.ledger.lost import is_lost, lose
from notyet.ledger.passes import forget
from notyet.ledger.shrink import used
from notyet.ledger.task_prune import prune_all_tasks, tidy_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from notyet.ledger.retention import Retention
    from notyet.ledger.sqlite import Ledger

AT_ONCE = 500  # rows in one transaction
_ALWAYS_KEPT = 100  # stops, however old they are or small the ledger is to be
_NEWEST_KEPT = 1  # stop, so that the next one gets a number that nobody had
_TIDIED = 200  # rows that go at most when a hook tidies up: more than came since the last time
_TIDY_PATIENCE = 0.05  # seconds to wait for others; the next one tries again
_FORGOTTEN_AFTER = 30 * 86_400.0  # an agent that was sent back and never came again

_OLD_ASKING = f"SELECT id, {sql.ASKER} FROM stops WHERE outcome = 'asking' AND begun_at < ?"
# Looked up for each stop: among the agents of a large ledger, those at work are few.
_NOT_AT_WORK = (
    "NOT EXISTS (SELECT 1 FROM agents WHERE agents.id = stops.agent AND last_stop = stops.id"
    " AND blocked AND seen_at >= ?)"
)
_OLD_STOPS = (
    "SELECT id FROM stops INDEXED BY stops_by_time WHERE begun_at < ? AND outcome != 'asking'"
    f" AND id <= (SELECT max(id) FROM stops) - ? AND {_NOT_AT_WORK} LIMIT ?"
)
_OLD_AGENTS = (
    "DELETE FROM agents WHERE id IN (SELECT id FROM agents INDEXED BY agents_by_time"
    " WHERE seen_at < ? AND (session_blocks = 0 OR seen_at < ?) AND NOT EXISTS"
    " (SELECT 1 FROM stops WHERE stops.agent = agents.id) LIMIT ?)"
)


class Pruned(Record, kw_only=True):
    """What was removed."""

    stops: int = 0
    tasks: int = 0
    agents: int = 0  # of which no stop was left
    logs: int = 0


def tidy(ledger: Ledger, retention: Retention) -> None:
    """Remove a little of what is too old or too much; a ledger that is busy is left for later.

    A hook has little time for it: what was done by then is committed, and stays done.
    """
    cutoff = time.time() - retention.keep
    try:
        ledger.file.write(lambda db: _batch(db, retention, _TIDIED), _TIDY_PATIENCE)
        ledger.file.write(lambda db: tidy_tasks(db, cutoff, _TIDIED), _TIDY_PATIENCE)
    except LedgerError:
        return  # whoever needs the ledger will say what is wrong with it
    finally:
        make_room(ledger.path, retention, ledger.newest)


def prune(ledger: Ledger, retention: Retention) -> Pruned:
    """Remove all that is too old or too much."""
    tasks = prune_all_tasks(ledger, time.time() - retention.keep, AT_ONCE)
    stops = agents = 0
    while True:
        some = ledger.file.write(lambda db: _batch(db, retention, AT_ONCE))
        stops, agents = stops + some[0], agents + some[1]
        if max(some) < AT_ONCE:
            break
    logs = make_room(ledger.path, retention, ledger.newest)
    return Pruned(stops=stops, tasks=tasks, agents=agents, logs=logs)


def prune_older(ledger: Ledger, cutoff: float) -> int:
    """Remove stops and tasks from before a moment; return how many."""
    removed = 0
    while True:
        some = ledger.file.write(lambda db: _prune_old(db, cutoff, AT_ONCE, _NEWEST_KEPT))
        removed += some[0]
        if max(some) < AT_ONCE:
            break
    return removed + prune_all_tasks(ledger, cutoff, AT_ONCE)


def _batch(db: sqlite3.Connection, retention: Retention, most: int) -> tuple[int, int]:
    """Remove at most so many stops and agents; return how many of each."""
    cutoff = time.time() - retention.keep
    stops, agents = _prune_old(db, cutoff, most, _ALWAYS_KEPT)
    forget(db, cutoff)
    if used(db) > retention.max_size:
        for (since,) in db.execute(_SINCE, (_ALWAYS_KEPT,)).fetchall():
            agents += _prune_agents(db, since, _at_work(cutoff), most - agents)
        if agents < most and used(db) > retention.max_size:
            oldest = db.execute(_OLDEST, (_ALWAYS_KEPT, _at_work(cutoff), most - stops)).fetchall()
            _remove(db, oldest)
            stops += len(oldest)
    return stops, agents


_OLDEST = f"""
SELECT id FROM stops WHERE id <= (SELECT max(id) FROM stops) - ? AND outcome != 'asking'
  AND {_NOT_AT_WORK} ORDER BY id LIMIT ?
"""
# Agents that were last seen before the stops that always stay, and have none, make room first.
_SINCE = """
SELECT begun_at FROM stops WHERE id > (SELECT max(id) FROM stops) - ? ORDER BY id LIMIT 1
"""


def _prune_old(db: sqlite3.Connection, cutoff: float, most: int, kept: int) -> tuple[int, int]:
    """Remove some stops and agents from before a moment, but not the newest stops."""
    for stop, *asker in db.execute(_OLD_ASKING, (cutoff,)).fetchall():
        if is_lost(*asker):
            lose(db, stop)
    old = db.execute(_OLD_STOPS, (cutoff, kept, _at_work(cutoff), most)).fetchall()
    _remove(db, old)
    agents = 0
    if len(old) < most:
        agents = _prune_agents(db, cutoff, _at_work(cutoff), most)
    return len(old), agents


def _prune_agents(db: sqlite3.Connection, cutoff: float, at_work: float, most: int) -> int:
    """Remove some agents that were last seen before a moment, and have no stop any more."""
    return db.execute(_OLD_AGENTS, (cutoff, at_work, most)).rowcount


def _at_work(cutoff: float) -> float:
    """Return since when an agent that was sent back counts as at work."""
    return min(cutoff, time.time() - _FORGOTTEN_AFTER)


def _remove(db: sqlite3.Connection, stops: list[tuple[int]]) -> None:
    db.executemany("DELETE FROM reports WHERE stop = ?", stops)
    db.executemany("DELETE FROM stops WHERE id = ?", stops)
