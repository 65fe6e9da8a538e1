"""The ledger as one SQLite file, shared by every process that gates an agent.

A stop is two short transactions, `begin` and `record`. Both read and write one row of `agents`,
found by its key, so their cost does not depend on how much the ledger holds.
"""

from __future__ import annotations

import os
import time

from notyet.core.limits import History, after, open_turn
from notyet.core.record import Record
from notyet.errors import LedgerError
from notyet.ledger import Begun
from notyet.ledger.connection import Connection
from notyet.ledger.place import default_path
from notyet.ledger.rows import (
    HISTORY_COLUMNS,
    REPORT_COLUMNS,
    STOP_COLUMNS,
    decision_of,
    event_row,
    history_of,
    history_row,
    report_row,
    stop_row,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision

_LOST_AFTER = 86_400.0  # no gate runs for a day; a process id may have been given away by then
_FORGOTTEN_AFTER = 30 * 86_400.0  # an agent that was sent back and never came again
_PRUNED_AT_ONCE = 500  # stops in one transaction, so that pruning starves nobody


def _marks(columns: tuple[str, ...]) -> str:
    return ", ".join("?" * len(columns))


def _settings(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = ?" for name in columns)


_FIND_AGENT = (
    f"SELECT id, last_stop, {', '.join(HISTORY_COLUMNS)} FROM agents"
    " WHERE host = ? AND session_id = ? AND agent_id = ?"
)
_AGENT_OF_STOP = (
    f"SELECT agents.id, {', '.join('agents.' + name for name in HISTORY_COLUMNS)}"
    " FROM stops JOIN agents ON agents.id = stops.agent WHERE stops.id = ?"
)
_NEW_AGENT = (
    f"INSERT INTO agents (last_stop, host, session_id, agent_id, seen_at,"
    f" {', '.join(HISTORY_COLUMNS)}) VALUES (0, ?, ?, ?, ?, {_marks(HISTORY_COLUMNS)})"
)
_SEE_AGENT = f"UPDATE agents SET seen_at = ?, {_settings(HISTORY_COLUMNS)} WHERE id = ?"
_COUNT = f"UPDATE agents SET last_stop = ?, seen_at = ?, {_settings(HISTORY_COLUMNS)} WHERE id = ?"
_NEW_STOP = (
    "INSERT INTO stops (agent, turn, begun_at, pid, digest, event, outcome)"
    " VALUES (?, ?, ?, ?, ?, ?, 'asking')"
)
_DECIDE = f"UPDATE stops SET ended_at = ?, {_settings(STOP_COLUMNS)} WHERE id = ?"
_NEW_REPORT = f"INSERT INTO reports ({', '.join(REPORT_COLUMNS)}) VALUES ({_marks(REPORT_COLUMNS)})"
_READ_STOP = f"SELECT pid, begun_at, {', '.join(STOP_COLUMNS)} FROM stops WHERE id = ?"
_READ_REPORTS = f"SELECT {', '.join(REPORT_COLUMNS)} FROM reports WHERE stop = ? ORDER BY position"
_OLD_STOPS = (
    "SELECT id FROM stops WHERE begun_at < ? AND outcome != 'asking' AND id NOT IN"
    " (SELECT last_stop FROM agents WHERE blocked AND seen_at >= ?) LIMIT ?"
)
_OLD_AGENTS = (
    "DELETE FROM agents WHERE seen_at < ? AND NOT EXISTS"
    " (SELECT 1 FROM stops WHERE stops.agent = agents.id)"
)


# The stops that this process is asking, by file: its own process id cannot tell them apart from
# those it failed to record.
_asked_here: set[tuple[str, int]] = set()


class _Known(Record, kw_only=True):
    """What the ledger knows of an agent; `id` is None for one it never saw."""

    id: int | None = None
    last_stop: int = 0
    history: History = History()


class Ledger:
    """The durable ledger. Opened at its first use; safe in many threads and processes.

    `path` defaults to `$NOTYET_LEDGER` or the XDG state folder; `patience` is how many seconds
    to wait for other processes before LedgerBusy is raised.
    """

    instant = False

    def __init__(self, path: str | os.PathLike[str] | None = None, patience: float = 5.0) -> None:
        self.path = os.path.abspath(path) if path is not None else default_path(os.environ)
        self._file = Connection(self.path, patience)

    def begin(self, event: StopEvent) -> Begun:
        """Number the turn, find out what became of the last stop, and enter this one (B11)."""
        digest, stored = event_row(event)
        key = (event.host, event.session_id, event.agent_id or "")

        def enter(db: sqlite3.Connection) -> Begun:
            row = db.execute(_FIND_AGENT, key).fetchone()
            known = _Known()
            if row:
                known = _Known(id=row[0], last_stop=row[1], history=history_of(row[2:]))
            earlier = self._repeated(db, event, digest, known)
            if earlier:
                return Begun(stop=earlier, repeats=earlier)
            opened = open_turn(known.history, event)
            if opened.turn != known.history.turn and known.history.blocked:
                _override(db, known.last_stop)
            now = time.time()
            if known.id is None:
                agent = db.execute(_NEW_AGENT, (*key, now, *history_row(opened))).lastrowid
            else:
                agent = known.id
                db.execute(_SEE_AGENT, (now, *history_row(opened), agent))
            new = (agent, opened.turn, now, os.getpid(), digest, stored)
            return Begun(stop=db.execute(_NEW_STOP, new).lastrowid or 0, history=opened)

        begun = self._file.write(enter)
        _asked_here.add((self.path, begun.stop))
        warnings = self._file.take_warnings()
        return begun if not warnings else begun.__replace__(warnings=warnings)

    def record(self, stop: int, decision: Decision) -> None:
        """Write down a decision and count it, in one transaction (B3)."""

        def count(db: sqlite3.Connection) -> None:
            row = db.execute(_AGENT_OF_STOP, (stop,)).fetchone()
            if row is None:
                raise LedgerError(self.path, f"stop {stop} is gone; was the file replaced?")
            # Counted on what the row says now: another stop of this agent may have come between.
            history = after(history_of(row[1:]), decision)
            now = time.time()
            db.execute(_COUNT, (stop, now, *history_row(history), row[0]))
            db.execute(_DECIDE, (now, *stop_row(decision), stop))
            reports = [report_row(stop, place, r) for place, r in enumerate(decision.reports)]
            db.executemany(_NEW_REPORT, reports)

        _asked_here.discard((self.path, stop))
        self._file.write(count)

    def answer(self, stop: int, patience: float) -> Decision | None:
        """Wait for a stop's decision; None when its process died or took too long."""
        ends = time.monotonic() + patience
        pause = 0.01
        while True:
            row, reports = self._file.read(
                lambda db: (
                    db.execute(_READ_STOP, (stop,)).fetchone(),
                    db.execute(_READ_REPORTS, (stop,)).fetchall(),
                )
            )
            if row is None:
                return None
            pid, begun_at, outcome = row[:3]
            if outcome != "asking":
                return decision_of(row[2:], reports)
            if self._is_lost(stop, pid, begun_at) or time.monotonic() >= ends:
                return None
            time.sleep(pause)
            pause = min(0.2, pause * 1.5)

    def prune(self, older_than: float) -> int:
        """Remove stops that began more than `older_than` seconds ago; return how many.

        Stops that are still being asked stay, and so do agents that were sent back and work.
        """
        removed = 0
        while True:
            some = self._file.write(lambda db: self._prune_some(db, time.time() - older_than))
            removed += some
            if some < _PRUNED_AT_ONCE:
                return removed

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.close()

    def _repeated(
        self, db: sqlite3.Connection, event: StopEvent, digest: bytes, known: _Known
    ) -> int:
        """Return the stop that answers this one too (B12); 0 when it stands for itself."""
        if known.id is None:
            return 0
        asking = db.execute(
            "SELECT id, digest, pid, begun_at FROM stops WHERE agent = ? AND outcome = 'asking'",
            (known.id,),
        ).fetchall()
        for stop, other, pid, begun_at in asking:
            if self._is_lost(stop, pid, begun_at):
                _lose(db, stop)
            elif other == digest:
                return int(stop)
        if event.stop_hook_active is False and known.history.blocked:
            row = db.execute("SELECT digest FROM stops WHERE id = ?", (known.last_stop,)).fetchone()
            if row is not None and row[0] == digest:
                return known.last_stop
        return 0

    def _is_lost(self, stop: int, pid: int, begun_at: float) -> bool:
        """Tell whether the process that was asking is gone, so that no answer will come."""
        if time.time() - begun_at > _LOST_AFTER:
            return True
        if pid == os.getpid():
            return (self.path, stop) not in _asked_here
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False  # somebody else's, and alive
        return False

    def _prune_some(self, db: sqlite3.Connection, cutoff: float) -> int:
        asking = db.execute(
            "SELECT id, pid, begun_at FROM stops WHERE outcome = 'asking' AND begun_at < ?",
            (cutoff,),
        ).fetchall()
        for stop, pid, begun_at in asking:
            if self._is_lost(stop, pid, begun_at):
                _lose(db, stop)
        at_work_since = min(cutoff, time.time() - _FORGOTTEN_AFTER)
        old = db.execute(_OLD_STOPS, (cutoff, at_work_since, _PRUNED_AT_ONCE)).fetchall()
        db.executemany("DELETE FROM reports WHERE stop = ?", old)
        db.executemany("DELETE FROM stops WHERE id = ?", old)
        if len(old) < _PRUNED_AT_ONCE:
            db.execute(_OLD_AGENTS, (cutoff,))
        return len(old)


def _override(db: sqlite3.Connection, stop: int) -> None:
    """A new turn came without another stop: the host let the agent go against our word."""
    db.execute(
        "UPDATE stops SET outcome = 'overridden' WHERE id = ? AND outcome = 'blocked'", (stop,)
    )


def _lose(db: sqlite3.Connection, stop: int) -> None:
    """The process that asked died before it could answer."""
    db.execute(
        "UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'lost' WHERE id = ?",
        (stop,),
    )
