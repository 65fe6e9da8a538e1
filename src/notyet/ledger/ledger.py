"""`Ledger`: one SQLite file, or one schema of PostgreSQL, shared by all that gate agents.

A stop is two short transactions, `begin` and `record`. Both find one row of `agents` by its key,
so their cost does not depend on the size of the ledger.
"""

from __future__ import annotations

import time
from _weakref import ref

from notyet import light
from notyet.core.limits import History, after, open_turn, within_limit
from notyet.core.record import Record, replace, variant
from notyet.errors import LedgerError
from notyet.ledger import REPEATED, REPEATED_AT_MOST, REPEATED_WITHIN, Begun
from notyet.ledger.connection import Connection, default_path
from notyet.ledger.stop_rows import (
    HISTORY_COLUMNS,
    REPORT_COLUMNS,
    STOP_COLUMNS,
    decision_of,
    event_row,
    history_of,
    history_row,
    key_text,
    report_row,
    stop_row,
    stored_folder,
)
from notyet.run.proc import is_gone, own_machine, own_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.plan import Wanted
    from notyet.core.verdict import Decision, Report
    from notyet.ledger.prune import Retention
    from notyet.ledger.stop_rows import Key

    CountedBefore = tuple[sqlite3.Cursor, sqlite3.Cursor]


def _marks(columns: tuple[str, ...]) -> str:
    return ", ".join("?" * len(columns))


