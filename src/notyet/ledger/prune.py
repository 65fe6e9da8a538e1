"""Pruning: deleting old rows and logs in batches, so that writers never wait for long.

Each batch is one transaction: a crash in its midst deletes nothing, and two processes that prune
take turns. Freed pages are used again; only `shrink` makes the file smaller.
"""

from __future__ import annotations

import os
import time

from notyet.core.record import Record
from notyet.errors import LedgerError
from notyet.ledger.connection import NOW, sqlite3_module
from notyet.ledger.ledger import ASKER, LOSE, is_lost
from notyet.ledger.logs import make_room
from notyet.ledger.passes import forget
from notyet.light import dumps, loads, state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from notyet.ledger.ledger import Ledger

_DAY = 86_400.0
_MB = 1_000_000


class Retention(Record, kw_only=True):
    """How long stops and tasks are kept, and the maximum size of the ledger and its logs."""

    keep: float = 90 * _DAY  # seconds
    max_size: int = 256 * _MB  # bytes in use of the ledger
    logs: int = 64 * _MB  # bytes of all logs


AT_ONCE = 500  # rows in one transaction
_ALWAYS_KEPT = 100  # the newest stops, of any age
_NEWEST_KEPT = 1  # stop, so that its number is not given again
_AT_A_STOP = 200  # rows that a hook deletes at most: more than came since the last time
_PATIENCE_AT_A_STOP = 0.05  # seconds to wait for other writers
_FORGOTTEN_AFTER = 30 * 86_400.0  # an agent that was sent back and did not stop again

_OLD_ASKING = f"SELECT id, {ASKER} FROM stops WHERE outcome = 'asking' AND begun_at < ?"
_NOT_AT_WORK = (
    "NOT EXISTS (SELECT 1 FROM agents WHERE agents.id = stops.agent AND last_stop = stops.id"
    " AND blocked = 1 AND seen_at >= ?)"
)
_OLD_STOPS = (
    "SELECT id FROM stops INDEXED BY stops_by_time WHERE begun_at < ? AND outcome != 'asking'"
    f" AND id <= (SELECT max(id) FROM stops) - ? AND {_NOT_AT_WORK} LIMIT ?"
)
_OLD_AGENTS = (
    "DELETE FROM agents WHERE id IN (SELECT id FROM agents INDEXED BY agents_by_time"
    " WHERE seen_at < ? AND (session_blocks = 0 OR seen_at < ?) AND NOT EXISTS"
    " (SELECT 1 FROM stops WHERE stops.agent = agents.id) LIMIT ?)"
    " AND seen_at < ?"  # again: on PostgreSQL, one that stops just now was seen since
)


class Pruned(Record, kw_only=True):
    """How many rows and files were deleted."""

    stops: int = 0
    tasks: int = 0
    agents: int = 0  # without stops
    logs: int = 0


def tidy(ledger: Ledger, retention: Retention) -> None:
    """Delete a few old rows, for a hook; a busy ledger is left for later."""
    cutoff = time.time() - retention.keep
    try:
        ledger.connection.write(
            lambda db: _prune_stops(db, retention, _AT_A_STOP), _PATIENCE_AT_A_STOP
        )
        ledger.connection.write(lambda db: prune_tasks(db, cutoff, _AT_A_STOP), _PATIENCE_AT_A_STOP)
    except LedgerError:
        return  # the next stop reports it
    finally:
        make_room(ledger.connection.beside, retention, ledger.newest)


def prune(ledger: Ledger, retention: Retention) -> Pruned:
    """Delete everything beyond the retention."""
    tasks = _prune_all_tasks(ledger, time.time() - retention.keep)
    stops = agents = 0
    while True:
        some = ledger.connection.write(lambda db: _prune_stops(db, retention, AT_ONCE))
        stops, agents = stops + some[0], agents + some[1]
        if max(some) < AT_ONCE:
            break
    logs = make_room(ledger.connection.beside, retention, ledger.newest)
    return Pruned(stops=stops, tasks=tasks, agents=agents, logs=logs)


def prune_older(ledger: Ledger, cutoff: float) -> int:
    """Delete stops and tasks before `cutoff`; return how many."""
    removed = 0
    while True:
        some = ledger.connection.write(lambda db: _prune_old(db, cutoff, AT_ONCE, _NEWEST_KEPT))
        removed += some[0]
        if max(some) < AT_ONCE:
            break
    return removed + _prune_all_tasks(ledger, cutoff)


# Stops and agents.


def _prune_stops(db: sqlite3.Connection, retention: Retention, most: int) -> tuple[int, int]:
    """Delete at most `most` stops and agents; return how many of each."""
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
# Agents without stops that were last seen before the stops that stay go first.
_SINCE = """
SELECT begun_at FROM stops WHERE id > (SELECT max(id) FROM stops) - ? ORDER BY id LIMIT 1
"""


def _prune_old(db: sqlite3.Connection, cutoff: float, most: int, kept: int) -> tuple[int, int]:
    """Delete some stops and agents before `cutoff`, but not the newest stops."""
    for stop, *asker in db.execute(_OLD_ASKING, (cutoff,)).fetchall():
        if is_lost(*asker):
            db.execute(LOSE, (stop,))
    old = db.execute(_OLD_STOPS, (cutoff, kept, _at_work(cutoff), most)).fetchall()
    _remove(db, old)
    agents = 0
    if len(old) < most:
        agents = _prune_agents(db, cutoff, _at_work(cutoff), most)
    return len(old), agents


