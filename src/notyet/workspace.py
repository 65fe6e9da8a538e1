"""What the files look like now: one fingerprint for HEAD, index, worktree and untracked content.

A repository can name commands that git runs when it looks at the files: a file system monitor,
filters, hooks. An agent can write such a repository, so none of them may run here. What we cannot
switch off makes the files unknown, and inside other repositories git is not run at all.
"""

from __future__ import annotations

from time import monotonic

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE = 20.0  # seconds for git
_MOST_BYTES = 64 * 1024 * 1024  # of content read; beyond, size and time stand for it
MOST_ENTRIES = 20_000  # of the repositories inside this one
# As `git rev-parse --local-env-vars` lists them.
OF_ANOTHER_REPOSITORY = frozenset(
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
HARMLESS = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",  # so we never get in the way of a git command the agent runs
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone would run what fetches the rest
    "GIT_ALLOW_PROTOCOL": "none",
}
STATUS = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all")
FILTERS = ("--show-scope", "--includes", "-z", "--get-regexp", r"^filter\..*\.(clean|process)$")
_OF_THE_REPOSITORY = frozenset({b"local", b"worktree"})
_NOTHING_FOUND = 1  # how `git config` exits when no name fits
_SUBMODULE = b"160000 "
_TRACKED_FIELDS = {"1": 8, "2": 9, "u": 10}  # spaces before the path in porcelain v2


class Scope(Record):
    """Which files count: those of the repository of a folder, or what `paths` name below it."""

    folder: str
    paths: tuple[str, ...] = ()  # git's globs, from the folder on


def fingerprint(folder: str, patience: float = PATIENCE) -> str:
    """Return a short text that changes when the files do; empty when that cannot be told."""
    return fingerprints((Scope(folder),), patience)[0]


def fingerprints(scopes: Sequence[Scope], patience: float = PATIENCE) -> list[str]:
    """Return the fingerprint of each scope, all within the same time."""
    ends = monotonic() + patience
    known = {scope: _fingerprint(scope, ends) for scope in dict.fromkeys(scopes)}
    return [known[scope] for scope in scopes]


def _fingerprint(scope: Scope, ends: float) -> str:
    try:
        return _Look(ends).fingerprint(scope) if scope.folder else ""
    except (_Unknown, OSError, ValueError):
        return ""


def repository_of(folder: str) -> str:
    """Return the top folder of the repository that a folder is in; empty if it is in none."""
    import os

    try:
        place = os.path.realpath(folder) if folder else "/"
        while not os.path.lexists(os.path.join(place, ".git")):
            if place == os.path.dirname(place):
                return ""
            place = os.path.dirname(place)
    except (OSError, ValueError):
        return ""
    return place


class _Unknown(Exception):  # noqa: N818  # never leaves this module
    """What the files look like cannot be told, or not in time."""


class _Look:
    """One look at the files, with bounds on what it may take."""

    def __init__(self, ends: float) -> None:
        self._ends = ends
        self._bytes = _MOST_BYTES
        self._entries = MOST_ENTRIES

    def fingerprint(self, scope: Scope) -> str:
        import hashlib
        import os

        cwd = scope.folder
        root = os.fsdecode(self._git(cwd, "rev-parse", "--show-toplevel").removesuffix(b"\n"))
        self._refuse_filters(root)
        where = (cwd, "--", *(f":(glob){path}" for path in scope.paths)) if scope.paths else (root,)
        # What submodules look like inside, git would find out by running itself in them.
        flags = [flag for flag in STATUS if not scope.paths or flag != "--branch"]
        status = self._git(where[0], "status", *flags, "--ignore-submodules=dirty", *where[1:])
        index = self._git(where[0], "ls-files", "--full-name", "--stage", "-z", *where[1:])
        seen = hashlib.blake2b(status, digest_size=12)
        seen.update(index if scope.paths else b"")
        submodules = _submodules(index)
        for path in dict.fromkeys((*_changed(status), *submodules)):
            self._expect_time()
            content = self._content(os.path.join(root, os.fsdecode(path)))
            self._bytes = max(0, self._bytes - len(content))
            seen.update(b"%d " % len(content) + content)
        return seen.hexdigest()

    def _expect_time(self) -> None:
        if monotonic() >= self._ends:
            raise _Unknown

    def _refuse_filters(self, root: str) -> None:
        """Filters that the user set up may run; those that the repository names may not."""
        found = self._git(root, "config", *FILTERS, fine=(0, _NOTHING_FOUND))
        if _OF_THE_REPOSITORY.intersection(found.split(b"\0")[::2]):
            raise _Unknown

    def _content(self, path: str) -> bytes:
        """Return what stands for a file: its mode and content, or its size and time if too big."""
        import os
        import stat

        try:
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                return b"link " + os.fsencode(os.readlink(path))
            if stat.S_ISDIR(info.st_mode):
                # A submodule, or a repository inside this one; else its files are listed.
                if os.path.lexists(os.path.join(path, ".git")):
                    return b"repository " + b"\0".join(self._walk(path))
                return b"folder"
            if not stat.S_ISREG(info.st_mode) or info.st_size > self._bytes:
                return f"{info.st_mode} {info.st_size} {info.st_mtime_ns}".encode()
            with open(path, "rb") as file:
                return b"%o " % info.st_mode + file.read(self._bytes)
        except OSError as error:  # gone, or not ours to read: that too is a state
            return type(error).__name__.encode()

    def _walk(self, top: str) -> Iterator[bytes]:
        """Yield name, size and time of all that is below a folder, but for what git keeps."""
        import os

        folders = [top]
        while folders:
            folder = folders.pop()
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
            for entry in inside:
                self._expect_time()
                self._entries -= 1
                if self._entries < 0:
                    raise _Unknown
                if entry.name == ".git":
                    continue
                info = entry.stat(follow_symlinks=False)
                name = os.path.relpath(entry.path, top)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    yield os.fsencode(name)
                else:
                    yield os.fsencode(f"{name} {info.st_mode} {info.st_size} {info.st_mtime_ns}")

    def _git(self, cwd: str, *args: str, fine: tuple[int, ...] = (0,)) -> bytes:
        import subprocess

        environ = own_environ()
        program, path = _find_git(environ.get("PATH", ""))
        try:
            done = subprocess.run(
                [program, *HARMLESS, *args],
                cwd=cwd,
                env=environ | QUIET | {"PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=max(0.01, self._ends - monotonic()),
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            raise _Unknown from None
        if done.returncode not in fine:
            raise _Unknown
        return done.stdout


def _find_git(path: str) -> tuple[str, str]:
    """Return git, and a PATH without relative folders: those lie in the agent's project."""
    import os

    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    for folder in folders:
        program = os.path.join(folder, "git")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program, os.pathsep.join(folders)
    raise _Unknown


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


def _submodules(index: bytes) -> list[bytes]:
    """Return the paths in the index that stand for other repositories."""
    return [entry.partition(b"\t")[2] for entry in index.split(b"\0") if entry[:7] == _SUBMODULE]


def own_environ() -> dict[str, str]:
    """Return the environment without what git sets in its hooks: it names another repository."""
    import os

    return {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_REPOSITORY}
