"""The look at the files that a stop costs, in multiples of `git status` alone."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from bench.measure import Effort, Row, interleaved
from notyet.workspace.look import Scope, fingerprints

SIZES = {100: 40, 10_000: 15, 100_000: 5}  # files, and how often they are looked at
STATUS = ["git", "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all"]
AUTHOR = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
CHANGED = 100
IN_A_FOLDER = 100


def measure(effort: Effort) -> list[Row]:
    """Look at trees of each size in turns with git, first unchanged, then changed."""
    rows = []
    for files, rounds in SIZES.items():
        with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
            _grow(folder, files)
            rows += _rows(folder, f"{files:,} files", rounds, _goal(files))
            for number in range(CHANGED):
                _file(folder, number * (files // CHANGED)).write_text("changed\n")
            rows += _rows(folder, f"{files:,} files, {CHANGED} changed", rounds, _goal(files))
    return rows


def _rows(folder: str, what: str, rounds: int, goal: float) -> list[Row]:
    everything = [Scope(folder)]
    some = [Scope(folder, (f"{number}/**",)) for number in range(5)]
    assert all(fingerprints([*everything, *some])), "what is not seen is quick"
    figures = interleaved(
        rounds,
        1,
        floor=lambda: subprocess.run(STATUS, cwd=folder, check=True, stdout=subprocess.DEVNULL),
        ours=lambda: fingerprints(everything),
        five=lambda: fingerprints(some),
    )
    floor = figures["floor"]
    return [
        Row(what, "git status", floor, figures["ours"], goal),
        Row(f"{what}, 5 paths", "git status", floor, figures["five"], float("inf")),
    ]


def _goal(files: int) -> float:
    return (
        2.0 if files < IN_A_FOLDER * IN_A_FOLDER else 1.5
    )  # Two starts of git, or one and little more


def _grow(folder: str, files: int) -> None:
    for number in range(files):
        file = _file(folder, number)
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{number}\n")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run(["git", *AUTHOR, *words], cwd=folder, check=True)
    # As on any day: not just written, or git looks at the content of all of them.
    subprocess.run(["git", "update-index", "--really-refresh"], cwd=folder, check=True)


def _file(folder: str, number: int) -> Path:
    return Path(folder, str(number // IN_A_FOLDER), f"{number}.txt")
