"""Removing what is old, or too much: a batch at a time, so that nobody who writes has to wait.

Each batch is one transaction. Whoever dies in its midst has removed nothing, and two who prune
at once take turns. Pages that become free are used again; only `shrink` makes the file smaller.
"""

from __future__ import annotations

import os
import time

from notyet.core.record import Record
from notyet.errors import LedgerError
from notyet.ledger import sql
from notyet.ledger.logs import make_room
from notyet.ledger.passes import forget
from notyet.ledger.task_prune import prune_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from notyet.ledger.retention import Retention
    from notyet.ledger.sqlite import Ledger

AT_ONCE = 500  # rows in one transaction
_ALWAYS_KEPT = 100  # stops, however small the ledger is to be
_TIDIED = 200  # rows that go at most when a hook tidies up: more than came since the last time
_TIDY_PATIENCE = 0.05  # seconds to wait for others; the next one tries again
_FORGOTTEN_AFTER = 30 * 86_400.0  # an agent that was sent back and never came again
_SHRUNK_AT_ONCE = 1_000  # pages


class Pruned(Record, kw_only=True):
    """What was removed."""

    stops: int = 0
    tasks: int = 0
    logs: int = 0
    freed: int = 0  # bytes by which the file became smaller


def tidy(ledger: Ledger, retention: Retention) -> None:
    """Remove a little of what is too old or too much; a ledger that is busy is left for later."""
    try:
        ledger.file.write(lambda db: _batch(db, retention, _TIDIED), _TIDY_PATIENCE)
    except LedgerError:
        return  # whoever needs the ledger will say what is wrong with it
    finally:
        make_room(ledger.path, retention)


def prune(ledger: Ledger, retention: Retention) -> Pruned:
    """Remove all that is too old or too much."""
    stops = tasks = 0
    while True:
        some = ledger.file.write(lambda db: _batch(db, retention, AT_ONCE))
        stops, tasks = stops + some[0], tasks + some[1]
        if max(some) < AT_ONCE:
            break
    return Pruned(stops=stops, tasks=tasks, logs=make_room(ledger.path, retention))


def prune_older(ledger: Ledger, cutoff: float) -> int:
    """Remove stops and tasks from before a moment; return how many."""
    removed = 0
    steps: tuple[Callable[[sqlite3.Connection], int], ...] = (
        lambda db: _prune_stops(db, cutoff, AT_ONCE),
        lambda db: prune_tasks(db, cutoff, AT_ONCE),
    )
    for step in steps:
        some = AT_ONCE
        while some >= AT_ONCE:
            some = ledger.file.write(step)
            removed += some
    return removed


def shrink(ledger: Ledger) -> int:
    """Give free pages back to the system, a few at a time; return how many bytes that were.

    A ledger of an earlier version cannot: its free pages are used again, and stay.
    """
    before = os.path.getsize(ledger.path)
    while ledger.file.write(_shrink_some):
        pass
    ledger.file.checkpoint()
    return max(0, before - os.path.getsize(ledger.path))


def _shrink_some(db: sqlite3.Connection) -> bool:
    if _number(db, "auto_vacuum") != 2:  # noqa: PLR2004  # incremental
        return False
    free = _number(db, "freelist_count")
    if free:
        db.execute(f"PRAGMA incremental_vacuum({_SHRUNK_AT_ONCE})").fetchall()
    return free > _SHRUNK_AT_ONCE


def used(db: sqlite3.Connection) -> int:
    """Return how many bytes of the file are in use."""
    pages = _number(db, "page_count") - _number(db, "freelist_count")
    return pages * _number(db, "page_size")


def _number(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _batch(db: sqlite3.Connection, retention: Retention, most: int) -> tuple[int, int]:
    """Remove at most so many stops and tasks; return how many of each."""
    cutoff = time.time() - retention.keep
    stops = _prune_stops(db, cutoff, most)
    tasks = prune_tasks(db, cutoff, most)
    forget(db, cutoff)
    if stops < most and used(db) > retention.max_size:
        oldest = db.execute(_OLDEST, (_ALWAYS_KEPT, _at_work(cutoff), most - stops)).fetchall()
        _remove(db, oldest)
        stops += len(oldest)
    return stops, tasks


_OLDEST = f"""
SELECT id FROM stops WHERE id <= (SELECT max(id) FROM stops) - ? AND outcome != 'asking'
  AND {sql.NOT_AT_WORK} ORDER BY id LIMIT ?
"""


def _prune_stops(db: sqlite3.Connection, cutoff: float, most: int) -> int:
    from notyet.ledger.sqlite import is_lost, lose

    for stop, *asker in db.execute(sql.OLD_ASKING, (cutoff,)).fetchall():
        if is_lost(*asker):
            lose(db, stop)
    old = db.execute(sql.OLD_STOPS, (cutoff, _at_work(cutoff), most)).fetchall()
    _remove(db, old)
    if len(old) < most:
        db.execute(sql.OLD_AGENTS, (cutoff, _at_work(cutoff), most))
    return len(old)


def _at_work(cutoff: float) -> float:
    """Return since when an agent that was sent back counts as at work."""
    return min(cutoff, time.time() - _FORGOTTEN_AFTER)


def _remove(db: sqlite3.Connection, stops: list[tuple[int]]) -> None:
    db.executemany("DELETE FROM reports WHERE stop = ?", stops)
    db.executemany("DELETE FROM stops WHERE id = ?", stops)
