"""Forgetting supervised tasks that ended long ago; never one that is active or undelivered."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

_OLD = (
    "SELECT id FROM tasks WHERE created_at < ?1 AND ended_at < ?1 AND NOT EXISTS (SELECT 1 FROM"
    " outbox WHERE task = tasks.id AND status IN ('pending', 'leased', 'suspended')) LIMIT ?2"
)
_WITH_THEM = ("runs", "steers", "messages", "intents", "outbox")
_IDLE_OWNERS = (
    "DELETE FROM owners WHERE lease_until < ?"
    " AND id NOT IN (SELECT owner FROM tasks WHERE ended_at IS NULL)"
    " AND id NOT IN (SELECT owner FROM outbox WHERE status IN ('pending', 'leased'))"
)


def prune_tasks(db: sqlite3.Connection, cutoff: float, most: int) -> int:
    """Remove some tasks that ended before `cutoff`; return how many."""
    old = db.execute(_OLD, (cutoff, most)).fetchall()
    for table in _WITH_THEM:
        db.executemany(f"DELETE FROM {table} WHERE task = ?", old)
    db.executemany("DELETE FROM tasks WHERE id = ?", old)
    db.execute(_IDLE_OWNERS, (min(cutoff, time.time()),))
    return len(old)
