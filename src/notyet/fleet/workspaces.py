"""Where a worker's tasks have their files: a clone for each, a folder of the machine, or ssh://.

Each git address has a mirror here, so that a clone costs a fetch. The folder is bounded: clones of
tasks that ended, and mirrors that were not used for long, are deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from notyet.config.compiled import remove_record
from notyet.config.files import toml_files
from notyet.config.find import state_folder
from notyet.config.records import has_record
from notyet.config.trust import candidate, grant
from notyet.core.remote import is_remote
from notyet.core.text import shortened
from notyet.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SCP = re.compile(r"[\w.-]+@[\w.-]+:(?!//).+")  # git@host:path
_SCHEMES = ("https://", "http://", "git://", "file://", "git+ssh://")
_PASSWORD = re.compile(r"://[^/@\s]*@")
_TIMEOUT = 900.0  # seconds for one command of git
_MIRRORS, _CLONES = "mirrors", "clones"


def is_git_address(place: str) -> bool:
    """Return True for what `git clone` takes, with an optional #branch."""
    return place.startswith(_SCHEMES) or bool(_SCP.fullmatch(place))


def is_trusted(place: str, patterns: Iterable[str]) -> bool:
    """Return True if a pattern matches an address, with or without its branch and its user.

    Not if the address climbs out of the folder that the pattern names.
    """
    address = place.partition("#")[0]
    if ".." in re.split(r"[/:]", address.lower().replace("%2e", ".").replace("%2f", "/")):
        return False
    tried = (place, address, without_password(place), without_password(address))
    return any(fnmatchcase(one, pattern) for one in tried for pattern in patterns)


def without_password(text: str) -> str:
    """Return a text whose addresses have no user and no password."""
    return _PASSWORD.sub("://", text)


class Workspaces:
    """The folder of a worker, `keep` clones of ended tasks and as many mirrors in it."""

    def __init__(self, folder: str = "", keep: int = 20) -> None:
        state = state_folder(os.environ)
        self.folder = os.path.abspath(folder or os.path.join(state, "fleet"))
        self._keep = keep

    def prepare(self, place: str, name: str) -> str:
        """Return the folder of a task: a new clone, or one that is here. Raises Refused."""
        if not place or is_remote(place):
            return self._made(_CLONES, name)
        if is_git_address(place):
            return self._cloned(place, name)
        if not os.path.isdir(place):
            raise Refused(f"{place} is not a folder of this worker, nor a git address")
        return os.path.abspath(place)

    def tidy(self, ended: Callable[[list[str]], set[str]]) -> None:
        """Delete the oldest clones whose tasks have ended, and mirrors, beyond `keep`."""
        names = self._by_age(_CLONES)
        over = ended([name.partition(".")[0] for name in names])
        old = [name for name in names if name.partition(".")[0] in over]
        for name in old[: -self._keep or None]:
            self._forget(os.path.join(self.folder, _CLONES, name))
        mirrors = [name for name in self._by_age(_MIRRORS) if name.endswith(".git")]
        for name in mirrors[: -self._keep or None]:
            self._forget_mirror(os.path.join(self.folder, _MIRRORS, name))

    def trust(self, cwd: str, *, is_clone: bool = True) -> None:
        """Trust the gates of a clone: the worker's operator named its address.

        Those of a folder only once: agents that worked there may have changed them (N5).
        """
        state = state_folder(os.environ)
        for file in toml_files(cwd, os.environ, lambda place: has_record(state, place)):
            is_known = not is_clone and has_record(state, file.place)
            if not file.is_users and not file.is_gone and not is_known:
                grant(candidate(file, os.environ), os.environ)

    def _cloned(self, address: str, name: str) -> str:
        url, _, branch = address.removeprefix("git+").partition("#")
        if branch.startswith("-"):  # an option of git
            raise Refused(f"{branch!r} is not the name of a branch; write for example #main")
        clone = os.path.join(self._made(_CLONES), name)
        shutil.rmtree(clone, ignore_errors=True)  # of a worker that died while it cloned
        with self._mirror(url) as mirror:
            _git("clone", "--quiet", "--no-checkout", "--", mirror, clone)
        _git("remote", "set-url", "origin", url, cwd=clone)
        # Not the HEAD of the mirror: a fetch does not change it.
        if branch := branch or _default_branch(url):
            _git("checkout", "--quiet", branch, "--", cwd=clone)
        return clone

    @contextmanager
    def _mirror(self, url: str) -> Iterator[str]:
        """Bring the mirror of an address up to date; one process at a time."""
        digest = hashlib.blake2b(url.encode(), digest_size=10).hexdigest()
        path = os.path.join(self._made(_MIRRORS), f"{digest}.git")
        with _locked(path):
            if not _is_fetched(path):
                new = f"{path}.new"  # so that a mirror is whole or not there
                shutil.rmtree(new, ignore_errors=True)
                _git("clone", "--quiet", "--mirror", "--", url, new)
                shutil.rmtree(path, ignore_errors=True)
                os.rename(new, path)
            os.utime(path)
            yield path

    def _made(self, *names: str) -> str:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)  # the mode is of the last folder only
        path = os.path.join(self.folder, *names)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def _by_age(self, kind: str) -> list[str]:
        folder = self._made(kind)
        found = {name: os.stat(os.path.join(folder, name)).st_mtime for name in os.listdir(folder)}
        return sorted(found, key=lambda name: found[name])

    @staticmethod
    def _forget_mirror(path: str) -> None:
        with suppress(BlockingIOError), _locked(path, fcntl.LOCK_NB):  # else it is in use
            shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def _forget(path: str) -> None:
        state = state_folder(os.environ)
        for file in toml_files(path, os.environ, lambda place: has_record(state, place)):
            if file.path.startswith(path + os.sep):
                remove_record(state, file.path)
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(path: str, how: int = 0) -> Iterator[None]:
    with open(f"{path}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | how)
        yield


def _is_fetched(mirror: str) -> bool:
    """Bring a mirror up to date; False if there is none, or a killed fetch left locks in it."""
    if not os.path.isdir(mirror):
        return False
    try:
        _git("fetch", "--quiet", "--prune", "origin", cwd=mirror)
    except Refused:
        return False
    return True


def _default_branch(url: str) -> str:
    """Return the branch that a repository has checked out; empty if it has no commit."""
    said = _git("ls-remote", "--symref", "--", url, "HEAD")
    found = re.match(r"ref: refs/heads/(\S+)\tHEAD", said)
    return found[1] if found else ""


def _git(*args: str, cwd: str | None = None) -> str:
    """Run git without questions; return what it prints. Raises Refused."""
    environ = os.environ | {
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",  # the words of `_fault`
        "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
    }
    command = ["git", *args]
    try:
        done = subprocess.run(  # noqa: S603  # a list, without a shell
            command,
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"git {args[0]} did not finish in {_TIMEOUT / 60:g} min") from None
    except OSError as error:
        raise Refused(f"git cannot be started: {error.strerror}; install git") from None
    if done.returncode:
        raise Refused(f"git {args[0]} failed: {_fault(done.stderr) or f'exit {done.returncode}'}")
    return done.stdout


def _fault(said: str) -> str:
    """Return the line of git that says what is wrong, without passwords."""
    lines = [line for line in said.splitlines() if line.strip()]
    faults = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines[-1:]
    found = faults[0].partition(": ")[2] if faults and ": " in faults[0] else "".join(faults)
    return shortened(without_password(found), 300)
