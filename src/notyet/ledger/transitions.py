"""Parts of the guarded moves in runs.py: looking at a task, moving its run, messages, its end.

Each function works inside the caller's transaction.
"""

from __future__ import annotations

import time

from notyet.core.record import Record, replace
from notyet.core.task import TRANSITIONS, Announcement, Result, Run, Steer, Task, conclude
from notyet.ledger.task_rows import (
    NOT_YET,
    RUN_COLUMNS,
    STEER_COLUMNS,
    TELLING,
    TOLD,
    json_of,
    json_of_turn,
    result_of,
    run_of,
    steer_of,
    storable,
    task_of,
    turn_of,
)
from notyet.light import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal

    from notyet.core.event import Ending
    from notyet.core.session import Turn
    from notyet.core.task import Signal, Source
    from notyet.core.verdict import Decision
    from notyet.ledger import Begun

    Messages = list[tuple[int, str, str]]  # number, kind and text of each
    Phase = Literal["reserved", "dispatched"]

_RETRIED = ("interrupted", "error")  # endings that a retry may heal
NOT_SENT = "it could not be sent back"  # how the cause of such a stop starts
# When a task is taken over, a decision of its old owner must not count.
LOSE_STOPS = """
    UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'lost'
    WHERE outcome = 'asking' AND agent IN (
      SELECT agents.id FROM tasks JOIN agents ON host = 'notyet'
      AND agents.session_id IN (tasks.session_id, tasks.id) AND agent_id IN ('', tasks.id)
      WHERE tasks.id = ?)
"""


def drop_stop(db: sqlite3.Connection, begun: Begun) -> None:
    """End the stop of a decision that came too late: a person was faster."""
    db.execute(
        "UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'overtaken', ended_at = ?"
        " WHERE id = ? AND token = ? AND outcome = 'asking'",
        (time.time(), begun.stop, begun.token),
    )


def give_back(db: sqlite3.Connection, key: str) -> None:
    """Undo the count of a send-back that did not happen, unless another stop came since."""
    db.execute(
        "UPDATE agents SET blocks = blocks - 1, session_blocks = session_blocks - 1, blocked = 0"
        " WHERE (id, last_stop) = (SELECT stops.agent, stops.id FROM stops JOIN steers"
        " ON stops.id = steers.stop WHERE steers.key = ? AND stops.outcome = 'blocked')"
        " AND blocked = 1 AND blocks > 0",
        (key,),
    )


def fail_stop(db: sqlite3.Connection, key: str, why: str) -> None:
    """Mark a stop as failed open: its agent could not be sent back."""
    db.execute(
        "UPDATE stops SET outcome = 'failed_open', verdict = 'allow', why = ?"
        " WHERE id = (SELECT stop FROM steers WHERE key = ?) AND outcome = 'blocked'",
        (storable(why), key),
    )


_TASK_COLUMNS = (
    *("about", "owner", "ref", "session_id", "user_turn", "steers", "steered_at", "rejected"),
    *("queue", "retries"),
)


def _looking_at(task: str) -> str:
    return f"""
        SELECT {", ".join("tasks." + name for name in _TASK_COLUMNS)},
               {", ".join("runs." + name for name in RUN_COLUMNS)},
               {", ".join("steers." + name for name in STEER_COLUMNS)}
        FROM tasks JOIN runs ON runs.id = tasks.run
        LEFT JOIN steers ON steers.task = tasks.id AND steers.phase IN ('reserved', 'dispatched')
        WHERE tasks.id = {task}
    """


LOOK = _looking_at("?")
LOOK_AT_RUN = _looking_at("(SELECT task FROM runs WHERE id = ?)")
LOOK_AT_STEER = _looking_at("(SELECT task FROM steers WHERE key = ?)")
_NEW_RUN = (
    f"INSERT INTO runs ({', '.join(RUN_COLUMNS)}) VALUES ({', '.join('?' * len(RUN_COLUMNS))})"
)