def _settings(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = ?" for name in columns)


FIND_AGENT = (
    f"SELECT id, last_stop, seen_at, {', '.join(HISTORY_COLUMNS)} FROM agents"
    " WHERE host = ? AND session_id = ? AND agent_id = ?"
)
AGENT_OF_STOP = (
    f"SELECT agents.id, last_stop, {', '.join('agents.' + name for name in HISTORY_COLUMNS)}"
    " FROM stops JOIN agents ON agents.id = stops.agent WHERE stops.id = ? AND token = ?"
    " AND (outcome = 'asking' OR (outcome = 'skipped' AND why = 'lost'))"
)
NEW_AGENT = (
    f"INSERT INTO agents (last_stop, host, session_id, agent_id, seen_at,"
    f" {', '.join(HISTORY_COLUMNS)}) VALUES (0, ?, ?, ?, ?, {_marks(HISTORY_COLUMNS)}) RETURNING id"
)
SEE_AGENT = f"UPDATE agents SET seen_at = ?, {_settings(HISTORY_COLUMNS)} WHERE id = ?"
COUNT = f"UPDATE agents SET last_stop = ?, seen_at = ?, {_settings(HISTORY_COLUMNS)} WHERE id = ?"
ASKER = "token, pid, pid_start, machine, begun_at"  # the arguments of `is_lost`
NEW_STOP = (
    "INSERT INTO stops (agent, turn, begun_at, pid, pid_start, machine, token, digest, event,"
    " place, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'asking') RETURNING id"
)
DECIDE = f"UPDATE stops SET ended_at = ?, {_settings(STOP_COLUMNS)} WHERE id = ?"
NEW_REPORT = f"INSERT INTO reports ({', '.join(REPORT_COLUMNS)}) VALUES ({_marks(REPORT_COLUMNS)})"
ASKING = (
    f"SELECT id, digest, {ASKER} FROM stops WHERE outcome = 'asking' AND agent ="
    " (SELECT id FROM agents WHERE host = ? AND session_id = ? AND agent_id = ?)"
)
ANSWER_AGAIN = (
    "UPDATE stops SET repeated = repeated + 1"
    f" WHERE id = ? AND digest = ? AND ended_at > ? AND repeated < ? AND outcome IN {REPEATED}"
)
# The subagents of a session that have stopped since its user was told of them.
UNTOLD = (
    "SELECT id, last_stop FROM agents"
    " WHERE host = ? AND session_id = ? AND agent_id <> '' AND told < last_stop"
)
_UNTOLD_BESIDE = (
    "SELECT sub.id, sub.last_stop FROM agents AS main JOIN agents AS sub ON sub.host = main.host"
    " AND sub.session_id = main.session_id AND sub.agent_id <> '' AND sub.told < sub.last_stop"
    " WHERE main.id = (SELECT agent FROM stops WHERE id = ?) AND main.agent_id = ''"
)
OVERRIDE = (
    "UPDATE stops SET outcome = 'overridden' WHERE id = ? AND outcome = 'blocked'"
    " AND NOT EXISTS (SELECT 1 FROM stops AS later WHERE later.agent = ? AND later.id > ?)"
)


LOSE = "UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'lost' WHERE id = ?"
_GIVE_UP = (
    "UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'cancelled', ended_at = ?"
    " WHERE id = ? AND token = ? AND outcome = 'asking'"
)
_SKIP = (
    "INSERT INTO stops (agent, turn, begun_at, ended_at, pid, token, digest, event, place, why,"
    " warnings, outcome, verdict) VALUES (coalesce((SELECT id FROM agents WHERE host = ?"
    " AND session_id = ? AND agent_id = ?), 0), 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'skipped', 'allow')"
    " RETURNING id"
)
_ACT = "INSERT INTO acts (at, what, place, detail) VALUES (?, ?, ?, ?)"
_READ_STOP = f"SELECT {ASKER}, {', '.join(STOP_COLUMNS)} FROM stops WHERE id = ?"
_READ_REPORTS = f"SELECT {', '.join(REPORT_COLUMNS)} FROM reports WHERE stop = ? ORDER BY position"

_LEAST_PATIENCE = 0.1  # seconds for reading an answer that may be there already
_LONGEST_PAUSE = 0.2  # seconds between two looks for an answer
_LOST_AFTER = 86_400.0  # no gate runs for a day; by then the process id may be another program's
_WITHOUT_ANSWER = ("cancelled", "lost")  # why a stop ended without a decision

# The stops that this process is deciding, by token: its process id alone cannot tell them from
# those it failed to record. Weak references: a stop whose Begun is gone, because of a Ctrl-C
# between its entry and its answer, is lost.
deciding_here: dict[bytes, ref[Begun]] = {}


class Ledger:
    """The durable ledger: opened at its first use, safe in many threads and processes.

    `path` defaults to `$NOTYET_LEDGER` or the XDG state folder. After `patience` seconds of waiting
    for other processes, LedgerBusy is raised; a call can be given less. At its first use, a damaged
    ledger is replaced and an older one brought up to date; with `repair=False`, for readers, the
    file is left as it is and LedgerNeedsRepair is raised.

    `Ledger("postgresql://user@host/database")` is for supervisors on many machines; it needs the
    extra `postgres`, and PostgreSQL 13 or newer, also behind pgbouncer. Its tables are in the
    schema `notyet`, or in the one that `?schema=NAME` names. `path` is then the address without its
    password. Hooks always write a file.
    """

    in_memory = False

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        patience: float = 5.0,
        *,
        repair: bool = True,
    ) -> None:
        self.called_at: float | None = None  # when this process started, if it is for one stop only
        self.retention: Retention | None = None  # what a supervisor prunes; None: nothing
        self.newest = 0  # the last stop that was entered here
        self.logged = 0  # the last stop whose output was logged here
        self.connection = _connection(path, patience, repair=repair)
        self.path = self.connection.path

    @property
    def patience(self) -> float:
        """How many seconds to wait for other processes."""
        return self.connection.patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self.connection.patience = seconds

    def begin(self, event: StopEvent, patience: float | None = None) -> Begun:
        """Enter a stop: number its turn, and find out if the host overrode the last one (B11)."""
        enter = self.entering(event)
        self.connection.for_one_stop = self.called_at is not None
        begun = self.connection.write(enter, patience)
        self.newest = begun.stop if not begun.repeats else self.newest
        return begun

    def entering(self, event: StopEvent) -> Callable[[sqlite3.Connection], Begun]:
        """Return what enters a stop inside a transaction."""
        digest, stored = event_row(event)
        token = light.urandom(8)
        place = stored_folder(event.cwd)
        event = with_stored_turn_id(event)

        def enter(db: sqlite3.Connection) -> Begun:
            found, asking = db.execute(FIND_AGENT, _key(event)), db.execute(ASKING, _key(event))
            agent = _agent_of(found.fetchone())
            earlier = self._repeated_stop(db, agent, asking.fetchall(), event, digest)
            if earlier:
                return Begun(stop=earlier, repeats=earlier)
            history = open_turn(agent.history, event)
            is_new_turn = history.turn != agent.history.turn
            overridden = _override(db, agent) if is_new_turn and agent.history.blocked else 0
            now = time.time()
            number = _save_agent(db, agent, event, history, now)
            asker = (light.getpid(), own_start(), own_machine(), token)
            new = (number, history.turn, now, *asker, digest, stored, place)
            (stop,) = db.execute(NEW_STOP, new).fetchone()
            warnings = self.connection.take_warnings()
            begun = Begun(
                stop=stop, token=token, history=history, overridden=overridden, warnings=warnings
            )
            # Before others can see the row.
            deciding_here[token] = ref(begun, lambda _: _forget(token))
            return begun

        return enter

    def record(
        self, begun: Begun, decision: Decision, ceiling: int = 0, patience: float | None = None
    ) -> Decision:
        """Count a decision and record it, in one transaction (B3)."""

        def count(db: sqlite3.Connection) -> Decision:
            return self.count(db, begun, decision, ceiling, counted_before(db, begun))

        try:
            final = self.connection.write(count, patience)
        finally:
            deciding_here.pop(begun.token, None)
        warnings = self.connection.take_warnings()
        return final if not warnings else replace(final, warnings=(*final.warnings, *warnings))

    def count(
        self,
        db: sqlite3.Connection,
        begun: Begun,
        decision: Decision,
        ceiling: int,
        before: CountedBefore,
    ) -> Decision:
        """Count and record a decision inside the caller's transaction."""
        agent_of_stop, beside = before
        row, untold = agent_of_stop.fetchone(), beside.fetchall()
        if row is None:
            raise LedgerError(self.path, f"stop {begun.stop} is gone; was the file replaced?")
        # Read again: another stop of this agent may have been recorded since `begin`.
        agent, last_stop = row[:2]
        history = history_of(row[2:])
        final = variant(within_limit(history, decision, ceiling), {"stop": begun.stop})
        now = time.time()
        counted = history_row(after(history, final))
        if final.turn == history.turn:
            last_stop = begun.stop
        db.execute(COUNT, (last_stop, now, *counted, agent))
        db.execute(DECIDE, (now, *stop_row(final), begun.stop))
        reports = [report_row(begun.stop, n, r) for n, r in enumerate(final.reports)]
        db.executemany(NEW_REPORT, reports)
        if any(report.passed_on or report.failed_on for report in final.reports):
            from notyet.ledger.passes import remember

            remember(db, final.reports, begun.stop)
        if any(report.spared == "unchanged" for report in final.reports):
            from notyet.ledger.untold import unchanged_in

            final = variant(final, {"unchanged": unchanged_in(db, final, agent)})
        if not untold:
            return final
        from notyet.ledger.untold import tell

        return variant(final, {"subagents": tell(db, untold)})

    def give_up(self, begun: Begun, patience: float | None = None) -> None:
        """End a stop that is still `asking` without an answer; count nothing."""
        deciding_here.pop(begun.token, None)
        self.connection.execute(_GIVE_UP, (time.time(), begun.stop, begun.token), patience)

    def skip(self, event: StopEvent, decision: Decision, patience: float | None = None) -> int:
        """Record a stop that was allowed without running gates; return its number."""
        digest, stored = event_row(event)
        now = time.time()
        row = dict(zip(STOP_COLUMNS, stop_row(decision), strict=True))
        place = stored_folder(event.cwd)
        process = (light.getpid(), light.urandom(8))
        new = (now, now, *process, digest, stored, place, row["why"], row["warnings"])

        def enter(db: sqlite3.Connection) -> int:
            return int(db.execute(_SKIP, (*_key(event), *new)).fetchone()[0])

        self.newest = self.connection.write(enter, patience)
        return self.newest

    def take_untold(self, event: StopEvent, patience: float | None = None) -> tuple[str, ...]:
        """Return what subagents did not pass, each once, for a main stop that no gate checks."""
        session = _key(event)[:2]

        def take(db: sqlite3.Connection) -> tuple[str, ...]:
            from notyet.ledger.untold import tell

            return tell(db, db.execute(UNTOLD, session).fetchall())

        if not self.connection.read(lambda db: db.execute(UNTOLD, session).fetchone(), patience):
            return ()  # without waiting for writers
        return self.connection.write(take, patience)

    def act(self, what: str, place: str, detail: str) -> None:
        """Record what a person did: trust, revoke, off, on."""
        self.connection.execute(_ACT, (time.time(), what, key_text(place), key_text(detail)))

    def keep_output(self, begun: Begun, report: Report) -> str:
        """Write a report's whole output to a log on this machine; return its path, or ''."""
        from notyet.ledger.logs import keep, make_room_for

        if self.logged != begun.stop:  # once for all logs of a stop
            self.logged = begun.stop
            make_room_for(self.connection.beside, begun.stop)
        return keep(self.connection.beside, begun.stop, report.gate, report.output)

    def answer(self, stop: int, patience: float) -> Decision | None:
        """Wait for a stop's decision; None if its process died or took too long."""
        ends = time.monotonic() + patience
        pause, has_lost = 0.01, False
        while True:
            row, reports = self.connection.read(
                lambda db: (
                    db.execute(_READ_STOP, (stop,)).fetchone(),
                    db.execute(_READ_REPORTS, (stop,)).fetchall(),
                ),
                max(_LEAST_PATIENCE, ends - time.monotonic()),
            )
            if row is None:
                return None
            asker, known = row[:5], row[5:]
            if known[0] != "asking":
                decision = variant(decision_of(known, reports), {"stop": stop})
                is_answer = decision.outcome != "skipped" or decision.why not in _WITHOUT_ANSWER
                return decision if is_answer else None
            if has_lost or time.monotonic() >= ends:
                return None
            has_lost = is_lost(*asker)
            if has_lost:
                continue  # it may have been recorded between the two
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)

    def recall(
        self, event: StopEvent, wanted: Sequence[Wanted], patience: float | None = None
    ) -> Mapping[str, str]:
        """Return why gates can be skipped: gate -> "passed" or "unchanged" (N1)."""
        from notyet.ledger.passes import recall

        return self.connection.read(lambda db: recall(db, event, wanted), patience)

    def start_of(self, event: StopEvent, patience: float | None = None) -> Mapping[str, str]:
        """Return the files that the agent of an event started with: scope -> tree."""
        from notyet.ledger.passes import start_of

        return self.connection.read(lambda db: start_of(db, event), patience)

    def remember(self, reports: Sequence[Report], patience: float | None = None) -> None:
        """Remember the passes among reports; forget those that failures refute."""
        from notyet.ledger.passes import remember

        self.connection.write(lambda db: remember(db, reports), patience)

    def remember_start(
        self, event: StartEvent, trees: Mapping[str, str], patience: float | None = None
    ) -> bool:
        """Remember the files that an agent starts with; return True if this is its first start."""
        from notyet.ledger.passes import remember_start

        return self.connection.write(lambda db: remember_start(db, event, trees), patience)

    def prune(self, older_than: float) -> int:
        """Remove stops and tasks that are more than `older_than` seconds old; return how many.

        Stops that are being decided stay, and so do agents that were sent back, tasks that are
        active or undelivered, and the newest stop, so that its number is not given again.
        """
        from notyet.ledger.prune import prune_older

        return prune_older(self, time.time() - older_than)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self.connection.close()

    def _repeated_stop(
        self,
        db: sqlite3.Connection,
        agent: AgentRow,
        asking: list[tuple[Any, ...]],
        event: StopEvent,
        digest: bytes,
    ) -> int:
        """Return the equal stop whose answer is also the answer to this one, or 0 (B12)."""
        for stop, its_digest, *asker in asking:
            if is_lost(*asker):
                db.execute(LOSE, (stop,))
            elif its_digest == digest:
                return int(stop)
        if event.stop_hook_active is False and agent.history.blocked:
            since = time.time() - REPEATED_WITHIN
        elif self.called_at is not None:
            since = self.called_at  # this process started before the last answer was given
        else:
            return 0
        if since >= agent.seen_at:  # nothing was answered since
            return 0
        again = (agent.last_stop, digest, since, REPEATED_AT_MOST)
        return agent.last_stop if db.execute(ANSWER_AGAIN, again).rowcount else 0


