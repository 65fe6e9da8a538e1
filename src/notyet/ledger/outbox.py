"""The outbox: results of tasks until they are delivered (K8)."""

from __future__ import annotations

import time

from notyet.core.record import replace
from notyet.errors import Refused
from notyet.ledger.leases import is_over
from notyet.ledger.stop_rows import ALL
from notyet.ledger.task_rows import (
    MAYBE_UNDELIVERED,
    NOT_YET,
    TELLING,
    TOLD,
    UNKNOWN,
    announcement_of,
    result_of,
    storable,
)
from notyet.ledger.transitions import Outgoing, delivery_key, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from notyet.core.task import Announcement, Result
    from notyet.ledger.connection import Connection
    from notyet.ledger.transitions import Seen

_DROP = """
    UPDATE outbox SET status = 'dismissed', error =
      'its parent was ' || (SELECT runs.ending FROM tasks JOIN runs ON runs.id = tasks.run
                            WHERE tasks.id = outbox.task)
    WHERE key = ? AND owner = ? AND status IN ('pending', 'leased') AND EXISTS (
      WITH RECURSIVE above (id, parent, ended_by) AS (
        SELECT id, parent, ended_by FROM tasks WHERE id = outbox.parent
        UNION
        SELECT tasks.id, tasks.parent, tasks.ended_by
        FROM above JOIN tasks ON tasks.id = above.parent)
      SELECT 1 FROM above JOIN tasks AS own ON own.id = outbox.task
      WHERE own.ended_by != '' AND above.ended_by = own.ended_by)
"""


_TELL = f"""
    UPDATE outbox SET told = CASE told WHEN {NOT_YET} THEN ? WHEN {TELLING} THEN {UNKNOWN}
      ELSE told END
    WHERE task = ? AND owner + 0 = ? RETURNING told
"""
_LEASE = """
    UPDATE outbox SET status = 'leased'
    WHERE task = ? AND owner + 0 = ? AND status IN ('pending', 'leased')
    RETURNING key, result, attempts + 1
"""
ACKNOWLEDGE = """
    UPDATE outbox SET status = 'delivered', delivered_at = ?, error = '',
      attempts = CASE WHEN status = 'leased' THEN attempts + 1 ELSE attempts END
    WHERE task = ? AND status IN ('pending', 'leased', 'suspended') AND (attempts < ? OR NOT EXISTS
      (SELECT 1 FROM messages WHERE messages.key = outbox.key AND state = 'cleared'))
"""
_RESULT = "SELECT result FROM outbox WHERE task = ? ORDER BY created_at DESC LIMIT 1"
NEWEST = "SELECT key, status FROM outbox WHERE task = ? ORDER BY created_at DESC LIMIT 1"


