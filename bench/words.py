"""Results in words: times, ratios, goals, verdicts, shapes; the same on a terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.fit import Shape, is_within, shape_of
from bench.goals import GOALS, UNJUDGED
from bench.measure import Amount, Curve, Missing, Row, limit_of, spread_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.measure import Result

REACHED, MISSED = "reached", "MISSED"
UNSTEADY = 0.15  # of its median: a floor whose quartiles are further apart says little
_UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))


def time_of(us: float) -> str:
    """Return a time with three digits, in the unit that suits it."""
    for unit, size in _UNITS:
        if us >= size:
            return f"{number(us / size)} {unit}"
    return f"{number(us * 1e3)} ns"


def number(value: float) -> str:
    """Return a number with three digits, or all of them before the point."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio_of(value: float) -> str:
    """Return a ratio: two digits behind the point as long as they mean something."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:.2f}x"


def spread_words(figure: float) -> str:
    """Return how far apart the quartiles are, in percent of the median."""
    spread = spread_of(figure)
    return "" if spread is None else f"{spread:.0%}"


def figure_of(result: Row | Amount) -> str:
    """Return our figure."""
    if isinstance(result, Row):
        return time_of(result.ours_us)
    return f"{number(result.figure)} {result.unit}".rstrip()


def goal_of(result: Row | Amount) -> str:
    """Return the goal, or "" where there is none."""
    limit = limit_of(result.goal)
    if limit == UNJUDGED:
        return ""
    sign = ">=" if result.at_least else "<="
    if isinstance(result, Row):
        return f"{sign} {limit:,g}x"
    return f"{sign} {limit:,g} {result.unit}".rstrip()


def verdict_of(result: Result) -> str:
    """Return whether the goal was reached, or "" where there is none."""
    if isinstance(result, Missing):
        return ""
    if isinstance(result, Curve):
        reached: bool | None = is_within(curve_shape(result), wanted_shape(result))
    else:
        reached = result.reached
    return "" if reached is None else REACHED if reached else MISSED


def wanted_shape(curve: Curve) -> str:
    """Return the worst shape that is all right for a curve."""
    return GOALS[curve.goal].shape if curve.goal in GOALS else curve.goal


def curve_shape(curve: Curve) -> Shape:
    """Return how our figure grows."""
    return shape_of([point.size for point in curve.points], [point.us for point in curve.points])


def shape_words(curve: Curve) -> str:
    """Say how a curve grows, and how its floor does."""
    shape = curve_shape(curve)
    last = curve.points[-1]
    said = f"{shape.times:.2f}x at {number(last.size)} {curve.axis}"
    if shape.name == "flat":
        said = f"flat: {said}"
    elif shape.name == "linear":
        said = f"linear: {said}, {time_of(shape.slope)} for each (exponent {shape.exponent:.2f})"
    else:
        said = f"worse than linear: {said} (exponent {shape.exponent:.2f})"
    floors = [point.floor_us for point in curve.points if point.floor_us is not None]
    if len(floors) < len(curve.points):
        return said
    floor = shape_of([point.size for point in curve.points], floors)
    each = time_of(floor.slope)
    return f"{said}; {curve.floor} itself grows by {each} for each, {floor.times:.2f}x in all"


def key_of(result: Result) -> str:
    """Return the promise that a result is about, or ""."""
    goal = "" if isinstance(result, Missing) else result.goal
    return goal if isinstance(goal, str) and goal in GOALS else ""


def remarks(results: Sequence[Result]) -> list[str]:
    """Return what has to be known to read these results: floors that were not steady, notes."""
    floors: dict[str, float] = {}
    for result in results:
        if isinstance(result, Row):
            spread = spread_of(result.floor_us) or 0.0
            floors[result.floor] = max(spread, floors.get(result.floor, 0.0))
    unsteady = [
        f"the floor itself ({floor}) was not steady, its quartiles are {spread:.0%} apart: read the"
        " ratio to it with care"
        for floor, spread in floors.items()
        if spread > UNSTEADY
    ]
    notes = [
        f"{result.what.strip()}: {result.note}"
        for result in results
        if not isinstance(result, Missing) and result.note
    ]
    return [*unsteady, *dict.fromkeys(notes)]
