"""Logs with the whole output of failed gates, beside the ledger; agents get a short version."""

from __future__ import annotations

import os
import time
from zlib import crc32

from notyet.core.record import Record
from notyet.ledger.connection import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.ledger.prune import Retention

_KEPT = 1_000  # files of older stops; more are deleted at once, old ones by prune.py
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_HEX = frozenset("0123456789abcdef")
_DIGITS = frozenset("0123456789")
_HASH = 8  # characters


def keep(ledger: str, stop: int, gate: str, output: str) -> str:
    """Write a log and return its path; empty if it cannot be written."""
    folder = _folder(ledger)
    readable = "".join(letter if letter in _LETTERS else "-" for letter in gate)[:60]
    # Gates with similar names, and ledgers in one folder, must not share a file.
    whose = f"{ledger}\n{gate}".encode("utf-8", "surrogatepass")
    name = f"stop-{stop}-{readable}-{crc32(whose):08x}.log"
    path = os.path.join(folder, name)
    try:
        make_private(path)
        # No links, which could lead anywhere, and no pipes, which would block.
        flags = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags), "wb") as file:
            file.write(output.encode("utf-8", "replace") + b"\n")
    except OSError:
        return ""
    return path


def _folder(ledger: str) -> str:
    return os.path.join(os.path.dirname(ledger), "logs")


def make_room(ledger: str, retention: Retention, newest: int = 0) -> int:
    """Delete old logs, and the oldest beyond the maximum size; return how many.

    Those of the newest stop stay: an agent may be reading them.
    """
    try:
        logs = _logs(_folder(ledger))
    except OSError:  # there are none
        return 0
    stay = {newest, *(log.stop for log in logs[-1:])}  # the clock may be wrong
    cutoff = (time.time() - retention.keep) * 1e9
    removed = 0
    total = sum(log.size for log in logs)
    for log in logs:
        if log.changed >= cutoff and total <= retention.logs:
            break
        if log.stop not in stay:
            total -= log.size
            removed += _remove(log.path)
    return removed


def make_room_for(ledger: str, newest: int) -> None:
    """Delete the oldest logs if there are very many, before a stop writes its first."""
    folder = _folder(ledger)
    try:
        if len(os.listdir(folder)) < _KEPT:
            return
        logs = [log for log in _logs(folder) if log.stop != newest]
    except OSError:  # there are none
        return
    for log in logs[: max(0, len(logs) + 1 - _KEPT)]:
        _remove(log.path)


class _Log(Record):
    """One log."""

    changed: int  # nanoseconds, by the clock
    stop: int
    path: str
    size: int


def _logs(folder: str) -> list[_Log]:
    """Return the logs in a folder, the oldest first."""
    logs = []
    for name in os.listdir(folder):
        stop = _stop_of(name)
        if stop is not None:
            path = os.path.join(folder, name)
            try:
                info = os.lstat(path)
            except FileNotFoundError:  # another process deleted it
                continue
            logs.append(_Log(info.st_mtime_ns, stop, path, info.st_size))
    return sorted(logs, key=lambda log: (log.changed, log.stop, log.path))


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:  # another process was faster, or it is no file
        return False
    return True


def _stop_of(name: str) -> int | None:
    """Return the stop in the name of a log; None for another file."""
    kind, _, rest = name.removesuffix(".log").partition("-")
    number, _, rest = rest.partition("-")
    _, dash, hashed = rest.rpartition("-")
    is_ours = (
        name.endswith(".log")
        and kind == "stop"
        and number
        and _DIGITS.issuperset(number)
        and dash
        and len(hashed) == _HASH
        and _HEX.issuperset(hashed)
    )
    return int(number) if is_ours else None
