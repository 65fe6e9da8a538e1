"""The ledger's SQLite file: one transaction at a time, in a file that is opened at need.

This is the only module that knows how a transaction runs. All others hand functions of an open
database, with statements that PostgreSQL accepts too, to `Connection.read` and `write`.

A transaction waits for its turn with short random pauses: SQLite's own busy handler backs off up to
100 ms, and under load a writer that backs off is overtaken for seconds.
"""

from __future__ import annotations

import sys
import time
from _thread import RLock
from _weakref import ref
from errno import EINVAL, EISDIR, ENOENT

from notyet import light
from notyet.errors import LedgerBusy, LedgerError, LedgerNeedsRepair, LedgerNewer, NotyetError
from notyet.light import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as sqlite3_module
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from notyet.ledger.postgres import Listener

    T = TypeVar("T")
    Work = Callable[[sqlite3_module.Connection], T]

__all__ = ["sqlite3_module"]


def _load() -> Any:
    """Load the C module alone: the `sqlite3` package brings `datetime` and adapters.

    It needs `functools.lru_cache` and nothing else of `functools`, which costs a quarter of a bare
    interpreter. In a process that has not loaded it, `_sqlite3` gets the same cache without it.
    """
    if "functools" in sys.modules or "threading" in sys.modules:
        import _sqlite3

        return _sqlite3
    from _functools import (  # type: ignore[import-not-found]  # it has no stubs
        _lru_cache_wrapper,
    )

    def lru_cache(size: int) -> Callable[[Callable[..., Any]], Any]:
        return lambda call: _lru_cache_wrapper(call, size, False, tuple)

    functools = type(sys)("functools")
    functools.lru_cache = lru_cache  # type: ignore[attr-defined]
    sys.modules["functools"] = functools  # for the next line only
    try:
        import _sqlite3
    finally:
        del sys.modules["functools"]
    return _sqlite3


if not TYPE_CHECKING:
    try:
        sqlite3_module = _load()
    except ImportError:  # an unusual interpreter
        sqlite3_module = None


_CANNOT_WRITE = "set NOTYET_LEDGER to a file on a local disk that you can write"


class UnreleasedFormatError(Exception):
    """A file whose tables no released version wrote: it is set aside."""


def is_busy(error: Exception) -> bool:
    """Return True if another process holds the file, so that a retry may help."""
    return _code(error) in (sqlite3_module.SQLITE_BUSY, sqlite3_module.SQLITE_LOCKED)


def is_corrupt(error: Exception) -> bool:
    """Return True if the file is damaged."""
    return _code(error) in (sqlite3_module.SQLITE_CORRUPT, sqlite3_module.SQLITE_NOTADB)


def _faults() -> tuple[type[Exception], ...]:
    """Return what a transaction may raise: of SQLite, the disk, and values that it cannot hold."""
    values = (ValueError, TypeError, OverflowError)
    return (sqlite3_module.Error, OSError, UnreleasedFormatError, *values)


def fault(path: str, error: Exception, patience: float) -> LedgerError:
    """Return the LedgerError for any error, also for values that SQLite cannot hold."""
    from notyet.ledger.repair import is_read_only

    if is_busy(error):
        return LedgerBusy(path, f"other processes locked it for over {patience:.2g} s")
    if isinstance(error, sqlite3_module.Error | OSError):
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        why = "it is on a read-only file system" if is_read_only(path) else said
        return LedgerError(path, f"{why}; {_CANNOT_WRITE}")
    return LedgerError(path, f"{type(error).__name__}: {error}")


def needs_psycopg() -> LedgerError:
    """Return the error for a machine without psycopg, or without a library of PostgreSQL."""
    what = "it needs psycopg, which is not installed; in a checkout, run: pip install '.[postgres]'"
    return LedgerError("on PostgreSQL", what)


def _code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


# The file.

LEDGER = "ledger.db"
FIRST_VERSION = 1
VERSION = 8  # of the tables; migrations.py brings an older file up to it
APPLICATION = 0x6E747964  # "ntyd", in the file's header
UNRELEASED = 0x6E6F7479  # "noty": the files of versions that were never released
NOT_A_LEDGER = "it is not a ledger; set NOTYET_LEDGER to a file of its own"
REPAIRED = "the next stop repairs it"
# Files of `notyet ship` beside the ledger: the time of its last start, and how far it came.
SHIP_STAMP, SHIP_STATE = ".ship", ".shipped"
# A process that opens a ledger which no other has open reads its whole write-ahead log, 3 us for
# every page. So the processes of single stops, which follow one another, write it back at a dozen
# stops: a longer log costs each stop more, a shorter one makes it wait for the disk more often.
_SHORT_LOG = 200  # pages; SQLite's own limit is 1,000

