"""When a stop must be decided, because its host waits no longer (E9)."""

from __future__ import annotations

from time import monotonic

_SPARE = 1.0  # seconds for what comes after the gates, out of the margin that the hook leaves
_SPARE_PART = 8  # and no more than this part of the time, where there is little of it


class Deadline:
    """The gates have until `ends`; to record the answer and tell observers, until `last`.

    Both are times of the monotonic clock; None where nobody presses.
    """

    def __init__(self, within: float | None) -> None:
        if within is not None and within != within:  # noqa: PLR0124  # NaN is not equal to itself
            raise ValueError("within is a number of seconds, not NaN")
        self.ends = None if within is None else monotonic() + within
        self.last = self.ends
        if within is not None and self.ends is not None:
            self.last = self.ends + min(_SPARE, within / _SPARE_PART)

    def left(self, patience: float) -> float:
        """Return how long to wait for something of our own before the gates have answered."""
        return _within(patience, self.ends)

    def left_at_last(self, patience: float) -> float:
        """Return how long to wait once they have; observers are left the rest of the time."""
        if self.ends is None or self.last is None:
            return patience
        return _within(patience, (self.ends + self.last) / 2)


def _within(patience: float, ends: float | None) -> float:
    return patience if ends is None else max(0.0, min(patience, ends - monotonic()))
