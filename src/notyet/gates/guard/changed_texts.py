"""The texts of changed files, read from two snapshots with few git commands."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from notyet.git.run import Unknown
from notyet.git.snapshot import LOST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from notyet.git.snapshot import Snapshot

UNREADABLE = "\0"  # stands for a text that is too large or binary; the rules report it as unread
_MOST_BYTES = 4_000_000  # of one file
_MOST_IN_ALL = 64 * 1024 * 1024
_MOST_NAMES = 32 * 1024 * 1024
_PATIENCE = 60.0  # seconds
_FIELDS = 3  # id, type, size


def texts_of(snapshot: Snapshot, paths: Iterable[str]) -> dict[str, str]:
    """Return the texts of files by path; those that are not in the snapshot are left out.

    Raises Unknown if git gives no answer.
    """
    wanted = [path for path in dict.fromkeys(paths) if path]
    plain = [path for path in wanted if "\n" not in path]
    texts = {path: UNREADABLE for path in wanted if "\n" in path}
    named = [f"{snapshot.tree}:{path}" for path in plain]
    told = _batch(snapshot, "--batch-check", named, _MOST_NAMES).split(b"\n")
    ids: dict[str, str] = {}
    left = _MOST_IN_ALL
    for path, line in zip(plain, told, strict=False):
        fields = line.split(b" ")
        if len(fields) != _FIELDS or fields[1] != b"blob":
            continue
        size = int(fields[2])
        texts[path] = UNREADABLE
        if size <= min(_MOST_BYTES, left):
            left -= size
            ids[path] = fields[0].decode("ascii")
    content = _batch(snapshot, "--batch", ids.values(), 2 * _MOST_IN_ALL)
    at = 0
    for path in ids:
        end = content.find(b"\n", at)
        if end < 0:
            raise Unknown(LOST)
        size = int(content[at:end].rpartition(b" ")[2])
        at = end + 1 + size + 1
        texts[path] = content[end + 1 : end + 1 + size].decode("utf-8", "replace")
    return texts


def _batch(snapshot: Snapshot, mode: str, names: Iterable[str], most: int) -> bytes:
    """Return what `git cat-file` prints about objects that it reads from a file."""
    lines = "".join(f"{name}\n" for name in names)
    if not lines:
        return b""
    with tempfile.NamedTemporaryFile(prefix="notyet-guard-") as file:
        file.write(os.fsencode(lines))
        file.flush()
        return snapshot.git("cat-file", mode, most=most, patience=_PATIENCE, stdin=file.name)
