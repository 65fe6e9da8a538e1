"""The moves of supervised runs: each is one guarded transaction.

A move of a task's owner returns the task as it is afterwards, so that the owner need not look. It
returns None if the run is no longer in the state that its caller saw: a person or a signal was
faster, or another process owns it now. The caller then looks again.
"""

from __future__ import annotations

import time

from notyet.core.record import replace
from notyet.core.task import Announcement, Run, Steer
from notyet.core.verdict import Allow, Block, Decision, Halt
from notyet.errors import Refused
from notyet.ledger.ledger import counted_before
from notyet.ledger.task_rows import NOT_YET, json_of_turn, storable, turn_of
from notyet.ledger.transitions import (
    LOOK_AT_RUN,
    LOOK_AT_STEER,
    NOT_SENT,
    Outgoing,
    can,
    children,
    clear_machine_messages,
    delivery_key,
    drop_stop,
    fail_stop,
    freeze,
    give_back,
    is_from_user,
    look,
    move,
    new_run,
    queued_messages,
    reserve,
    run_id,
    seen_of,
    send_messages,
    settle_messages,
    tell_owner,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping
    from typing import Any, Literal

    from notyet.core.event import Ending, StopEvent
    from notyet.core.session import Turn
    from notyet.core.task import Result, Sent, Signal
    from notyet.core.verdict import Outcome
    from notyet.ledger import Begun
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.transitions import Phase, Seen

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

    def finish(self, run: str, turn: Turn, ending: Ending, owner: int) -> Seen | None:
        """Record that a run's turn has ended; a success replaces a transient error."""

        def note(db: sqlite3.Connection) -> Seen | None:
            seen = _owned(db, run, owner)
            return seen and _finished(db, seen, turn, ending)

        return self._connection.write(note)

    def settle(
        self,
        run: str,
        owner: int,
        key: str,
        *,
        turn: Turn | None = None,
        until: str | None = None,
        overdue: Collection[str] = (),
        phase: Phase = "reserved",
        event: Callable[[Seen], StopEvent | None] = lambda _: None,
    ) -> Seen | None:
        """Move a settled run to its gates, or continue it with queued messages.

        With a `turn`, its success is recorded as well. `until` says how far its children have to be
        (K9); it does not wait for the `overdue` ones, nor if its user spoke. `event` returns the
        stop that is entered for its gates, in the same transaction.
        """

        def settle(db: sqlite3.Connection) -> Seen | None:
            task = run.rpartition(".")[0]
            found, queued = db.execute(LOOK_AT_RUN, (run,)), queued_messages(db, task)
            below = children(db, task, until) if until is not None else ()
            seen = _owned_of(found.fetchone(), run, owner)
            messages, waiting = list(queued), {child for (child,) in below}
            if seen is not None and turn is not None:
                seen = _finished(db, seen, turn, "done")
            if seen is None or seen.run.state != "settling":
                return None
            if waiting - set(overdue) and not is_from_user(messages):
                return seen if turn is not None else None
            if messages:
                return send_messages(db, seen, messages, key, phase)
            move(db, seen.run, "settle")
            seen = replace(seen, run=replace(seen.run, state="gating"))
            stop = event(seen)
            return replace(seen, begun=self._ledger.entering(stop)(db)) if stop else seen

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
        phase: Phase = "reserved",
        told: int = NOT_YET,
        is_leased: bool = False,
    ) -> Seen | None:
        """Record a decision together with what follows from it: a steer, or the end of the task.

        None if the run is no longer gating: the decision is dropped (K6). The owner sends the
        steer next if its `phase` is dispatched; for `told` and `is_leased` see `freeze`.
        """

        def settle(db: sqlite3.Connection) -> Seen | None:
            found = db.execute(LOOK_AT_RUN, (run,))
            before = counted_before(db, begun) if begun is not None else None
            queued = queued_messages(db, run.rpartition(".")[0])
            seen = _owned_of(found.fetchone(), run, owner)
            if seen is None or seen.run.state != "gating":
                if begun is not None:
                    drop_stop(db, begun)
                return None
            final = decision
            if begun is not None and before is not None:
                final = self._ledger.count(db, begun, decision, ceiling, before)
            seen = replace(seen, decision=final)
            if isinstance(final.verdict, Block):
                prompt = final.verdict.prompt
                steer = Steer(key=key, run=run, source="gate", prompt=prompt, phase=phase)
                db.execute("UPDATE tasks SET steers = steers + 1 WHERE id = ?", (seen.task.id,))
                stop = begun.stop if begun is not None else 0
                return reserve(db, replace(seen, steers=seen.steers + 1), "block", steer, stop)
            # A result of a child that came meanwhile is sent first, and the gates run again (K9).
            # Each is sent once, so that this ends.
            messages = [] if isinstance(final.verdict, Halt) else list(queued)
            if messages:
                return send_messages(db, seen, messages, key, phase)
            ending = seen.run.ending or "done"
            result = freeze(
                db, seen, "allow", ending, decision=final, told=told, is_leased=is_leased
            )
            if result is None:  # a worker begins it again
                return seen
            leased = (
                Announcement(key=delivery_key(seen.task.id), result=result) if is_leased else None
            )
            run_now = replace(seen.run, state="ended", ending=ending)
            outgoing = Outgoing(result=result, told=told, announcement=leased)
            return replace(seen, run=run_now, outgoing=outgoing)

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
            steer = Steer(
                key=key,
                run=seen.run.id,
                source="manual",
                prompt=first + prompt,
                phase="reserved",
            )
            reserve(db, seen, "steer", steer)
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
                send_messages(db, seen, list(queued_messages(db, task)), steer)
            tell_owner(db, seen, mover)

        self._connection.write_through(keep)

    def dispatch(self, key: str, owner: int) -> Seen | None:
        """Mark a steer as dispatched: from now on it may have arrived."""

        def mark(db: sqlite3.Connection) -> Seen | None:
            seen = _steered(db, key, owner)
            if seen is None or seen.steer is None:
                return None
            db.execute("UPDATE steers SET phase = 'dispatched' WHERE key = ?", (key,))
            return replace(seen, steer=replace(seen.steer, phase="dispatched"))

        return self._connection.write(mark)

    def accept(self, key: str, owner: int) -> Seen | None:
        """Start the run that an accepted steer begins (K2)."""

        def carry_on(db: sqlite3.Connection) -> Seen | None:
            seen = _steered(db, key, owner)
            if seen is None or seen.steer is None:
                return None
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
            user_turn = seen.user_turn + opens_turn
            answer = seen.run.turn.text if seen.run.turn is not None else ""
            rejected = storable(answer) if answer.strip() else seen.rejected
            db.execute(
                "UPDATE tasks SET run = ?, generation = ?, user_turn = ?, rejected = ?"
                " WHERE id = ?",
                (run.id, generation, user_turn, rejected, seen.task.id),
            )
            return replace(seen, run=run, user_turn=user_turn, rejected=rejected, steer=None)

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
    return _owned_of(db.execute(LOOK_AT_RUN, (run,)).fetchone(), run, owner)


