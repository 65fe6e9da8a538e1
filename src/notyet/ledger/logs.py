"""The whole output of gates that failed, beside the ledger: what an agent is told is short."""

from __future__ import annotations

import os

from notyet.ledger.place import make_private

_KEPT = 100  # files; older ones make room
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def keep(ledger: str, stop: int, gate: str, output: str) -> str:
    """Write a log and return its path; empty when it cannot be written."""
    folder = os.path.join(os.path.dirname(ledger), "logs")
    name = "".join(letter if letter in _LETTERS else "-" for letter in gate)[:60]
    path = os.path.join(folder, f"stop-{stop}-{name}.log")
    try:
        make_private(path)
        with open(path, "wb") as file:
            file.write(output.encode("utf-8", "replace") + b"\n")
        _make_room(folder)
    except OSError:
        return ""
    return path


def _make_room(folder: str) -> None:
    names = [name for name in os.listdir(folder) if name.startswith("stop-")]
    if len(names) <= _KEPT:
        return
    paths = [os.path.join(folder, name) for name in names]
    dated = []
    for path in paths:
        try:
            dated.append((os.stat(path).st_mtime_ns, path))
        except FileNotFoundError:  # another process made room too
            continue
    for _, path in sorted(dated)[: max(0, len(dated) - _KEPT)]:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
