"""The snapshot of a session's start, beside `git status`: the price of gates that compare with it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from itertools import count
from typing import TYPE_CHECKING

from bench.goals import UNJUDGED
from bench.measure import Effort, Result, Row, interleaved
from bench.progress import say
from bench.trees import STATUS, grow
from notyet.git.snapshot_store import take_first

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILES = (1_000, 10_000)
_UNTRACKED = 100
_ROUNDS = 15


def measure(effort: Effort) -> list[Result]:
    """Take snapshots and ask for the status, in turns."""
    files = effort.largest(_FILES)
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        root, state = os.path.join(folder, "root"), os.path.join(folder, "state")
        os.mkdir(root)
        say(f"a repository of {files:,} files")
        grow(root, files)
        sessions = count()
        rows = [
            _row(root, state, effort, sessions, f"snapshot of {files:,} tracked files"),
        ]
        for number in range(_UNTRACKED):
            with open(os.path.join(root, f"new{number}.txt"), "w", encoding="utf-8") as file:
                file.write(f"untracked {number}\n")
        what = f"for scale: the same, and {_UNTRACKED} new files, which are stored"
        return [*rows, _row(root, state, effort, sessions, what)._replace(goal=UNJUDGED)]


def _row(root: str, state: str, effort: Effort, sessions: Iterator[int], what: str) -> Row:
    def status() -> None:
        subprocess.run(STATUS, cwd=root, stdout=subprocess.DEVNULL, check=True)

    def snapshot() -> None:
        take_first(
            state,
            host="bench",
            session_id=f"s{next(sessions)}",
            agent_id="",
            root=root,
            patience=60.0,
        )

    snapshot()  # the first one writes objects that later ones find
    taken = interleaved(effort.rounds(_ROUNDS), 1, status=status, snapshot=snapshot)
    return Row(what, "one git status", taken["status"], taken["snapshot"], "snapshot.status")
