"""Owners: processes that drive tasks, and the leases that prove they live (K18).

An owner on this machine lives as long as its process does. One elsewhere lives as long as its
lease, by the database's clock.
"""

from __future__ import annotations

import os

from notyet.ledger.connection import NOW
from notyet.run.proc import is_gone, own_boot, own_machine, own_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from notyet.ledger.connection import Connection

OWNER_COLUMNS = (
    *("owners.pid", "owners.pid_start", "owners.boot", "owners.machine"),
    f"CASE WHEN lease_until = 0 THEN 'retired' WHEN lease_until < {NOW} THEN 'expired' ELSE '' END",
)
CARRY_OVER = (
    "UPDATE tasks SET owner = ? WHERE owner = ? AND ended_at IS NULL",
    (
        "UPDATE tasks SET owner = ? WHERE id IN"
        " (SELECT task FROM outbox WHERE owner = ? AND status IN ('pending', 'leased'))"
    ),
    "UPDATE outbox SET owner = ? WHERE owner = ? AND status IN ('pending', 'leased')",
)
_ENROL = (
    "INSERT INTO owners (pid, pid_start, boot, machine, program, lease_until)"
    f" VALUES (?, ?, ?, ?, ?, {NOW} + ?) RETURNING id"
)


class Leases:
    """The lease of this process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def enrol(self, lease: float, before: int = 0, program: str = "") -> int:
        """Enter this process as an owner; return its number.

        It takes over tasks of the same `program` from dead owners. `before` is its number until
        another process took it for dead; tasks that the other did not take over are carried over.
        """
        new = (os.getpid(), own_start(), own_boot(), own_machine(), program, lease)

        def enter(db: sqlite3.Connection) -> int:
            owner = int(db.execute(_ENROL, new).fetchone()[0])
            if before:
                for carry_over in CARRY_OVER:
                    db.execute(carry_over, (owner, before))
            return owner

        return self._connection.write(enter)

    def renew(self, owner: int, lease: float) -> bool:
        """Renew the lease; False if another process took this owner for dead."""
        sql = f"UPDATE owners SET lease_until = {NOW} + ? WHERE id = ?"
        return self._connection.execute(sql, (lease, owner)) == 1

    def retire(self, owner: int) -> None:
        """End the lease at once."""
        sql = "UPDATE owners SET lease_until = 0 WHERE id = ?"
        self._connection.execute(sql, (owner,))


def is_over(db: sqlite3.Connection, owner: int) -> bool:
    """Return True if an owner is dead, or its lease has expired."""
    row = db.execute(
        f"SELECT {', '.join(OWNER_COLUMNS)} FROM owners WHERE id = ?",  # our own names
        (owner,),
    ).fetchone()
    return row is None or has_ended(*row)


def has_ended(pid: int, started: str, boot: str, machine: str, lease: str) -> bool:
    """Return True if the owner with these `OWNER_COLUMNS` is dead, or its lease has expired."""
    if lease == "retired":
        return True
    if machine != own_machine():
        return lease == "expired"
    if boot and own_boot() and boot != own_boot():
        return True
    if not started and lease == "expired":
        return True  # its number may be another process's by now
    return pid != os.getpid() and is_gone(pid, started)
