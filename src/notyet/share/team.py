"""The team's tables on PostgreSQL: created once, filled by inserts into one table, `arrival`.

A trigger with the rights of the owner takes what arrives apart, so that a role that ships may only
insert: it can neither read nor change the stops of others. What arrives twice is one row.
"""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from notyet.errors import LedgerNewer
from notyet.ledger.connection import APPLICATION
from notyet.ledger.postgres_address import Address, PostgresError, fault, is_broken
from notyet.ledger.postgres_sql import stored
from notyet.ledger.postgres_transaction import SYNCHRONOUS
from notyet.share import Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.ledger.postgres_transaction import Answering

SCHEMA = "team"
VERSION = 1  # of the tables; an older notyet does not write into newer ones
_LONGEST_QUESTION = 300.0  # seconds, about many stops
_NEWER = "NY001"  # raised by the trigger
_STOP = {
    "id": "BIGINT NOT NULL",
    "at": "TIMESTAMPTZ NOT NULL",
    "host": "TEXT NOT NULL",
    "session": "TEXT NOT NULL",
    "agent": "TEXT NOT NULL",
    "turn": "BIGINT NOT NULL",
    "project": "TEXT NOT NULL",
    "outcome": "TEXT NOT NULL",
    "why": "TEXT NOT NULL",
    "count": "BIGINT NOT NULL",
    "max_blocks": "BIGINT NOT NULL",
    "seconds": "DOUBLE PRECISION",
    "model": "TEXT",
    "tokens_in": "BIGINT",
    "tokens_out": "BIGINT",
    "words": "JSONB",
}
_REPORT = {
    "stop": "BIGINT NOT NULL",
    "position": "BIGINT NOT NULL",
    "gate": "TEXT NOT NULL",
    "status": "TEXT NOT NULL",
    "seconds": "DOUBLE PRECISION NOT NULL",
    "observed": "BOOLEAN NOT NULL",
    "held": "BOOLEAN NOT NULL",
    "definition": "TEXT NOT NULL",
    "words": "JSONB",
}


def _columns(known: dict[str, str], *, is_json: bool = False) -> str:
    """Return columns with their types; in JSON, times are numbers, and nothing is certain."""
    if is_json:
        known = {name: kind.removesuffix(" NOT NULL") for name, kind in known.items()}
        known |= {"at": "DOUBLE PRECISION"} if "at" in known else {}
    return ", ".join(f"{name} {kind}" for name, kind in known.items())


def _names(known: dict[str, str]) -> str:
    return ", ".join(known)


def _replaced(known: dict[str, str]) -> str:
    return ", ".join(f"{name} = excluded.{name}" for name in known)


_TABLES = f"""
CREATE TABLE version (version BIGINT NOT NULL);
INSERT INTO version VALUES ({VERSION});
CREATE TABLE origin (
  id UUID PRIMARY KEY, who TEXT NOT NULL, machine TEXT NOT NULL, seen_at TIMESTAMPTZ NOT NULL
);
CREATE TABLE stop (
  origin UUID NOT NULL, {_columns(_STOP)}, shipped DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (origin, id)
);
CREATE INDEX stop_by_time ON stop (at);
CREATE INDEX stop_by_session ON stop (session);
CREATE TABLE report (
  origin UUID NOT NULL, {_columns(_REPORT)}, PRIMARY KEY (origin, stop, position)
);
CREATE INDEX report_by_gate ON report (gate);
CREATE TABLE arrival (
  version BIGINT NOT NULL, origin UUID NOT NULL, who TEXT NOT NULL, machine TEXT NOT NULL,
  shipped DOUBLE PRECISION NOT NULL, stops JSONB NOT NULL, reports JSONB NOT NULL
);
CREATE FUNCTION take_apart() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = {{schema}}, pg_temp AS $$
DECLARE known BIGINT;
BEGIN
  SELECT max(v.version) INTO known FROM version v;
  IF known > NEW.version THEN
    RAISE EXCEPTION '%', known USING ERRCODE = '{_NEWER}';
  END IF;
  INSERT INTO origin VALUES (NEW.origin, NEW.who, NEW.machine, now())
    ON CONFLICT (id) DO UPDATE
    SET who = excluded.who, machine = excluded.machine, seen_at = excluded.seen_at;
  INSERT INTO stop AS there (origin, shipped, {_names(_STOP)})
    SELECT NEW.origin, NEW.shipped, {_names(_STOP).replace(" at,", " to_timestamp(at),")}
    FROM jsonb_to_recordset(NEW.stops) AS r ({_columns(_STOP, is_json=True)})
    ON CONFLICT (origin, id) DO UPDATE SET shipped = excluded.shipped, {_replaced(_STOP)}
    WHERE there.shipped <= excluded.shipped;
  INSERT INTO report (origin, {_names(_REPORT)})
    SELECT NEW.origin, {_names(_REPORT)}
    FROM jsonb_to_recordset(NEW.reports) AS r ({_columns(_REPORT, is_json=True)})
    ON CONFLICT (origin, stop, position) DO UPDATE SET {_replaced(_REPORT)};
  RETURN NULL;
END $$;
CREATE TRIGGER arrival_taken_apart BEFORE INSERT ON arrival
  FOR EACH ROW EXECUTE FUNCTION take_apart();
"""
# Not to_regclass, which answers from a cache: another process may have been faster.
_MAY_READ = (
    "SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = '{}' AND c.relname = 'version'"
)
_ARRIVE = "INSERT INTO {}.arrival VALUES (%s, %s, %s, %s, %s, %s::jsonb, %s::jsonb)"


