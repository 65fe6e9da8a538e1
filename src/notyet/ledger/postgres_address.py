"""Addresses of PostgreSQL, and what its errors mean for people."""

from __future__ import annotations

import re
from typing import Any

from notyet.errors import LedgerBusy, LedgerError
from notyet.ledger.connection import needs_psycopg

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from notyet.ledger.postgres_transaction import Answering, Number
except ImportError as missing:
    raise needs_psycopg() from missing

PostgresError = psycopg.Error  # for those that import psycopg only through this module

SCHEMA = "notyet"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_NOT_AN_ADDRESS = (
    "it is not an address of PostgreSQL; write postgresql://USER@HOST:5432/DATABASE, "
    "with special characters of a password in percent encoding"
)
_DEFAULTS = {
    "connect_timeout": "5",  # seconds for each of its hosts
    "tcp_user_timeout": "30000",  # milliseconds until a silent network counts as broken
    "keepalives_idle": "30",
    "fallback_application_name": "notyet",
}

# Codes of errors.
DUPLICATE, LOCKED = "23505", "55P03"
NOT_PLANNED = "26000"  # on this connection of a pool that hides itself
LOST_RACE = {DUPLICATE, LOCKED, NOT_PLANNED, "40001", "40P01"}  # conflict, deadlock
NO_RIGHT = "42501"
NO_TABLES = {"42P01", "3F000"}
_STARTING = ("starting up", "shutting down", "recovery", "not yet accepting", "too many clients")


class Address:
    """Where a ledger is: the URL without its password for people, and all of it for psycopg."""

    grants = ""  # what gives a role the rights that it needs, where that is not the whole schema

    def __init__(self, url: str, schema: str = SCHEMA) -> None:
        self.shown = masked(url)
        place, _, query = url.partition("?")
        options = [part for part in query.split("&") if part]
        own = [part for part in options if part.startswith("schema=")]
        others = "&".join(part for part in options if part not in own)
        self.schema = own[-1].partition("=")[2] if own else schema
        if not _SCHEMA_NAME.fullmatch(self.schema):
            what = "its schema must be a name of small letters, digits and _"
            raise LedgerError(self.shown, f"{what}; write for example ?schema={schema}")
        try:
            known = conninfo_to_dict(f"{place}?{others}" if others else place)
        except psycopg.ProgrammingError:
            raise LedgerError(self.shown, _NOT_AN_ADDRESS) from None  # its text has the password
        ports = str(known.get("port") or "5432")
        if not all(port.isdecimal() for port in ports.split(",")):
            raise LedgerError(self.shown, _NOT_AN_ADDRESS)
        self.options: dict[str, Any] = _DEFAULTS | known | {"client_encoding": "UTF8"}

    def connect(self) -> Answering:
        """Return a new connection. Raises psycopg.Error."""
        db = Answering.connect(autocommit=True, cursor_factory=psycopg.ClientCursor, **self.options)
        db.adapters.register_loader("numeric", Number)
        return db


def masked(url: str) -> str:
    """Return a URL without passwords; too much is hidden rather than too little."""
    scheme, _, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    name, colon, _ = user.partition(":")
    rest = f"{name}:***{at}{place}" if colon else rest
    return f"{scheme}://" + re.sub(r"(?i)\b(\w*password)=[^&]*", r"\1=***", rest)


def is_broken(error: BaseException | None) -> bool:
    """Return True if a connection broke, or cannot be made yet: the server starts, say."""
    code = code_of(error)
    if code is not None or not isinstance(error, psycopg.OperationalError):
        return (code or "").startswith(("57P", "08", "25P03"))
    # Errors of connecting have no code. A server that answers has a reason, unless it starts.
    text = str(error)
    return "FATAL" not in text or any(word in text for word in _STARTING)


def fault(address: Address, error: BaseException | None, patience: float = 0.0) -> LedgerError:
    """Return the LedgerError for any error: what happened, and what to do."""
    code = code_of(error)
    said = first_line(error).replace(str(address.options.get("password") or "\0"), "***")
    role = address.options.get("user") or "your role"
    path, schema = address.shown, address.schema
    if code in LOST_RACE - {DUPLICATE}:
        return LedgerBusy(path, f"other processes locked it for over {patience:.2g} s")
    if isinstance(error, psycopg.OperationalError) and code is None:
        what = f"PostgreSQL cannot be reached ({said})"
        return LedgerError(path, f"{what}; start it, or correct the address")
    if code == NO_RIGHT:
        grant = address.grants or f"CREATE SCHEMA {schema} AUTHORIZATION {role}"
        what = f"{role} lacks a right ({said})"
        return LedgerError(path, f"{what}; have an administrator run: {grant}")
    if code == "25006":
        return LedgerError(path, "the database is read-only; use the primary's address")
    if code in {"53100", "53200", "53300"}:
        return LedgerError(path, f"the server lacks resources ({said}); free some there")
    if code in NO_TABLES:
        what = f"the tables of the schema {schema} are gone"
        return LedgerError(path, f"{what}; was it dropped? The next use creates them anew")
    if isinstance(error, psycopg.Error | OSError):
        return LedgerError(path, f"PostgreSQL reports: {said}")
    return LedgerError(path, f"{type(error).__name__}: {error}")


def code_of(error: BaseException | None) -> str | None:
    """Return the code of an error of PostgreSQL."""
    return error.sqlstate if isinstance(error, psycopg.Error) else None


def first_line(error: BaseException | None) -> str:
    """Return what an error says, without what psycopg says before."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rpartition("failed: ")[2].strip().rstrip(".")
