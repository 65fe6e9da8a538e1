"""Copies of settings files as they were before we changed them, for the user only to read."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from notyet.ledger.file import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    Kind = Literal["first", "later"]  # "first": it has no entries of ours

_MOST = 10  # of one file
_NONE = ".none"  # marks that there was no file
_FIRST = ".first"
_MADE = ".made"  # names the folder that was made for a file


def keep(state: str, path: str, content: bytes | None, kind: Kind = "later") -> str:
    """Keep what a file held, None for no file; return where. Raises OSError.

    Old copies go, but never the newest one without entries of ours: uninstalling needs it.
    """
    folder = _folder(state, path)
    now = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 10**9)) + f".{now % 10**9:09}"
    mark = _FIRST if kind == "first" else ""
    kept = os.path.join(folder, stamp + (_NONE if content is None else mark))
    try:
        make_private(kept)
        with open(kept, "wb") as file:
            file.write(content or b"")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if os.path.exists(kept):
            os.unlink(kept)
        raise OSError(error.errno, error.strerror, kept) from error
    names = _names(folder)
    first = next((name for name in names if name.endswith((_NONE, _FIRST))), "")
    for name in names[_MOST:]:
        if name != first:
            os.unlink(os.path.join(folder, name))
    return kept


def kept(state: str, path: str) -> list[bytes | None]:
    """Return what was kept of a file, newest first; None where there was no file."""
    folder = _folder(state, path)
    found: list[bytes | None] = []
    for name in _names(folder):
        if name.endswith(_NONE):
            found.append(None)
            continue
        try:
            with open(os.path.join(folder, name), "rb") as file:
                found.append(file.read())
        except OSError:
            continue
    return found


def changed_files(state: str) -> Iterator[str]:
    """Yield the files that we ever changed, which may be gone by now."""
    root = os.path.join(state, "backups")
    for folder, _, names in os.walk(root):
        if any(name != _MADE for name in names):
            yield os.path.join("/", os.path.relpath(folder, root))


def note_folder(state: str, folder: str) -> None:
    """Remember that a folder was made by us. Raises OSError."""
    path = os.path.join(_folder(state, folder), _MADE)
    make_private(path)
    with open(path, "w", encoding="ascii") as file:
        file.write(_identity(folder))


def leave_folder(state: str, path: str) -> None:
    """Remove the folder of a file that is gone, if we made it and nothing else is in it."""
    around, name = os.path.split(os.path.dirname(path))
    folder = os.path.join(os.path.realpath(around), name)  # which may itself be a link
    made = os.path.join(_folder(state, folder), _MADE)
    with suppress(OSError):
        with open(made, encoding="ascii") as file:
            is_ours = file.read() == _identity(folder)
        if is_ours:
            os.rmdir(folder)
            os.unlink(made)


def _identity(folder: str) -> str:
    """Tell a folder from another one of that name, and from a link to one."""
    found = os.lstat(folder)
    return f"{found.st_dev}:{found.st_ino}"


def _folder(state: str, path: str) -> str:
    return os.path.join(state, "backups", path.lstrip("/"))


def _names(folder: str) -> list[str]:
    """Return the copies of one file, newest first."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name for entry in entries if entry.is_file()), reverse=True)
    except OSError:
        return []
