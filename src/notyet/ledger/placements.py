"""Tasks of a fleet: queued until a worker begins them, within the limits of their queue.

A task is entered together with its placement, the engine's entry in a queue. `placement` is empty
where a task needs another one: it was queued again, or the worker that took it died before it
began. Limits are checked in the move that begins a task, by the database's clock: whatever delayed
a worker until then, no limit is exceeded.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from notyet.core.record import Record, as_dict
from notyet.core.task import Order, Run
from notyet.core.text import visible
from notyet.errors import Refused
from notyet.ledger.connection import NOW
from notyet.ledger.leases import OWNER_COLUMNS, has_ended
from notyet.ledger.task_rows import MAYBE_UNDELIVERED, NOT_YET, TELLING, json_of, storable
from notyet.ledger.transitions import LOOK, look, move, new_run, run_id, seen_of
from notyet.light import dumps, loads

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.task import Room, Task
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.transitions import Seen

FLEET = "fleet"  # the program of its workers
ADDRESS = "NOTYET_FLEET"  # the variable with the address of its ledger
LOOK_IN_QUEUE = f"{LOOK} AND tasks.queue <> ''"  # on PostgreSQL it locks the queue, too
UNPLACED = (
    "SELECT id, ordered FROM tasks"
    " WHERE queue <> '' AND placement = '' AND ended_at IS NULL ORDER BY id LIMIT ?"
)
PLACED = (
    "SELECT id, placement FROM tasks WHERE queue <> '' AND begun = 0 AND ended_at IS NULL"
    " AND placement <> '' AND id > ? ORDER BY id LIMIT ?"
)
# Tasks whose worker may be dead: at work, or ended without that their observers know.
_BEGUN = f"""
    SELECT tasks.id, tasks.machine, {", ".join(OWNER_COLUMNS)} FROM tasks
    LEFT JOIN owners ON owners.id = tasks.owner
    WHERE queue <> '' AND begun = 1 AND tasks.ended_at IS NULL
    UNION ALL
    SELECT tasks.id, tasks.machine, {", ".join(OWNER_COLUMNS)} FROM outbox
    JOIN tasks ON tasks.id = outbox.task LEFT JOIN owners ON owners.id = outbox.owner
    WHERE queue <> '' AND outbox.status IN ('pending', 'leased')
    AND outbox.told IN ({NOT_YET}, {TELLING})
"""
_WORKERS = f"""
    SELECT worker, (SELECT count(*) FROM tasks WHERE tasks.owner = owners.id
                    AND queue <> '' AND begun = 1 AND ended_at IS NULL),
           lease_until - {NOW}, {", ".join(OWNER_COLUMNS)}
    FROM owners WHERE program = '{FLEET}'
"""
# In two parts, each as an index says it.
_COUNTS = """
    SELECT queue, model, 0, count(*) FROM tasks
    WHERE queue <> '' AND begun = 0 AND ended_at IS NULL GROUP BY queue, model
    UNION ALL
    SELECT queue, model, 1, count(*) FROM tasks
    WHERE queue <> '' AND begun = 1 AND ended_at IS NULL GROUP BY queue, model
