"""Stops that nobody will answer any more: the process that was asking is gone."""

from __future__ import annotations

import time

from notyet import system
from notyet.ledger.owner import is_gone
from notyet.ledger.sqlite import asked_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

_LOST_AFTER = 86_400.0  # no gate runs for a day; a process id may have been given away by then


def is_lost(token: bytes, pid: int, pid_start: str, begun_at: float) -> bool:
    """Tell whether the process that was asking is gone, so that no answer will come."""
    if time.time() - begun_at > _LOST_AFTER:
        return True
    if pid == system.getpid():
        return token not in asked_here
    return is_gone(pid, pid_start)


def lose(db: sqlite3.Connection, stop: int) -> None:
    """The process that asked died before it could answer."""
    db.execute(
        "UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'lost' WHERE id = ?",
        (stop,),
    )
