"""The moves of supervised runs: each is one guarded transaction.

A move returns False or None if the run is no longer in the state its caller saw: a person or a
signal was faster, or another process owns it now. The caller then looks again.
"""

from __future__ import annotations

import time

from notyet.core.record import replace
from notyet.core.task import Run
from notyet.core.verdict import Allow, Block, Decision, Halt
from notyet.errors import Refused
from notyet.ledger.task_rows import json_of_turn, storable
from notyet.ledger.transitions import (
    LOOK_AT_RUN,
    LOOK_AT_STEER,
    NOT_SENT,
    can,
    clear_machine_messages,
    drop_stop,
    fail_stop,
    freeze,
    give_back,
    has_others,
    look,
    move,
    new_run,
    reserve,
    run_id,
    send_messages,
    settle_messages,
    tell_owner,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping
    from typing import Literal

    from notyet.core.event import Ending
    from notyet.core.session import Turn
    from notyet.core.task import Result, Sent, Signal
    from notyet.core.verdict import Outcome
    from notyet.ledger import Begun
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.transitions import Seen

_SIGNALS: Mapping[Ending, Signal] = {
    "killed": "kill",
    "reset": "reset",
    "interrupted": "interrupt",
}

NOTE_CUT_OFF = (
    "UPDATE runs SET cut_off = ? WHERE id = ?"
    " AND EXISTS (SELECT 1 FROM tasks WHERE id = runs.task AND owner = ?)"
)


class Runs:
    """Moves runs, with their steers, messages and results."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._connection = ledger.connection

    def finish(self, run: str, turn: Turn, ending: Ending, owner: int) -> bool:
        """Record that a run's turn has ended; a success replaces a transient error."""

        def note(db: sqlite3.Connection) -> bool:
            seen = _owned(db, run, owner)
            if seen is None or not can(seen.run, "finish"):
                return False
            if seen.run.state == "settling" and not _heals(seen.run, ending):
                return False
            return move(
                db,
                seen.run,
                "finish",
                ending=ending,
                turn=json_of_turn(turn),
                finished_at=time.time(),
            )

        return self._connection.write(note)

    def settle(
        self, run: str, owner: int, key: str, overdue: Collection[str] | None = None
    ) -> bool:
        """Move a settled run to its gates, or continue it with queued messages.

        With `overdue`, the children that did not end in time, not while others are active: one may
        have started since the caller looked (K9).
        """

        def settle(db: sqlite3.Connection) -> bool:
            seen = _owned(db, run, owner)
            if seen is None or seen.run.state != "settling":
                return False
            if send_messages(db, seen, key):
                return True
            if overdue is not None and has_others(db, seen.task.id, overdue):
                return False
            return move(db, seen.run, "settle")

        return self._connection.write(settle)

    def decide(
        self,
        run: str,
        owner: int,
        decision: Decision,
        *,
        begun: Begun | None,
        ceiling: int,
        key: str,
    ) -> Decision | None:
        """Record a decision together with what follows from it: a steer, or the end of the task.

        None if the run is no longer gating: the decision is dropped (K6).
        """

        def settle(db: sqlite3.Connection) -> Decision | None:
            seen = _owned(db, run, owner)
            if seen is None or seen.run.state != "gating":
                if begun is not None:
                    drop_stop(db, begun)
                return None
            final = decision
            if begun is not None:
                final = self._ledger.count(db, begun, decision, ceiling)
            if isinstance(final.verdict, Block):
                stop = begun.stop if begun is not None else 0
                reserve(db, seen, key, "gate", final.verdict.prompt, stop=stop)
                db.execute("UPDATE tasks SET steers = steers + 1 WHERE id = ?", (seen.task.id,))
                move(db, seen.run, "block")
                return final
            # A result of a child that came meanwhile is sent first, and the gates run again (K9).
            # Each is sent once, so that this ends.
            if isinstance(final.verdict, Halt) or not send_messages(db, seen, key):
                freeze(db, seen, "allow", seen.run.ending or "done", decision=final)
            return final

        return self._connection.write_through(settle)

    def steer(self, task: str, mover: int, key: str, prompt: str, pause: float) -> None:
        """Reserve a steer by hand (K16), once for each key; any process may. Raises Refused."""

        def redirect(db: sqlite3.Connection) -> None:
            found = look(db, task)  # first: on PostgreSQL it locks the task
            if db.execute("SELECT 1 FROM steers WHERE key = ?", (key,)).fetchone():
                return
            seen = _active(found, task)
            if seen.run.state == "queued":
                raise Refused(f"task {task} is queued, and has no turn to abort; say it instead")
            if seen.run.state == "steering":
                raise Refused(f"task {task} is being steered already; wait until that has arrived")
            left = seen.steered_at + pause - time.time()
            if 0 < left <= pause:
                raise Refused(f"task {task} was steered just now; try again in {left:.1f} s")
            # A first prompt that is only reserved was not sent: send it along.
            first = f"{seen.run.prompt}\n\n" if seen.run.sent == "reserved" else ""
            reserve(db, seen, key, "manual", first + prompt)
            move(db, seen.run, "steer")
            db.execute("UPDATE tasks SET steered_at = ? WHERE id = ?", (time.time(), task))
            clear_machine_messages(db, task)
            tell_owner(db, seen, mover)

        self._connection.write_through(redirect)

    def say(
        self,
        task: str,
        kind: Literal["user", "machine"],
        key: str,
        text: str,
        steer: str,
        *,
        mover: int = 0,
    ) -> None:
        """Queue a message for a task; a user's message beats gates that are running (C9).

        Any process may. Raises Refused. `steer` is the key for that case. A message with a known
        key is ignored.
        """

        def keep(db: sqlite3.Connection) -> None:
            found = look(db, task)  # first: on PostgreSQL it locks the task
            said = db.execute("SELECT state FROM messages WHERE key = ?", (key,)).fetchone()
            if said is not None and said[0] != "cleared":
                return
            seen = _active(found, task)
            if said is not None:  # said again, it comes after what was said since
                db.execute("DELETE FROM messages WHERE key = ?", (key,))
            db.execute(
                "INSERT INTO messages (task, kind, key, text, state, at)"
                " VALUES (?, ?, ?, ?, 'queued', ?)",
                (task, kind, key, storable(text), time.time()),
            )
            if seen.run.state == "gating" and kind == "user":
                send_messages(db, seen, steer)
            tell_owner(db, seen, mover)

        self._connection.write_through(keep)

    def dispatch(self, key: str, owner: int) -> bool:
        """Mark a steer as dispatched: from now on it may have arrived."""

        def mark(db: sqlite3.Connection) -> bool:
            seen = _steered(db, key, owner)
            if seen is not None:
                db.execute("UPDATE steers SET phase = 'dispatched' WHERE key = ?", (key,))
            return seen is not None

        return self._connection.write(mark)

    def accept(self, key: str, owner: int) -> bool:
        """Start the run that an accepted steer begins (K2)."""

        def carry_on(db: sqlite3.Connection) -> bool:
            seen = _steered(db, key, owner)
            if seen is None or seen.steer is None:
                return False
            now = time.time()
            generation = seen.run.generation + 1
            run = Run(
                id=run_id(seen.task.id, generation),
                task=seen.task.id,
                generation=generation,
                state="running",
                source=seen.steer.source,
                key=key,
                prompt=seen.steer.prompt,
                started_at=now,
            )
            db.execute("UPDATE steers SET phase = 'accepted' WHERE key = ?", (key,))
            settle_messages(db, seen.task.id, key, "sent")
            move(db, seen.run, "accept", ended_at=now)
            new_run(db, run)
            # A subagent's task is one turn, with one budget (B4).
            opens_turn = run.source == "user" and seen.task.scope == "agent"
            answer = seen.run.turn.text if seen.run.turn is not None else ""
            db.execute(
                "UPDATE tasks SET run = ?, generation = ?, user_turn = user_turn + ?,"
                " rejected = CASE WHEN ? = 1 THEN ? ELSE rejected END WHERE id = ?",
                (
                    run.id,
                    generation,
                    int(opens_turn),
                    int(bool(answer.strip())),
                    storable(answer),
                    seen.task.id,
                ),
            )
            return True

        return self._connection.write(carry_on)

    def note_cut_off(self, run: Run, turn: Turn, owner: int) -> None:
        """Store what a turn cost that a steer ended; it is no answer."""
        self._connection.execute(NOTE_CUT_OFF, (json_of_turn(turn), run.id, owner))

    def fail(self, key: str, owner: int, error: str, sent: Sent | None = None) -> Result | None:
        """End a run whose steer cannot be sent, as if there were no gates (K4).

        `sent` overrides what the ledger knows of its prompt; if it was not sent, it is not counted.
        """

        def give_up(db: sqlite3.Connection) -> Result | None:
            seen = _steered(db, key, owner)
            if seen is None or seen.steer is None:
                return None
            db.execute(
                "UPDATE steers SET phase = 'failed', error = ? WHERE key = ?",
                (storable(error), key),
            )
            why = f"{NOT_SENT}: {error}"
            if (sent or seen.steer.phase) == "reserved":
                give_back(db, key)
            fail_stop(db, key, why)
            outcome: Outcome = "skipped"
            if seen.steer.source == "gate":  # it was not sent back after all
                outcome = "failed_open"
                seen = replace(seen, steers=seen.steers - 1)
                db.execute("UPDATE tasks SET steers = steers - 1 WHERE id = ?", (seen.task.id,))
            decision = Decision(verdict=Allow(), outcome=outcome, why=why, warnings=(why,))
            return freeze(db, seen, "fail", seen.run.ending or "interrupted", decision=decision)

        return self._connection.write_through(give_up)

    def end(
        self,
        task: str,
        owner: int,
        ending: Ending,
        *,
        turn: Turn | None = None,
        error: str | None = None,
        run: Run | None = None,
    ) -> Result | None:
        """End a task in any state; None if it had ended.

        With `run`, only if the task is still in that state. With either `run` or `error` it is
        its owner who ends it; without, it is a person, in any process.
        """
        is_person = run is None and error is None

        def end(db: sqlite3.Connection) -> Result | None:
            seen = look(db, task)
            if seen is None or not can(seen.run, _SIGNALS[ending]):
                return None
            if seen.owner != owner and not is_person:
                return None
            if run is not None and (seen.run.id, seen.run.state) != (run.id, run.state):
                return None
            signal = _SIGNALS[ending]
            result = freeze(db, seen, signal, ending, turn=turn, error=error, by_person=is_person)
            if is_person:
                db.execute("UPDATE tasks SET ended_by = ? WHERE id = ?", (signal, task))
                tell_owner(db, seen, owner)
            return result

        return self._connection.write_through(end)


def _owned(db: sqlite3.Connection, run: str, owner: int) -> Seen | None:
    """Return the task with this current run, if it is ours."""
    seen = look(db, run, LOOK_AT_RUN)
    if seen is None or seen.run.id != run or seen.owner != owner:
        return None
    return seen


def _steered(db: sqlite3.Connection, key: str, owner: int) -> Seen | None:
    """Return the task of a steer in flight, if it is ours."""
    seen = look(db, key, LOOK_AT_STEER)
    if seen is None or seen.owner != owner or seen.run.state != "steering":
        return None
    return seen if seen.steer is not None and seen.steer.key == key else None


def _active(seen: Seen | None, task: str) -> Seen:
    if seen is None:
        raise Refused(f"there is no task {task}; list them with: notyet tasks")
    if not can(seen.run, "kill"):
        raise Refused(f"task {task} has ended ({seen.run.ending or 'done'})")
    return seen


def _heals(run: Run, ending: Ending) -> bool:
    return run.ending == "error" and ending == "done"
