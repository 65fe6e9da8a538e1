"""The ledger on PostgreSQL: one database, shared by the supervisors of many machines.

The statements and the moves are those of the SQLite file; postgres_sql.py has what differs. Nothing
is kept in the session of a connection, so that pgbouncer may give each transaction another one.

A transaction that lost a race is run again: after a duplicate key, another process made the row
first. So is one whose connection broke before COMMIT was sent, for the server has undone it. After
a COMMIT without an answer, the transaction's own mark in the database tells whether it counts:
repeating it could enter a stop twice.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

from notyet.errors import LedgerError, LedgerNeedsRepair, NotyetError
from notyet.ledger.connection import (
    APPLICATION,
    FIRST_VERSION,
    VERSION,
    Connection,
    default_path,
    expect_readable,
    needs_psycopg,
    open_empty,
)
from notyet.ledger.migrations import STEPS
from notyet.ledger.postgres_sql import COMMITS, NOTICES, first_tables, stored, translate, with_types

try:
    import psycopg
    from psycopg.pq import TransactionStatus

    from notyet.ledger.postgres_address import (
        DUPLICATE,
        LOCKED,
        LOST_RACE,
        NO_RIGHT,
        NO_TABLES,
        Address,
        code_of,
        fault,
        first_line,
        is_broken,
    )
    from notyet.ledger.postgres_transaction import Answering, Plans, Transaction, Writer
except ImportError as missing:
    raise needs_psycopg() from missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    T = TypeVar("T")
    Work = Callable[[Any], T]  # of a Transaction; SQLite's connections have the same methods

USE_OWNER = "use the role that owns the tables"  # where there are tables
_OLDEST_SERVER = 13_00_00
_LONGEST_WAIT = 1.0  # seconds for a lock in one try: a fork waits for it
_MOST_DUPLICATES = 3  # then it is no race: the next try would have found the row
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02  # after a lost race
_RECONNECT_PAUSE = 0.05
_AT_ONCE = 8
# How servers and pgbouncer say that they take no further connection.
_NO_ROOM = ("too many", "slots are reserved", "no more connections")


class Listener:
    """A connection of its own that hears which owner has something to do."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def listen(self, schema: str) -> None:
        """Hear notices of this schema from now on."""
        self._db.execute(f"LISTEN {schema}".encode())

    def fileno(self) -> int:
        """Return what becomes readable with a notice."""
        return self._db.fileno()

    def take(self) -> set[int]:
        """Return the owners that notices came for. Raises OSError if the connection is broken."""
        try:
            return {int(notice.payload) for notice in self._db.notifies(timeout=0)}
        except psycopg.Error as error:
            raise OSError(first_line(error)) from error

    def close(self) -> None:
        """Stop listening."""
        self._db.close()

    def __del__(self) -> None:
        self.close()  # nothing may have waited for the thread that made it


