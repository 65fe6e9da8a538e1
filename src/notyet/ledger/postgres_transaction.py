"""One transaction on PostgreSQL, with the methods of a SQLite connection that the ledger uses."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus

from notyet.ledger.postgres_sql import CLOCK, LOCKS, numbered, restored, stored, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from psycopg.abc import Buffer, PQGen

    T = TypeVar("T")

_PATIENT = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")  # statements that can wait
_IDLE = "10s"  # a suspended process must not keep its locks: others wait for them
_REPLANNED_AFTER = 10.0  # seconds; a plan for a small table is slow on a large one
_MOST_PLANS = 200  # some statements have as many marks as values
_MONTH = 30 * 86_400  # seconds; no process waits for the fate of a COMMIT that long
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
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
    """What a statement found or changed; it is sent at the latest when that is looked at."""

    def __init__(self, transaction: Transaction, parts: Sequence[str]) -> None:
        self.parts = parts  # the statement, after its locks
        self._transaction = transaction
        self._count: int | None = None
        self._rows: Iterator[Any] = iter(())

    def take(self, cursor: psycopg.Cursor[Any]) -> None:
        """Take what the server answered."""
        self._count = cursor.rowcount
        if cursor.pgresult is not None and cursor.pgresult.nfields:
            self._rows = iter([restored(row) for row in cursor.fetchall()])

    @property
    def rowcount(self) -> int:
        """How many rows were found or changed."""
        if self._count is None:
            self._transaction.flush()
        assert self._count is not None
        return self._count

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        return next(iter(self), None)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        return self._rows if self.rowcount else iter(())


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

    def begin(self) -> list[tuple[str, Sequence[Any]]]:
        """Return the statements that begin the next transaction, after BEGIN."""
        self._number += 1
        old = f"DELETE FROM {self._schema}.commits WHERE at < {CLOCK} - {_MONTH}"
        mark = (self._mark("EXCLUDED.number", "?"), (self._number,))
        return [mark, *([(old, ())] if self._number == 1 else ())]

    def has_committed(self, db: psycopg.Connection[Any], patience: float) -> bool:
        """Return True if the last transaction committed; wait while it is under way.

        Raises psycopg.Error, LockNotAvailable among them.
        """
        with db.transaction():
            db.execute(f"SET LOCAL lock_timeout = {max(1, round(patience * 1000))}")
            found = db.execute(self._mark("commits.number", "0").encode() + b" RETURNING number")
            return bool(found.fetchone() == (self._number,))

    def _mark(self, to: str, first: str) -> str:
        return (
            f"INSERT INTO {self._schema}.commits AS commits (writer, number, at)"
            f" VALUES ('{self._id}', {first}, {CLOCK})"
            f" ON CONFLICT (writer) DO UPDATE SET number = {to}, at = EXCLUDED.at"
        )


class Plans:
    """The statements of one connection that its server need not plan again.

    Planning them costs the server more than all the rest. A name is of one connection alone: also
    behind a pool that hides itself, it can only be unknown, and not another statement's.
    """

    def __init__(self) -> None:
        self._may_plan = True
        self._seen: set[str] = set()
        self._names: dict[str, str] = {}
        self._replanned_at = time.monotonic() + _REPLANNED_AFTER
        self.forget()

    def stop(self) -> None:
        """Plan nothing any more."""
        self._may_plan = False

    def forget(self) -> None:
        """Plan all of them again: it is unknown which are planned, or they are old."""
        self._prefix = f"notyet_{uuid4().hex}"
        self._seen &= self._names.keys()  # not those of one use
        self._names = {}

    def begin(self) -> list[str]:
        """Return what the next transaction begins with."""
        if time.monotonic() < self._replanned_at or not self._may_plan:
            return []
        self._replanned_at = time.monotonic() + _REPLANNED_AFTER
        self.forget()
        return ["DEALLOCATE ALL"]

    def call(self, statement: str) -> list[str]:
        """Return what calls a statement by its name, without values; nothing at its first use."""
        name = self._names.get(statement)
        if name is not None:
            return [f"EXECUTE {name} "]
        if statement not in self._seen or not self._may_plan or len(self._names) >= _MOST_PLANS:
            self._seen.add(statement)
            return []
        name = self._names[statement] = f"{self._prefix}_{len(self._names)}"
        return [f"PREPARE {name} AS {numbered(statement)}", f"EXECUTE {name} "]


class Transaction:
    """A transaction with the methods of a SQLite connection that the ledger uses.

    A round trip costs more than all that PostgreSQL does meanwhile. So statements wait until the
    result of one is looked at, and travel together; the first ones with BEGIN, the last ones with
    COMMIT.
    """

    def __init__(
        self,
        db: psycopg.Connection[Any],
        schema: str,
        patience: float,
        *,
        writer: Writer | None = None,
        plans: Plans | None = None,
        check: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.is_single = False  # it commits with its first statement, too
        self._db = db
        self._cursor = psycopg.ClientCursor(db)
        self._schema = schema
        self._patience = patience
        self._writer = writer  # None where it only reads
        self._plans = plans  # None behind a pool, or where it only reads
        self._before = plans.begin() if plans is not None else []
        self._check = check  # of the version of the tables, before anything is committed
        self._locked: set[tuple[str, tuple[Any, ...]]] = set()
        self._unsent: list[Rows] = []

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """Lock what the statement's guard is about, and run it."""
        rows = Rows(self, [*self._locks(statement, values), *self._bound(statement, values)])
        self._unsent.append(rows)
        if not statement.lstrip().startswith(_PATIENT):
            self.flush()
        return rows

    def executemany(self, statement: str, many: Iterable[Sequence[Any]]) -> None:
        """Run a statement with many values."""
        for values in many:
            self.execute(statement, values)

    def flush(self) -> None:
        """Send what waits, and take the answers."""
        if not self._unsent:
            return
        beginning = [] if self._is_begun else self._beginning()
        unsent, self._unsent = [*beginning, *self._unsent], []
        cursor = self._cursor
        self._send(cursor, unsent, ["COMMIT"] if self.is_single else [])
        for rows in unsent:
            for _ in rows.parts[1:]:  # its locks and plans
                cursor.nextset()
            rows.take(cursor)
            cursor.nextset()
        if beginning:
            self._check(beginning[0].fetchone()[0])

    def commit(self) -> None:
        """End the transaction, if it has begun."""
        if not self._is_begun:
            self.flush()  # on its own: the version of the tables is checked before COMMIT
        if self._is_begun:
            self._send(self._db, self._unsent, ["COMMIT"])

    def rollback(self) -> None:
        """Undo the transaction, if it has begun."""
        if self._unsent and self._plans is not None:
            self._plans.forget()
        self._unsent.clear()
        if not self._db.closed and self._is_begun:
            self._db.execute("ROLLBACK")

    @property
    def _is_begun(self) -> bool:
        return self._db.info.transaction_status != TransactionStatus.IDLE

    def _send(
        self,
        to: psycopg.Connection[Any] | psycopg.Cursor[Any],
        unsent: Sequence[Rows],
        ending: Sequence[str],
    ) -> None:
        parts = [part for rows in unsent for part in rows.parts]
        try:
            to.execute(";".join([*parts, *ending]).encode())
        except BaseException as error:
            if self._plans is not None:
                self._plans.forget()
                if isinstance(error, psycopg.errors.InvalidSqlStatementName):
                    self._plans.stop()
            raise

    def _beginning(self) -> list[Rows]:
        """Return what begins the transaction; the first of it finds the version of the tables."""
        place = f"set_config('search_path', '{self._schema}', true)"
        if self._writer is None:
            begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
            return [Rows(self, [begin, f"SELECT 0, {place}"])]
        settings = {
            "lock_timeout": "?",
            "idle_in_transaction_session_timeout": f"'{_IDLE}'",
            "synchronous_commit": SYNCHRONOUS,
            "plan_cache_mode": "'force_generic_plan'",  # each is planned once
        }
        set_all = ", ".join(f"set_config('{name}', {to}, true)" for name, to in settings.items())
        version = f"(SELECT max(version) FROM {self._schema}.ledger_version)"
        patience = f"{max(1, round(self._patience * 1000))}ms"
        first = self._bound(f"SELECT {version}, {place}, {set_all}", (patience,))
        marks = [Rows(self, self._bound(*each)) for each in self._writer.begin()]
        return [Rows(self, [_BEGIN, *self._before, *first]), *marks]

    def _locks(self, statement: str, values: Sequence[Any]) -> list[str]:
        if self._writer is None:
            return []
        parts: list[str] = []
        for lock in LOCKS.get(statement, ()):
            wanted = (lock.statement, tuple(values[number] for number in lock.values))
            if wanted not in self._locked:
                self._locked.add(wanted)
                parts += self._bound(*wanted)
        return parts

    def _bound(self, statement: str, values: Sequence[Any]) -> list[str]:
        """Return what is sent for a statement: itself, or the call of its plan."""
        kept = [stored(value) for value in values]
        call = self._plans.call(statement) if self._plans is not None else []
        if not call:
            return [self._cursor.mogrify(translate(statement).encode(), kept)]
        if kept:
            marks = f"({', '.join(['%s'] * len(kept))})"
            call[-1] += self._cursor.mogrify(marks.encode(), kept)
        return call
