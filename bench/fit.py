"""The shape of a curve, in words: a + b * size^p, with the p that fits best."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAT = 1.5  # times what the smallest size took: less than that is no growth that anybody feels
STRAIGHT = (
    1.2  # the largest exponent that still counts as a straight line, with noise in the points
)
_EXPONENTS = tuple(n / 20 for n in range(1, 61))  # 0.05 ... 3
SHAPES = ("flat", "linear", "worse")


class Shape(NamedTuple):
    """How something grows."""

    name: str  # one of SHAPES
    times: float  # the largest size beside the smallest
    exponent: float  # of the growing part
    start: float  # of the straight line that fits best
    slope: float  # of the straight line that fits best, for one more of the size


def shape_of(sizes: Sequence[float], figures: Sequence[float]) -> Shape:
    """Return the shape of a curve that has at least two points."""
    times = figures[-1] / figures[0]
    best = min(_EXPONENTS, key=lambda p: _line(sizes, figures, p)[2])
    exponent = best if len(sizes) > 2 else 1.0  # two points fit any
    start, slope, _ = _line(sizes, figures, 1.0)
    if max(figures) / figures[0] <= FLAT:
        name = "flat"
    else:
        name = "linear" if exponent <= STRAIGHT else "worse"
    return Shape(name, times, exponent, start, slope)


def is_within(shape: Shape, goal: str) -> bool:
    """Tell whether a shape is as good as the one that was wanted, or better."""
    return SHAPES.index(shape.name) <= SHAPES.index(goal)


def _line(
    sizes: Sequence[float], figures: Sequence[float], power: float
) -> tuple[float, float, float]:
    """Return a and b of a + b * size^power, neither below zero, and how wrong they are.

    An error counts as a part of the figure: a point of 10 ms weighs as much as one of 10 s.
    """
    raised = [size**power for size in sizes]
    weights = [1 / figure**2 for figure in figures]
    total = sum(weights)
    middle_x = sum(w * x for w, x in zip(weights, raised, strict=True)) / total
    middle_y = sum(w * y for w, y in zip(weights, figures, strict=True)) / total
    across = sum(w * (x - middle_x) ** 2 for w, x in zip(weights, raised, strict=True))
    along = sum(
        w * (x - middle_x) * (y - middle_y)
        for w, x, y in zip(weights, raised, figures, strict=True)
    )
    b = max(0.0, along / across if across else 0.0)
    a = middle_y - b * middle_x
    if a < 0:
        a = 0.0
        b = sum(w * x * y for w, x, y in zip(weights, raised, figures, strict=True)) / sum(
            w * x * x for w, x in zip(weights, raised, strict=True)
        )
    wrong = sum(w * (a + b * x - y) ** 2 for w, x, y in zip(weights, raised, figures, strict=True))
    return a, b, wrong
