"""Giving the space that pruning made free back to the system; only a person asks for that.

A file of this version gives it back a few pages at a time, so that nobody has to wait for long. One
that was begun by version 1 to 5 cannot, and is written anew, once: then it is like the others.
"""

from __future__ import annotations

import os
from contextlib import closing

from notyet.core.record import Record
from notyet.ledger.driver import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.ledger.sqlite import Ledger

_AT_ONCE = 1_000  # pages
_COPIES = 2  # of what is used, that are on the disk while a file is written anew
_INCREMENTAL = 2  # as SQLite numbers it


class Shrunk(Record, kw_only=True):
    """How the file became smaller."""

    freed: int = 0  # bytes
    is_new: bool = False  # it was written anew
    why_not: str = ""  # it would have to be, and could not


def shrink(ledger: Ledger) -> Shrunk:
    """Give free pages back to the system. Raises LedgerError."""
    before = os.path.getsize(ledger.path)
    is_new, why_not = False, ""
    if ledger.file.read(_has_to_be_new):
        why_not = _write_anew(ledger)
        is_new = not why_not
    else:
        while ledger.file.write(_shrink_some):
            pass
    ledger.file.checkpoint()
    freed = max(0, before - os.path.getsize(ledger.path))
    return Shrunk(freed=freed, is_new=is_new, why_not=why_not)


def used(db: sqlite3.Connection) -> int:
    """Return how many bytes of the file are in use."""
    pages = _number(db, "page_count") - _number(db, "freelist_count")
    return pages * _number(db, "page_size")


def _has_to_be_new(db: sqlite3.Connection) -> bool:
    return _number(db, "auto_vacuum") != _INCREMENTAL and _number(db, "freelist_count") > 0


def _shrink_some(db: sqlite3.Connection) -> bool:
    free = _number(db, "freelist_count")
    if free:
        db.execute(f"PRAGMA incremental_vacuum({_AT_ONCE})").fetchall()
    return free > _AT_ONCE


def _write_anew(ledger: Ledger) -> str:
    """Let SQLite write the whole file anew; return why that could not be."""
    wanted = _COPIES * ledger.file.read(used)
    disk = os.statvfs(os.path.dirname(ledger.path))
    left = disk.f_bavail * disk.f_frsize
    if left < wanted:
        return f"that takes {_megabytes(wanted)} on the disk, which has {_megabytes(left)} left"
    try:
        # A connection of its own: this is the one thing that is no transaction.
        with closing(
            sqlite3.connect(ledger.path, timeout=ledger.patience, isolation_level=None)
        ) as db:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("VACUUM")
    except sqlite3.Error as error:
        return str(error)
    return ""


def _megabytes(count: int) -> str:
    return f"{max(1, round(count / 1e6))} MB"


def _number(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