class PostgresConnection(Connection):
    """Runs transactions on one schema of a database; safe in many threads, and after a fork.

    Threads that come at the same time use connections of their own, up to a few, so that the server
    works for one while another waits for an answer.
    """

    is_file = False
    at_once = _AT_ONCE
    _db: psycopg.Connection[Any] | None = None  # type: ignore[assignment]  # of another library

    def __init__(
        self, url: str, patience: float, *, repair: bool = True, others: int = _AT_ONCE - 1
    ) -> None:
        self._others = [
            PostgresConnection(url, patience, repair=repair, others=0) for _ in range(others)
        ]
        self._address = Address(url)
        self._writer: Writer | None = None  # of the open connection
        self._plans: Plans | None = None
        self._was_open = False
        self._is_pooled = False
        super().__init__(self._address.shown, patience, repair=repair)
        home = default_path(os.environ)
        # Not the file's own name: its stops have the same numbers.
        self.beside = f"{home}.{crc32(self.path.encode()):08x}" if home else ""

    def read_one(self, work: Work[T]) -> T:
        """Run one statement that reads, in one round trip."""

        def run(db: Any) -> T:
            if isinstance(db, Transaction):
                db.is_single = True
            return work(db)

        return self.read(run)

    def state(self) -> tuple[object, int]:
        """Return a value that differs when others have written to the server since.

        Its snapshot does, also on a replica. Supervisors need not tell of every change, then.
        """
        return self.read_one(lambda db: (_asked(db, "SELECT pg_current_snapshot()::text"), 0))

    def version(self) -> int:
        """Return the version of the tables: another notyet may have changed them since."""
        return self.read_one(
            lambda db: int(_asked(db, "SELECT max(version) FROM ledger_version") or VERSION)
        )

    def listen(self) -> Listener | None:
        """Return what wakes supervisors; None behind pgbouncer, which may lose notices."""
        if self._is_pooled:
            return None
        try:
            db = self._address.connect()
            listener = Listener(db)
            self._is_pooled = is_pooled(db)
            if self._is_pooled:
                return None
            listener.listen(self._address.schema)
        except psycopg.Error as error:
            raise self.fault(error) from error
        return listener

    @property
    def schema(self) -> str:
        """The schema of its tables."""
        return self._address.schema

    @property
    def options(self) -> dict[str, Any]:
        """The parameters of a connection, for psycopg; a password may be among them."""
        return dict(self._address.options)

    def is_pooled(self) -> bool:
        """Return True behind a pool that gives each transaction another connection."""
        try:
            with closing(self._address.connect()) as db:
                return is_pooled(db)
        except psycopg.Error as error:
            raise self.fault(error) from error

    def may_retry(self, error: BaseException | None) -> bool:
        """Return True after a lost race or a broken connection."""
        return self._is_broken(error) or code_of(error) in LOST_RACE

    def checkpoint(self) -> None:
        """Do nothing: PostgreSQL writes its log back by itself."""

    def write_back(self) -> None:
        """Do nothing: PostgreSQL writes its log back by itself."""

    def _transact(
        self, begin: str, work: Work[T], patience: float | None, *, flush: bool = False
    ) -> T:
        patience = self.patience if patience is None else min(self.patience, patience)
        ends = time.monotonic() + patience
        pause = _FIRST_PAUSE
        duplicates = 0
        while True:
            with self._free() as free:  # not during the pause: a fork must not wait for others
                try:
                    return free._attempt(begin, work, flush=flush, ends=ends)  # noqa: SLF001  # ours
                except NotyetError:  # of the work itself
                    raise
                except (psycopg.Error, OSError, ValueError, TypeError, OverflowError) as error:
                    is_refused = free is not self and not free.is_open
                    if is_refused and any(word in str(error) for word in _NO_ROOM):
                        self._others = [each for each in self._others if each.is_open]
                        continue
                    is_broken = self._is_broken(error)
                    duplicates += code_of(error) == DUPLICATE
                    is_over = time.monotonic() >= ends or duplicates > _MOST_DUPLICATES
                    if is_over or not (is_broken or code_of(error) in LOST_RACE):
                        is_writing = begin != "BEGIN"
                        raise free.fault(error, patience, is_writing=is_writing) from error
            time.sleep(_RECONNECT_PAUSE if is_broken else random.uniform(0, pause))  # noqa: S311
            pause = min(_LONGEST_PAUSE, 2 * pause)

    @contextmanager
    def _free(self) -> Iterator[PostgresConnection]:
        """Lock a connection that no other thread uses; if there is none, wait for one."""
        known = (self, *self._others)
        free = next((each for each in known if each.take(wait=False)), None)
        if free is None:
            free = random.choice(known)  # noqa: S311
            free.take(wait=True)
        try:
            yield free
        finally:
            free.release()

    def take(self, *, wait: bool) -> bool:
        """Keep other threads from using this connection until `release`; False if one does."""
        return self._lock.acquire(blocking=wait)

    @property
    def is_open(self) -> bool:
        """True if it is connected, as far as it knows."""
        return self._db is not None

    def close(self) -> None:
        """Close all connections; the next use opens one again."""
        for each in self._others:
            each.close()
        super().close()

    def _attempt(
        self,
        begin: str,
        work: Work[T],
        *,
        flush: bool,  # noqa: ARG002  # PostgreSQL writes every transaction to the disk
        ends: float = float("inf"),
    ) -> T:
        db = self._opened(begin)
        if db is None:  # a reader finds no ledger
            with closing(open_empty()) as empty:
                return work(empty)
        left = min(_LONGEST_WAIT, max(0.0, ends - time.monotonic()))
        # A newer notyet may have updated the tables since this process connected.
        check = partial(expect_readable, self.path)
        writer = None if begin == "BEGIN" else self._writer
        plans = None if writer is None else self._plans
        transaction = Transaction(
            db, self._address.schema, left, writer=writer, plans=plans, check=check
        )
        try:
            result = work(transaction)
        except BaseException:
            self._undo(transaction)
            raise
        try:
            transaction.commit()
        except BaseException as error:
            if isinstance(error, psycopg.Error) and not self._is_broken(error):
                self._undo(transaction)  # a statement that traveled with COMMIT failed
                raise
            self._close()
            is_lost = isinstance(error, psycopg.Error) and self._is_broken(error)
            if not is_lost or writer is None or not self._has_committed(writer, ends):
                raise
        return result

    def _undo(self, transaction: Transaction) -> None:
        try:
            transaction.rollback()
        except psycopg.Error:
            self._close()  # which rolls back as well

    def _has_committed(self, writer: Writer, ends: float) -> bool:
        """Return True if a transaction was committed whose COMMIT got no answer.

        Raises LedgerError if the server does not say it in time.
        """
        while True:
            try:
                if (db := self._opened("BEGIN")) is not None:
                    return writer.has_committed(db, _LONGEST_WAIT)
            except psycopg.Error as error:
                if not self._is_broken(error) and code_of(error) != LOCKED:
                    raise
            if time.monotonic() >= ends:
                what = "the connection broke during a COMMIT, and it is unknown what became of it"
                raise LedgerError(self.path, f"{what}; it is tried again where that is safe")
            time.sleep(_RECONNECT_PAUSE)

    # -- opening

    def _opened(self, begin: str) -> psycopg.Connection[Any] | None:  # type: ignore[override]
        if self._db is not None and (
            self._db.closed or self._db.info.transaction_status != TransactionStatus.IDLE
        ):
            self._close()
        if self._db is None:
            db = self._address.connect()
            try:
                is_there = self._prepare(db, may_create=self._repair or begin != "BEGIN")
            except BaseException:
                db.close()
                raise
            if not is_there:
                db.close()
                return None
            self._db, self._was_open = db, True
            self._writer = Writer(self._address.schema)
            self._plans = None if is_pooled(db) else Plans()
        return self._db

    def _prepare(self, db: Answering, *, may_create: bool) -> bool:
        """Check the server and the version of the tables; False if there are none."""
        server = db.info.server_version
        if server < _OLDEST_SERVER:
            what = f"PostgreSQL {server // 10_000} is too old"
            raise LedgerError(self.path, f"{what}; use version {_OLDEST_SERVER // 10_000} or newer")
        (encoding,) = _one(db, "SHOW server_encoding")
        if encoding != "UTF8":
            what = f"the database has the encoding {encoding}"
            raise LedgerError(self.path, f"{what}; create it with ENCODING 'UTF8'")
        version = self._version(db)
        if version == VERSION:
            return True
        if may_create and (self._repair or not version):
            self._migrate(db)
            return True
        if version:
            what = f"an older notyet wrote it (version {version}, this one reads {VERSION})"
            raise LedgerNeedsRepair(self.path, f"{what}; the next supervisor updates it")
        return False

    def _version(self, db: psycopg.Connection[Any]) -> int:
        # Not to_regclass, which answers from a cache: another process may have been faster.
        schema = self._address.schema
        known = f"FROM pg_tables WHERE schemaname = '{schema}' AND tablename = 'ledger_version'"
        if not _one(db, f"SELECT count(*) {known}")[0]:
            return 0
        version = int(_one(db, f"SELECT max(version) FROM {schema}.ledger_version")[0])
        expect_readable(self.path, version)
        return version

    def _migrate(self, db: Answering) -> None:
        """Create the tables or take the missing steps, one process at a time."""
        schema = self._address.schema
        db.longest_silence = float("inf")  # an index on many rows takes its time
        with db.transaction():
            db.execute(f"SELECT pg_advisory_xact_lock({APPLICATION}, hashtext('{schema}'))")
            version = self._version(db)
            if not _one(db, f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'")[0]:
                db.execute(f"CREATE SCHEMA {schema}")
            db.execute(f"SET LOCAL search_path TO {schema}")
            is_new = not version
            if is_new:
                for statement in first_tables():
                    db.execute(statement.encode())
                db.execute("CREATE TABLE ledger_version (version BIGINT NOT NULL)")
                db.execute("INSERT INTO ledger_version VALUES (0)")
                version = FIRST_VERSION
            for step in STEPS[version - FIRST_VERSION :]:
                step(_Tables(db))  # type: ignore[arg-type]  # it only executes
            if is_new:
                db.execute(COMMITS)
                db.execute(NOTICES)
            db.execute(f"UPDATE ledger_version SET version = {VERSION}")
        db.longest_silence = Answering.longest_silence

    # -- faults

    def _is_broken(self, error: BaseException | None) -> bool:
        """Return True if a connection broke, or cannot be made yet, so that a new one may help."""
        is_nameless = isinstance(error, psycopg.OperationalError) and code_of(error) is None
        return is_broken(error) or (is_nameless and self._was_open)

    def _lacking(self, role: str, said: str, *, is_writing: bool) -> str:
        """Say which right a role lacks; those that open it to read need not write."""
        schema, what = self._address.schema, f"{role} lacks a right ({said})"
        if self._repair:
            grant = f"CREATE SCHEMA {schema} AUTHORIZATION {role}"
            return f"{what}; {USE_OWNER}, or have an administrator run: {grant}"
        if is_writing:
            return f"{what}: it may only read, so nothing was done; use a role that may write"
        grant = f"GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA"
        return f"{what}; have an administrator run: {grant} {schema} TO {role}"

    def fault(
        self, error: BaseException | None, patience: float = 0.0, *, is_writing: bool = False
    ) -> LedgerError:
        """Return the LedgerError for any error: what happened, and what to do."""
        if code_of(error) == NO_RIGHT:
            role = self._address.options.get("user") or "your role"
            said = first_line(error)
            return LedgerError(self.path, self._lacking(role, said, is_writing=is_writing))
        if code_of(error) in NO_TABLES:
            self._close()
        return fault(self._address, error, patience)


def is_pooled(db: psycopg.Connection[Any]) -> bool:
    """Return True behind a pool, which makes up the number of a backend: it has many."""
    return bool(_one(db, "SELECT pg_backend_pid()")[0] != db.info.backend_pid)


class _Tables:
    """Runs the statements of a migration with PostgreSQL's types."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def execute(self, statement: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        text = translate(with_types(statement)).encode()
        return self._db.execute(text, [stored(value) for value in values])


def _asked(db: Any, query: str) -> Any:
    """Return the one value of a query; None where there is no ledger yet."""
    return db.execute(query).fetchone()[0] if isinstance(db, Transaction) else None


def _one(db: psycopg.Connection[Any], query: str) -> Any:
    return db.execute(query.encode()).fetchone()