class Team:
    """The tables of a team at an address; they are in the schema `team`, or in `?schema=NAME`."""

    def __init__(self, url: str) -> None:
        self.address = Address(url, SCHEMA)
        self._db: Answering | None = None
        self._is_ready = False  # the tables are there, as far as this connection knows

    def create(self) -> bool:
        """Create the tables; return False if they are there. Raises LedgerError."""
        with self._faults():
            return self._create(self._connected())

    def send(
        self,
        origin: tuple[str, str, str],
        shipped: float,
        stops: Sequence[dict[str, Any]],
        reports: Sequence[dict[str, Any]],
    ) -> None:
        """Enter stops with their reports, all or nothing. Raises LedgerError.

        `origin` is an id, a user and a machine. Of two versions of a stop, the one that was shipped
        later counts: a connection that stalled may enter its own after a newer one.
        """
        with self._faults():
            db = self._connected()
            if not self._is_ready:
                if self.version(db) is None:
                    self._create(db)
                self.address.grants = grants(self.address.schema, db.info.user)
                self._is_ready = True
            with db.transaction():
                db.execute(f"SELECT set_config('synchronous_commit', {SYNCHRONOUS}, true)")
                what = (VERSION, *map(stored, origin), shipped, _json(stops), _json(reports))
                db.execute(_ARRIVE.format(self.address.schema).encode(), what)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._db is not None:
            self._db.close()
            self._db = None
            self._is_ready = False

    def version(self, db: Answering) -> int | None:
        """Return VERSION if the tables are there, None if not. Raises LedgerNewer.

        A role that may only insert is told of newer tables by the trigger.
        """
        may_read = _value(db, _MAY_READ.format(self.address.schema))
        if may_read is None:
            return None
        if may_read:
            newest = _value(db, f"SELECT max(version) FROM {self.address.schema}.version")
            self._expect(newest)
        return VERSION

    @contextmanager
    def reading(self) -> Iterator[Answering | None]:
        """Give a connection that only reads, None where there are no such tables.

        Raises LedgerError.
        """
        with self._faults(), closing(self.address.connect()) as db:
            db.read_only = True
            db.longest_silence = _LONGEST_QUESTION
            if self.version(db) is None:
                yield None
                return
            schema = self.address.schema
            role = db.info.user
            self.address.grants = (
                f"GRANT USAGE ON SCHEMA {schema} TO {role};"
                f" GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
            )
            with db.transaction():
                db.execute(f"SET LOCAL search_path TO {schema}".encode())
                yield db

    def _connected(self) -> Answering:
        if self._db is None or self._db.closed:
            self._db = self.address.connect()
        return self._db

    def _create(self, db: Answering) -> bool:
        """Create the tables, one process at a time."""
        schema = self.address.schema
        self.address.grants = f"notyet ship --create; then {grants(schema, db.info.user)}"
        with db.transaction():
            db.execute(f"SELECT pg_advisory_xact_lock({APPLICATION}, hashtext('{schema}'))")
            if self.version(db) is not None:
                return False
            if not _value(db, f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'"):
                db.execute(f"CREATE SCHEMA {schema}".encode())
            db.execute(f"SET LOCAL search_path TO {schema}".encode())
            db.execute(_TABLES.format(schema=schema).encode())
        return True

    def _expect(self, version: int) -> None:
        if version > VERSION:
            what = f"a newer notyet made its tables (version {version}, this one writes {VERSION})"
            raise LedgerNewer(self.address.shown, f"{what}; update notyet")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raise every error of PostgreSQL as a LedgerError."""
        try:
            yield
        except (PostgresError, OSError) as error:
            self.close()
            if getattr(error, "sqlstate", None) == _NEWER:
                self._expect(int(str(error).split()[0]))
            found = fault(self.address, error)
            kind = Unreachable if is_broken(error) else type(found)
            raise kind(found.path, found.detail) from error


def grants(schema: str, role: str) -> str:
    """Return what gives a role the right to ship, and no other."""
    return f"GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT INSERT ON {schema}.arrival TO {role}"


def _json(rows: Sequence[dict[str, Any]]) -> str:
    return json.dumps(_storable(list(rows)))


def _storable(value: Any) -> Any:
    """Return a value without what PostgreSQL refuses in texts."""
    if isinstance(value, dict):
        return {name: _storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return stored(value) if isinstance(value, str) else value


def _value(db: Answering, query: str) -> Any:
    row = db.execute(query.encode()).fetchone()
    return row[0] if row else None
