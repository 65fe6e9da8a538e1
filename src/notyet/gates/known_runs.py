"""Runs of checks that are known: which failures a command had on which files.

Every run that failures are compared with is kept, so that the end of one session is often the start
of the next one, for free. A run counts only for the same files, command and environment, and only
if no file that git ignores changed between the two: dependencies are among those.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from notyet.config.find import state_folder
from notyet.core.gate import digest_of
from notyet.gates.failures.run import Run
from notyet.gates.shared_files import change_since, names_of
from notyet.git.run import Unknown
from notyet.ledger.passes import here

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.git.snapshot import Snapshot

_FORM = 3  # raise it when failures are identified in another way
_OLDEST = 2 * 86_400.0  # seconds; what is installed outside of the project changes unseen
_MOST_BYTES = 4 * 1024 * 1024  # of one run
_MOST_OUTPUT = 400_000  # characters
_MOST_FILES = 500


@dataclass(frozen=True, kw_only=True)
class KnownRun:
    """How a check ended on some files; `run` is None if its failures could not be identified."""

    code: int
    passed: bool
    output: str
    run: Run | None
    is_own: bool = True  # a run on the files of the same start


class KnownRuns:
    """The known runs of one command in this environment."""

    def __init__(self, command: Mapping[str, Any], reports: Sequence[str]) -> None:
        state = state_folder(os.environ)
        self._folder = os.path.join(state, "runs") if state else ""
        self._reports = reports  # globs, relative to the root
        about = [_FORM, dict(command), list(reports), _programs(command)]
        self._command = json.dumps(about, sort_keys=True)

    def find(self, start: Snapshot, argv: Sequence[str]) -> KnownRun | None:
        """Return the run on the files of a snapshot; None if there is none that counts.

        `argv` is the command line, with the files that it was about.
        """
        try:
            with open(self._path(start, argv), "rb") as file:
                told = json.loads(file.read(_MOST_BYTES + 1))
            # A run on this very snapshot was made when the ignored files were as they had been.
            if told["start"] != start.objects and not self._counts(told, start):
                return None
            return KnownRun(
                is_own=told["start"] == start.objects,
                code=told["code"],
                passed=told["passed"],
                output=told["output"],
                run=None if told["run"] is None else _run(told["run"]),
            )
        except (OSError, ValueError, KeyError, TypeError, Unknown):
            return None

    def _counts(self, told: Mapping[str, Any], start: Snapshot) -> bool:
        return (
            time.time() - told["at"] <= _OLDEST
            and told["ignored"] == names_of(start, self._reports)
            # A run of this session or of one beside it may have used files that changed after the
            # start.
            and not change_since(start, min(told["at"], start.at), self._reports)
        )

    def remember(self, snapshot: Snapshot, argv: Sequence[str], found: KnownRun, at: float) -> None:
        """Keep a run on the files of a snapshot; a run that cannot be kept is run again.

        The ignored files that it used are those of the time `at`.
        """
        if not self._folder or (not found.passed and found.run is None):
            return
        try:
            ignored = names_of(snapshot, self._reports)
        except Unknown:
            return
        told = {
            "at": at,
            "start": snapshot.objects,
            "ignored": ignored,
            "code": found.code,
            "passed": found.passed,
            "output": found.output[-_MOST_OUTPUT:],
            "run": None if found.run is None else _plain(found.run),
        }
        content = json.dumps(told).encode()
        if len(content) > _MOST_BYTES:
            return
        path = self._path(snapshot, argv)
        new = f"{path}.{secrets.token_hex(8)}"
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
            os.replace(new, path)
            self._prune()
        except OSError:
            if os.path.exists(new):
                os.unlink(new)

    def _path(self, snapshot: Snapshot, argv: Sequence[str]) -> str:
        key = f"{self._command}\n{json.dumps(argv)}\n{here(snapshot.tree)}\n{snapshot.root}"
        return os.path.join(self._folder, f"{digest_of(key)}.json")

    def _prune(self) -> None:
        """Delete runs that are too old, and the oldest of too many."""
        with os.scandir(self._folder) as entries:
            found = sorted((entry.stat().st_mtime, entry.path) for entry in entries)
        surplus = max(0, len(found) - _MOST_FILES)
        for number, (at, path) in enumerate(found):
            if number < surplus or at < time.time() - _OLDEST:
                os.unlink(path)


def _programs(command: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Return the programs that a command line names, so that others of their name are others."""
    try:
        words = shlex.split(command.get("script", "")) or list(command.get("argv", ()))
    except ValueError:  # an unclosed quote
        words = command.get("script", "").split()
    found = []
    for word in dict.fromkeys(words):
        path = shutil.which(word) if word else None
        if path is not None:
            about = os.stat(path)
            found.append((os.path.realpath(path), about.st_mtime_ns, about.st_size))
    return found


def _plain(run: Run) -> dict[str, Any]:
    return vars(run) | {
        "messages": dict(run.messages),
        "details": dict(run.details),
        "load_errors": sorted(run.load_errors),
        "tests": None if run.tests is None else sorted(run.tests),
    }


def _run(told: dict[str, Any]) -> Run:
    tests = told["tests"]
    return Run(
        **told
        | {
            "failures": Counter(told["failures"]),
            "other_errors": Counter(told["other_errors"]),
            "load_errors": frozenset(told["load_errors"]),
            "tests": None if tests is None else frozenset(tests),
        }
    )
