"""Forgetting supervised tasks that ended long ago; never one that is active or undelivered."""

from __future__ import annotations

import os
import time
from functools import partial

from notyet.core.json_text import dumps, loads
from notyet.core.record import Record, variant
from notyet.homes import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from notyet.ledger.sqlite import Ledger

    Place = tuple[float, str]  # of a task among all: when it was created, and its id

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
    AND ended_at < ? AND (? OR NOT instr(ref, '.jsonl"')) AND id NOT IN held
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE task = tasks.id
                    AND status IN ('pending', 'leased', 'suspended')) LIMIT ?
"""
_FURTHER = """
    SELECT created_at, id FROM tasks WHERE (created_at, id) > (?, ?) AND created_at < ?
    ORDER BY created_at, id LIMIT 1 OFFSET ?
"""
_SOME = """
    SELECT count(*) FROM (SELECT 1 FROM tasks WHERE (created_at, id) > (?, ?) AND created_at < ?
                          LIMIT ?)
"""
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM tasks LIMIT ?)"
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
    wanted = (*start, *until, wish.cutoff, wish.with_transcripts, wish.most)
    found = db.execute(_OLD, wanted).fetchall()
    old = [(task,) for task, _ in found]
    for table in _WITH_THEM:
        db.executemany(f"DELETE FROM {table} WHERE task = ?", old)
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
