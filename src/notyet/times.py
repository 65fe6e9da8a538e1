"""Times and durations as people write and read them."""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta

from notyet.core.text import bounded, visible

_SHORT = 10  # seconds, below which tenths matter
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
_SPAN = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_MAX_LENGTH = 40
_FIRST = 1e-6  # instead of 0.0, which means that no time is given


def since(text: str, now: float | None = None) -> float:
    """Return the time that a text means: so long ago, or a date. Raises ValueError."""
    return _time(text, now, timedelta())


def until(text: str, now: float | None = None) -> float:
    """Return the time that a text means; a day means its end. Raises ValueError."""
    return _time(text, now, timedelta(days=1))


def _time(text: str, now: float | None, after_midnight: timedelta) -> float:
    now = time.time() if now is None else now
    said = text.strip().lower() if len(text) <= _MAX_LENGTH else ""
    span = span_of(said)
    if span is not None:
        return now - span or _FIRST  # which may be before 1970
    today = date.fromtimestamp(now)  # noqa: DTZ012  # the day of a person here
    days = {"today": today, "yesterday": today - timedelta(days=1)}
    try:
        if said in days or len(said) == len("2026-11-01"):
            day = days.get(said) or date.fromisoformat(said)
            midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001  # same
            return (midnight + after_midnight).timestamp() or _FIRST
        return datetime.fromisoformat(text.strip()).timestamp() or _FIRST
    except (ValueError, OverflowError, OSError):
        wrong = visible(bounded(text, _MAX_LENGTH))
        raise ValueError(f"invalid time {wrong!r}; try 2d, 90m, today or 2026-11-01") from None


def span_of(text: str) -> float | None:
    """Return the seconds of a duration such as "2d" or "1h30m"; None for anything else."""
    total, number, seen = 0.0, "", False
    for letter in text:
        if letter in "0123456789.":
            number += letter
            continue
        try:
            total += float(number) * _SPAN[letter]
        except (ValueError, KeyError):
            return None
        number, seen = "", True
    return total if seen and not number else None


def age(seconds: float) -> str:
    """Return a duration in one number."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s" if seconds >= _SHORT else f"{max(0.0, seconds):.1f}s"


def when(at: float, now: float | None = None) -> str:
    """Return a time in short: the time of day if it is today, else the date."""
    now = time.time() if now is None else now
    try:
        then, today = time.localtime(at), time.localtime(now)
    except (ValueError, OverflowError, OSError):  # a clock that was never set
        return "?"
    if then[:3] == today[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%b %d %H:%M" if then[0] == today[0] else "%Y-%m-%d", then)


def exactly(at: float) -> str:
    """Return a time with its date, second and zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at)).strip()
    except (ValueError, OverflowError, OSError):
        return "?"
