"""Fetches a program with npm or pip, once for all test processes.

It is one package with a digest, or all that a lock in requirements/clients names with theirs: a
folder for npm, a file for pip (tools/pin_client.py writes both).

A test that waits for another process, and then fetches, must end in time (`--timeout` in the
Makefile).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_REQUIREMENTS = Path(__file__).parents[2] / "requirements"
_NEEDS = _REQUIREMENTS / "clients.txt"
LOCKS = _REQUIREMENTS / "clients"
_LOCK_FILES = ("package.json", "package-lock.json")
_OLDEST_PYTHON = 12  # of Python 3: what the programs of Python need
_PATIENCE = 240.0  # seconds for one program on a slow line
_LONGEST_WAIT = 300.0  # seconds for another process, which has the same patience
# How npm and pip say that a package has another digest than its lock.
_OTHER_FILES = ("EINTEGRITY", "DO NOT MATCH THE HASHES")


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
    lock: Path | None = None  # what pins all packages, instead of one package and its digest
    is_bare: bool = False  # npm leaves out optional packages


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
        if wanted.lock and wanted.lock.suffix == ".txt":
            download.with_venv(unpacked)
        elif wanted.lock:
            download.with_npm_ci(unpacked, wanted.lock)
        elif "==" in wanted.package:
            download.with_pip(unpacked)
        else:
            download.with_npm(unpacked)
        if not (unpacked / wanted.inside).is_symlink():  # as the Python of an environment is
            (unpacked / wanted.inside).chmod(0o755)
        shutil.rmtree(wanted.folder, ignore_errors=True)
        unpacked.rename(wanted.folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def digest_of(lock: Path) -> str:
    """Return a short name for what a lock names: another lock is another program."""
    files = [lock] if lock.suffix == ".txt" else [lock / name for name in _LOCK_FILES]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def found_pythons(environ: dict[str, str]) -> list[str]:
    """Return the Pythons of this machine that are new enough, the oldest first."""
    found = []
    installed = Path(environ.get("HOME", "/nowhere")) / ".pyenv" / "versions"
    for minor in range(_OLDEST_PYTHON, _OLDEST_PYTHON + 10):
        name = f"python3.{minor}"
        on_path = shutil.which(name, path=environ.get("PATH"))
        others = sorted(str(path) for path in installed.glob(f"*/bin/{name}"))
        candidates = [on_path, *others] if on_path else others
        found += [path for path in candidates if _is_whole_python(path)][:1]
    return found


def _is_whole_python(path: str) -> bool:
    """Return True if it runs, which a shim may not, and can make environments."""
    done = subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True, check=False)
    return done.returncode == 0


class _Download:
    """One download, with one patience for all of its commands."""

    def __init__(self, wanted: Wanted, scratch: Path, environ: dict[str, str]) -> None:
        self.wanted = wanted
        self.scratch = scratch
        self.environ = environ
        self.ends = time.monotonic() + _PATIENCE

    def with_npm(self, folder: Path) -> None:
        package = self.wanted.package
        npm = self._npm_for(package)
        self._run([*npm("pack"), "--pack-destination", str(self.scratch), package])
        with tarfile.open(self._checked("npm", "*.tgz")) as files:
            if self.wanted.inside.endswith(".js"):  # a script, with others beside it
                files.extractall(folder, filter="data")
            else:
                files.extract(self.wanted.inside, folder, filter="data")

    def with_npm_ci(self, folder: Path, lock: Path) -> None:
        """Install exactly what a lock names; npm compares the digests, and no script is run."""
        for name in _LOCK_FILES:
            shutil.copy(lock / name, folder)
        needs = json.loads((lock / "package.json").read_text())["dependencies"]
        npm = self._npm_for("@".join(next(iter(needs.items()))))
        own = ["--omit=optional"] if self.wanted.is_bare else []
        self._run([*npm("ci"), "--ignore-scripts", "--no-audit", "--no-fund", *own], folder)

    def _npm_for(self, package: str) -> Callable[[str], list[str]]:
        """Return the beginning of npm's command lines, after a small question.

        Where no registry answers, that is known soon.
        """
        npm = shutil.which("npm", path=self.environ.get("PATH"))
        if npm is None:
            raise Unavailable("npm, which fetches it, is not installed")
        own = ("--loglevel", "error", "--cache", str(self.scratch / "npm"), "--fetch-retries", "1")
        quickly = ("--fetch-timeout", "15000", "--fetch-retry-mintimeout", "1000")
        self._run([npm, "view", *own, *quickly, package, "version"])
        return lambda command: [npm, command, *own]

    def with_venv(self, folder: Path) -> None:
        """Make an environment of a newer Python than the tests', which is then moved."""
        python = next(iter(found_pythons(self.environ)), None)
        if python is None:
            raise Unavailable(
                f"it needs Python 3.{_OLDEST_PYTHON} or newer, which is not installed"
            )
        self._run([python, "-m", "venv", str(folder)])
        own = str(folder / "bin" / "python")
        pinned = (
            "--require-hashes",
            "--no-deps",
            "--only-binary",
            ":all:",
            "-r",
            str(self.wanted.lock),
        )
        self._pip("install", *pinned, python=own)
        for script in (folder / "bin").iterdir():
            is_script = script.is_file() and not script.is_symlink()
            content = script.read_bytes() if is_script else b""
            if str(folder).encode() in content:  # in its first line
                moved = str(self.wanted.folder).encode()
                script.write_bytes(content.replace(str(folder).encode(), moved))

    def with_pip(self, folder: Path) -> None:
        self._pip("download", "--no-deps", "--dest", str(self.scratch), self.wanted.package)
        wheel = self._checked("pip", "*.whl")
        self._pip("install", "--target", str(folder), "-r", str(_NEEDS), str(wheel))

    def _pip(self, command: str, *args: str, python: str = sys.executable) -> None:
        quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir")
        quickly = ("--timeout", "15", "--retries", "1")
        self._run([python, "-m", "pip", command, *quiet, *quickly, *args])

    def _run(self, line: list[str], folder: Path | None = None) -> None:
        left = max(1.0, self.ends - time.monotonic())
        into = self.wanted.folder.parent
        try:
            done = subprocess.run(
                line,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=left,
                env=self.environ,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"it was not fetched into {into} within {_PATIENCE:.0f} s") from None
        if any(mark in done.stderr for mark in _OTHER_FILES):
            raise Wrong(f"a package is not what was pinned: {done.stderr.strip()}")
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
