"""Large files of gates: what checking and trusting them costs, in whole processes.

What a stop costs with them is a curve of `bench/growth.py`.
"""

from __future__ import annotations

import sys
import tempfile
from typing import TYPE_CHECKING

from bench.homes import Home
from bench.measure import Curve, Effort, Point, Result, interleaved
from bench.processes import starting
from bench.progress import say

if TYPE_CHECKING:
    from pathlib import Path

GATES = (10, 100, 1_000, 10_000)
COMMANDS = {
    "notyet validate": ("validate",),
    "notyet trust": ("trust", "--yes"),
}


def measure(effort: Effort) -> list[Result]:
    """Run each command in projects of different sizes, in turns."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        home = Home(folder)
        places = {count: _project(home, count) for count in effort.sizes(GATES)}
        return [_curve(home, places, name, effort) for name in COMMANDS]


def _project(home: Home, count: int) -> Path:
    gates = (
        f'[gates.g{n}]\nrun = "pytest tests/part{n}"\npaths = ["src/part{n}/**"]\ntimeout = "10m"\n'
        for n in range(count)
    )
    return home.project(f"gates{count}", "".join(gates))


def _curve(home: Home, places: dict[int, Path], name: str, effort: Effort) -> Curve:
    say(f"{name}, with up to {max(places):,} gates")
    argv = [sys.executable, "-m", "notyet", *COMMANDS[name]]
    subjects = {
        str(count): starting(argv, cwd=str(place), environ=home.environ)
        for count, place in places.items()
    }
    figures = interleaved(effort.rounds(3), 1, **subjects)
    points = tuple(Point(count, figures[str(count)]) for count in places)
    return Curve(f"{name}, by gates in the file", "gates", points, "linear")
