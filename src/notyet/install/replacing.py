"""Replaces a file as a whole, with its mode and owner, and never shows its content to others."""

from __future__ import annotations

import os
import stat
import time
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_PREFIX, _SUFFIX = ".notyet-", ".tmp"


def replace_file(path: str, content: bytes) -> None:
    """Replace a file as a whole. Raises OSError about this very file, whatever was in the way."""
    with _about(path):
        _write_beside(path, content)


def write_private(path: str, content: bytes, moment: int | None = None) -> None:
    """Write a file of our own as a whole, 0600; `moment` is its time. Raises OSError about it."""
    with _about(path):
        folder = os.path.dirname(path)
        os.makedirs(folder, 0o700, exist_ok=True)
        with _beside(folder) as (beside, file):
            file.write(content)
            file.flush()
            if moment is not None:
                os.utime(file.fileno(), ns=(moment, moment))
            os.fsync(file.fileno())
            os.replace(beside, path)


def make_folder(path: str) -> None:
    """Make the folder of a file. Raises OSError about the file."""
    with _about(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)


@contextmanager
def _about(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def losses(path: str) -> Iterator[str]:
    """Yield what of a file cannot be kept when it is replaced, or is changed against its mode."""
    try:
        old = os.stat(path)
    except OSError:
        return
    if not old.st_mode & 0o222:
        yield f"{path} is read-only; it is replaced, and stays read-only"
    if old.st_nlink > 1:
        yield f"{path} has other names (hard links), under which the old content stays"
    if not _may_own(old):
        yield f"{path} belongs to another user, and will belong to you"
    if not _may_group(old):
        yield f"{path} cannot be given to its group again, so its group loses access to it"


def _write_beside(path: str, content: bytes) -> None:
    """Write beside the file, and take its place."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with _beside(folder) as (beside, file):
        mode = _take_after(path, file.fileno())  # before there is something to read
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)  # which a change of the owner may have narrowed
        os.fsync(file.fileno())
        os.replace(beside, path)


@contextmanager
def _beside(folder: str) -> Iterator[tuple[str, BinaryIO]]:
    """Open a new file of this folder, which is gone unless it gets another name."""
    _clear(folder)
    beside = os.path.join(folder, f"{_PREFIX}{os.getpid()}-{time.time_ns()}{_SUFFIX}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            yield beside, file
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise
    directory = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _take_after(path: str, descriptor: int) -> int:
    """Give a new file the owner and group of the one that it replaces; return its mode."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o666 & ~mask
    new = os.fstat(descriptor)
    mode = stat.S_IMODE(old.st_mode)
    if new.st_gid != old.st_gid:
        try:
            os.fchown(descriptor, -1, old.st_gid)
        except PermissionError:  # another group than theirs must not read it instead
            mode &= ~0o070
    if new.st_uid != old.st_uid:
        with suppress(PermissionError):  # as where a file of another one may be written
            os.fchown(descriptor, old.st_uid, -1)
    return mode


def _may_own(old: os.stat_result) -> bool:
    return os.geteuid() in (0, old.st_uid)


def _may_group(old: os.stat_result) -> bool:
    return os.geteuid() == 0 or old.st_gid in (os.getegid(), *os.getgroups())


def _clear(folder: str) -> None:
    """Remove what was left behind by a notyet that was killed while it wrote."""
    for name in os.listdir(folder):
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            number = name.removeprefix(_PREFIX).partition("-")[0]
            if not _is_alive(number):
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def _is_alive(number: str) -> bool:
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
