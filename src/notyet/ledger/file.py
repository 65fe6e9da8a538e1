"""Opening the ledger's file: private, in WAL mode, at this code's version; or out of the way."""

from __future__ import annotations

import os
import sqlite3
import time
from _thread import allocate_lock

from notyet.errors import LedgerNewer
from notyet.ledger.migrations import VERSION, migrate, version_of
from notyet.ledger.place import make_private, network_file_system

_one_at_a_time = allocate_lock()


def open_file(path: str) -> tuple[sqlite3.Connection, list[str]]:
    """Return a connection and what the user should know. Raises sqlite3.Error and OSError."""
    with _one_at_a_time:  # see make_private
        make_private(path)
        db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        warnings = _prepare(db, path)
    except BaseException:
        db.close()
        raise
    return db, warnings


def _prepare(db: sqlite3.Connection, path: str) -> list[str]:
    version = version_of(db)
    if version > VERSION:
        raise LedgerNewer(
            path, f"it has version {version}, this notyet reads up to {VERSION}; upgrade notyet"
        )
    warnings = []
    if version < VERSION:
        warnings = _choose_journal(db, path)
        db.execute("BEGIN IMMEDIATE")
        migrate(db)
        db.execute("COMMIT")
    db.execute("PRAGMA synchronous = NORMAL")  # in WAL mode: safe against any crash of ours
    return warnings


def _choose_journal(db: sqlite3.Connection, path: str) -> list[str]:
    kind = network_file_system(path)
    if kind:
        # WAL needs memory shared between processes, which a network cannot give.
        db.execute("PRAGMA journal_mode = DELETE")
        where = f"ledger {path} is on a network file system ({kind}), where locks can fail"
        return [f"{where}; set NOTYET_LEDGER to a file on a local disk"]
    db.execute("PRAGMA journal_mode = WAL")
    return []


def set_aside(path: str) -> str:
    """Move a corrupt file out of the way; return where to, or '' when another process has."""
    import fcntl

    guard = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if _is_readable(path):
            return ""
        moved = f"{path}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}"
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.replace(path + suffix, moved + suffix)
        return moved
    finally:
        os.close(guard)


def _is_readable(path: str) -> bool:
    """Tell whether the file is, by now, a sound one."""
    try:
        db = sqlite3.connect(path, timeout=1)
        try:
            return bool(db.execute("PRAGMA quick_check").fetchone()[0] == "ok")
        finally:
            db.close()
    except sqlite3.DatabaseError:
        return False
