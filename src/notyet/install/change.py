"""`Change`: a file as it is and as it shall be, shown, and then written whole or not at all."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from difflib import unified_diff
from fcntl import LOCK_EX, flock

from notyet.core.record import Record
from notyet.errors import NotyetError
from notyet.install.backup import keep
from notyet.ledger.place import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Stale(NotyetError):  # noqa: N818  # named after what happened
    """Somebody else changed the file after it was read; nothing was written."""


class Change(Record, kw_only=True):
    """What a file holds and shall hold; None: there is, or shall be, none."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.before == self.after

    def diff(self) -> list[str]:
        """Return the difference, line by line, as people know it."""
        old, new = (_lines(content) for content in (self.before, self.after))
        was = "/dev/null" if self.before is None else self.path
        will_be = "/dev/null" if self.after is None else self.path
        return list(unified_diff(old, new, was, will_be, lineterm=""))

    def write(self, state: str) -> str:
        """Put it into force; return where the old content is kept. Raises OSError and Stale."""
        real = os.path.realpath(self.path)  # a symbolic link stays one
        with _alone(state):
            if _content(real) != self.before:
                raise Stale(f"{self.path} was changed by somebody else just now")
            backup = keep(state, self.path, self.before)
            if self.after is None:
                os.unlink(real)
                _leave(os.path.dirname(real))
            else:
                _replace(real, self.after)
        return backup


def _lines(content: bytes | None) -> list[str]:
    text = (content or b"").decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}\\ (no line end)"]


@contextmanager
def _alone(state: str) -> Iterator[None]:
    """Wait until no other notyet changes settings."""
    path = os.path.join(state, "install.lock")
    make_private(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _replace(path: str, content: bytes) -> None:
    """Replace a file as a whole. Raises OSError about this very file, whatever was in the way."""
    try:
        _write_beside(path, content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _write_beside(path: str, content: bytes) -> None:
    """Write beside the file, and take its place with its mode and owner."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    beside = os.path.join(folder, f".notyet-{os.getpid()}-{time.time_ns()}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            _take_after(path, descriptor)
            os.fsync(descriptor)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise
    directory = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _take_after(path: str, descriptor: int) -> None:
    try:
        old = os.stat(path)
    except FileNotFoundError:
        return
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # as where a file of another one may be written
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & 0o7777)


def _leave(folder: str) -> None:
    """Remove the folder that was made for a file, if nothing else is in it."""
    with suppress(OSError):
        os.rmdir(folder)