# A message that brings a child's result has the key of that delivery.
_QUEUED_REPORTS = (
    "SELECT key FROM messages WHERE task = ? AND kind = 'machine' AND state IN ('queued', 'taken')"
)


# Leased: its parent has it, and it is not acknowledged yet.
_REPORTED = "status IN ('delivered', 'leased')"
_ATTEMPTED = "attempts = CASE WHEN status = 'leased' THEN attempts + 1 ELSE attempts END"


class Outgoing(Record, kw_only=True):
    """A result that its owner hands out next."""

    result: Result
    told: int  # how far its observers were notified
    announcement: Announcement | None = None  # leased, for its consumer


class Seen(Record, kw_only=True):
    """A task at one moment, with its current run and the steer in flight."""

    task: Task
    run: Run
    owner: int
    ref: Mapping[str, Any]
    session_id: str
    user_turn: int = 1
    steers: int = 0
    steered_at: float = 0.0
    rejected: str = ""
    queue: str = ""  # of a fleet
    retries: int = 0  # that are left
    steer: Steer | None = None
    # What the move that led here made as well; a look does not find it.
    begun: Begun | None = None  # the stop that its gates are to decide
    decision: Decision | None = None  # which was counted
    outgoing: Outgoing | None = None


def look(db: sqlite3.Connection, which: str, statement: str = LOOK) -> Seen | None:
    """Return a task, or with another statement that of a run or steer; None if it is unknown."""
    row = db.execute(statement, (which,)).fetchone()
    return seen_of(row) if row is not None else None


def seen_of(row: tuple[Any, ...]) -> Seen:
    """Read what `LOOK` finds."""
    run_at, steer_at = len(_TASK_COLUMNS), len(_TASK_COLUMNS) + len(RUN_COLUMNS)
    known = dict(zip(_TASK_COLUMNS, row[:run_at], strict=True))
    about, ref = known.pop("about"), known.pop("ref")
    return Seen(
        task=task_of(about),
        run=run_of(row[run_at:steer_at]),
        ref=loads(ref),
        steer=steer_of(row[steer_at:]) if row[steer_at] is not None else None,
        **known,
    )


def new_run(db: sqlite3.Connection, run: Run) -> None:
    """Insert a run."""
    known = {name: getattr(run, name) for name in RUN_COLUMNS}
    known["prompt"] = storable(run.prompt)
    known["turn"] = None
    db.execute(_NEW_RUN, tuple(known.values()))


def can(run: Run, signal: Signal) -> bool:
    """Return True if the run's state allows this move."""
    return signal in TRANSITIONS[run.state]


def move(db: sqlite3.Connection, run: Run, signal: Signal, **columns: object) -> bool:
    """Move a run from the state in which this transaction saw it; False if that has no such move.

    No other transaction can have moved it since: it was locked when it was looked at.
    """
    target = TRANSITIONS[run.state].get(signal)
    if target is None:
        return False
    names = "".join(f", {name} = ?" for name in columns)
    db.execute(
        f"UPDATE runs SET state = ?{names} WHERE id = ? AND state = ?",
        (target, *columns.values(), run.id, run.state),
    )
    return True


def tell_owner(db: sqlite3.Connection, seen: Seen, mover: int) -> None:
    """Make the owner of a task look at it soon, if another process moved it (K18)."""
    if seen.owner != mover:
        db.execute("UPDATE tasks SET moved = 1 WHERE id = ?", (seen.task.id,))


# The children that a task's gates wait for (K9), by what has to come first.
CHILDREN = {"ended": "SELECT id FROM tasks WHERE parent = ? AND ended_at IS NULL"}
CHILDREN["delivered"] = (
    f"{CHILDREN['ended']} UNION ALL"
    " SELECT task FROM outbox WHERE parent = ? AND status IN ('pending', 'leased')"
)
CHILDREN["notified"] = f"{CHILDREN['delivered']} AND told IN ({NOT_YET}, {TELLING})"


