"""Owners: processes that drive tasks, the leases that prove they live, and intents (K18).

An intent is the request of another process for a task; only the task's owner carries it out.
"""

from __future__ import annotations

import os
import time

from notyet.core.record import Record
from notyet.ledger.task_rows import storable
from notyet.run.proc import is_gone, own_start, own_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Literal

    from notyet.ledger.connection import Connection

    What = Literal["steer", "kill", "reset", "interrupt", "say"]


class Intent(Record, kw_only=True):
    """One request."""

    id: int
    task: str
    what: What
    text: str


class Intents:
    """Requests: written by any process, answered by the owner."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, task: str, what: What, text: str) -> int:
        """Store a request; return its number."""
        new = (task, what, storable(text), time.time())
        sql = (
            "INSERT INTO intents (task, what, text, at, state) VALUES (?, ?, ?, ?, 'pending')"
            " RETURNING id"
        )
        return self._connection.write(lambda db: int(db.execute(sql, new).fetchone()[0]))

    def waiting(self, owner: int) -> list[Intent]:
        """Return the open requests for an owner's tasks, in order."""

        sql = (
            "SELECT intents.id, task, what, text FROM intents JOIN tasks ON tasks.id = task"
            " WHERE state = 'pending' AND owner = ? ORDER BY intents.id + 0"
        )
        rows = self._connection.rows(sql, (owner,))
        return [Intent(id=n, task=task, what=what, text=text) for n, task, what, text in rows]

    def answer(self, intent: int, state: Literal["done", "refused"], answer: str = "") -> None:
        """Answer a request."""
        sql = "UPDATE intents SET state = ?, answer = ? WHERE id = ? AND state = 'pending'"
        self._connection.execute(sql, (state, storable(answer), intent))

    def withdraw(self, intent: int) -> bool:
        """Delete a request; False if it was answered."""
        sql = "DELETE FROM intents WHERE id = ? AND state = 'pending'"
        return self._connection.execute(sql, (intent,)) == 1

    def read(self, intent: int) -> tuple[str, str]:
        """Return the state of a request, and its answer."""

        sql = "SELECT state, answer FROM intents WHERE id = ?"
        found = self._connection.rows(sql, (intent,))
        return found[0] if found else ("refused", "it was withdrawn")


OWNER_COLUMNS = ("owners.pid", "owners.pid_start", "boot", "space", "lease_until")
_CARRY_OVER = (
    "UPDATE tasks SET owner = ? WHERE owner = ? AND ended_at IS NULL",
    (
        "UPDATE tasks SET owner = ? WHERE id IN"
        " (SELECT task FROM outbox WHERE owner = ? AND status IN ('pending', 'leased'))"
    ),
    "UPDATE outbox SET owner = ? WHERE owner = ? AND status IN ('pending', 'leased')",
)
_ENROL = (
    "INSERT INTO owners (pid, pid_start, boot, space, program, lease_until)"
    " VALUES (?, ?, ?, ?, ?, ?) RETURNING id"
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
        new = (os.getpid(), own_start(), *own_system(), program, time.time() + lease)

        def enter(db: sqlite3.Connection) -> int:
            owner = int(db.execute(_ENROL, new).fetchone()[0])
            if before:
                for carry_over in _CARRY_OVER:
                    db.execute(carry_over, (owner, before))
            return owner

        return self._connection.write(enter)

    def renew(self, owner: int, lease: float) -> bool:
        """Renew the lease; False if another process took this owner for dead."""
        sql = "UPDATE owners SET lease_until = ? WHERE id = ?"
        return self._connection.execute(sql, (time.time() + lease, owner)) == 1

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


def has_ended(pid: int, started: str, boot: str, space: str, until: float) -> bool:
    """Return True if the owner with these `OWNER_COLUMNS` is dead, or its lease has expired."""
    if until < time.time():
        return True
    own_boot, own_space = own_system()
    if space and own_space and space != own_space:
        return False  # another container: only the lease tells
    if boot and own_boot and boot != own_boot:
        return True
    return pid != os.getpid() and is_gone(pid, started)
