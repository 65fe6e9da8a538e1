"""What kind of disk a ledger lies on: one of this machine, of another, or one to read only."""

from __future__ import annotations

import time

from notyet import light
from notyet.errors import LedgerError, LedgerUnmended
from notyet.ledger.connection import fault
from notyet.ledger.connection import sqlite3_module as sqlite3
from notyet.ledger.file import APPLICATION, LEDGER, NOT_A_LEDGER

_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs", "lustre")
_MOUNTS = "/proc/self/mounts"


def on_a_network(path: str) -> tuple[str, ...]:
    """Return what its user should know of where a ledger lies."""
    network = network_file_system(path)
    if not network:
        return ()
    where = f"ledger {path} is on a network file system ({network}), where locks can fail"
    return (f"{where}; set NOTYET_LEDGER to a file on a local disk",)


def network_file_system(path: str, mounts: str = _MOUNTS) -> str:
    """Return the kind of network file system a path lies on; empty when it is local or unknown."""
    try:
        with open(mounts, encoding="utf-8", errors="replace") as lines:
            rows = [line.split()[1:3] for line in lines]  # where, and what kind
    except OSError:
        return ""
    real = light.realpath(path)
    best, kind = "", ""
    for point, mounted in (row for row in rows if row[1:]):
        # The kernel writes a space in a mount point as \040.
        if "\\" in point:
            point = point.encode("latin-1", "replace").decode("unicode_escape")  # noqa: PLW2901  # the same, as it is meant
        place = point.rstrip("/") + "/"
        if (real + "/").startswith(place) and len(place) >= len(best):
            best, kind = place, mounted
    return kind if kind.startswith(_NETWORK) else ""


def is_read_only(path: str) -> bool:
    """Tell whether nobody can write where a file lies, of which SQLite says nothing."""
    try:
        return bool(light.statvfs(light.dirname(path)).f_flag & light.ST_RDONLY)
    except OSError:
        return False


_HEADER = b"SQLite format 3\0"
_APPLICATION_AT = 68  # bytes into the header
_LONGEST_BLANK = 1 << 20  # a crash of the system may leave so much of a file as zeros
MENDED = "the next stop mends it"


def mend(path: str, error: Exception, *, mends: bool) -> tuple[str, ...]:
    """Set a damaged file aside; return what its user must know, if we were the ones who did.

    Raises LedgerError for a file that is not ours to move, or not for those who only look.
    """
    if not is_ours(path):
        raise LedgerError(path, f"{error}; {NOT_A_LEDGER}") from error
    if not mends:
        raise LedgerUnmended(path, f"it is damaged ({error}); {MENDED}") from error
    try:
        moved = set_aside(path)
    except OSError as unmoved:
        raise fault(path, unmoved, 0.0) from error
    what = f"ledger {path} was corrupt; it was moved to {moved} and a new one begun"
    return (what,) if moved else ()


def is_ours(path: str) -> bool:
    """Tell whether a file that cannot be read was a ledger, as far as can be seen."""
    try:
        with open(path, "rb") as file:
            start = file.read(_LONGEST_BLANK)
    except OSError:
        return False
    if start.startswith(_HEADER):
        mark = start[_APPLICATION_AT : _APPLICATION_AT + 4]
        return mark == APPLICATION.to_bytes(4, "big")
    is_blank = len(start) < _LONGEST_BLANK and not start.strip(b"\0")
    return is_blank or light.basename(path) == LEDGER


def set_aside(path: str) -> str:
    """Move a corrupt file out of the way; return where to, or '' when another process has."""
    import fcntl

    guard = light.open(path + ".lock", light.O_RDWR | light.O_CREAT | light.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if _is_readable(path):
            return ""
        moved = f"{path}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}"
        for suffix in ("", "-wal", "-shm"):
            if light.exists(path + suffix):
                light.replace(path + suffix, moved + suffix)
        return moved
    finally:
        light.close(guard)


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
