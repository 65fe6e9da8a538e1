"""How much the ledger keeps. Loaded on the hook's way, so it is light."""

from __future__ import annotations

import os
import time
from functools import partial

from notyet.core.record import Record, variant
from notyet.errors import LedgerError
from notyet.ledger.logs import make_room
from notyet.ledger.passes import forget
from notyet.ledger.stops import ASKER, LOSE, is_lost
from notyet.light import dumps, loads, state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from notyet.ledger.stops import Ledger

    Place = tuple[float, str]  # of a task among all: when it was created, and its id

_DAY = 86_400.0
_MB = 1_000_000


class Retention(Record, kw_only=True):
    """How long stops and tasks are kept, and how large the ledger and its logs may become."""

    keep: float = 90 * _DAY  # seconds
    max_size: int = 256 * _MB  # bytes of the ledger that are in use
    logs: int = 64 * _MB  # bytes of all logs


# Removing what is old, or too much: a batch at a time, so that nobody who writes has to wait.
#
# Each batch is one transaction. Whoever dies in its midst has removed nothing, and two who prune
# at once take turns. Pages that become free are used again; only `shrink` makes the file smaller.


AT_ONCE = 500  # rows in one transaction
_ALWAYS_KEPT = 100  # stops, however old they are or small the ledger is to be
_NEWEST_KEPT = 1  # stop, so that the next one gets a number that nobody had
_TIDIED = 200  # rows that go at most when a hook tidies up: more than came since the last time
_TIDY_PATIENCE = 0.05  # seconds to wait for others; the next one tries again
_FORGOTTEN_AFTER = 30 * 86_400.0  # an agent that was sent back and never came again

_OLD_ASKING = f"SELECT id, {ASKER} FROM stops WHERE outcome = 'asking' AND begun_at < ?"
# Looked up for each stop: among the agents of a large ledger, those at work are few.
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
            db.execute(LOSE, (stop,))
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


_PAGES_AT_ONCE = 1_000


def shrink(ledger: Ledger) -> int:
    """Give free pages back to the file system, a few at a time; return how many bytes.

    Raises LedgerError.
    """
    before = os.path.getsize(ledger.path)
    while ledger.file.write(_shrink_some):
        pass
    ledger.file.checkpoint()
    return max(0, before - os.path.getsize(ledger.path))


def used(db: sqlite3.Connection) -> int:
    """Return how many bytes of the file are in use."""
    pages = _number(db, "page_count") - _number(db, "freelist_count")
    return pages * _number(db, "page_size")


def _shrink_some(db: sqlite3.Connection) -> bool:
    free = _number(db, "freelist_count")
    for _ in range(min(free, _PAGES_AT_ONCE)):
        db.execute("PRAGMA incremental_vacuum(1)")  # `sqlite3` takes one step: one page
    return free > _PAGES_AT_ONCE


def _number(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


_BEGINNING: Place = (-1.0, "")
_LOOKED_AT = 1_000  # tasks at most in one transaction: those that must stay may be very many
_MANY = 20_000  # tasks; among more, nobody looks in passing which transcripts are named
# What has ended stays while something below it is at work or on its way: a kill from above and a
# report from below go through it.
_OLD = """
    WITH RECURSIVE held (id) AS (
      SELECT parent FROM tasks INDEXED BY tasks_by_owner WHERE ended_at IS NULL
      UNION SELECT parent FROM outbox WHERE status IN ('pending', 'leased')
      UNION SELECT tasks.parent FROM held JOIN tasks ON tasks.id = held.id)
    SELECT id, ref FROM tasks WHERE (created_at, id) > (?, ?) AND (created_at, id) <= (?, ?)
    AND ended_at < ? AND (? = 1 OR replace(ref, '.jsonl"', '') = ref)
    AND id NOT IN (SELECT id FROM held)
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE task = tasks.id
                    AND status IN ('pending', 'leased', 'suspended')) LIMIT ?
"""
_FURTHER = """
    SELECT created_at, id FROM tasks WHERE (created_at, id) > (?, ?) AND created_at < ?
    ORDER BY created_at, id LIMIT 1 OFFSET ?
"""
_SOME = """
    SELECT count(*) FROM (SELECT 1 FROM tasks WHERE (created_at, id) > (?, ?) AND created_at < ?
                          LIMIT ?) AS counted
"""
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM tasks LIMIT ?) AS counted"
_WITH_THEM = ("runs", "steers", "messages", "intents", "outbox")
_IDLE_OWNERS = (
    "DELETE FROM owners WHERE lease_until < ?"
    " AND id NOT IN (SELECT owner FROM tasks WHERE ended_at IS NULL)"
    " AND id NOT IN (SELECT owner FROM outbox WHERE status IN ('pending', 'leased'))"
)
_ENDING = ".jsonl"


