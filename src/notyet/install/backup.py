"""Copies of settings files as they were before we changed them, for the user only to read."""

from __future__ import annotations

import os
import time

from notyet.ledger.place import make_private

_MOST = 10  # of one file
_NONE = ".none"  # marks that there was no file


def keep(state: str, path: str, content: bytes | None) -> str:
    """Keep what a file held, None for no file; return where. Raises OSError."""
    folder = _folder(state, path)
    now = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 10**9)) + f".{now % 10**9:09}"
    kept = os.path.join(folder, stamp + (_NONE if content is None else ""))
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
    for name in _names(folder)[_MOST:]:
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


def _folder(state: str, path: str) -> str:
    return os.path.join(state, "backups", path.lstrip("/"))


def _names(folder: str) -> list[str]:
    """Return the copies of one file, newest first."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name for entry in entries if entry.is_file()), reverse=True)
    except OSError:
        return []
