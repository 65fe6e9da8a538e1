"""Files for their owner's eyes only."""

from __future__ import annotations

from _thread import RLock
from errno import EISDIR, ENOENT

from notyet import light
from notyet.errors import LedgerError, LedgerUnmended
from notyet.ledger.connection import sqlite3_module as sqlite3
from notyet.light import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from sqlite3 import Connection
    from typing import Literal


def make_private(path: str) -> None:
    """Create the file 0600 and its missing folders 0700; what exists keeps its modes."""
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
    try:
        # Never open and close a file that is there: that would drop the locks which another
        # connection of this process holds on it.
        light.close(
            light.open(path, light.O_RDWR | light.O_CREAT | light.O_EXCL | light.O_CLOEXEC, 0o600)
        )
    except FileExistsError:
        if light.isdir(path):
            raise IsADirectoryError(EISDIR, "it is a directory", path) from None


LEDGER = "ledger.db"


def default_path(environ: Mapping[str, str]) -> str:
    """Return `$NOTYET_LEDGER`, or the file in the XDG state folder."""
    if environ.get("NOTYET_LEDGER"):
        return light.abspath(light.expanduser(environ["NOTYET_LEDGER"]))
    state = state_home(environ)  # empty where there is no home, which opening the file will say
    return light.join(state, "notyet", LEDGER) if state else ""


def real(folder: str) -> str:
    """Return a folder by its own name, which is the same whichever link led there."""
    if not light.isabs(folder):  # relative to what, only its host knows
        return folder
    try:
        return light.realpath(folder)
    except (OSError, ValueError):  # a name that no file can have
        return folder


def _create(db: Connection) -> None:
    _run(db, "schema.sql")


def _add_commands(db: Connection) -> None:
    """Version 2: how commands ended, and what people did (trust, off, on)."""
    _run(db, "version_2.sql")


def _add_holding(db: Connection) -> None:
    """Version 3: problems that hold an agent, and which process asks."""
    _run(db, "version_3.sql")


def _add_tasks(db: Connection) -> None:
    """Version 4: supervised agents, their runs and what is told of them."""
    _run(db, "version_4.sql")


def _add_places(db: Connection) -> None:
    """Version 5: on which machine a command ran."""
    _run(db, "version_5.sql")


def _add_passes(db: Connection) -> None:
    """Version 6: passes and starts, so that gates are asked only when it matters; places."""
    _run(db, "version_6.sql")


def _run(db: Connection, name: str) -> None:
    with open(light.join(light.dirname(__file__), name), encoding="utf-8") as file:
        script = file.read()
    for statement in statements(script):
        db.execute(statement)  # not executescript, which would commit under our feet


def statements(script: str) -> list[str]:
    """Split a script of ours, whose comments and values hold no semicolon."""
    return [part for part in script.split(";") if part.strip()]


# The step at place n takes a file from version n to version n + 1.
STEPS: tuple[Callable[[Connection], None], ...] = (
    _create,
    _add_commands,
    _add_holding,
    _add_tasks,
    _add_places,
    _add_passes,
)


def bring_up(db: Connection, path: str, version: int, journal: Literal["WAL", "DELETE"]) -> None:
    """Bring a file of an older version up, or one that is new."""
    if not version:  # so that the file can be made smaller later without a copy of it
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.execute("BEGIN IMMEDIATE")
    expect_ours(path, version_of(db))  # a newer notyet may have been faster
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    migrate(db)
    db.execute("COMMIT")


def migrate(db: Connection) -> None:
    """Take the missing steps, inside the caller's transaction."""
    for version in range(version_of(db), VERSION):
        STEPS[version](db)
    db.execute(f"PRAGMA user_version = {VERSION}")


def open_as_it_is(path: str) -> sqlite3.Connection | None:
    """Return a connection; None for a file that is not there, or that is just being created.

    Raises sqlite3.Error, OSError, and LedgerUnmended for a file of an older version.
    """
    from notyet.ledger.repair import MENDED

    if light.isdir(path):
        raise IsADirectoryError(EISDIR, "it is a directory", path)
    if not path or not light.exists(path):
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

    address = f"file:{quote(light.fsencode(path))}?mode=rw"  # which never creates it
    db = sqlite3.connect(
        address, uri=True, timeout=0, isolation_level=None, check_same_thread=False
    )
    try:
        return db, version_of_ours(db, path)
    except BaseException:
        db.close()
        raise


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
        if not light.isfile(path):
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
        from notyet.ledger.repair import on_a_network

        warnings = on_a_network(path)
    if version < VERSION:
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
    return light.major(light.stat(path).st_dev) != 0
