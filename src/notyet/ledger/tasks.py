"""Supervised tasks in the ledger: entered, looked at, listed, and taken over from the dead."""

from __future__ import annotations

import time

from notyet.core.json_text import dumps
from notyet.core.record import replace
from notyet.errors import Refused
from notyet.ledger.leases import is_over
from notyet.ledger.owner import is_gone
from notyet.ledger.task_moves import (
    can,
    look,
    new_run,
)
from notyet.ledger.task_rows import VIEW_COLUMNS, json_of, storable, view_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any, Literal

    from notyet.core.task import Run, Task, TaskView
    from notyet.ledger.sqlite import Ledger
    from notyet.ledger.task_moves import Seen

_VIEWS = f"""
    SELECT {", ".join(VIEW_COLUMNS)}, owners.lease_until FROM tasks
    JOIN runs ON runs.id = tasks.run
    LEFT JOIN owners ON owners.id = tasks.owner
    LEFT JOIN outbox ON outbox.task = tasks.id AND outbox.key =
      (SELECT key FROM outbox WHERE task = tasks.id ORDER BY created_at DESC LIMIT 1)
"""  # the names of our own columns


class Tasks:
    """The part of a ledger that the supervisor drives its tasks by."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._file = ledger.file

    def start(
        self,
        task: Task,
        run: Run,
        owner: int,
        ref: Mapping[str, Any],
        session_id: str,
        *,
        max_depth: int,
        max_children: int,
    ) -> None:
        """Enter a task with its first run. Raises Refused."""

        def enter(db: sqlite3.Connection) -> None:
            if task.parent:
                _check_parent(db, task, max_depth, max_children)
            now = time.time()
            db.execute(
                "INSERT INTO tasks (id, parent, about, owner, run, generation, ref, session_id,"
                " created_at) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?)",
                (
                    task.id,
                    task.parent,
                    json_of(task),
                    owner,
                    run.id,
                    storable(dumps(ref)),
                    storable(session_id),
                    now,
                ),
            )
            new_run(db, replace(run, started_at=now))

        self._file.write(enter)

    def look(self, task: str) -> Seen | None:
        """Return a task as it is now."""
        return self._file.read(lambda db: look(db, task))

    def mark_sent(self, run: Run, owner: int, sent: Literal["dispatched", "accepted"]) -> bool:
        """Say what is known of a first prompt: before it is sent, and when it has arrived."""

        def mark(db: sqlite3.Connection) -> bool:
            marked = db.execute(
                "UPDATE runs SET sent = ? WHERE id = ? AND state = 'running' AND EXISTS"
                " (SELECT 1 FROM tasks WHERE id = runs.task AND run = runs.id AND owner = ?)",
                (sent, run.id, owner),
            )
            return marked.rowcount == 1

        return self._file.write(mark)

    def note_session(self, task: str, owner: int, ref: Mapping[str, Any], session_id: str) -> bool:
        """Keep how a session is reopened. The id that a task had first stays: counts hang on it."""

        def note(db: sqlite3.Connection) -> bool:
            noted = db.execute(
                "UPDATE tasks SET ref = ?, session_id = iif(session_id = '', ?, session_id)"
                " WHERE id = ? AND owner = ?",
                (storable(dumps(ref)), storable(session_id), task, owner),
            )
            return noted.rowcount == 1

        return self._file.write(note)

    def children(self, task: str) -> list[str]:
        """Return the active children of a task."""
        sql = "SELECT id FROM tasks WHERE parent = ? AND ended_at IS NULL"
        rows = self._file.read(lambda db: db.execute(sql, (task,)).fetchall())
        return [child for (child,) in rows]

    def unheard(self, task: str) -> list[str]:
        """Return the children of a task that are active, or whose results are on their way."""
        sql = (
            "SELECT id FROM tasks WHERE parent = ?1 AND ended_at IS NULL UNION ALL"
            " SELECT task FROM outbox WHERE parent = ?1 AND status IN ('pending', 'leased')"
        )
        rows = self._file.read(lambda db: db.execute(sql, (task,)).fetchall())
        return [child for (child,) in rows]

    def knows_session(self, session_id: str) -> bool:
        """Tell whether a session has worked on a task before."""
        return self._file.read(
            lambda db: (
                db.execute(
                    "SELECT 1 FROM tasks WHERE session_id = ? LIMIT 1", (session_id,)
                ).fetchone()
                is not None
            )
        )

    def claim(self, owner: int) -> list[str]:
        """Take over the tasks and results of owners that are gone; return those tasks (K18)."""

        def claim(db: sqlite3.Connection) -> list[str]:
            gone = [other for other in _owners_at_work(db, owner) if is_over(db, other)]
            claimed: list[str] = []
            for other in gone:
                rows = db.execute(
                    "SELECT id FROM tasks WHERE owner = ? AND ended_at IS NULL", (other,)
                ).fetchall()
                claimed += [task for (task,) in rows]
                db.execute(
                    "UPDATE tasks SET owner = ? WHERE owner = ? AND ended_at IS NULL",
                    (owner, other),
                )
                rows = db.execute(
                    "SELECT task FROM outbox WHERE owner = ? AND status IN ('pending', 'leased')",
                    (other,),
                ).fetchall()
                claimed += [task for (task,) in rows]
                db.execute(
                    "UPDATE outbox SET owner = ?, status = 'pending'"
                    " WHERE owner = ? AND status IN ('pending', 'leased')",
                    (owner, other),
                )
                db.execute("DELETE FROM owners WHERE id = ?", (other,))
            return claimed

        return self._file.write(claim)

    def views(self, only: str = "", most: int = 1000) -> list[TaskView]:
        """Return tasks as a list shows them, the newest first; or just one."""
        where = "WHERE tasks.id = ?" if only else "WHERE ?"

        def read(db: sqlite3.Connection) -> list[TaskView]:
            rows = db.execute(
                f"{_VIEWS} {where} ORDER BY tasks.created_at DESC LIMIT ?", (only or 1, most)
            ).fetchall()
            return [view_of(row[:-1], alive=_is_alive(row[12], row[13], row[-1])) for row in rows]

        return self._file.read(read)


def _is_alive(pid: int | None, started: str | None, lease_until: float | None) -> bool:
    if pid is None or lease_until is None or lease_until < time.time():
        return False
    return not is_gone(pid, started or "")


def _check_parent(db: sqlite3.Connection, task: Task, max_depth: int, max_children: int) -> None:
    parent = look(db, task.parent)
    if parent is None or not can(parent.run, "kill"):
        raise Refused(f"the parent task {task.parent} has ended; nobody would get the result")
    if task.depth > max_depth:
        raise Refused(f"agents may be nested {max_depth} deep, and this one would be deeper")
    (count,) = db.execute(
        "SELECT count(*) FROM tasks WHERE parent = ? AND ended_at IS NULL", (task.parent,)
    ).fetchone()
    if count >= max_children:
        raise Refused(f"{count} children are at work already, of {max_children} at once")


def _owners_at_work(db: sqlite3.Connection, owner: int) -> list[int]:
    rows = db.execute(
        "SELECT owner FROM tasks WHERE ended_at IS NULL UNION"
        " SELECT owner FROM outbox WHERE status IN ('pending', 'leased')"
    ).fetchall()
    return [other for (other,) in rows if other != owner]
