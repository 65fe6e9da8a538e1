"""Opening the ledger's file: private, in WAL mode, at this code's version; or out of the way."""

from __future__ import annotations

import time
from _thread import RLock
from errno import EISDIR

from notyet import system
from notyet.errors import LedgerError, LedgerNewer, LedgerUnmended
from notyet.ledger.driver import sqlite3
from notyet.ledger.migrations import VERSION, migrate, version_of
from notyet.ledger.place import LEDGER, make_private, network_file_system

_APPLICATION = 0x6E6F7479  # "noty", in the file's header
_HEADER = b"SQLite format 3\0"
_APPLICATION_AT = 68  # bytes into the header
_LONGEST_BLANK = 1 << 20  # a crash of the system may leave so much of a file as zeros
NOT_A_LEDGER = "it is not a ledger; set NOTYET_LEDGER to a file of its own"
MENDED = "the next stop mends it"

_one_at_a_time = RLock()


def open_file(path: str) -> tuple[sqlite3.Connection, tuple[str, ...]]:
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


def open_as_it_is(path: str) -> sqlite3.Connection | None:
    """Return a connection for somebody who only looks: nothing is created, moved or migrated.

    None for a file that is not there, or that another process is just creating. Raises
    sqlite3.Error, OSError, and LedgerUnmended for a file of an older version.
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


def _open_whatever_it_is(path: str) -> tuple[sqlite3.Connection, int]:
    """Return a connection to a file that is there, and its version."""
    from urllib.parse import quote

    address = f"file:{quote(system.fsencode(path))}?mode=rw"  # which never creates it
    db = sqlite3.connect(
        address, uri=True, timeout=0, isolation_level=None, check_same_thread=False
    )
    try:
        return db, _version_of_ours(db, path)
    except BaseException:
        db.close()
        raise


def empty() -> sqlite3.Connection:
    """Return a ledger that holds nothing and is in no file."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(db)
    return db


def _version_of_ours(db: sqlite3.Connection, path: str) -> int:
    """Return the version of a ledger, 0 for a new file. Raises LedgerError for another's file."""
    db.execute("BEGIN")  # one view of all three: another process may be creating the file
    version = version_of(db)
    is_marked = db.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION
    is_used = db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    db.execute("COMMIT")
    if (version or is_used) and not is_marked:
        raise LedgerError(path, NOT_A_LEDGER)
    _expect_ours(path, version)
    return version


def _prepare(db: sqlite3.Connection, path: str) -> tuple[str, ...]:
    version = _version_of_ours(db, path)
    warnings = on_a_network(path)
    if version < VERSION:
        if not version:  # so that the file can be made smaller later without a copy of it
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # WAL needs memory shared between processes, which a network cannot give.
        db.execute(f"PRAGMA journal_mode = {'DELETE' if warnings else 'WAL'}")
        db.execute("BEGIN IMMEDIATE")
        _expect_ours(path, version_of(db))  # a newer notyet may have been faster
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        migrate(db)
        db.execute("COMMIT")
    db.execute("PRAGMA synchronous = NORMAL")  # in WAL mode: safe against any crash of ours
    return warnings


def on_a_network(path: str) -> tuple[str, ...]:
    """Return what its user should know of where a ledger lies."""
    network = network_file_system(path)
    if not network:
        return ()
    where = f"ledger {path} is on a network file system ({network}), where locks can fail"
    return (f"{where}; set NOTYET_LEDGER to a file on a local disk",)


def _expect_ours(path: str, version: int) -> None:
    if version > VERSION:
        raise LedgerNewer(
            path, f"it has version {version}, this notyet reads up to {VERSION}; upgrade notyet"
        )


def is_ours(path: str) -> bool:
    """Tell whether a file that cannot be read was a ledger, as far as can be seen."""
    try:
        with open(path, "rb") as file:
            start = file.read(_LONGEST_BLANK)
    except OSError:
        return False
    if start.startswith(_HEADER):
        mark = start[_APPLICATION_AT : _APPLICATION_AT + 4]
        return mark == _APPLICATION.to_bytes(4, "big")
    is_blank = len(start) < _LONGEST_BLANK and not start.strip(b"\0")
    return is_blank or system.path.basename(path) == LEDGER


def set_aside(path: str) -> str:
    """Move a corrupt file out of the way; return where to, or '' when another process has."""
    import fcntl

    guard = system.open(path + ".lock", system.O_RDWR | system.O_CREAT | system.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if _is_readable(path):
            return ""
        moved = f"{path}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}"
        for suffix in ("", "-wal", "-shm"):
            if system.path.exists(path + suffix):
                system.replace(path + suffix, moved + suffix)
        return moved
    finally:
        system.close(guard)


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