def sessions_folder(environ: Mapping[str, str]) -> str:
    """Return where our sessions keep their transcripts; empty where there is no home."""
    state = state_home(environ)
    return os.path.join(state, "notyet", "sessions") if state else ""


def tidy_tasks(db: sqlite3.Connection, cutoff: float, most: int) -> None:
    """Remove a few tasks that ended before `cutoff`, wherever among the old ones they are.

    Looks at some of them only, from any one on: those that have to stay are in nobody's way.
    Where there are very many, those that have a transcript are left to `prune_all_tasks`.
    """
    start = _any_old(db, cutoff)
    if start is None:
        _forget_idle_owners(db, cutoff)
        return
    (count,) = db.execute(_COUNT, (_MANY + 1,)).fetchone()
    wish = _Wish(cutoff=cutoff, most=most, with_transcripts=count <= _MANY)
    refs, place = _prune_some(db, wish, start)
    if place is None:  # those were the last ones, so the first are next
        more, _ = _prune_some(db, variant(wish, {"most": most - len(refs)}), _BEGINNING)
        refs += more
    _remove_transcripts(db, refs)


def prune_all_tasks(ledger: Ledger, cutoff: float, at_once: int) -> int:
    """Remove all tasks that ended before `cutoff`, with their transcripts; return how many."""
    wish = _Wish(cutoff=cutoff, most=at_once)
    removed = 0
    refs: list[str] = []
    place: Place | None = _BEGINNING
    while place is not None:
        some, place = ledger.file.write(partial(_prune_some, wish=wish, start=place))
        removed += len(some)
        refs += some
        if place is None or len(refs) >= _MANY:  # one look at all tasks, for very many
            ledger.file.read(partial(_remove_transcripts, refs=refs))
            refs = []
    return removed


def _any_old(db: sqlite3.Connection, cutoff: float) -> Place | None:
    """Return any of the tasks that began before `cutoff`; None where there is none.

    By any moment since the oldest, and by number from there on: to count all would take the longer
    the more there are.
    """
    (oldest,) = db.execute("SELECT min(created_at) FROM tasks").fetchone()
    if oldest is None or oldest >= cutoff:
        return None
    since = (oldest + _any_part() * (cutoff - oldest), "")
    (count,) = db.execute(_SOME, (*since, cutoff, _MANY)).fetchone()
    if not count:
        since = _BEGINNING
        (count,) = db.execute(_SOME, (*since, cutoff, _MANY)).fetchone()
    place: Place = db.execute(_FURTHER, (*since, cutoff, int(_any_part() * count))).fetchone()
    return place


def _any_part() -> float:
    """Return a number from 0 up to, but not, 1."""
    return int.from_bytes(os.urandom(4), "big") / 2**32


class _Wish(Record, kw_only=True):
    """Which tasks are to go."""

    cutoff: float
    most: int
    with_transcripts: bool = True


def _prune_some(
    db: sqlite3.Connection, wish: _Wish, start: Place
) -> tuple[list[str], Place | None]:
    """Remove some tasks; return their refs, and from where to go on, None at the end."""
    place = db.execute(_FURTHER, (*start, wish.cutoff, _LOOKED_AT - 1)).fetchone()
    until = place or (wish.cutoff, "")
    wanted = (*start, *until, wish.cutoff, int(wish.with_transcripts), wish.most)
    found = db.execute(_OLD, wanted).fetchall()
    old = [(task,) for task, _ in found]
    for part in _WITH_THEM:
        db.executemany(f"DELETE FROM {part} WHERE task = ?", old)
    db.executemany("DELETE FROM tasks WHERE id = ?", old)
    _forget_idle_owners(db, wish.cutoff)
    return [ref for _, ref in found], start if len(old) == wish.most else place


def _forget_idle_owners(db: sqlite3.Connection, cutoff: float) -> None:
    db.execute(_IDLE_OWNERS, (min(cutoff, time.time()),))


def _remove_transcripts(db: sqlite3.Connection, refs: Sequence[str]) -> None:
    """Remove what our sessions wrote, and no task names any more.

    A ref is foreign code's: whatever it names, only files in our own folder are touched.
    """
    folder = sessions_folder(os.environ)
    if not folder:
        return
    ours = {}
    for path in {_transcript(ref) for ref in refs}:
        place, name = os.path.split(path)
        if name.endswith(_ENDING) and os.path.realpath(place) == os.path.realpath(folder):
            ours[path] = dumps(f"/{name}")[2:]  # as a ref ends it, however its folder is spelled
    if not ours:
        return
    named = _named(db)
    for path, name in ours.items():
        if name not in named:
            try:
                os.unlink(path)
            except OSError:  # somebody was faster, or may not
                continue


def _named(db: sqlite3.Connection) -> set[str]:
    """Return the names of all transcripts that tasks have, as they are written in their refs."""
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