_one_at_a_time = RLock()  # see make_private


def default_path(environ: Mapping[str, str]) -> str:
    """Return `$NOTYET_LEDGER`, or the file in the XDG state folder."""
    given = environ.get("NOTYET_LEDGER", "")
    if "://" in given:  # refused when it is opened; the rest may have a password
        return given.partition("://")[0] + "://"
    if given:
        return light.abspath(light.expanduser(given))
    state = state_home(environ)  # empty without a home folder, which opening the file reports
    return light.join(state, "notyet", LEDGER) if state else ""


def demo_ledger(environ: Mapping[str, str]) -> str:
    """Return where `notyet demo` keeps the ledger of its last run; empty without a home folder."""
    state = state_home(environ)
    return light.join(state, "notyet", "demo", LEDGER) if state else ""


def make_private(path: str) -> None:
    """Create the file 0600 and its missing folders 0700; existing ones keep their modes."""
    if not path:
        raise FileNotFoundError(ENOENT, "there is no home folder to keep it in")
    if "://" in path:
        raise OSError(EINVAL, "it is an address, and hooks and commands need a file")
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


def open_file(
    path: str, *, for_one_stop: bool = False
) -> tuple[sqlite3_module.Connection, tuple[str, ...]]:
    """Open or create a ledger; return a connection and warnings for the user.

    Raises sqlite3.Error, OSError, LedgerError and UnreleasedFormatError.
    """
    with _one_at_a_time:
        if not light.isfile(path):
            make_private(path)
        db = _connect(path)
    try:
        warnings = _prepare(db, path)
        if for_one_stop:
            db.execute(f"PRAGMA wal_autocheckpoint = {_SHORT_LOG}")
    except (sqlite3_module.Error, OSError, LedgerError, UnreleasedFormatError):
        db.close()
        raise
    return db, warnings


def open_existing(path: str) -> sqlite3_module.Connection | None:
    """Open a ledger and change nothing; None for a file that is missing or just being created.

    Raises sqlite3.Error, OSError, UnreleasedFormatError; LedgerNeedsRepair for an older version.
    """
    if light.isdir(path):
        raise IsADirectoryError(EISDIR, "it is a directory", path)
    if not path or not light.exists(path):
        return None
    from urllib.parse import quote

    db = _connect(f"file:{quote(light.fsencode(path))}?mode=rw", uri=True)  # never creates it
    try:
        version = identify(db, path)
    except (sqlite3_module.Error, OSError, LedgerError, UnreleasedFormatError):
        db.close()
        raise
    if version == VERSION:
        return db
    db.close()
    if version:
        what = f"an older notyet wrote it (version {version}, this one reads {VERSION})"
        raise LedgerNeedsRepair(path, f"{what}; {REPAIRED}")
    return None


def open_empty() -> sqlite3_module.Connection:
    """Return an empty ledger in memory."""
    from notyet.ledger.migrations import migrate

    db = _connect(":memory:")
    migrate(db)
    return db


def _connect(path: str, **options: Any) -> sqlite3_module.Connection:
    if sqlite3_module is None:
        raise LedgerError(path, "this Python was built without SQLite (it has no module _sqlite3)")
    db: sqlite3_module.Connection = sqlite3_module.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, **options
    )
    return db


def _prepare(db: sqlite3_module.Connection, path: str) -> tuple[str, ...]:
    version = identify(db, path)
    warnings: tuple[str, ...] = ()
    if not is_local(path):
        from notyet.ledger.repair import on_a_network

        warnings = on_a_network(path)
    if version < VERSION:
        from notyet.ledger.migrations import prepare

        # WAL needs memory shared between processes, which a network file system lacks.
        prepare(db, path, version, journal="DELETE" if warnings else "WAL")
    db.execute("PRAGMA synchronous = NORMAL")  # in WAL mode: safe against any crash of ours
    return warnings


