"""The whole output of gates that failed, beside the ledger: what an agent is told is short."""

from __future__ import annotations

import os
from zlib import crc32

from notyet.ledger.place import make_private

_KEPT = 100  # files; those of older stops make room
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_HEX = frozenset("0123456789abcdef")
_DIGITS = frozenset("0123456789")
_HASH = 8  # characters


def keep(ledger: str, stop: int, gate: str, output: str) -> str:
    """Write a log and return its path; empty when it cannot be written."""
    folder = os.path.join(os.path.dirname(ledger), "logs")
    readable = "".join(letter if letter in _LETTERS else "-" for letter in gate)[:60]
    # Names that differ only in odd letters, or far behind, must not share a file.
    # So do the ledgers of one folder, each of which counts its stops for itself.
    whose = f"{ledger}\n{gate}".encode("utf-8", "surrogatepass")
    name = f"stop-{stop}-{readable}-{crc32(whose):08x}.log"
    path = os.path.join(folder, name)
    try:
        make_private(path)
        # A link in its place could lead anywhere, and a pipe would make us wait.
        flags = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags), "wb") as file:
            file.write(output.encode("utf-8", "replace") + b"\n")
        _make_room(folder, stop)
    except OSError:
        return ""
    return path


def _make_room(folder: str, newest: int) -> None:
    """Remove the oldest logs; nothing but logs, and none of the stop that is being written."""
    logs = []
    for name in os.listdir(folder):
        stop = _stop_of(name)
        if stop is not None and stop != newest:
            path = os.path.join(folder, name)
            try:
                logs.append((os.lstat(path).st_mtime_ns, stop, path))
            except FileNotFoundError:  # another process makes room too
                continue
    for _, _, path in sorted(logs)[: max(0, len(logs) + 1 - _KEPT)]:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue


def _stop_of(name: str) -> int | None:
    """Return the number in the name of a log; None for a file that is not one of ours."""
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
