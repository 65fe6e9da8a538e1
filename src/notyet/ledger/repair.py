"""Ledgers in a bad place or a bad state: network disks, damaged files, unreleased formats."""

from __future__ import annotations

import time

from notyet import light
from notyet.errors import LedgerError, LedgerNeedsRepair
from notyet.ledger.connection import (
    APPLICATION,
    LEDGER,
    NOT_A_LEDGER,
    UNRELEASED,
    UnreleasedFormatError,
    fault,
    identify,
)
from notyet.ledger.connection import sqlite3_module as sqlite3

_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs", "lustre")
_MOUNTS = "/proc/self/mounts"


def on_a_network(path: str) -> tuple[str, ...]:
    """Return a warning for a ledger on a network file system."""
    network = network_file_system(path)
    if not network:
        return ()
    where = f"ledger {path} is on a network file system ({network}), where locks can fail"
    return (f"{where}; set NOTYET_LEDGER to a file on a local disk",)


def network_file_system(path: str, mounts: str = _MOUNTS) -> str:
    """Return the kind of network file system a path is on; empty if it is local or unknown."""
    try:
        with open(mounts, encoding="utf-8", errors="replace") as lines:
            rows = [line.split()[1:3] for line in lines]  # where, and what kind
    except OSError:
        return ""
    real = light.realpath(path)
    best, kind = "", ""
    for point, mounted in (row for row in rows if row[1:]):
        place = point.replace("\\040", " ").rstrip("/") + "/"  # the kernel's way to write a space
        if (real + "/").startswith(place) and len(place) >= len(best):
            best, kind = place, mounted
    return kind if kind.startswith(_NETWORK) else ""


def is_read_only(path: str) -> bool:
    """Return True if a file is on a read-only file system, which SQLite does not report."""
    try:
        return bool(light.statvfs(light.dirname(path)).f_flag & light.ST_RDONLY)
    except OSError:
        return False


_HEADER = b"SQLite format 3\0"
_MARK_AT = 68  # bytes into the header
_MARKS = (APPLICATION.to_bytes(4, "big"), UNRELEASED.to_bytes(4, "big"))
_TABLES = (b"CREATE TABLE stops (", b"limit_source")  # as every ledger has them
_SET_ASIDE = "the next stop sets it aside and starts a new one"
_LONGEST_BLANK = 1 << 20  # a crash of the system may leave this much of a file as zeros


def set_file_aside(path: str, error: Exception, *, repair: bool) -> tuple[str, ...]:
    """Set aside a file that is damaged or unreleased; return a warning if this process did it.

    Raises LedgerError for a file that is not ours, and LedgerNeedsRepair unless `repair`.
    """
    is_unreleased = isinstance(error, UnreleasedFormatError)
    if not is_unreleased and not is_ours(path):
        raise LedgerError(path, f"{error}; {NOT_A_LEDGER}") from error
    if not repair:
        what = str(error) if is_unreleased else f"it is damaged ({error})"
        raise LedgerNeedsRepair(path, f"{what}; {_SET_ASIDE}") from error
    try:
        moved = set_aside(path, "before" if is_unreleased else "corrupt")
    except OSError as unmoved:
        raise fault(path, unmoved, 0.0) from error
    was = "was written by an unreleased notyet" if is_unreleased else "was corrupt"
    what = f"ledger {path} {was}; it was moved to {moved} and a new one was started"
    return (what,) if moved else ()


def is_ours(path: str) -> bool:
    """Return True if an unreadable file was a ledger: by its header, its name or its tables."""
    try:
        with open(path, "rb") as file:
            start = file.read(_LONGEST_BLANK)
    except OSError:
        return False
    if start.startswith(_HEADER):
        return start[_MARK_AT : _MARK_AT + 4] in _MARKS
    is_blank = len(start) < _LONGEST_BLANK and not start.strip(b"\0")
    has_tables = all(words in start for words in _TABLES)
    return is_blank or has_tables or light.basename(path) == LEDGER


def set_aside(path: str, cause: str = "corrupt") -> str:
    """Rename a file that cannot be used; return its new path, or '' if another process did it."""
    import fcntl  # not at the top: a fault of a ledger is reported without it

    guard = light.open(path + ".lock", light.O_RDWR | light.O_CREAT | light.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if _is_usable(path):
            return ""
        moved = f"{path}.{cause}-{time.strftime('%Y%m%d-%H%M%S')}"
        for suffix in ("", "-wal", "-shm"):
            if light.exists(path + suffix):
                light.replace(path + suffix, moved + suffix)
        return moved
    finally:
        light.close(guard)


def _is_usable(path: str) -> bool:
    """Return True if the file is a sound ledger by now."""
    try:
        db = sqlite3.connect(path, timeout=1, isolation_level=None)
        try:
            identify(db, path)
            return bool(db.execute("PRAGMA quick_check").fetchone()[0] == "ok")
        finally:
            db.close()
    except (sqlite3.DatabaseError, UnreleasedFormatError):
        return False