def _owned_of(row: tuple[Any, ...] | None, run: str, owner: int) -> Seen | None:
    seen = seen_of(row) if row is not None else None
    return seen if seen is not None and (seen.run.id, seen.owner) == (run, owner) else None


def _steered(db: sqlite3.Connection, key: str, owner: int) -> Seen | None:
    """Return the task of a steer in flight, if it is ours."""
    seen = look(db, key, LOOK_AT_STEER)
    if seen is None or seen.owner != owner or seen.run.state != "steering":
        return None
    return seen if seen.steer is not None and seen.steer.key == key else None


def _finished(db: sqlite3.Connection, seen: Seen, turn: Turn, ending: Ending) -> Seen | None:
    """Record how a run's turn ended; None if that is too late."""
    run = seen.run
    if run.state == "settling" and not _heals(run, ending):
        return None
    stored = json_of_turn(turn)
    if not move(db, run, "finish", ending=ending, turn=stored, finished_at=time.time()):
        return None
    run = replace(run, state="settling", ending=ending, turn=turn_of(stored))
    return replace(seen, run=run)


def _active(seen: Seen | None, task: str) -> Seen:
    if seen is None:
        raise Refused(f"there is no task {task}; list them with: notyet tasks")
    if not can(seen.run, "kill"):
        raise Refused(f"task {task} has ended ({seen.run.ending or 'done'})")
    return seen


def _heals(run: Run, ending: Ending) -> bool:
    return run.ending == "error" and ending == "done"