def _prune_agents(db: sqlite3.Connection, cutoff: float, at_work: float, most: int) -> int:
    """Delete some agents that were last seen before `cutoff` and have no stops."""
    return db.execute(_OLD_AGENTS, (cutoff, at_work, most, cutoff)).rowcount


def _at_work(cutoff: float) -> float:
    """Return the time since when an agent that was sent back counts as working."""
    return min(cutoff, time.time() - _FORGOTTEN_AFTER)


def _remove(db: sqlite3.Connection, stops: list[tuple[int]]) -> None:
    db.executemany("DELETE FROM reports WHERE stop = ?", stops)
    db.executemany("DELETE FROM stops WHERE id = ?", stops)


# Size of the file.

_PAGES_AT_ONCE = 1_000


def shrink(ledger: Ledger) -> int:
    """Give free pages back to the file system, a few at a time; return how many bytes.

    Raises LedgerError.
    """
    before = os.path.getsize(ledger.path)
    while ledger.connection.write(_shrink_some):
        pass
    ledger.connection.checkpoint()
    return max(0, before - os.path.getsize(ledger.path))


def used(db: sqlite3.Connection) -> int:
    """Return how many bytes of the file are in use; 0 for PostgreSQL.

    There, rows that were deleted count until it reuses their space, so that all would be deleted.
    """
    is_file = isinstance(db, sqlite3_module.Connection)
    if not is_file:
        return 0
    pages = _number(db, "page_count") - _number(db, "freelist_count")
    return pages * _number(db, "page_size")


def _shrink_some(db: sqlite3.Connection) -> bool:
    free = _number(db, "freelist_count")
    for _ in range(min(free, _PAGES_AT_ONCE)):
        db.execute("PRAGMA incremental_vacuum(1)")  # `sqlite3` takes one step: one page
    return free > _PAGES_AT_ONCE


def _number(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


# Tasks of supervised agents, with the transcripts of their sessions.

# An ended task stays while a descendant is active or undelivered: kills and results pass it.
OLD_TASKS = """
    WITH RECURSIVE held (id) AS (
      SELECT parent FROM tasks WHERE ended_at IS NULL
      UNION SELECT parent FROM outbox WHERE status IN ('pending', 'leased')
      UNION SELECT tasks.parent FROM held JOIN tasks ON tasks.id = held.id)
    SELECT id, ref FROM tasks WHERE created_at < ? AND ended_at < ?
    AND id NOT IN (SELECT id FROM held)
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE task = tasks.id
                    AND status IN ('pending', 'leased', 'suspended'))
    ORDER BY created_at LIMIT ?
"""
_WITH_THEM = ("runs", "steers", "messages", "outbox")
_IDLE_OWNERS = (
    "DELETE FROM owners WHERE lease_until < ?"
    " AND id NOT IN (SELECT owner FROM tasks WHERE ended_at IS NULL)"
    " AND id NOT IN (SELECT owner FROM outbox WHERE status IN ('pending', 'leased'))"
)
_OLD_BEGINS = f"DELETE FROM begins WHERE at < {NOW} - {2 * _DAY}"  # no limit counts further back
_ENDING = ".jsonl"


def sessions_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of our sessions' transcripts; empty without a home folder."""
    state = state_home(environ)
    return os.path.join(state, "notyet", "sessions") if state else ""


def prune_tasks(db: sqlite3.Connection, cutoff: float, most: int) -> int:
    """Delete at most `most` tasks that ended before `cutoff`; return how many."""
    found = db.execute(OLD_TASKS, (cutoff, cutoff, most)).fetchall()
    old = [(task,) for task, _ in found]
    for part in _WITH_THEM:
        db.executemany(f"DELETE FROM {part} WHERE task = ?", old)
    db.executemany("DELETE FROM tasks WHERE id = ?", old)
    db.execute(_IDLE_OWNERS, (min(cutoff, time.time()),))
    db.execute(_OLD_BEGINS)
    _remove_transcripts(db, [ref for _, ref in found])
    return len(old)


def _prune_all_tasks(ledger: Ledger, cutoff: float) -> int:
    removed = 0
    while True:
        some = ledger.connection.write(lambda db: prune_tasks(db, cutoff, AT_ONCE))
        removed += some
        if some < AT_ONCE:
            return removed


def _remove_transcripts(db: sqlite3.Connection, refs: Sequence[str]) -> None:
    """Delete transcripts of our sessions that no task names any more.

    A ref is foreign data: only files in our own folder are deleted.
    """
    folder = sessions_folder(os.environ)
    if not folder:
        return
    ours = {}
    for path in {_transcript(ref) for ref in refs}:
        place, name = os.path.split(path)
        if name.endswith(_ENDING) and os.path.realpath(place) == os.path.realpath(folder):
            ours[path] = dumps(f"/{name}")[2:]  # the end of a ref, for any spelling of the folder
    if not ours:
        return
    named = _named(db)
    for path, name in ours.items():
        if name not in named:
            try:
                os.unlink(path)
            except OSError:  # another process was faster
                continue


def _named(db: sqlite3.Connection) -> set[str]:
    """Return the names of all transcripts in refs, as they are written there."""
    end = f'{_ENDING}"'
    return {
        part.rpartition("/")[2] + end
        for (ref,) in db.execute("SELECT ref FROM tasks")
        for part in ref.split(end)[:-1]
    }


def _transcript(ref: str) -> str:
    try:
        path = loads(ref).get("transcript")
    except (ValueError, AttributeError):
        return ""
    return path if isinstance(path, str) and "\0" not in path else ""
