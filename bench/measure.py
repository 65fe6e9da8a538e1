"""Interleaved measuring: noise of the machine hits the floor and our figure alike.

An area of the benchmark is a module with `measure(effort)`, which returns results: a Row (our figure
beside a floor, what counts is the ratio), an Amount (a figure that stands for itself), a Curve (how a
figure grows) and what is Missing. What the areas are is in `bench/areas.py`, what was promised in `bench/goals.py`.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

from bench.goals import GOALS, UNJUDGED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence


class Effort(NamedTuple):
    """How much to measure: `make bench`, `make bench-quick`, or next to nothing for a test."""

    name: str
    share: float  # of the rounds
    points: int  # of a curve, from its small end

    def rounds(self, full: int) -> int:
        """Return how many rounds to measure where a full run takes so many."""
        return max(2, round(full * self.share))

    def sizes(self, full: Sequence[int]) -> list[int]:
        """Return the sizes to measure of those of a full run, the small ones first."""
        return sorted(full)[: self.points]

    def largest(self, full: Sequence[int]) -> int:
        """Return the largest size to measure of those of a full run."""
        return self.sizes(full)[-1]


FULL = Effort("full", 1.0, 99)
QUICK = Effort("quick", 0.2, 3)
TINY = Effort("tiny", 0.0, 2)


class Figure(float):
    """A median in microseconds, with the quartiles beside it; plain as soon as one calculates with it."""

    low: float
    high: float
    rounds: int

    def __new__(cls, median: float, low: float, high: float, rounds: int = 1) -> Figure:
        figure = super().__new__(cls, median)
        figure.low, figure.high, figure.rounds = low, high, rounds
        return figure

    @classmethod
    def of(cls, taken: Sequence[float]) -> Figure:
        """Return the median of what was taken, in the same unit."""
        if len(taken) < 2:
            return cls(taken[0], taken[0], taken[0])
        low, median, high = statistics.quantiles(taken, n=4, method="inclusive")
        return cls(median, low, high, len(taken))

    def over(self, parts: float) -> Figure:
        """Return the figure of one of so many parts."""
        return Figure(self / parts, self.low / parts, self.high / parts, self.rounds)


def spread_of(figure: float) -> float | None:
    """Return how far apart the quartiles are, as a part of the median; None for a plain number."""
    if not isinstance(figure, Figure) or not figure:
        return None
    return (figure.high - figure.low) / figure


class Row(NamedTuple):
    """Our figure beside a floor of the same run: the ratio is what counts."""

    what: str
    floor: str  # what the floor is
    floor_us: float
    ours_us: float
    goal: float | str = (
        UNJUDGED  # for the ratio: a number of our own, or the key of what was promised
    )
    at_least: bool = False  # the goal is a minimum: how many times cheaper than the floor
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.floor_us / self.ours_us if self.at_least else self.ours_us / self.floor_us

    @property
    def reached(self) -> bool | None:
        return _is_within(self.ratio, limit_of(self.goal), at_least=self.at_least)


class Amount(NamedTuple):
    """A figure that stands for itself: milliseconds, megabytes, processes left over."""

    what: str
    figure: float  # a Figure where it was measured more than once
    unit: str
    goal: float | str = UNJUDGED  # as a Row's
    at_least: bool = False
    note: str = ""

    @property
    def reached(self) -> bool | None:
        return _is_within(self.figure, limit_of(self.goal), at_least=self.at_least)


class Point(NamedTuple):
    """One size, what it took, and what the floor took at that size (if there is one)."""

    size: float
    us: float
    floor_us: float | None = None


class Curve(NamedTuple):
    """How a figure grows with a size: `bench/fit.py` says its shape in words."""

    what: str
    axis: str  # what the sizes count: "gates", "MB", "files"
    points: tuple[Point, ...]
    goal: str = "linear"  # the worst shape that is all right ("flat", "linear"), or a promised key
    floor: str = ""  # what the floor at each size is; "" without one
    note: str = ""


class Missing(NamedTuple):
    """What cannot be measured here, and why."""

    what: str
    why: str


Result = Row | Amount | Curve | Missing


def limit_of(goal: float | str) -> float:
    """Return the number of a goal."""
    return GOALS[goal].limit if isinstance(goal, str) else goal


def _is_within(figure: float, limit: float, *, at_least: bool) -> bool | None:
    if limit == UNJUDGED:
        return None
    return figure >= limit if at_least else figure <= limit


async def interleaved_async(
    rounds: int, times: int, **subjects: Callable[[], Awaitable[object]]
) -> dict[str, Figure]:
    """Return each subject's median microseconds, measured in turns."""
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            started = time.perf_counter()
            for _ in range(times):
                await subject()
            taken[name].append((time.perf_counter() - started) / times * 1e6)
    return {name: Figure.of(each) for name, each in taken.items()}


def interleaved(rounds: int, times: int, **subjects: Callable[[], object]) -> dict[str, Figure]:
    """Return each subject's median microseconds, measured in turns."""
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            started = time.perf_counter()
            for _ in range(times):
                subject()
            taken[name].append((time.perf_counter() - started) / times * 1e6)
    return {name: Figure.of(each) for name, each in taken.items()}
