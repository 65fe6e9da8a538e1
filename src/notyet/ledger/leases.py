"""Owners: the processes that drive supervised tasks, each for as long as it renews its lease."""

from __future__ import annotations

import os
import time

from notyet.ledger.owner import is_gone, own_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from notyet.ledger.connection import Connection


class Leases:
    """How this process says that it lives."""

    def __init__(self, file: Connection) -> None:
        self._file = file

    def enrol(self, lease: float) -> int:
        """Enter this process as an owner; return its number."""
        new = (os.getpid(), own_start(), time.time() + lease)
        sql = "INSERT INTO owners (pid, pid_start, lease_until) VALUES (?, ?, ?)"
        return self._file.write(lambda db: db.execute(sql, new).lastrowid or 0)

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
