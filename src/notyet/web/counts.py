"""How stops went in each step of a span, for the numbers and the chart of "Now".

A page that is open counts again at every change. What happened days ago hardly changes, so those
steps are remembered; otherwise the span of a month would be counted for every new stop.
"""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING

from notyet.ledger.figures import over_time
from notyet.times import since

if TYPE_CHECKING:
    from notyet.ledger.figures import Bucket
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import StopFilter

_FRESH = 3_600.0  # seconds after the end of a step in which it is counted anew each time
_PART = 24  # afterwards, it is remembered for this part of the time since its end
_MOST = 2_000  # steps that are remembered


class Counts:
    """Counts stops step by step; safe in many threads."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[float, Bucket]] = {}  # and until when

    def today(self, ledger: Ledger, wanted: StopFilter) -> list[Bucket]:
        """Count the stops of each hour since midnight."""
        return self._between(ledger, wanted, since("today"), time.time(), 3_600.0)

    def last(self, ledger: Ledger, wanted: StopFilter, span: float, step: float) -> list[Bucket]:
        """Count the stops of the last seconds, in steps that begin with the day."""
        now = time.time()
        midnight = since("today")
        first = midnight + math.floor((now - span - midnight) / step) * step
        return self._between(ledger, wanted, first, now, step)

    def _between(
        self, ledger: Ledger, wanted: StopFilter, first: float, now: float, step: float
    ) -> list[Bucket]:
        steps = math.floor((now - first) / step) + 1  # with the one that has just begun
        starts = [first + step * number for number in range(steps)]
        which = (_file(ledger.path), wanted.host, wanted.place, step)
        found: dict[float, Bucket] = {}
        for at in starts:
            until, bucket = self._known.get((*which, at), (0.0, None))
            if bucket is not None and until > now:
                found[at] = bucket
        missing = [at for at in starts if at not in found]
        if len(self._known) > _MOST:
            self._known.clear()
        for bucket in over_time(ledger, wanted, missing, step):
            found[bucket.at] = bucket
            past = now - bucket.until
            if past > _FRESH:
                self._known[*which, bucket.at] = now + past / _PART, bucket
        return [found[at] for at in starts]


def _file(path: str) -> object:
    try:
        known = os.stat(path)
    except (OSError, ValueError):
        return None
    return known.st_dev, known.st_ino
