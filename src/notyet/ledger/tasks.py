"""Tasks of supervised agents: entering, finding and taking them over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from notyet.core.record import Record, replace
from notyet.errors import Refused
from notyet.ledger.leases import OWNER_COLUMNS, has_ended, is_over
from notyet.ledger.stop_rows import ALL
from notyet.ledger.task_rows import (
    MAYBE_UNDELIVERED,
    NOT_YET,
    RUN_COLUMNS,
    TELLING,
    VIEW_COLUMNS,
    json_of,
    run_of,
    storable,
    task_of,
    view_of,
)
from notyet.ledger.transitions import LOOK, LOSE_STOPS, Seen, can, children, look, new_run, seen_of
from notyet.light import dumps, loads

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping

    from notyet.core.task import Run, Task, TaskView
    from notyet.ledger.ledger import Ledger

_VIEWS = f"""
    SELECT {", ".join(VIEW_COLUMNS)}, {", ".join(OWNER_COLUMNS)} FROM tasks
    JOIN runs ON runs.id = tasks.run
    LEFT JOIN owners ON owners.id = tasks.owner
    LEFT JOIN outbox ON outbox.task = tasks.id AND outbox.key =
      (SELECT key FROM outbox WHERE task = tasks.id ORDER BY created_at DESC LIMIT 1)
"""
_ACTIVE = "SELECT id FROM tasks WHERE owner = ? AND ended_at IS NULL"
_MOVED = "SELECT 1 FROM tasks WHERE owner = ? AND moved = 1 LIMIT 1"
_UNDELIVERED = "SELECT task FROM outbox WHERE owner = ? AND status IN ('pending', 'leased')"

# The ids of tasks in the order of a list, after the time and id of the one before.
_NEXT_OF_ALL = (
    "SELECT id FROM tasks WHERE (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?"
)
_NEXT_ACTIVE = _NEXT_OF_ALL.replace("WHERE", "WHERE ended_at IS NULL AND")
_NEXT_BEGUN = _NEXT_ACTIVE.replace("WHERE", "WHERE owner > 0 AND")  # not queued
_NEXT_UNDELIVERED = (
    f"SELECT task FROM outbox WHERE {MAYBE_UNDELIVERED} AND (created_at, task) < (?, ?)"
    " ORDER BY created_at DESC, task DESC LIMIT ?"
)
_CREATED = "SELECT created_at FROM tasks WHERE id = ?"
_ANNOUNCED = "SELECT max(created_at) FROM outbox WHERE task = ?"
_LISTS = {
    "all": (_NEXT_OF_ALL, _CREATED),
    "active": (_NEXT_ACTIVE, _CREATED),
    "begun": (_NEXT_BEGUN, _CREATED),
    "undelivered": (_NEXT_UNDELIVERED, _ANNOUNCED),
}
LISTS = ("all", "active", "undelivered")
_END_OF_TIME = 1e300
_ACT_PLACE = "task "  # before the id of the task
OPEN = (
    "SELECT owner FROM tasks WHERE id = ? AND (ended_at IS NULL OR EXISTS (SELECT 1 FROM outbox"
    " WHERE task = tasks.id AND status IN ('pending', 'leased')))"
)

MARK_SENT = (
    "UPDATE runs SET sent = ?, started_at ="
    " CASE WHEN ? = 'dispatched' THEN ? ELSE started_at END"
    " WHERE id = ? AND state = 'running' AND EXISTS"
    " (SELECT 1 FROM tasks WHERE id = runs.task AND run = runs.id AND owner = ?)"
)
# The other owners with open work, of the same or an unknown program; queued tasks have none.
OWNERS_AT_WORK = (
    "SELECT owner FROM (SELECT owner FROM tasks WHERE ended_at IS NULL UNION"
    " SELECT owner FROM outbox WHERE status IN ('pending', 'leased')) AS at_work"
    " LEFT JOIN owners ON owners.id = owner WHERE owner NOT IN (?, 0) AND"
    " (program IS NULL OR program = (SELECT program FROM owners WHERE id = ?))"
)


class Course(Record, kw_only=True):
    """A task's runs, its steers that did not become runs, and its messages."""

    runs: tuple[Run, ...]
    ended_at: Mapping[str, float | None]  # by the id of the run
    steers: tuple[tuple[str, str, str, str], ...]  # source, prompt, phase, error
    messages: tuple[tuple[str, str, str], ...]  # kind, text, state


