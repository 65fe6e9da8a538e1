"""Opening the ledger's file: private, in WAL mode, at this code's version."""

from __future__ import annotations

from _thread import RLock

from notyet import system
from notyet.ledger.driver import sqlite3
from notyet.stop_errors import LedgerError

VERSION = 6  # of the file; `migrations` brings one up to it
APPLICATION = 0x6E6F7479  # "noty", in the file's header
NOT_A_LEDGER = "it is not a ledger; set NOTYET_LEDGER to a file of its own"
# Whoever opens a ledger that nobody else has open reads its whole write-ahead log, 3 us for every
# page. So processes for one stop, which follow one another, write it back when it holds these: a
# dozen stops. Longer, and each stop would read more; shorter, and it would wait for the disk more.
_SHORT_LOG = 200  # pages; SQLite's own limit is 1,000

_one_at_a_time = RLock()


def open_file(
    path: str, *, for_one_stop: bool = False
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Return a connection and what the user should know. Raises sqlite3.Error and OSError."""
    with _one_at_a_time:  # see make_private
        if not system.path.isfile(path):
            from notyet.ledger.private import make_private

            make_private(path)
        db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        warnings = _prepare(db, path)
        if for_one_stop:
            db.execute(f"PRAGMA wal_autocheckpoint = {_SHORT_LOG}")
    except BaseException:
        db.close()
        raise
    return db, warnings


def _prepare(db: sqlite3.Connection, path: str) -> tuple[str, ...]:
    version = version_of_ours(db, path)
    warnings: tuple[str, ...] = ()
    if not is_on_a_disk_of_its_own(path):
        from notyet.ledger.disk import on_a_network

        warnings = on_a_network(path)
    if version < VERSION:
        from notyet.ledger.migrations import bring_up

        # WAL needs memory shared between processes, which a network cannot give.
        bring_up(db, path, version, journal="DELETE" if warnings else "WAL")
    db.execute("PRAGMA synchronous = NORMAL")  # in WAL mode: safe against any crash of ours
    return warnings


def version_of_ours(db: sqlite3.Connection, path: str) -> int:
    """Return the version of a ledger, 0 for a new file. Raises LedgerError for another's file."""
    db.execute("BEGIN")  # one view of all three: another process may be creating the file
    version = version_of(db)
    is_marked = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    is_used = version or db.execute("SELECT 1 FROM sqlite_master").fetchone()
    db.execute("COMMIT")
    if is_used and not is_marked:
        raise LedgerError(path, NOT_A_LEDGER)
    expect_ours(path, version)
    return version


def version_of(db: sqlite3.Connection) -> int:
    """Return the version of a file; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def expect_ours(path: str, version: int) -> None:
    """Raise LedgerNewer for a version that this code cannot read."""
    if version > VERSION:
        from notyet.errors import LedgerNewer

        raise LedgerNewer(
            path, f"it has version {version}, this notyet reads up to {VERSION}; upgrade notyet"
        )


def is_on_a_disk_of_its_own(path: str) -> bool:
    """Tell whether a file lies on a device of this machine; a network's disks have no number."""
    return system.major(system.stat(path).st_dev) != 0