"""


class Orphan(Record, kw_only=True):
    """A task whose worker is dead."""

    task: str
    machine: str  # where its conversation is, '' for anywhere


class Placements:
    """The fleet's side of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._connection = ledger.connection

    # -- queues

    def define(self, name: str, about: Mapping[str, Any]) -> None:
        """Store what a queue allows."""
        sql = (
            "INSERT INTO queues (name, about) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET about = excluded.about"
        )
        self._connection.execute(sql, (name, storable(dumps(about))))

    def queues(self) -> dict[str, dict[str, Any]]:
        """Return what the queues allow, by name."""
        rows = self._connection.rows("SELECT name, about FROM queues ORDER BY name")
        return {name: loads(about) for name, about in rows}

    def note_schedule(self, name: str, cron: str, order: Mapping[str, Any]) -> None:
        """Store a schedule, for people to see."""
        sql = (
            "INSERT INTO schedules (name, cron, ordered) VALUES (?, ?, ?) ON CONFLICT (name)"
            " DO UPDATE SET cron = excluded.cron, ordered = excluded.ordered"
        )
        self._connection.execute(sql, (name, cron, storable(dumps(order))))

    def forget_schedule(self, name: str) -> bool:
        """Delete a schedule; False if there is none of this name."""
        return self._connection.execute("DELETE FROM schedules WHERE name = ?", (name,)) == 1

    def schedules(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the schedules: names, times and what is submitted."""
        rows = self._connection.rows("SELECT name, cron, ordered FROM schedules ORDER BY name")
        return [(name, cron, loads(order)) for name, cron, order in rows]

    # -- moves

    def adopt(
        self,
        task: Task,
        owner: int,
        ref: Mapping[str, Any],
        session_id: str,
        *,
        key: str,
        machine: str,
        room: Room,
    ) -> float | None:
        """Begin a queued task; return 0, or for how many seconds there is no room.

        None if it is not queued any more. `task` may have another folder than when it was queued.
        """

        def begin(db: sqlite3.Connection) -> float | None:
            seen = look(db, task.id, LOOK_IN_QUEUE)
            if seen is None or seen.run.state != "queued":
                return None
            if wait := _wait(db, seen.queue, room):
                return wait
            move(db, seen.run, "start", key=key, started_at=time.time())
            db.execute(
                "UPDATE tasks SET about = ?, owner = ?, ref = ?, session_id = ?, begun = 1,"
                " machine = ? WHERE id = ?",
                (
                    json_of(task),
                    owner,
                    storable(dumps(ref)),
                    storable(session_id),
                    machine,
                    task.id,
                ),
            )
            db.execute(
                f"INSERT INTO begins (queue, model, at) SELECT queue, model, {NOW} FROM tasks"
                " WHERE id = ?",
                (task.id,),
            )
            return 0.0

        return self._connection.write_through(begin)

    def unplace(self, task: str, placement: str) -> bool:
        """Let a queued task be placed anew; False if it is not queued, or placed since."""

        def forget(db: sqlite3.Connection) -> bool:
            seen = look(db, task)
            if seen is None or seen.run.state != "queued":
                return False
            sql = "UPDATE tasks SET placement = '' WHERE id = ? AND placement = ?"
            return db.execute(sql, (task, placement)).rowcount == 1

        return self._connection.write(forget)

    def order(self, task: str) -> tuple[Seen, Order] | None:
        """Return a task and how to begin it; None if it is not of a fleet."""

        def read(db: sqlite3.Connection) -> tuple[Seen, Order] | None:
            row = db.execute(LOOK, (task,)).fetchone()
            found = db.execute("SELECT ordered FROM tasks WHERE id = ?", (task,)).fetchone()
            if row is None or found is None or not (seen := seen_of(row)).queue:
                return None
            return seen, order_of(found[0])

        return self._connection.read(read)

    def states(self, tasks: list[str]) -> dict[str, str]:
        """Return the states of tasks; those that are unknown are missing."""
        marks = f"({', '.join('?' * len(tasks))})"
        sql = (
            "SELECT tasks.id, runs.state FROM tasks JOIN runs ON runs.id = tasks.run"
            f" WHERE tasks.id IN {marks}"
        )
        return dict(self._connection.rows(sql, tuple(tasks))) if tasks else {}

    # -- what dead workers left

    def orphans(self) -> list[Orphan]:
        """Return tasks at work whose worker is dead."""
        return [
            Orphan(task=task, machine=machine)
            for task, machine, *owner in self._connection.rows(_BEGUN)
            if owner[0] is None or has_ended(*owner)
        ]

    def placed(self, after: str, most: int) -> list[tuple[str, str]]:
        """Return queued tasks with their placements, in the order of their ids."""
        return [
            (task, placement) for task, placement in self._connection.rows(PLACED, (after, most))
        ]

    def workers(self) -> list[dict[str, Any]]:
        """Return what is known of the workers that live."""
        return [about for about, _, _, is_alive in self.workers_at_work() if is_alive]

    def workers_at_work(self) -> list[tuple[dict[str, Any], int, float, bool]]:
        """Return the workers that live or left tasks: about, tasks, seconds of lease, is alive."""
        return [
            (loads(about), tasks, max(0.0, lease), is_alive)
            for about, tasks, lease, *owner in self._connection.rows(_WORKERS)
            if (is_alive := not has_ended(*owner)) or tasks
        ]

    def describe(self, owner: int, worker: Mapping[str, Any]) -> None:
        """Store what people want to know of a worker."""
        sql = "UPDATE owners SET worker = ? WHERE id = ?"
        self._connection.execute(sql, (storable(dumps(worker)), owner))

    def counts(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Return how many tasks wait and are at work, by queue and model."""
        found: dict[tuple[str, str], list[int]] = {}
        for queue, model, begun, count in self._connection.rows(_COUNTS):
            found.setdefault((queue, model), [0, 0])[begun] = count
        return {key: (waiting, at_work) for key, (waiting, at_work) in sorted(found.items())}

    def untaken(self) -> int:
        """Return how many results of a fleet nobody has taken."""
        sql = (
            f"SELECT count(*) FROM outbox WHERE {MAYBE_UNDELIVERED} AND EXISTS"
            " (SELECT 1 FROM tasks WHERE tasks.id = outbox.task AND queue <> '')"
        )
        return int(self._connection.rows(sql)[0][0])

    def begun_within(self, queue: str, model: str | None, period: float) -> int:
        """Return how many tasks began in the last seconds."""
        limited, values = _of(queue, model)
        sql = f"SELECT count(*) FROM begins WHERE {limited} AND at > {NOW} - ?"
        return int(self._connection.rows(sql, (*values, period))[0][0])


def enter(db: sqlite3.Connection, task: Task, order: Order, placement: str) -> bool:
    """Enter a queued task in the caller's transaction; False if it is known. Raises Refused."""
    names = [name for (name,) in db.execute("SELECT name FROM queues ORDER BY name").fetchall()]
    if order.queue not in names:
        raise unknown_queue(order.queue, names)
    if db.execute("SELECT 1 FROM tasks WHERE id = ?", (task.id,)).fetchone() is not None:
        return False  # two at once: the second has a duplicate key
    run = Run(
        id=run_id(task.id, 1),
        task=task.id,
        generation=1,
        state="queued",
        source="start",
        key="",
        prompt=task.prompt,
        sent="reserved",
        started_at=time.time(),
    )
    db.execute(
        "INSERT INTO tasks (id, parent, about, owner, run, generation, ref, session_id, created_at,"
        " queue, model, ordered, retries, placement)"
        " VALUES (?, '', ?, 0, ?, 1, '{}', '', ?, ?, ?, ?, ?, ?)",
        (
            task.id,
            json_of(task),
            run.id,
            run.started_at,
            order.queue,
            order.model,
            storable(dumps(as_dict(order))),
            order.retries,
            placement,
        ),
    )
    new_run(db, run)
    return True


def unplaced(db: sqlite3.Connection, most: int) -> list[tuple[str, Order]]:
    """Return tasks that need a placement."""
    return [(task, order_of(text)) for task, text in db.execute(UNPLACED, (most,)).fetchall()]


def note_placement(db: sqlite3.Connection, task: str, placement: str) -> bool:
    """Record a task's placement; False if another process was faster, or it has ended."""
    seen = look(db, task)
    if seen is None or seen.run.state != "queued":
        return False
    sql = "UPDATE tasks SET placement = ? WHERE id = ? AND placement = ''"
    return db.execute(sql, (placement, task)).rowcount == 1


def unknown_queue(name: str, known: list[str]) -> Refused:
    """Return the error for a queue that is not defined."""
    there = f"there are: {', '.join(known)}" if known else "none is defined yet"
    return Refused(
        f"there is no queue {name!r} ({there}); define it with: notyet tasks queue {visible(name)}"
    )


def order_of(text: str) -> Order:
    """Read the JSON of an order."""
    known = loads(text)
    known["args"] = tuple(known.get("args", ()))
    return Order(**{name: value for name, value in known.items() if name in Order._fields})


def _wait(db: sqlite3.Connection, queue: str, room: Room) -> float:
    """Return for how many seconds there is no room; 0 if there is."""
    limited, values = _of(queue, room.model)
    if room.at_once is not None:
        at_work = f"SELECT count(*) FROM tasks WHERE {limited} AND {_IS_BEGUN}"
        if db.execute(at_work, values).fetchone()[0] >= room.at_once:
            return _WHEN_ONE_ENDS
    if room.rate is not None:
        # The oldest of the last `rate` that began; the next may begin a period after it.
        began = f"SELECT at - {NOW} FROM begins WHERE {limited} ORDER BY at DESC LIMIT 1 OFFSET ?"
        row = db.execute(began, (*values, room.rate - 1)).fetchone()
        if row is not None and row[0] + room.period > 0:
            return float(row[0] + room.period)
    return 0.0


_IS_BEGUN = "queue <> '' AND begun = 1 AND ended_at IS NULL"
_WHEN_ONE_ENDS = 1.0  # seconds; nothing says when


def _of(queue: str, model: str | None) -> tuple[str, tuple[str, ...]]:
    return ("queue = ?", (queue,)) if model is None else ("queue = ? AND model = ?", (queue, model))