class Act(Record):
    """What a person asked for, who may be known by the proxy of a page."""

    at: float
    what: str
    who: str


class TaskPage(Record, kw_only=True):
    """One page of a list of tasks, the newest first."""

    tasks: tuple[TaskView, ...]
    older: str = ""  # the list goes on before this task; empty: it ends here


class Tasks:
    """The tasks in a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._connection = ledger.connection

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
    ) -> Seen:
        """Enter a task with its first run; return both as they are stored. Raises Refused."""
        about, stored_ref = json_of(task), storable(dumps(ref))
        seen = Seen(
            task=task_of(about),
            run=replace(run, prompt=storable(run.prompt), started_at=time.time()),
            owner=owner,
            ref=loads(stored_ref),
            session_id=storable(session_id),
        )

        def enter(db: sqlite3.Connection) -> Seen:
            if task.parent:
                _check_parent(db, task, max_depth, max_children)
            db.execute(
                "INSERT INTO tasks (id, parent, about, owner, run, generation, ref, session_id,"
                " created_at) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?)",
                (
                    task.id,
                    task.parent,
                    about,
                    owner,
                    run.id,
                    stored_ref,
                    seen.session_id,
                    seen.run.started_at,
                ),
            )
            new_run(db, seen.run)
            return seen

        return self._connection.write(enter)

    def check(self, task: Task, *, max_depth: int, max_children: int) -> None:
        """Raise Refused if a task could not be entered now."""
        if task.parent:
            self._connection.read(lambda db: _check_parent(db, task, max_depth, max_children))

    def look(self, task: str) -> Seen | None:
        """Return a task as it is now, None if it is unknown."""
        found = self._connection.rows(LOOK, (task,), seen_of)
        return found[0] if found else None

    def mark_sent(self, run: Run, owner: int, sent: Literal["dispatched", "accepted"]) -> bool:
        """Record that a first prompt is about to be sent, or has arrived; False if not ours.

        The time of its run starts when it is sent.
        """
        values = (sent, sent, time.time(), run.id, owner)
        return self._connection.execute(MARK_SENT, values) == 1

    def note_prompt(self, task: str, owner: int, prompt: str) -> bool:
        """Store the first prompt of a task that has begun, before it is sent."""
        sql = (
            "UPDATE runs SET prompt = ? WHERE id = (SELECT run FROM tasks WHERE id = ? AND"
            " owner = ?) AND sent = 'reserved'"
        )
        return self._connection.execute(sql, (storable(prompt), task, owner)) == 1

    def note_session(self, task: str, owner: int, ref: Mapping[str, Any], session_id: str) -> bool:
        """Store how a session is reopened; its first id stays, since counts depend on it."""
        sql = (
            "UPDATE tasks SET ref = ?,"
            " session_id = CASE WHEN session_id = '' AND (steers = 0 OR"
            " (SELECT source FROM runs WHERE runs.id = tasks.run) = 'start')"
            " THEN ? ELSE session_id END"
            " WHERE id = ? AND owner = ?"
        )
        noted = (storable(dumps(ref)), storable(session_id), task, owner)
        return self._connection.execute(sql, noted) == 1

    def children(self, task: str, until: str) -> list[str]:
        """Return the children of a task that have not come as far as one of `CHILDREN` says."""
        found = self._connection.read_one(lambda db: list(children(db, task, until)))
        return [child for (child,) in found]

    def left(self, owner: int, here: Collection[str] | None = None) -> list[str]:
        """Return an owner's tasks that are active, or whose observers were not notified.

        With `here`, the tasks that it drives, only the others; their gates run again.
        """
        sql = f"{_ACTIVE} UNION ALL {_UNDELIVERED} AND told IN ({NOT_YET}, {TELLING})"

        def find(db: sqlite3.Connection) -> list[str]:
            found = [task for (task,) in db.execute(sql, (owner, owner)).fetchall()]
            if here is None:
                return found
            left = [task for task in found if task not in here]
            db.executemany(LOSE_STOPS, [(task,) for task in left])
            return left

        return self._connection.write(find)

    def moved(self, owner: int) -> list[str]:
        """Return an owner's tasks that other processes moved since the last call."""
        if not self._connection.rows(_MOVED, (owner,)):
            return []
        sql = "UPDATE tasks SET moved = 0 WHERE owner = ? AND moved = 1 RETURNING id"
        found = self._connection.write(lambda db: db.execute(sql, (owner,)).fetchall())
        return [task for (task,) in found]

    def descendants(self, task: str) -> list[str]:
        """Return the active descendants of a task, the deepest first."""
        sql = (
            "WITH RECURSIVE below (id, depth) AS (SELECT id, 1 FROM tasks WHERE parent = ? UNION"
            " SELECT tasks.id, below.depth + 1 FROM tasks JOIN below ON tasks.parent = below.id)"
            " SELECT below.id FROM below JOIN tasks ON tasks.id = below.id"
            " WHERE ended_at IS NULL ORDER BY below.depth DESC"
        )
        return [child for (child,) in self._connection.rows(sql, (task,))]

    def has_user_message(self, task: str) -> bool:
        """Return True if a message of the user is queued for a task."""
        sql = (
            "SELECT 1 FROM messages WHERE task = ? AND state IN ('queued', 'taken')"
            " AND state = 'queued' AND kind = 'user'"
        )
        return bool(self._connection.rows(sql, (task,)))

    def knows_session(self, session_id: str) -> bool:
        """Return True if a session has worked on a task before."""
        sql = "SELECT 1 FROM tasks WHERE session_id = ? LIMIT 1"
        return bool(self._connection.rows(sql, (session_id,)))

    def claim(self, owner: int, only: str = "") -> list[str]:
        """Take over the tasks and results of dead owners of the same program (K18).

        Or `only` one task that is active or undelivered, of any program. Returns the tasks.
        """

        def claim(db: sqlite3.Connection) -> list[str]:
            if only:
                return _claim_one(db, owner, only)
            claimed: list[str] = []
            for (other,) in db.execute(OWNERS_AT_WORK, (owner, owner)).fetchall():
                if is_over(db, other):
                    active = [task for (task,) in db.execute(_ACTIVE, (other,)).fetchall()]
                    ended = [task for (task,) in db.execute(_UNDELIVERED, (other,)).fetchall()]
                    claimed += _take_over(db, owner, [*active, *ended])
                    db.execute("DELETE FROM owners WHERE id = ?", (other,))
            return claimed

        return self._connection.write(claim)

    def views(self, only: str = "", most: int = 1000) -> list[TaskView]:
        """Return tasks, the newest first; or only one."""
        if only:
            return self._views("tasks.id = ?", (only,), most)
        return self._views("1 = 1", (), most)

    def begun(self) -> list[TaskView]:
        """Return the tasks that have not ended and do not wait in a queue, the newest first."""
        return self._views("tasks.ended_at IS NULL AND tasks.owner > 0")

    def waiting(self) -> int:
        """Return how many tasks wait in queues."""
        sql = "SELECT count(*) FROM tasks WHERE queue <> '' AND begun = 0 AND ended_at IS NULL"
        return int(self._connection.rows(sql)[0][0])

    def undelivered(self) -> list[TaskView]:
        """Return the tasks whose results or notifications may be undelivered, the newest first."""
        some = f"SELECT task FROM outbox WHERE {MAYBE_UNDELIVERED}"
        # The condition again: of several results of a task, only the newest counts.
        return self._views(f"tasks.id IN ({some}) AND {MAYBE_UNDELIVERED}")

    def page(self, which: str, before: str = "", most: int = 50) -> TaskPage | None:
        """Return a page of one of `LISTS`, at the same cost for any number of tasks.

        It begins after the task `before`; None if there is no such task any more.
        """
        following, place = _LISTS[which]

        def find(db: sqlite3.Connection) -> list[str] | None:
            at = _END_OF_TIME
            if before:
                row = db.execute(place, (before,)).fetchone()
                if row is None or row[0] is None:
                    return None
                at = row[0]
            return [task for (task,) in db.execute(following, (at, before, most + 1)).fetchall()]

        found = self._connection.read(find)
        if not found:
            return None if found is None else TaskPage(tasks=(), older="")
        wanted = tuple(found[:most])
        marks = ", ".join("?" * len(wanted))
        views = {view.task.id: view for view in self._views(f"tasks.id IN ({marks})", wanted)}
        older = found[most - 1] if len(found) > most else ""
        return TaskPage(tasks=tuple(views[task] for task in wanted if task in views), older=older)

    def note_act(self, task: str, what: str, who: str) -> None:
        """Record who asks for something to be done with a task."""
        sql = "INSERT INTO acts (at, what, place, detail) VALUES (?, ?, ?, ?)"
        self._connection.execute(sql, (time.time(), what, _ACT_PLACE + task, storable(who)))

    def acts(self, task: str) -> list[Act]:
        """Return who asked for what, the oldest first."""
        sql = "SELECT at, what, detail FROM acts WHERE place = ? ORDER BY id"
        return self._connection.rows(sql, (_ACT_PLACE + task,), lambda row: Act(*row))

    def of_session(self, session_id: str, most: int = 10) -> list[TaskView]:
        """Return the tasks that a session worked on, the newest first."""
        return self._views("tasks.session_id = ?", (session_id,), most)

    def below(self, task: str, most: int = ALL) -> list[TaskView]:
        """Return a task's children, the newest first."""
        return self._views("tasks.parent = ?", (task,), most)

    def starting_with(self, prefix: str, most: int = 10) -> list[str]:
        """Return the ids with this prefix, in order."""
        sql = "SELECT id FROM tasks WHERE id >= ? AND substr(id, 1, length(?)) = ? LIMIT ?"
        wanted = (prefix, prefix, prefix, most)
        return [task for (task,) in self._connection.rows(sql, wanted)]

    def course(self, task: str, most: int = ALL) -> Course:
        """Return the runs, steers and messages of a task; with `most`, only the newest of each."""

        def read(db: sqlite3.Connection) -> Course:
            columns = ", ".join(RUN_COLUMNS)
            runs = db.execute(
                f"SELECT coalesce(finished_at, ended_at), {columns} FROM runs"
                " WHERE task = ? ORDER BY generation DESC LIMIT ?",
                (task, most),
            ).fetchall()[::-1]
            steers = db.execute(
                "SELECT source, prompt, phase, error FROM steers WHERE task = ?"
                " AND phase != 'accepted' ORDER BY reserved_at DESC LIMIT ?",
                (task, most),
            ).fetchall()[::-1]
            messages = db.execute(
                "SELECT kind, text, state FROM messages WHERE task = ? ORDER BY id DESC LIMIT ?",
                (task, most),
            ).fetchall()[::-1]
            return Course(
                runs=tuple(run_of(row[1:]) for row in runs),
                ended_at={row[1]: row[0] for row in runs},
                steers=tuple(steers),
                messages=tuple(messages),
            )

        return self._connection.read(read)

    def _views(self, where: str, values: tuple[str, ...] = (), most: int = ALL) -> list[TaskView]:
        sql = f"{_VIEWS} WHERE {where} ORDER BY tasks.created_at DESC LIMIT ?"
        width = len(VIEW_COLUMNS)
        rows = self._connection.rows(sql, (*values, most))
        return [view_of(row[:width], alive=_is_alive(row[width:])) for row in rows]


