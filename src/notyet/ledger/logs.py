"""Logs with the whole output of failed gates, beside the ledger; agents get a short version."""

from __future__ import annotations

import os
import time
from zlib import crc32

from notyet.core.record import Record
from notyet.ledger.connection import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.verdict import Report
    from notyet.ledger.prune import Retention

_MAX_LOG = 64 << 20  # bytes that are read of a log
_KEPT = 1_000  # files of older stops; more are deleted at once, old ones by prune.py
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def keep(ledger: str, stop: int, gate: str, output: str) -> str:
    """Write a log and return its path; empty if it cannot be written."""
    if not ledger:
        return ""  # there is no home folder
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


def whole_output(report: Report, most: int = _MAX_LOG) -> tuple[str, bool]:
    """Return all that a gate printed, as far as it is kept; and True if its log was pruned.

    At most so many bytes of a log are read.
    """
    if not report.log:
        return report.output, False
    try:
        # Not to wait for a pipe in its place.
        descriptor = os.open(report.log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(most).decode("utf-8", "replace"), False
    except (OSError, ValueError):
        return report.output, True


def is_beside(ledger: str, log: str) -> bool:
    """Return True for the path of a log of this ledger and machine."""
    return os.path.dirname(log) == _folder(ledger)


def log_files(ledger: str) -> list[str]:
    """Return the paths of all logs beside a ledger."""
    return [log.path for log in _logs(ledger)]


def _folder(ledger: str) -> str:
    return os.path.join(os.path.dirname(ledger), "logs")


def make_room(ledger: str, retention: Retention, newest: int = 0) -> int:
    """Delete old logs, and the oldest beyond the maximum size; return how many.

    Those of the newest stop stay: an agent may be reading them.
    """
    logs = _logs(ledger)
    stay = {newest, *(log.stop for log in logs[-1:])}  # the clock may be wrong
    cutoff = (time.time() - retention.keep) * 1e9
    total = sum(log.size for log in logs)
    removed = 0
    for log in logs:
        if log.changed >= cutoff and total <= retention.logs:
            break
        if log.stop not in stay:
            total -= log.size
            removed += _remove(log.path)
    return removed


def make_room_for(ledger: str, newest: int) -> None:
    """Delete the oldest logs if there are very many, before a stop writes its first."""
    logs = [log for log in _logs(ledger) if log.stop != newest]
    for log in logs[: max(0, len(logs) + 1 - _KEPT)]:
        _remove(log.path)


class _Log(Record):
    changed: int  # nanoseconds, by the clock
    stop: int
    path: str
    size: int


def _logs(ledger: str) -> list[_Log]:
    """Return the logs beside a ledger, the oldest first."""
    logs = []
    try:
        with os.scandir(_folder(ledger)) as entries:
            for entry in entries:
                stop = _stop_of(entry.name)
                if stop is not None:
                    info = entry.stat(follow_symlinks=False)
                    logs.append(_Log(info.st_mtime_ns, stop, entry.path, info.st_size))
    except OSError:  # there are none, or another process deletes them just now
        return []
    return sorted(logs, key=lambda log: (log.changed, log.stop, log.path))


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:  # another process was faster, or it is no file
        return False
    return True


def _stop_of(name: str) -> int | None:
    """Return the stop in the name of a log; None for another file."""
    kind, _, rest = name.partition("-")
    number, _, rest = rest.partition("-")
    _, dash, ending = rest.rpartition("-")
    is_ours = kind == "stop" and number.isdecimal() and dash and len(ending) == len("01234567.log")
    return int(number) if is_ours and name.endswith(".log") else None
