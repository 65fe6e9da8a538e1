"""A transaction that failed: whether to wait, to mend the file, or what to tell of it."""

from __future__ import annotations

from notyet.errors import LedgerBusy, LedgerError
from notyet.ledger.disk import is_read_only
from notyet.ledger.driver import sqlite3

_CANNOT_WRITE = "set NOTYET_LEDGER to a file on a local disk that you can write"


def is_busy(error: Exception) -> bool:
    """Tell whether another process holds the file, so that it is worth trying again."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_corrupt(error: Exception) -> bool:
    """Tell whether the file cannot be read any more."""
    is_ours = isinstance(error, sqlite3.DatabaseError)
    return is_ours and _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def fault(path: str, error: Exception, patience: float) -> LedgerError:
    """Return what is to be told of an error.

    Whatever it is, a value SQLite cannot hold or a fault of ours: an agent must not meet it. The
    cause is kept for whoever looks.
    """
    if is_busy(error):
        return LedgerBusy(path, f"other processes held it for over {patience:.2g} s")
    if isinstance(error, sqlite3.Error | OSError):
        why = "it is on a read-only file system" if is_read_only(path) else error
        return LedgerError(path, f"{why}; {_CANNOT_WRITE}")
    return LedgerError(path, f"{type(error).__name__}: {error}")


def _code(error: Exception) -> int:
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    return (extended or 0) & 0xFF
