"""Owners: the processes that drive supervised tasks, each for as long as it renews its lease."""

from __future__ import annotations

import os
import time

from notyet.ledger.owner import is_gone, own_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from notyet.ledger.connection import Connection

_OPEN = "outbox WHERE owner = ?2 AND status IN ('pending', 'leased')"
_CARRY_OVER = (
    "UPDATE tasks SET owner = ?1 WHERE owner = ?2 AND ended_at IS NULL",
    f"UPDATE tasks SET owner = ?1 WHERE id IN (SELECT task FROM {_OPEN})",
    f"UPDATE {_OPEN.replace(' WHERE', ' SET owner = ?1 WHERE')}",
)


class Leases:
    """How this process says that it lives."""

    def __init__(self, file: Connection) -> None:
        self._file = file

    def enrol(self, lease: float, before: int = 0, program: str = "") -> int:
        """Enter this process as an owner; return its number.

        `program` is whose tasks it drives, and takes over from the dead. `before` is the
        number it had until another process took it for dead. What that one did not take, because
        it was not there yet, is carried over.
        """
        new = (os.getpid(), own_start(), program, time.time() + lease)

        def enter(db: sqlite3.Connection) -> int:
            sql = "INSERT INTO owners (pid, pid_start, program, lease_until) VALUES (?, ?, ?, ?)"
            owner = db.execute(sql, new).lastrowid or 0
            if before:
                for carry_over in _CARRY_OVER:
                    db.execute(carry_over, (owner, before))
            return owner

        return self._file.write(enter)

    def renew(self, owner: int, lease: float) -> bool:
        """Renew the lease; False when another process took the owner for dead."""
        sql = "UPDATE owners SET lease_until = ? WHERE id = ?"
        until = (time.time() + lease, owner)
        return self._file.write(lambda db: db.execute(sql, until).rowcount == 1)

    def retire(self, owner: int) -> None:
        """Say that this owner will do nothing any more."""
        sql = "UPDATE owners SET lease_until = 0 WHERE id = ?"
        self._file.write(lambda db: db.execute(sql, (owner,)))


def is_over(db: sqlite3.Connection, owner: int) -> bool:
    """Tell whether an owner is dead, or let its lease run out."""
    row = db.execute(
        "SELECT pid, pid_start, lease_until FROM owners WHERE id = ?", (owner,)
    ).fetchone()
    if row is None:
        return True
    pid, started, until = row
    if until < time.time():
        return True
    return pid != os.getpid() and is_gone(pid, started)