def identify(db: sqlite3_module.Connection, path: str) -> int:
    """Return a ledger's version, 0 for a new file.

    Raises LedgerError for another program's file and UnreleasedFormatError.
    """
    db.execute("BEGIN")  # one view of all three: another process may be creating the file
    version = version_of(db)
    mark = db.execute("PRAGMA application_id").fetchone()[0]
    is_used = version or db.execute("SELECT 1 FROM sqlite_master").fetchone()
    db.execute("COMMIT")
    if is_used and mark == UNRELEASED:
        raise UnreleasedFormatError(f"an unreleased notyet wrote it (version {version})")
    if is_used and mark != APPLICATION:
        raise LedgerError(path, NOT_A_LEDGER)
    expect_readable(path, version)
    return version


def version_of(db: sqlite3_module.Connection) -> int:
    """Return the version of a file; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def expect_readable(path: str, version: int) -> None:
    """Raise LedgerNewer for a version that this code cannot read."""
    if version > VERSION:
        raise LedgerNewer(
            path, f"it has version {version}, this notyet reads up to {VERSION}; upgrade notyet"
        )


def is_local(path: str) -> bool:
    """Return True if a file is on a device of this machine; network disks have no number."""
    return light.major(light.stat(path).st_dev) != 0


# Transactions.

# The database's clock, in seconds since 1970. PostgreSQL: extract(epoch FROM clock_timestamp())
NOW = "((julianday('now') - 2440587.5) * 86400.0)"

_all: dict[int, ref[Connection]] = {}
_forking = RLock()  # one fork at a time
_PAUSE = 0.0005  # seconds between two tries for the lock, on average
_PART = 200  # and this part of the time waited, so that a crowd leaves time to the one that writes
_LONGEST_PAUSE = 0.02
_TO_READ, _TO_WRITE = "BEGIN", "BEGIN IMMEDIATE"
_TO_LOOK = ""  # one statement without a transaction


class Connection:
    """Runs transactions on one file; safe in many threads, and after a fork.

    Stops and supervisors repair a damaged or older file, because they tell the user. All others
    (`repair=False`) leave it as it is, and read a missing one as empty.
    """

    is_file = True  # on this machine
    at_once = 1  # transactions that are worth running in threads of their own: one writes at a time

    def __init__(self, path: str, patience: float, *, repair: bool = True) -> None:
        self.path = path
        self.beside = path  # the logs of this machine are in this file's folder
        self.patience = patience
        self.for_one_stop = False  # this process serves one stop only
        self.repairs: tuple[str, ...] = ()  # warnings about files that were set aside
        self._repair = repair
        self._lock = RLock()  # re-entrant: a signal handler may close us
        self._db: sqlite3_module.Connection | None = None
        self._file: tuple[int, int] | None = None  # None: an empty ledger in memory
        self._warnings: list[str] = []
        with _forking:
            _all[id(self)] = ref(self)

    def read(self, work: Work[T], patience: float | None = None) -> T:
        """Run `work` in one read transaction, which blocks no writer."""
        return self._transact(_TO_READ, work, patience)

    def write(self, work: Work[T], patience: float | None = None) -> T:
        """Run `work` in one write transaction; wait for other writers up to `patience` seconds."""
        return self._transact(_TO_WRITE, work, patience)

    def write_through(self, work: Work[T]) -> T:
        """Do the same as `write`, and flush it to the disk: it survives a power cut."""
        return self._transact(_TO_WRITE, work, None, flush=True)

    def rows(
        self,
        statement: str,
        values: tuple[Any, ...] = (),
        read: Callable[[tuple[Any, ...]], Any] | None = None,
    ) -> list[Any]:
        """Return all rows of one statement, or what `read` makes of each."""

        def find(db: sqlite3_module.Connection) -> list[Any]:
            rows = db.execute(statement, values).fetchall()
            return rows if read is None else [read(row) for row in rows]

        return self.read_one(find)

    def read_one(self, work: Work[T]) -> T:
        """Run one statement that reads."""
        return self.read(work)

    def state(self) -> tuple[object, int]:
        """Return a value that differs when others have changed the file since, or replaced it.

        One `PRAGMA data_version` and no transaction, so that it may be called all the time.
        """

        def look(db: sqlite3_module.Connection) -> tuple[object, int]:
            return self._file, db.execute("PRAGMA data_version").fetchone()[0]

        return self._transact(_TO_LOOK, look, 0.0)

    def version(self) -> int:
        """Return the version of the tables: another notyet may have changed them since."""
        return self.read_one(version_of)

    def execute(
        self, statement: str, values: tuple[Any, ...], patience: float | None = None
    ) -> int:
        """Run one statement that writes; return how many rows it changed."""
        return self.write(lambda db: db.execute(statement, values).rowcount, patience)

    def listen(self) -> Listener | None:
        """Return what wakes a supervisor at a change; None: it has to look again and again."""
        return None

    def checkpoint(self) -> None:
        """Write the log back into the file and truncate it, as far as readers allow."""
        with self._lock:
            try:
                self._opened(_TO_WRITE).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except (sqlite3_module.Error, OSError, UnreleasedFormatError) as error:
                raise fault(self.path, error, 0.0) from error

    def write_back(self) -> None:
        """Write the log back without waiting for others; an error only leaves it longer."""
        with self._lock:
            if self._db is not None:
                try:
                    self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                except sqlite3_module.Error:
                    return

    def take_warnings(self) -> tuple[str, ...]:
        """Return the warnings about the file since the last call."""
        taken, self._warnings = tuple(self._warnings), []
        return taken

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._close()

    def __del__(self, known: dict[int, ref[Connection]] = _all) -> None:  # it outlives the module
        known.pop(id(self), None)
        # sqlite3's own objects form cycles, so that a file would stay open until some later
        # garbage collection.
        self._close()

    def hold(self) -> None:
        """Wait for a transaction of another thread, close the file and keep it closed."""
        self._lock.acquire()
        self._close()

    def release(self) -> None:
        """Undo `hold`."""
        self._lock.release()

    def _close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _transact(
        self, begin: str, work: Work[T], patience: float | None, *, flush: bool = False
    ) -> T:
        patience = self.patience if patience is None else min(self.patience, patience)
        started = time.monotonic()
        may_repair = True
        while True:
            with self._lock:  # not during the pause: a fork must not wait for other processes
                try:
                    return self._attempt(begin, work, flush=flush)
                except NotyetError:  # of the work itself
                    raise
                except _faults() as error:
                    if may_repair and (
                        is_corrupt(error) or isinstance(error, UnreleasedFormatError)
                    ):
                        from notyet.ledger.repair import set_file_aside

                        may_repair = False
                        self._close()
                        moved = set_file_aside(self.path, error, repair=self._repair)
                        self._warnings += moved
                        self.repairs += moved
                    elif not is_busy(error) or time.monotonic() >= started + patience:
                        raise fault(self.path, error, patience) from error
            pause = min(_LONGEST_PAUSE, max(_PAUSE, (time.monotonic() - started) / _PART))
            time.sleep(pause * (0.5 + light.urandom(1)[0] / 255))

    def _attempt(self, begin: str, work: Work[T], *, flush: bool) -> T:
        db = self._opened(begin)
        try:
            if flush:
                db.execute("PRAGMA synchronous = FULL")
            if begin != _TO_LOOK:
                db.execute(begin)
            result = work(db)
            if begin != _TO_LOOK:
                db.execute("COMMIT")
            return result
        finally:
            if db.in_transaction:
                try:
                    db.execute("ROLLBACK")
                except sqlite3_module.Error:
                    self._close()  # which rolls back as well
            if flush and self._db is db:
                db.execute("PRAGMA synchronous = NORMAL")

    def _opened(self, begin: str) -> sqlite3_module.Connection:
        if self._db is not None and self._file is None and begin == _TO_WRITE:
            self._close()  # the empty one in memory
        if self._db is not None and self._file != _identity(self.path):
            self._close()
            if self._file is not None:
                what = f"ledger {self.path} was removed or replaced"
                self._warnings.append(f"{what}; counting starts over" if self._repair else what)
        if self._db is None and not self._repair:
            self._db = open_existing(self.path)
            self._file = _identity(self.path) if self._db is not None else None
            if self._db is None and begin != _TO_WRITE:
                self._db = open_empty()
        if self._db is None:
            self._db, warnings = open_file(self.path, for_one_stop=self.for_one_stop)
            self._file = _identity(self.path)
            self._warnings += warnings
        return self._db


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a file, which tell it from a replacement."""
    try:
        info = light.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


# A connection must not be carried over a fork: the child would believe that it holds the parent's
# locks, and both would write. So every file is closed for the moment of a fork.

_held: list[Connection] = []


def _before_fork() -> None:
    _forking.acquire()
    for known in list(_all.values()):
        connection = known()
        if connection is not None:
            connection.hold()
            _held.append(connection)


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


light.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
