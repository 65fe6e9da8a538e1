"""What the files look like now: one fingerprint for HEAD, index, worktree and untracked content."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 20.0  # seconds for git
_MOST_BYTES = 64 * 1024 * 1024  # of content read; beyond, size and time stand for it
_TRACKED_FIELDS = {"1": 8, "2": 9, "u": 10}  # spaces before the path in porcelain v2


def fingerprint(cwd: str) -> str:
    """Return a short text that changes when the files do; empty when git cannot tell."""
    import hashlib
    import os

    top = _git(cwd, "rev-parse", "--show-toplevel") if cwd else None
    if top is None:
        return ""
    root = os.fsencode(top.decode("utf-8", "surrogateescape").rstrip("\n"))
    status = _git(cwd, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
    if status is None:
        return ""
    seen = hashlib.blake2b(status, digest_size=12)
    left = _MOST_BYTES
    for path in _changed(status):
        left -= _add(seen.update, os.path.join(root, path), left)
    return seen.hexdigest()


def _changed(status: bytes) -> Iterator[bytes]:
    """Yield the paths whose content git has not hashed for us."""
    entries = iter(status.split(b"\0"))
    for entry in entries:
        kind = entry[:1].decode("ascii", "replace")
        if kind == "?":
            yield entry[2:]
        elif kind in _TRACKED_FIELDS:
            yield entry.split(b" ", _TRACKED_FIELDS[kind])[-1]
            if kind == "2":
                next(entries, None)  # where it was renamed from


def _add(update: object, path: bytes, left: int) -> int:
    """Add one file to the fingerprint; return how many bytes were read."""
    import os
    import stat

    assert callable(update)
    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            update(b"link" + os.readlink(path))
            return 0
        if not stat.S_ISREG(info.st_mode) or info.st_size > left:
            update(f"{info.st_mode} {info.st_size} {info.st_mtime_ns}".encode())
            return 0
        with open(path, "rb") as file:
            content = file.read(left)
    except OSError as error:  # gone, or not ours to read: that too is a state
        update(type(error).__name__.encode())
        return 0
    update(b"%o %d " % (info.st_mode, len(content)) + content)
    return len(content)


def _git(cwd: str, *args: str) -> bytes | None:
    import os
    import subprocess

    # Without optional locks we never get in the way of a git command the agent runs.
    environ = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", *args],
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