def children(db: sqlite3.Connection, task: str, until: str) -> Iterable[tuple[str]]:
    """Find the children of a task that have not come as far as one of `CHILDREN` says."""
    statement = CHILDREN[until]
    return db.execute(statement, (task,) * statement.count("?"))


def reserve(
    db: sqlite3.Connection, seen: Seen, signal: Signal, steer: Steer, stop: int = 0
) -> Seen:
    """Reserve the steer that continues a task; at most one is in flight.

    It is `dispatched` at once if its owner sends it next.
    """
    steer = replace(steer, prompt=storable(steer.prompt))
    known = (steer.key, seen.task.id, steer.run, steer.source, steer.prompt, steer.phase)
    db.execute(
        "INSERT INTO steers (key, task, run, source, prompt, phase, stop, reserved_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*known, stop, time.time()),
    )
    move(db, seen.run, signal)
    return replace(seen, run=replace(seen.run, state="steering"), steer=steer)


def queued_messages(db: sqlite3.Connection, task: str) -> Iterable[tuple[int, str, str]]:
    """Find the messages that wait for the end of a turn."""
    sql = "SELECT id, kind, text FROM messages WHERE task = ? AND state = 'queued' ORDER BY id"
    return db.execute(sql, (task,))


def send_messages(
    db: sqlite3.Connection, seen: Seen, messages: Messages, key: str, phase: Phase = "reserved"
) -> Seen:
    """Continue a task with its queued messages, as one prompt."""
    db.executemany(
        "UPDATE messages SET state = 'taken', steer = ? WHERE id = ?",
        [(key, number) for number, _, _ in messages],
    )
    source: Source = "user" if is_from_user(messages) else "children"
    prompt = "\n\n".join(text for _, _, text in messages)
    steer = Steer(key=key, run=seen.run.id, source=source, prompt=prompt, phase=phase)
    return reserve(db, seen, "steer", steer)


def is_from_user(messages: Messages) -> bool:
    """Return True if one of the messages is the user's."""
    return any(kind == "user" for _, kind, _ in messages)


def settle_messages(db: sqlite3.Connection, task: str, steer: str, state: str) -> None:
    """Set the state of the messages that a steer took."""
    db.execute(
        "UPDATE messages SET state = ?"
        " WHERE task = ? AND steer = ? AND state IN ('queued', 'taken') AND state = 'taken'",
        (state, task, steer),
    )


def freeze(
    db: sqlite3.Connection,
    seen: Seen,
    signal: Signal,
    ending: Ending,
    *,
    decision: Decision | None = None,
    turn: Turn | None = None,
    error: str | None = None,
    by_person: bool = False,
    told: int = NOT_YET,
    is_leased: bool = False,
) -> Result | None:
    """End a task: its state, its frozen result and its row in the outbox, all or nothing.

    None if a person was faster, or if a worker will begin it again. An owner that hands the result
    out next marks it as `told` and leased in the same transaction.
    """
    run = seen.run if turn is None else replace(seen.run, turn=turn)
    now = time.time()
    columns: dict[str, object] = {"ended_at": now, "ending": ending}
    if turn is not None:
        columns |= {"turn": json_of_turn(turn), "finished_at": now}
    if not move(db, seen.run, signal, **columns):
        return None
    if seen.steer is not None:
        db.execute(
            "UPDATE steers SET phase = 'abandoned' WHERE key = ? AND phase != 'failed'",
            (seen.steer.key,),
        )
    is_let_go = decision is not None and decision.outcome != "skipped"  # by gates
    if seen.retries and ending in _RETRIED and not by_person and not is_let_go:
        _queue_again(db, seen)
        return None
    unsent, earlier = _unsent(db, seen.task.id), _earlier_turns(db, seen.run)
    said = tuple(text for (text,) in unsent)
    result = conclude(
        seen.task,
        run,
        ending=ending,
        session_id=seen.session_id,
        steers=seen.steers,
        decision=decision,
        rejected=seen.rejected,
        unsent=said,
        error=error,
        earlier=tuple(turn for (text,) in earlier if (turn := turn_of(text)) is not None),
    )
    _close_messages(db, seen.task.id, seen.owner)
    stored = json_of(result)
    db.execute("UPDATE tasks SET ended_at = ? WHERE id = ?", (now, seen.task.id))
    db.execute(
        "INSERT INTO outbox (key, task, parent, result, status, owner, told, next_at, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            delivery_key(seen.task.id),
            seen.task.id,
            seen.task.parent,
            stored,
            "leased" if is_leased else "pending",
            seen.owner,
            # A queued task has no process that knows its observers.
            TOLD if seen.run.state == "queued" else told,
            now,
            now,
        ),
    )
    return result_of(stored)