def _connection(
    path: str | os.PathLike[str] | None, patience: float, *, repair: bool
) -> Connection:
    if path is None:
        return Connection(default_path(light.variables()), patience, repair=repair)
    path = light.fspath(path)
    if path.startswith(("postgresql://", "postgres://")):
        from notyet.ledger.postgres import PostgresConnection

        return PostgresConnection(path, patience, repair=repair)
    return Connection(light.abspath(path), patience, repair=repair)


class AgentRow(Record, kw_only=True):
    """The row of an agent; `id` is 0 if it has none yet."""

    id: int = 0
    last_stop: int = 0
    seen_at: float = 0.0
    history: History = History()


def counted_before(db: sqlite3.Connection, begun: Begun) -> CountedBefore:
    """Find what `Ledger.count` begins with: the agent, and subagents that are not told of."""
    agent = db.execute(AGENT_OF_STOP, (begun.stop, begun.token))
    return agent, db.execute(_UNTOLD_BESIDE, (begun.stop,))


def find_agent(db: sqlite3.Connection, event: StopEvent) -> AgentRow:
    """Return the agent of an event."""
    return _agent_of(db.execute(FIND_AGENT, _key(event)).fetchone())


def _agent_of(row: tuple[Any, ...] | None) -> AgentRow:
    if row is None:
        return AgentRow()
    return AgentRow(id=row[0], last_stop=row[1], seen_at=row[2], history=history_of(row[3:]))


