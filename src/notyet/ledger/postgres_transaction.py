"""One transaction on PostgreSQL, with the methods of a SQLite connection that the ledger uses."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus

from notyet.ledger.postgres_sql import CLOCK, LOCKS, restored, stored, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from psycopg.abc import Buffer, PQGen

    T = TypeVar("T")

_IDLE = "10s"  # a suspended process must not keep its locks: others wait for them
_MONTH = 30 * 86_400  # seconds; no process waits for the fate of a COMMIT that long
# Where it is off, a crash of the server undoes what was committed: a prompt would be sent again.
SYNCHRONOUS = (
    "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
    " ELSE current_setting('synchronous_commit') END"
)


class Answering(psycopg.Connection[Any]):
    """A connection that breaks if its server stays silent: a network can stall without an error."""

    longest_silence = 30.0  # seconds; a statement waits for locks much shorter

    def wait(self, gen: PQGen[T], *args: Any, **options: Any) -> T:
        """Wait as psycopg does, which looks for a Ctrl-C ten times a second."""
        return super().wait(self._answered(gen), *args, **options)

    def _answered(self, gen: PQGen[T]) -> PQGen[T]:
        ends = time.monotonic() + self.longest_silence
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > ends:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {self.longest_silence:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result


class Number(Loader):
    """Sums are numeric; in SQLite they are integers and floats."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class Rows:
    """What a statement found or changed."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self.rowcount = cursor.rowcount
        has_rows = cursor.pgresult is not None and cursor.pgresult.nfields
        found = cursor.fetchall() if has_rows else []
        self._rows = iter([restored(row) for row in found])

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


class Writer:
    """Names the write transactions of one connection, so that the fate of each can be looked up.

    A transaction of number n leaves n in the writer's row of `commits`, if it commits. It writes
    that row first: a lookup waits for the row's lock, so it cannot miss a COMMIT that is under way.
    PostgreSQL's own number of a transaction would not do: a server that crashes gives the numbers
    again that were not on its disk.
    """

    def __init__(self, schema: str) -> None:
        self._id = uuid4().hex
        self._schema = schema
        self._number = 0

    def begin(self) -> list[str]:
        """Return the statements that begin the next transaction, after BEGIN."""
        self._number += 1
        old = f"DELETE FROM {self._schema}.commits WHERE at < {CLOCK} - {_MONTH}"
        return [self._mark("EXCLUDED.number"), *([old] if self._number == 1 else ())]

    def has_committed(self, db: psycopg.Connection[Any], patience: float) -> bool:
        """Return True if the last transaction committed; wait while it is under way.

        Raises psycopg.Error, LockNotAvailable among them.
        """
        with db.transaction():
            db.execute(f"SET LOCAL lock_timeout = {max(1, round(patience * 1000))}")
            found = db.execute(self._mark("commits.number", 0).encode() + b" RETURNING number")
            return bool(found.fetchone() == (self._number,))

    def _mark(self, to: str, first: int | None = None) -> str:
        first = self._number if first is None else first
        return (
            f"INSERT INTO {self._schema}.commits AS commits (writer, number, at)"
            f" VALUES ('{self._id}', {first}, {CLOCK})"
            f" ON CONFLICT (writer) DO UPDATE SET number = {to}, at = EXCLUDED.at"
        )


class Transaction:
    """A transaction with the methods of a SQLite connection that the ledger uses.

    It begins with its first statement, in the same message: a round trip costs more than all
    that PostgreSQL does meanwhile.
    """

    def __init__(
        self,
        db: psycopg.Connection[Any],
        schema: str,
        patience: float,
        *,
        writer: Writer | None = None,
        check: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.is_single = False  # it commits with its first statement, too
        self._db = db
        self._cursor = psycopg.ClientCursor(db)
        self._schema = schema
        self._patience = patience
        self._writer = writer  # None where it only reads
        self._check = check  # of the version of the tables, before anything is committed
        self._locked: set[str] = set()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """Lock what the statement's guard is about, and run it."""
        return self._send([*self._locks(statement, values), self._bound(statement, values)])

    def executemany(self, statement: str, many: Iterable[Sequence[Any]]) -> None:
        """Run a statement with many values, in one message."""
        sent = [
            part
            for values in many
            for part in (*self._locks(statement, values), self._bound(statement, values))
        ]
        if sent:
            self._send(sent)

    def commit(self) -> None:
        """End the transaction, if it has begun."""
        if self._db.info.transaction_status != TransactionStatus.IDLE:
            self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Undo the transaction, if it has begun."""
        if not self._db.closed and self._db.info.transaction_status != TransactionStatus.IDLE:
            self._db.execute("ROLLBACK")

    def _send(self, parts: list[str]) -> Rows:
        is_first = self._db.info.transaction_status == TransactionStatus.IDLE
        if is_first:
            parts = [*self._beginning(), *parts]
        if self.is_single:
            parts.append("COMMIT")
        cursor = self._cursor
        cursor.execute(";".join(parts).encode())
        if is_first:
            cursor.nextset()  # after BEGIN
            self._check(next(cursor)[0])
        for _ in range(len(parts) - 1 - is_first - self.is_single):
            cursor.nextset()
        return Rows(cursor)

    def _beginning(self) -> list[str]:
        place = f"set_config('search_path', '{self._schema}', true)"
        if self._writer is None:
            return ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", f"SELECT 0, {place}"]
        settings = {
            "lock_timeout": f"'{max(1, round(self._patience * 1000))}ms'",
            "idle_in_transaction_session_timeout": f"'{_IDLE}'",
            "synchronous_commit": SYNCHRONOUS,
        }
        set_all = ", ".join(f"set_config('{name}', {to}, true)" for name, to in settings.items())
        version = f"(SELECT max(version) FROM {self._schema}.ledger_version)"
        first = f"SELECT {version}, {place}, {set_all}"
        return ["BEGIN ISOLATION LEVEL READ COMMITTED", first, *self._writer.begin()]

    def _locks(self, statement: str, values: Sequence[Any]) -> list[str]:
        if self._writer is None:
            return []
        wanted = [
            self._bound(lock.statement, [values[number] for number in lock.values])
            for lock in LOCKS.get(statement, ())
        ]
        new = [lock for lock in wanted if lock not in self._locked]
        self._locked.update(new)
        return new

    def _bound(self, statement: str, values: Sequence[Any]) -> str:
        return self._cursor.mogrify(
            translate(statement).encode(), [stored(value) for value in values]
        )
