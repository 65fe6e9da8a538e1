"""The real programs, fetched by name and version and kept in a cache; never part of the project.

They are some hundred megabytes each, so they are fetched once:
`${XDG_CACHE_HOME:-~/.cache}/notyet-clients`. A variable may name a program that is there already.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# As it was when the tests began: each test has a home of its own.
_ENVIRON = dict(os.environ)
_HERE = Path(__file__).parent
_PATIENCE = 400  # seconds for one download on a slow line


class Unavailable(Exception):
    """A program cannot be had here, and why."""


@dataclass(frozen=True)
class Program:
    """One version of a program, and where it comes from."""

    name: str
    version: str
    package: str
    sha512: str  # of what is downloaded
    inside: str  # the program's path in it
    variable: str  # of the environment, which may name one that is there

    @property
    def is_python(self) -> bool:
        """Whether it comes as a package of Python, which needs others beside it."""
        return "==" in self.package

    @property
    def folder(self) -> Path:
        """Where it is kept; packages of Python fit one version of it."""
        python = f"-py{sys.version_info[0]}.{sys.version_info[1]}" if self.is_python else ""
        return _cache() / f"{self.name}-{self.version}{python}"


SDK = "claude-agent-sdk==0.2.182"  # it carries the whole program
CLAUDE = Program(
    "claude",
    "2.1.325",
    SDK,
    "574d4617c85140969d00b7ff10b451b1aa3e1a150707a3f455e7ecaf62734e04"
    "9ecfbdfdb6262f88a5f91b3aaa26ab3970ff8011ed5b34a83c2b11e419a68c4f",
    "claude_agent_sdk/_bundled/claude",
    "CLAUDE_BIN",
)
CLAUDE_OLD = Program(
    "claude",
    "2.1.197",
    "@anthropic-ai/claude-code-linux-x64@2.1.197",
    "ac894a9ab63440cc8780f457fcc616363d37f6f6f2a480af23d8d57b7aecf57c"
    "b64673649724a3c8fc6a87ad9069dce7ce87ed10edb7b98435b4578f710fff6e",
    "package/claude",
    "CLAUDE_OLD_BIN",
)
CODEX = Program(
    "codex",
    "0.166.0",
    "@openai/codex@0.166.0-linux-x64",
    "0b10e6dfe0f57296c625e1eb77320da06fb7c27f4156770fe2aa5969a3589317"
    "bc88fb5124e6320899e73e8563591201bc8f6f3ca6d1a227ec312039c43694a7",
    "package/vendor/x86_64-unknown-linux-musl/bin/codex",
    "CODEX_BIN",
)


def path_of(program: Program) -> Path | str:
    """Return where a program is; or, as text, why it cannot be had."""
    given = _ENVIRON.get(program.variable)
    if given:
        return Path(given).absolute()
    try:
        return folder_of(program) / program.inside
    except Unavailable as why:
        return f"{program.name} {program.version}: {why}"


def folder_of(program: Program) -> Path:
    """Return the folder with what was downloaded, after it was."""
    found = _found(program)
    if isinstance(found, Unavailable):
        raise found
    return found


@cache  # also that it cannot be had: every test would try again
def _found(program: Program) -> Path | Unavailable:
    try:
        return _kept(program)
    except Unavailable as why:
        return why


def _kept(program: Program) -> Path:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Unavailable("only its Linux x86-64 version is pinned")
    with _alone(program.folder):
        if not (program.folder / program.inside).exists():
            _fetch(program)
    return program.folder


def _cache() -> Path:
    home = _ENVIRON.get("XDG_CACHE_HOME") or os.path.join(_ENVIRON.get("HOME", "/tmp"), ".cache")  # noqa: S108  # who has no home
    return Path(home) / "notyet-clients"


@contextmanager
def _alone(folder: Path):
    """Keep other test processes from fetching the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(program: Program) -> None:
    scratch = Path(f"{program.folder}.part")
    shutil.rmtree(scratch, ignore_errors=True)
    unpacked = scratch / "unpacked"
    unpacked.mkdir(parents=True)
    try:
        if program.is_python:
            _pip("download", "--no-deps", "--dest", str(scratch), program.package)
            wheel = _checked(program, scratch, "*.whl")
            needs = _HERE.parent.parent / "requirements" / "clients.txt"
            _pip("install", "--target", str(unpacked), "-r", str(needs), str(wheel))
        else:
            _npm_pack(program.package, scratch)
            _unpack(program, _checked(program, scratch, "*.tgz"), unpacked)
        (unpacked / program.inside).chmod(0o755)
        shutil.rmtree(program.folder, ignore_errors=True)
        unpacked.rename(program.folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _npm_pack(package: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm, which fetches it, is not installed")
    place = ("--pack-destination", str(folder), "--cache", str(folder / "npm"))
    _run([npm, "pack", "--loglevel", "error", *place, package])


def _pip(command: str, *args: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir")
    _run([sys.executable, "-m", "pip", command, *quiet, *args])


def _run(line: list[str]) -> None:
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=_PATIENCE, env=_ENVIRON)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"no download within {_PATIENCE} s: {' '.join(line)}") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no word why"]
        said = next((line for line in lines if "reason: " in line), lines[-1])
        raise Unavailable(f"it cannot be downloaded: {said.rpartition('reason: ')[2]}")


def _checked(program: Program, folder: Path, pattern: str) -> Path:
    """Return the file that came, if it is the one that was pinned. Another is no reason to skip."""
    (found,) = folder.glob(pattern)
    with found.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").hexdigest()
    assert digest == program.sha512, f"{found.name} is not what was pinned: {digest}"
    return found


def _unpack(program: Program, archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as files:
        files.extract(program.inside, folder, filter="data")
