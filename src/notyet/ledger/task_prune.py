"""Forgetting supervised tasks that ended long ago; never one that is active or undelivered."""

from __future__ import annotations

import os
import time

from notyet.core.json_text import dumps, loads
from notyet.ledger.place import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

# What has ended stays while something below it is at work or on its way: a kill from above and a
# report from below go through it.
_OLD = """
    WITH RECURSIVE held (id) AS (
      SELECT parent FROM tasks INDEXED BY tasks_by_owner WHERE ended_at IS NULL
      UNION SELECT parent FROM outbox WHERE status IN ('pending', 'leased')
      UNION SELECT tasks.parent FROM held JOIN tasks ON tasks.id = held.id)
    SELECT id, ref FROM tasks WHERE created_at < ? AND ended_at < ? AND id NOT IN held
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE task = tasks.id
                    AND status IN ('pending', 'leased', 'suspended')) LIMIT ?
"""
_WITH_THEM = ("runs", "steers", "messages", "intents", "outbox")
_IDLE_OWNERS = (
    "DELETE FROM owners WHERE lease_until < ?"
    " AND id NOT IN (SELECT owner FROM tasks WHERE ended_at IS NULL)"
    " AND id NOT IN (SELECT owner FROM outbox WHERE status IN ('pending', 'leased'))"
)
_NAMED = "SELECT 1 FROM tasks WHERE instr(ref, ?) LIMIT 1"
_ENDING = ".jsonl"


def sessions_folder(environ: Mapping[str, str]) -> str:
    """Return where our sessions keep their transcripts; empty where there is no home."""
    state = state_home(environ)
    return os.path.join(state, "notyet", "sessions") if state else ""


def prune_tasks(db: sqlite3.Connection, cutoff: float, most: int) -> int:
    """Remove some tasks that ended before `cutoff`, with their transcripts; return how many."""
    found = db.execute(_OLD, (cutoff, cutoff, most)).fetchall()
    old = [(task,) for task, _ in found]
    for table in _WITH_THEM:
        db.executemany(f"DELETE FROM {table} WHERE task = ?", old)
    db.executemany("DELETE FROM tasks WHERE id = ?", old)
    db.execute(_IDLE_OWNERS, (min(cutoff, time.time()),))
    _remove_transcripts(db, (ref for _, ref in found))
    return len(old)


def _remove_transcripts(db: sqlite3.Connection, refs: Iterable[str]) -> None:
    """Remove what our sessions wrote, and no task names any more.

    A ref is foreign code's: whatever it names, only files in our own folder are touched.
    """
    folder = sessions_folder(os.environ)
    if not folder:
        return
    for path in sorted({_transcript(ref) for ref in refs}):
        place, name = os.path.split(path)
        if not name.endswith(_ENDING) or os.path.realpath(place) != os.path.realpath(folder):
            continue
        # As a ref ends it, however the folder before it is spelled.
        if db.execute(_NAMED, (dumps(f"/{name}")[1:],)).fetchone() is None:
            try:
                os.unlink(path)
            except OSError:  # somebody was faster, or may not
                continue


def _transcript(ref: str) -> str:
    try:
        path = loads(ref).get("transcript")
    except (ValueError, AttributeError):
        return ""
    return path if isinstance(path, str) and "\0" not in path else ""