class Outbox:
    """Results that were stored with the end of their task."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lease(self, task: str, owner: int) -> Announcement | None:
        """Lease a result for an attempt to deliver it; None if there is nothing to do.

        Only refusals count as attempts: a crash says nothing of the consumer.
        """
        return self._connection.write(lambda db: _lease(db, task, owner))

    def take(self, task: str, owner: int, told: int, *, is_leased: bool) -> Seen | None:
        """Return a task with its result, which its owner hands out next; None while it is active.

        `told` is TELLING if observers are to be notified, else TOLD. The mark is made before, and
        becomes UNKNOWN where a process died meanwhile. With `is_leased`, the result is leased.
        """

        def take(db: sqlite3.Connection) -> Seen | None:
            seen = look(db, task)
            row = db.execute(_RESULT, (task,)).fetchone()
            if seen is None or row is None:
                return None
            # The statement of an owner that was fenced finds nothing, and does not notify.
            marked = db.execute(_TELL, (told, task, owner)).fetchall()
            outgoing = Outgoing(
                result=result_of(row[0]),
                told=marked[0][0] if marked else TOLD,
                announcement=_lease(db, task, owner) if is_leased else None,
            )
            return replace(seen, outgoing=outgoing)

        return self._connection.write(take)

    def due(self, owner: int) -> list[str]:
        """Return the tasks whose results this owner should deliver by now, or is delivering.

        Without those whose observers were not notified, which comes first.
        """
        sql = (
            "SELECT task FROM outbox WHERE owner = ? AND next_at <= ?"
            f" AND status IN ('pending', 'leased') AND told != {NOT_YET}"
        )
        return [task for (task,) in self._connection.rows(sql, (owner, time.time()))]

    def read(self, task: str) -> Result | None:
        """Return a task's result; None while it is active."""
        found = self._connection.rows(_RESULT, (task,))
        return result_of(found[0][0]) if found else None

    def results(self, tasks: Sequence[str]) -> dict[str, Result]:
        """Return the results of those tasks that have ended."""
        marks = f"({', '.join('?' * len(tasks))})"
        sql = f"SELECT task, result FROM outbox WHERE task IN {marks} ORDER BY created_at"
        return {task: result_of(text) for task, text in self._connection.rows(sql, tuple(tasks))}

    def untaken(self, most: int = 100) -> list[tuple[str, Result]]:
        """Return results of a fleet's tasks that nobody has taken, the oldest first."""
        sql = (
            f"SELECT task, result FROM outbox WHERE {MAYBE_UNDELIVERED}"
            " AND status IN ('pending', 'leased') AND EXISTS"
            " (SELECT 1 FROM tasks WHERE tasks.id = outbox.task AND queue <> '')"
            " ORDER BY outbox.created_at LIMIT ?"
        )
        return [(task, result_of(text)) for task, text in self._connection.rows(sql, (most,))]

    def is_due(self, task: str) -> bool:
        """Return True if a result should be delivered by now."""
        sql = (
            "SELECT 1 FROM outbox WHERE task = ? AND next_at <= ?"
            " AND status IN ('pending', 'leased')"
        )
        return bool(self._connection.rows(sql, (task, time.time())))

    def told(self, task: str, owner: int) -> None:
        """Record that the observers were notified."""
        sql = f"UPDATE outbox SET told = {TOLD} WHERE task = ? AND owner + 0 = ?"
        self._connection.execute(sql, (task, owner))

    def release(self, task: str, owner: int) -> None:
        """Release the lease of a result that was not delivered."""
        sql = (
            "UPDATE outbox SET status = 'pending'"
            " WHERE task = ? AND owner + 0 = ? AND status = 'leased'"
        )
        self._connection.execute(sql, (task, owner))

    def acknowledge(self, task: str, attempt: int = ALL) -> bool:
        """Record that the result was delivered; False if there is nothing to acknowledge.

        So it is after an `attempt` that only reached the queue of its parent, if that was cleared.
        """
        return self._connection.execute(ACKNOWLEDGE, (time.time(), task, attempt)) > 0

    def postpone(self, key: str, owner: int, error: str, pause: float) -> None:
        """Schedule the next attempt."""
        sql = (
            "UPDATE outbox SET status = 'pending', attempts = attempts + 1, next_at = ?, error = ?"
            " WHERE key = ? AND owner = ? AND status = 'leased'"
        )
        self._connection.execute(sql, (time.time() + pause, storable(error), key, owner))

    def suspend(self, key: str, owner: int, error: str) -> bool:
        """Suspend a delivery until a person retries; False if another process owns it now."""
        sql = (
            "UPDATE outbox SET status = 'suspended', attempts = attempts + 1, error = ?"
            " WHERE key = ? AND owner = ? AND status IN ('pending', 'leased')"
        )
        return self._connection.execute(sql, (storable(error), key, owner)) == 1

    def drop(self, key: str, owner: int) -> bool:
        """Dismiss the result of a task that a person ended together with one above it.

        False if it is not such a task. The receiver of the result was ended by the same act.
        """
        return self._connection.execute(_DROP, (key, owner)) == 1

    def retry(self, task: str, asking: int) -> None:
        """Deliver again, under the same key, or under a new one if it was delivered already.

        The owner of the task does it, if it lives.
        """

        def again(db: sqlite3.Connection) -> None:
            row = self._newest(db, task)
            if row[1] in {"delivered", "dismissed"} and _is_main(db, task):
                raise Refused(
                    f"task {task} is a main agent's, and its caller has had the result; "
                    f"read it with: notyet tasks show {task}"
                )
            now = time.time()
            (had,) = db.execute("SELECT owner FROM outbox WHERE key = ?", row[:1]).fetchone()
            owner = asking if is_over(db, had) else had
            if row[1] in {"suspended", "pending", "leased"}:
                db.execute(
                    "UPDATE outbox SET status = 'pending', attempts = 0, next_at = ?, owner = ?"
                    " WHERE key = ?",
                    (now, owner, row[0]),
                )
                return
            (count,) = db.execute("SELECT count(*) FROM outbox WHERE task = ?", (task,)).fetchone()
            db.execute(
                "INSERT INTO outbox"
                " (key, task, parent, result, status, owner, told, next_at, created_at)"
                " SELECT ?, task, parent, result, 'pending', ?, told, ?, ?"
                " FROM outbox WHERE key = ?",
                (delivery_key(task, count + 1), owner, now, now, row[0]),
            )

        self._connection.write_through(again)

    def dismiss(self, task: str) -> None:
        """Mark a result as no longer needed."""

        def dismiss(db: sqlite3.Connection) -> None:
            key = self._newest(db, task)[0]
            db.execute("UPDATE outbox SET status = 'dismissed' WHERE key = ?", (key,))

        self._connection.write(dismiss)

    def _newest(self, db: sqlite3.Connection, task: str) -> tuple[str, str]:
        row: tuple[str, str] | None = db.execute(NEWEST, (task,)).fetchone()
        if row is None:
            raise Refused(f"task {task} has no result yet; list tasks with: notyet tasks")
        return row


def _lease(db: sqlite3.Connection, task: str, owner: int) -> Announcement | None:
    row = db.execute(_LEASE, (task, owner)).fetchone()
    return announcement_of(*row) if row is not None else None


def _is_main(db: sqlite3.Connection, task: str) -> bool:
    seen = look(db, task)
    return seen is not None and seen.task.scope == "agent"
