"""A look at the files, as a stop and a start take it, in multiples of `git status` alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Curve, Effort, Figure, Point, Result, Row, interleaved
from bench.processes import starting
from bench.progress import say
from bench.trees import STATUS, grow, path_of
from notyet.git.fingerprint import FileSet, fingerprints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = {100: 40, 1_000: 30, 10_000: 15, 100_000: 5}  # files, and how often they are looked at
ENOUGH = 10_000  # files from which on the start of a process is small beside the look
CHANGED = 100
GOAL, GOAL_OF_FEW = 1.3, 1.5


def measure(effort: Effort) -> list[Result]:
    """Look at trees of each size in turns with git: unchanged, changed, and at a part of them."""
    rows: list[Result] = []
    points = []
    for files in effort.sizes(tuple(ROUNDS)):
        say(f"a look at {files:,} files")
        rounds = effort.rounds(ROUNDS[files])
        goal = GOAL if files >= ENOUGH else GOAL_OF_FEW
        with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
            grow(folder, files)
            figures = _look(folder, files, rounds)
            points.append(Point(files, figures["ours"], figures["floor"]))
            rows += _rows(f"{files:,} files", figures, goal)
            for number in range(0, files, files // CHANGED):
                Path(folder, path_of(number)).write_text("changed\n")
            rows += _rows(f"{files:,} files, {CHANGED} changed", _look(folder, files, rounds), goal)
    what = "a look at unchanged files"
    return [*rows, Curve(what, "files", tuple(points), "linear", "git status")]


def _look(folder: str, files: int, rounds: int) -> dict[str, Figure]:
    everything = [FileSet(folder)]
    some = [FileSet(folder, (f"folder{number}/**", "folder0/**")) for number in range(5)]
    assert all(fingerprints([*everything, *some])), "what is not seen is quick"
    subjects: dict[str, Callable[[], object]] = {
        "floor": starting(STATUS, cwd=folder, environ=os.environ),
        "ours": lambda: fingerprints(everything),
    }
    if files <= ENOUGH:
        subjects["some"] = lambda: fingerprints(some)
    return interleaved(rounds, 1, **subjects)


def _rows(what: str, figures: dict[str, Figure], goal: float) -> Iterator[Row]:
    floor = figures["floor"]
    yield Row(what, "git status", floor, figures["ours"], goal)
    if "some" in figures:
        yield Row(f"{what}, five gates with `paths`", "git status", floor, figures["some"])
