"""The shape of a curve, in words: flat, linear or worse; and the straight line that fits it best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAT = 1.5  # times what the smallest size took: less than that is no growth that anybody feels
STRAIGHT = 1.2  # the largest exponent that counts as linear, with the noise that points have
SHAPES = ("flat", "linear", "worse")


class Shape(NamedTuple):
    """How something grows."""

    name: str  # one of SHAPES
    times: float  # the largest size beside the smallest
    exponent: float  # from end to end, or in the last step: 1 where it keeps pace with the size
    start: float  # of the straight line that fits best
    slope: float  # of that line, for one more of the size


def shape_of(sizes: Sequence[float], figures: Sequence[float]) -> Shape:
    """Return the shape of a curve that has at least two points."""
    points = list(zip(sizes, figures, strict=True))
    # What comes in the end shows in the last step; what is small at first is mostly noise.
    exponent = max(_exponent(points[0], points[-1]), _exponent(points[-2], points[-1]))
    name = "linear" if exponent <= STRAIGHT else "worse"
    if max(figures) / figures[0] <= FLAT:
        name = "flat"
    return Shape(name, figures[-1] / figures[0], exponent, *_line(points))


def is_within(shape: Shape, goal: str) -> bool:
    """Return True if a shape is as good as the one that was wanted, or better."""
    return SHAPES.index(shape.name) <= SHAPES.index(goal)


def _exponent(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the power of the size that leads from one point to another."""
    return math.log(other[1] / one[1]) / math.log(other[0] / one[0])


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return a and b of the line a + b * size that fits best, neither below zero.

    An error counts as a part of the figure: a point of 10 ms weighs as much as one of 10 s.
    """
    weighed = [(size, figure, 1 / figure**2) for size, figure in points]
    total = sum(w for _, _, w in weighed)
    middle_x = sum(w * x for x, _, w in weighed) / total
    middle_y = sum(w * y for _, y, w in weighed) / total
    across = sum(w * (x - middle_x) ** 2 for x, _, w in weighed)
    along = sum(w * (x - middle_x) * (y - middle_y) for x, y, w in weighed)
    slope = max(0.0, along / across)
    start = middle_y - slope * middle_x
    if start >= 0:
        return start, slope
    return 0.0, sum(w * x * y for x, y, w in weighed) / sum(w * x * x for x, _, w in weighed)