def _save_agent(
    db: sqlite3.Connection, agent: AgentRow, event: StopEvent, history: History, now: float
) -> int:
    """Store the history of an agent; return the number of its row."""
    if agent.id:
        db.execute(SEE_AGENT, (now, *history_row(history), agent.id))
        return agent.id
    return int(db.execute(NEW_AGENT, (*_key(event), now, *history_row(history))).fetchone()[0])


def with_stored_turn_id(event: StopEvent) -> StopEvent:
    """Return an event whose turn id is as the ledger stores it."""
    return variant(event, {"turn_id": key_text(event.turn_id)}) if event.turn_id else event


def is_lost(token: bytes, pid: int, pid_start: str, machine: str, begun_at: float) -> bool:
    """Return True if the process that was deciding a stop is gone."""
    if time.time() - begun_at > _LOST_AFTER:
        return True
    if machine and machine != own_machine():
        return False  # only time tells
    if pid == light.getpid():
        return token not in deciding_here
    return is_gone(pid, pid_start)


def _forget(token: bytes) -> None:
    deciding_here.pop(token, None)


def _key(event: StopEvent) -> Key:
    return key_text(event.host), key_text(event.session_id), key_text(event.agent_id or "")


def _override(db: sqlite3.Connection, agent: AgentRow) -> int:
    """Mark a send-back as overridden: a new turn came without another stop.

    Returns the stop, or 0 if it was no send-back, or if the agent did come again and was not
    counted, because notyet was off or its process was killed.
    """
    stop = agent.last_stop
    return stop if db.execute(OVERRIDE, (stop, agent.id, stop)).rowcount else 0
