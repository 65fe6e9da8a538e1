"""Intents: what other processes ask of a task's owner, who alone acts on it (K18)."""

from __future__ import annotations

import time

from notyet.core.record import Record
from notyet.ledger.task_rows import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Literal

    from notyet.ledger.connection import Connection

    What = Literal["steer", "kill", "reset", "interrupt", "say"]


class Intent(Record, kw_only=True):
    """One wish."""

    id: int
    task: str
    what: What
    text: str


class Intents:
    """Written by anybody, answered by the owner."""

    def __init__(self, file: Connection) -> None:
        self._file = file

    def wish(self, task: str, what: What, text: str) -> int:
        """Write an intent down; return its number."""
        new = (task, what, storable(text), time.time())
        sql = "INSERT INTO intents (task, what, text, at, state) VALUES (?, ?, ?, ?, 'pending')"
        return self._file.write(lambda db: db.execute(sql, new).lastrowid or 0)

    def waiting(self, owner: int) -> list[Intent]:
        """Return what is asked of an owner's tasks, in the order of asking."""

        def read(db: sqlite3.Connection) -> list[Intent]:
            rows = db.execute(
                "SELECT intents.id, task, what, text FROM intents JOIN tasks ON tasks.id = task"
                " WHERE state = 'pending' AND owner = ? ORDER BY +intents.id",
                (owner,),
            ).fetchall()
            return [Intent(id=n, task=task, what=what, text=text) for n, task, what, text in rows]

        return self._file.read(read)

    def answer(self, intent: int, state: Literal["done", "refused"], answer: str = "") -> None:
        """Say what became of an intent."""
        sql = "UPDATE intents SET state = ?, answer = ? WHERE id = ? AND state = 'pending'"
        self._file.write(lambda db: db.execute(sql, (state, storable(answer), intent)))

    def withdraw(self, intent: int) -> bool:
        """Take an intent back that nobody has answered."""
        sql = "DELETE FROM intents WHERE id = ? AND state = 'pending'"
        return self._file.write(lambda db: db.execute(sql, (intent,)).rowcount == 1)

    def read(self, intent: int) -> tuple[str, str]:
        """Return an intent's state and answer."""

        def read(db: sqlite3.Connection) -> tuple[str, str]:
            row: tuple[str, str] | None = db.execute(
                "SELECT state, answer FROM intents WHERE id = ?", (intent,)
            ).fetchone()
            return row or ("refused", "it was withdrawn")

        return self._file.read(read)
