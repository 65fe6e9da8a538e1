"""Fetches a program with npm or pip, once for all test processes.

A test that waits for another process, and then fetches, must end in time (`--timeout` in the
Makefile).
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_NEEDS = Path(__file__).parents[2] / "requirements" / "clients.txt"
_PATIENCE = 240.0  # seconds for one program on a slow line
_LONGEST_WAIT = 300.0  # seconds for another process, which has the same patience


class Unavailable(Exception):
    """A program cannot be had here, and why: its tests are skipped."""


class Wrong(Exception):
    """Something that is not what was asked for: its tests fail."""


@dataclass(frozen=True)
class Wanted:
    """What is to be fetched."""

    package: str  # with "==" one of Python, which needs others beside it; else one of npm
    sha512: str  # of what is downloaded
    inside: str  # the program's path in it
    folder: Path  # where it is kept


def fetched(wanted: Wanted, environ: dict[str, str]) -> Path:
    """Return the folder of a program; fetch it unless it is there."""
    if (wanted.folder / wanted.inside).exists():  # it is moved there as a whole
        return wanted.folder
    try:
        with _alone(wanted.folder):
            if not (wanted.folder / wanted.inside).exists():
                _fetch(wanted, environ)
    except OSError as error:
        why = f"{wanted.folder.parent} cannot be used: {error}"
        raise Unavailable(why) from error
    return wanted.folder


@contextmanager
def _alone(folder: Path):
    """Keep other test processes from fetching the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + _LONGEST_WAIT
    with open(f"{folder}.lock", "a+") as lock:
        while not _locked(lock):
            if time.monotonic() > ends:
                raise Unavailable(f"another process has held {lock.name} for too long")
            time.sleep(0.2)
        yield


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _fetch(wanted: Wanted, environ: dict[str, str]) -> None:
    """Fetch it into a folder of this attempt: what an ended one left may still be written to."""
    cache, name = wanted.folder.parent, f"{wanted.folder.name}.part"
    for old in cache.glob(f"{name}*"):
        shutil.rmtree(old, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=cache))
    unpacked = scratch / "unpacked"
    unpacked.mkdir()
    download = _Download(wanted, scratch, environ)
    try:
        if "==" in wanted.package:
            download.with_pip(unpacked)
        else:
            download.with_npm(unpacked)
        (unpacked / wanted.inside).chmod(0o755)
        shutil.rmtree(wanted.folder, ignore_errors=True)
        unpacked.rename(wanted.folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Download:
    """One download, with one patience for all of its commands."""

    def __init__(self, wanted: Wanted, scratch: Path, environ: dict[str, str]) -> None:
        self.wanted = wanted
        self.scratch = scratch
        self.environ = environ
        self.ends = time.monotonic() + _PATIENCE

    def with_npm(self, folder: Path) -> None:
        npm = shutil.which("npm", path=self.environ.get("PATH"))
        if npm is None:
            raise Unavailable("npm, which fetches it, is not installed")
        own = ("--loglevel", "error", "--cache", str(self.scratch / "npm"), "--fetch-retries", "1")
        # A small question first: where nobody answers, it is known soon.
        quickly = ("--fetch-timeout", "15000", "--fetch-retry-mintimeout", "1000")
        self._run([npm, "view", *own, *quickly, self.wanted.package, "version"])
        self._run([npm, "pack", *own, "--pack-destination", str(self.scratch), self.wanted.package])
        with tarfile.open(self._checked("npm", "*.tgz")) as files:
            files.extract(self.wanted.inside, folder, filter="data")

    def with_pip(self, folder: Path) -> None:
        self._pip("download", "--no-deps", "--dest", str(self.scratch), self.wanted.package)
        wheel = self._checked("pip", "*.whl")
        self._pip("install", "--target", str(folder), "-r", str(_NEEDS), str(wheel))

    def _pip(self, command: str, *args: str) -> None:
        quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir")
        quickly = ("--timeout", "15", "--retries", "1")
        self._run([sys.executable, "-m", "pip", command, *quiet, *quickly, *args])

    def _run(self, line: list[str]) -> None:
        left = max(1.0, self.ends - time.monotonic())
        into = self.wanted.folder.parent
        try:
            done = subprocess.run(
                line,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=left,
                env=self.environ,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"it was not fetched into {into} within {_PATIENCE:.0f} s") from None
        if done.returncode:
            raise Unavailable(f"it cannot be fetched into {into}: {done.stderr.strip()}")

    def _checked(self, who: str, pattern: str) -> Path:
        """Return the file that came, if it is the one that was pinned; another is no skip."""
        found = next(iter(self.scratch.glob(pattern)), None)
        if found is None:
            raise Unavailable(f"{who} delivered no file")
        with found.open("rb") as file:
            digest = hashlib.file_digest(file, "sha512").hexdigest()
        if digest != self.wanted.sha512:
            raise Wrong(f"{found.name} is not what was pinned: its sha512 is {digest}")
        return found