def _queue_again(db: sqlite3.Connection, seen: Seen) -> None:
    """Let a worker begin a task again: a new run in a new session (K7)."""
    db.execute(  # the new session has heard nothing of what the user said
        "UPDATE messages SET state = 'queued' WHERE task = ? AND kind = 'user'"
        " AND state IN ('taken', 'sent')",
        (seen.task.id,),
    )
    settle_messages(db, seen.task.id, seen.steer.key if seen.steer is not None else "", "queued")
    generation = seen.run.generation + 1
    run = Run(
        id=run_id(seen.task.id, generation),
        task=seen.task.id,
        generation=generation,
        state="queued",
        source="start",
        key="",
        prompt=seen.task.prompt,
        sent="reserved",
        started_at=time.time(),
    )
    new_run(db, run)
    db.execute(
        "UPDATE tasks SET run = ?, generation = ?, retries = retries - 1, owner = 0, ref = '{}',"
        " session_id = '', placement = '', begun = 0, machine = '' WHERE id = ?",
        (run.id, generation, seen.task.id),
    )


def run_id(task: str, generation: int) -> str:
    """Return the id of a task's run."""
    return f"{task}.{generation}"


def _earlier_turns(db: sqlite3.Connection, last: Run) -> Iterable[tuple[str | None]]:
    """Find the turns of the runs before this one, and what a steer cut off."""
    return db.execute(
        "SELECT coalesce(turn, cut_off) FROM runs WHERE task = ? AND id != ? ORDER BY generation",
        (last.task, last.id),
    )


def clear_machine_messages(db: sqlite3.Connection, task: str) -> None:
    """Clear queued messages of machines (K16); a child's result can be retried by hand."""
    db.execute(
        f"UPDATE outbox SET status = 'suspended', delivered_at = NULL, {_ATTEMPTED},"
        " error = 'a steer by hand cleared it from the queue of its parent'"
        f" WHERE {_REPORTED} AND key IN ({_QUEUED_REPORTS} AND state = 'queued')",
        (task,),
    )
    db.execute(
        "UPDATE messages SET state = 'cleared'"
        " WHERE task = ? AND kind = 'machine' AND state = 'queued'",
        (task,),
    )


def _unsent(db: sqlite3.Connection, task: str) -> Iterable[tuple[str]]:
    """Find the user's messages that were not sent."""
    return db.execute(
        "SELECT text FROM messages WHERE task = ? AND kind = 'user'"
        " AND state IN ('queued', 'taken') ORDER BY id",
        (task,),
    )


def _close_messages(db: sqlite3.Connection, task: str, owner: int) -> None:
    """Close the messages of a task that ends."""
    # A child's result that was queued here did not arrive: deliver it again.
    db.execute(
        "UPDATE outbox SET status = 'pending', owner = ?, next_at = ?, delivered_at = NULL,"
        f" {_ATTEMPTED} WHERE {_REPORTED} AND key IN ({_QUEUED_REPORTS})",
        (owner, time.time(), task),
    )
    db.execute(
        "UPDATE messages SET state = CASE WHEN kind = 'user' THEN 'unsent' ELSE 'cleared' END"
        " WHERE task = ? AND state IN ('queued', 'taken')",
        (task,),
    )


def delivery_key(task: str, generation: int = 1) -> str:
    """Return the key of a task's delivery, the same for every attempt."""
    return f"{task}:{generation}"