def _is_alive(owner: tuple[Any, ...]) -> bool:
    return owner[0] is not None and not has_ended(*owner)


def _check_parent(db: sqlite3.Connection, task: Task, max_depth: int, max_children: int) -> None:
    parent = look(db, task.parent)
    if parent is None or not can(parent.run, "kill"):
        raise Refused(f"the parent task {task.parent} has ended; its result could not be delivered")
    if parent.run.state == "gating" and not task.internal:  # a gate's own reviewer may begin
        raise Refused(
            f"the parent task {task.parent} is about to stop: its gates are running; "
            "start the subagent when it is at work again"
        )
    if task.depth > max_depth:
        raise Refused(f"agents may be nested {max_depth} deep, and this one would be deeper")
    (count,) = db.execute(
        "SELECT count(*) FROM tasks WHERE parent = ? AND ended_at IS NULL", (task.parent,)
    ).fetchone()
    if count >= max_children:
        raise Refused(f"{count} children are at work already, of {max_children} at once")


def _claim_one(db: sqlite3.Connection, owner: int, task: str) -> list[str]:
    row = db.execute(OPEN, (task,)).fetchone()
    # A queued task has no owner, and is nothing to take over.
    if row is None or row[0] in {0, owner} or not is_over(db, row[0]):
        return []
    return _take_over(db, owner, [task])


def _take_over(db: sqlite3.Connection, owner: int, tasks: list[str]) -> list[str]:
    """Change the owner of tasks, also of ended ones: an owner that lives after all is fenced."""
    for task in tasks:
        db.execute(LOSE_STOPS, (task,))
        db.execute("UPDATE tasks SET owner = ? WHERE id = ?", (owner, task))
        db.execute(
            "UPDATE outbox SET owner = ?, status = 'pending'"
            " WHERE task = ? AND status IN ('pending', 'leased')",
            (owner, task),
        )
    return tasks
