"""Interleaved measuring: noise of the machine hits the floor and our figure alike."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Row(NamedTuple):
    """One line of a table: `ratio` is what counts, `goal` what we want it to be at most."""

    what: str
    floor: str
    floor_us: float
    ours_us: float
    goal: float
    at_least: bool = False  # the goal is a minimum: how many times cheaper than the floor

    @property
    def ratio(self) -> float:
        return self.floor_us / self.ours_us if self.at_least else self.ours_us / self.floor_us

    @property
    def reached(self) -> bool:
        return self.ratio >= self.goal if self.at_least else self.ratio <= self.goal


async def interleaved_async(
    rounds: int, times: int, **subjects: Callable[[], Awaitable[object]]
) -> dict[str, float]:
    """Return each subject's median microseconds, measured in turns."""
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            started = time.perf_counter()
            for _ in range(times):
                await subject()
            taken[name].append((time.perf_counter() - started) / times * 1e6)
    return {name: statistics.median(figures) for name, figures in taken.items()}


def interleaved(rounds: int, times: int, **subjects: Callable[[], object]) -> dict[str, float]:
    """Return each subject's median microseconds, measured in turns."""
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            started = time.perf_counter()
            for _ in range(times):
                subject()
            taken[name].append((time.perf_counter() - started) / times * 1e6)
    return {name: statistics.median(figures) for name, figures in taken.items()}
