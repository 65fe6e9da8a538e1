"""The ledger's file for somebody who only looks: nothing is created, moved or migrated."""

from __future__ import annotations

from errno import EISDIR

from notyet import system
from notyet.errors import LedgerUnmended
from notyet.ledger.driver import sqlite3
from notyet.ledger.file import VERSION, version_of_ours
from notyet.ledger.file_aside import MENDED
from notyet.ledger.migrations import migrate


def open_as_it_is(path: str) -> sqlite3.Connection | None:
    """Return a connection; None for a file that is not there, or that is just being created.

    Raises sqlite3.Error, OSError, and LedgerUnmended for a file of an older version.
    """
    if system.path.isdir(path):
        raise IsADirectoryError(EISDIR, "it is a directory", path)
    if not path or not system.path.exists(path):
        return None
    db, version = _open_whatever_it_is(path)
    if version == VERSION:
        return db
    db.close()
    if version:
        what = f"an older notyet wrote it (version {version}, this one reads {VERSION})"
        raise LedgerUnmended(path, f"{what}; {MENDED}")
    return None


def open_older(path: str) -> sqlite3.Connection | None:
    """Return a connection to a file of an older version, as it is; None for any other.

    Its `agents` are those of today, and of its `stops` what was known then. Raises sqlite3.Error
    and LedgerError.
    """
    db, version = _open_whatever_it_is(path)
    if 0 < version < VERSION:
        return db
    db.close()
    return None


def empty() -> sqlite3.Connection:
    """Return a ledger that holds nothing and is in no file."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(db)
    return db


def _open_whatever_it_is(path: str) -> tuple[sqlite3.Connection, int]:
    """Return a connection to a file that is there, and its version."""
    from urllib.parse import quote

    address = f"file:{quote(system.fsencode(path))}?mode=rw"  # which never creates it
    db = sqlite3.connect(
        address, uri=True, timeout=0, isolation_level=None, check_same_thread=False
    )
    try:
        return db, version_of_ours(db, path)
    except BaseException:
        db.close()
        raise
