"""What the files look like now: one fingerprint for HEAD, index, worktree and untracked content."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 20.0  # seconds for git
_DEEPEST = 4  # repositories inside repositories
_MOST_BYTES = 64 * 1024 * 1024  # of content read; beyond, size and time stand for it
# As `git rev-parse --local-env-vars` lists them.
_OF_ANOTHER_REPOSITORY = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES",
        "COMMON_DIR",
        "CONFIG",
        "CONFIG_COUNT",
        "CONFIG_PARAMETERS",
        "DIR",
        "GRAFT_FILE",
        "IMPLICIT_WORK_TREE",
        "INDEX_FILE",
        "INTERNAL_SUPER_PREFIX",
        "NO_REPLACE_OBJECTS",
        "OBJECT_DIRECTORY",
        "PREFIX",
        "REPLACE_REF_BASE",
        "SHALLOW_FILE",
        "WORK_TREE",
    )
)
_TRACKED_FIELDS = {"1": 8, "2": 9, "u": 10}  # spaces before the path in porcelain v2


def fingerprint(cwd: str, patience: float = PATIENCE) -> str:
    """Return a short text that changes when the files do; empty when that cannot be told."""
    from time import monotonic

    ends = monotonic() + patience
    try:
        return _fingerprint(_root(cwd, ends), _DEEPEST, ends) if cwd else ""
    except (_Unknown, OSError, ValueError):
        return ""


class _Unknown(Exception):  # noqa: N818  # never leaves this module
    """Git cannot tell."""


def _root(folder: str, ends: float) -> str:
    import os

    return os.fsdecode(_git(folder, ends, "rev-parse", "--show-toplevel").removesuffix(b"\n"))


def _fingerprint(root: str, depth: int, ends: float) -> str:
    import hashlib
    import os

    if not depth:
        raise _Unknown
    status = _git(root, ends, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
    seen = hashlib.blake2b(status, digest_size=12)
    left = _MOST_BYTES
    for path in _changed(status):
        content = _content(os.path.join(root, os.fsdecode(path)), left, depth, ends)
        left -= len(content)
        seen.update(b"%d " % len(content) + content)
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


def _content(path: str, most: int, depth: int, ends: float) -> bytes:
    """Return what stands for a file: its mode and content, or its size and time where too big."""
    import os
    import stat

    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            return b"link " + os.fsencode(os.readlink(path))
        if stat.S_ISDIR(info.st_mode):
            # A submodule, or a repository inside this one; else its files are listed themselves.
            if os.path.realpath(_root(path, ends)) != os.path.realpath(path):
                return b"folder"
            return b"repository " + _fingerprint(path, depth - 1, ends).encode()
        if not stat.S_ISREG(info.st_mode) or info.st_size > most:
            return f"{info.st_mode} {info.st_size} {info.st_mtime_ns}".encode()
        with open(path, "rb") as file:
            return b"%o " % info.st_mode + file.read(most)
    except OSError as error:  # gone, or not ours to read: that too is a state
        return type(error).__name__.encode()


def _git(cwd: str, ends: float, *args: str) -> bytes:
    import subprocess
    from time import monotonic

    try:
        done = subprocess.run(
            ["git", *args],
            cwd=cwd,
            # Without optional locks we never get in the way of a git command the agent runs.
            env=own_environ() | {"GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(0.01, ends - monotonic()),
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        raise _Unknown from None
    if done.returncode:
        raise _Unknown
    return done.stdout


def own_environ() -> dict[str, str]:
    """Return the environment without what git sets in its hooks: it names another repository."""
    import os

    return {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_REPOSITORY}
