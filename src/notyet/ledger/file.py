"""The ledger's file: where it is, creating it for its owner only, opening and identifying it."""

from __future__ import annotations

from _thread import RLock
from errno import EISDIR, ENOENT

from notyet import light
from notyet.errors import LedgerError, LedgerUnmended
from notyet.ledger.connection import UnreleasedFormat
from notyet.ledger.connection import sqlite3_module as sqlite3
from notyet.light import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LEDGER = "ledger.db"
FIRST_VERSION = 1
VERSION = 1  # of the tables; schema.py brings an older file up to it
APPLICATION = 0x6E747964  # "ntyd", in the file's header
UNRELEASED = 0x6E6F7479  # "noty": the files of versions that were never released
NOT_A_LEDGER = "it is not a ledger; set NOTYET_LEDGER to a file of its own"
REPAIRED = "the next stop repairs it"
# A process that opens a ledger which no other has open reads its whole write-ahead log, 3 us for
# every page. So the processes of single stops, which follow one another, write it back at a dozen
# stops: a longer log costs each stop more, a shorter one makes it wait for the disk more often.
_SHORT_LOG = 200  # pages; SQLite's own limit is 1,000

_one_at_a_time = RLock()


def default_path(environ: Mapping[str, str]) -> str:
    """Return `$NOTYET_LEDGER`, or the file in the XDG state folder."""
    if environ.get("NOTYET_LEDGER"):
        return light.abspath(light.expanduser(environ["NOTYET_LEDGER"]))
    state = state_home(environ)  # empty without a home folder, which opening the file reports
    return light.join(state, "notyet", LEDGER) if state else ""


def make_private(path: str) -> None:
    """Create the file 0600 and its missing folders 0700; existing ones keep their modes."""
    if not path:
        raise FileNotFoundError(ENOENT, "there is no home folder to keep it in")
    missing = []
    folder = light.dirname(path)
    while folder and not light.isdir(folder):
        missing.append(folder)
        folder = light.dirname(folder)
    for folder in reversed(missing):
        try:
            light.mkdir(folder, 0o700)
        except FileExistsError:
            if not light.isdir(folder):
                raise
    flags = light.O_RDWR | light.O_CREAT | light.O_EXCL | light.O_CLOEXEC
    try:
        # An existing file must not be opened and closed: that would drop the locks which another
        # connection of this process holds on it.
        light.close(light.open(path, flags, 0o600))
    except FileExistsError:
        if light.isdir(path):
            raise IsADirectoryError(EISDIR, "it is a directory", path) from None


def real(folder: str) -> str:
    """Return the folder that links lead to; a relative one as it is."""
    if not light.isabs(folder):  # relative to what, only its host knows
        return folder
    try:
        return light.realpath(folder)
    except (OSError, ValueError):  # a name that no file can have
        return folder


def open_file(
    path: str, *, for_one_stop: bool = False
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Open or create a ledger; return a connection and warnings for the user.

    Raises sqlite3.Error, OSError, LedgerError and UnreleasedFormat.
    """
    with _one_at_a_time:  # see make_private
        if not light.isfile(path):
            make_private(path)
        db = _connect(path)
    try:
        warnings = _prepare(db, path)
        if for_one_stop:
            db.execute(f"PRAGMA wal_autocheckpoint = {_SHORT_LOG}")
    except BaseException:
        db.close()
        raise
    return db, warnings


def open_existing(path: str) -> sqlite3.Connection | None:
    """Open a ledger and change nothing; None for a file that is missing or just being created.

    Raises sqlite3.Error, OSError, UnreleasedFormat, and LedgerUnmended for an older version.
    """
    if light.isdir(path):
        raise IsADirectoryError(EISDIR, "it is a directory", path)
    if not path or not light.exists(path):
        return None
    from urllib.parse import quote

    db = _connect(f"file:{quote(light.fsencode(path))}?mode=rw", uri=True)  # never creates it
    try:
        version = identify(db, path)
    except BaseException:
        db.close()
        raise
    if version == VERSION:
        return db
    db.close()
    if version:
        what = f"an older notyet wrote it (version {version}, this one reads {VERSION})"
        raise LedgerUnmended(path, f"{what}; {REPAIRED}")
    return None


def open_empty() -> sqlite3.Connection:
    """Return an empty ledger in memory."""
    from notyet.ledger.schema import migrate

    db = _connect(":memory:")
    migrate(db)
    return db


def _connect(path: str, **options: Any) -> sqlite3.Connection:
    db: sqlite3.Connection = sqlite3.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, **options
    )
    return db


def _prepare(db: sqlite3.Connection, path: str) -> tuple[str, ...]:
    version = identify(db, path)
    warnings: tuple[str, ...] = ()
    if not is_local(path):
        from notyet.ledger.repair import on_a_network

        warnings = on_a_network(path)
    if version < VERSION:
        from notyet.ledger.schema import prepare

        # WAL needs memory shared between processes, which a network file system lacks.
        prepare(db, path, version, journal="DELETE" if warnings else "WAL")
    db.execute("PRAGMA synchronous = NORMAL")  # in WAL mode: safe against any crash of ours
    return warnings


def identify(db: sqlite3.Connection, path: str) -> int:
    """Return a ledger's version, 0 for a new file.

    Raises LedgerError for another program's file and UnreleasedFormat.
    """
    db.execute("BEGIN")  # one view of all three: another process may be creating the file
    version = version_of(db)
    mark = db.execute("PRAGMA application_id").fetchone()[0]
    is_used = version or db.execute("SELECT 1 FROM sqlite_master").fetchone()
    db.execute("COMMIT")
    if is_used and mark == UNRELEASED:
        raise UnreleasedFormat(f"an unreleased notyet wrote it (version {version})")
    if is_used and mark != APPLICATION:
        raise LedgerError(path, NOT_A_LEDGER)
    expect_readable(path, version)
    return version


def version_of(db: sqlite3.Connection) -> int:
    """Return the version of a file; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def expect_readable(path: str, version: int) -> None:
    """Raise LedgerNewer for a version that this code cannot read."""
    if version > VERSION:
        from notyet.errors import LedgerNewer

        raise LedgerNewer(
            path, f"it has version {version}, this notyet reads up to {VERSION}; upgrade notyet"
        )


def is_local(path: str) -> bool:
    """Return True if a file is on a device of this machine; network disks have no number."""
    return light.major(light.stat(path).st_dev) != 0
