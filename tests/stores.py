"""Where the ledgers of tests are: in SQLite files, or with `--store postgresql` in schemas.

A test that says `Ledger(tmp_path / "ledger.db")` then gets a schema of its own, named after that
path, in a cluster of the test session. Its address is in the environment, for other processes.
"""

import hashlib
import os
import sqlite3
import sys
from contextlib import closing, contextmanager

import postgres_server

URL = "NOTYET_TEST_POSTGRESQL"


def place(path):
    """Return where the ledger of this path is: the path itself, or an address."""
    path = os.fspath(path)
    if not os.environ.get(URL) or "://" in path:
        return path
    name = hashlib.blake2b(os.path.abspath(path).encode(), digest_size=8).hexdigest()
    return f"{os.environ[URL]}&schema=n{name}"


@contextmanager
def opened(ledger):
    """Open the tables of a ledger beside it; what is changed is committed."""
    if "://" not in ledger.path:
        with closing(sqlite3.connect(ledger.path)) as db, db:
            yield db
        return
    from notyet.ledger.postgres_address import Address
    from notyet.ledger.postgres_transaction import Transaction, Writer

    address = Address(ledger.path)
    with closing(address.connect()) as connection:
        db = Transaction(connection, address.schema, 5.0, writer=Writer(address.schema))
        yield db
        db.commit()


def records(ledger, sql, *values):
    """Return rows as dictionaries; none where there is no ledger yet."""
    if "://" not in ledger.path:
        try:
            with closing(sqlite3.connect(f"file:{ledger.path}?mode=ro", uri=True)) as db:
                db.row_factory = sqlite3.Row
                return [dict(row) for row in db.execute(sql, values)]
        except sqlite3.OperationalError:
            return []
    import psycopg
    from psycopg.rows import dict_row

    from notyet.ledger.postgres_address import Address
    from notyet.ledger.postgres_sql import translate

    address = Address(ledger.path)
    with closing(address.connect()) as connection:
        connection.row_factory = dict_row
        connection.execute(f"SET search_path TO {address.schema}")
        try:
            return connection.execute(translate(sql), values).fetchall()
        except psycopg.errors.UndefinedTable:
            return []


@contextmanager
def cluster():
    """Start a PostgreSQL server, and have the ledgers of this process and its children on it."""
    server = postgres_server.Cluster()
    try:
        os.environ[URL] = server.url()
        yield server
    finally:
        os.environ.pop(URL, None)
        server.close()


def use(monkeypatch):
    """Have every `Ledger` of this process be where `place` says."""
    from notyet.ledger import connection, ledger

    made = ledger._connection

    def placed(path, patience, *, repair):
        path = connection.default_path(os.environ) if path is None else path
        return made(place(path), patience, repair=repair)

    monkeypatch.setattr(ledger, "_connection", placed)
    monkeypatch.setattr("notyet.ledger.postgres_transaction.Transaction.execute", guarded())


# What a move may read without a lock: what no guard is about.
_UNGUARDED = {
    "SELECT name FROM queues": "queues are never removed",
    "SELECT 1 FROM tasks WHERE id = ?": "of two submits of a task, one has a duplicate key",
    "FROM starts": "an agent's files are entered once, and a second row is a duplicate key",
    "SELECT 1 FROM agents WHERE": "whether an agent has stopped before, where it starts",
    "FROM passes ORDER BY at": "how old the oldest is that is kept",
    "begun_at < ?": "old stops, which nothing decides any more",
    "FROM tasks WHERE owner = ? AND ended_at IS NULL UNION ALL": "each is locked when it changes",
}


def guarded():
    """Return `Transaction.execute` with a check: a move locks a row before it reads anything."""
    from notyet.ledger.postgres_sql import LOCKS
    from notyet.ledger.postgres_transaction import Transaction

    original = Transaction.execute

    def execute(self, statement, values=()):
        words = " ".join(statement.split())
        is_look = self._writer is not None and words.startswith(("SELECT", "WITH"))
        is_ours = "/src/notyet/" in sys._getframe(1).f_code.co_filename
        if is_look and is_ours and not self._locked and statement not in LOCKS:
            assert any(part in words for part in _UNGUARDED), f"no row is locked before: {words}"
        return original(self, statement, values)

    return execute


@contextmanager
def locked(ledger):
    """Keep all writers of a ledger waiting."""
    if "://" not in ledger.path:
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            yield
        return
    with opened(ledger) as db:
        tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        names = ", ".join(name for (name,) in tables)
        db.execute(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
        yield


def sound(ledger):
    """Check that a file is not damaged; PostgreSQL answers for itself."""
    if "://" not in ledger.path:
        with opened(ledger) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
