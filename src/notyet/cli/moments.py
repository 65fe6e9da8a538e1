"""Moments and time spans as people write and read them."""

from __future__ import annotations

import argparse
import time

from notyet.core.text import bounded, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_SHORT = 10  # seconds, below which tenths matter
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
_SPAN = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_LONGEST = 40
_FIRST = 1e-6  # instead of 0.0, which means no moment
_HELP = 'write it like "2d", "90m", "today", "2026-11-01" or "2026-11-01T14:30"'


def since(text: str, now: float | None = None) -> float:
    """Return the moment that a text means: so long ago, or a date. Raises ValueError."""
    return _moment(text, now, lambda day: day)


def until(text: str, now: float | None = None) -> float:
    """Do what `since` does; a day without a time of day means its end."""
    from datetime import timedelta

    return _moment(text, now, lambda day: day + timedelta(days=1))


def since_option(text: str) -> float:
    """Read the value of `--since`, for argparse."""
    return _option(since, text)


def until_option(text: str) -> float:
    """Read the value of `--until`, for argparse."""
    return _option(until, text)


def _option(read: Callable[[str], float], text: str) -> float:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _moment(text: str, now: float | None, of_day: Callable[[datetime], datetime]) -> float:
    from datetime import date, datetime, timedelta

    now = time.time() if now is None else now
    said = text.strip().lower() if len(text) <= _LONGEST else ""
    span = span_of(said)
    if span is not None:
        return now - span or _FIRST  # which may be before 1970
    today = datetime.fromtimestamp(now).astimezone().replace(tzinfo=None).date()  # a person's
    days = {"today": today, "yesterday": today - timedelta(days=1)}
    try:
        if said in days or len(said) == len("2026-11-01"):
            day = days.get(said) or date.fromisoformat(said)
            return of_day(datetime(day.year, day.month, day.day)).timestamp() or _FIRST  # noqa: DTZ001  # as above
        return datetime.fromisoformat(text.strip()).timestamp() or _FIRST
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{visible(bounded(text, _LONGEST))!r} is no moment; {_HELP}") from None


def span_of(text: str) -> float | None:
    """Return the seconds of a span such as "2d" or "1h30m"; None for anything else."""
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
    """Return a time span in one number."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s" if seconds >= _SHORT else f"{max(0.0, seconds):.1f}s"


def when(at: float, now: float | None = None) -> str:
    """Return a moment as short as it can be understood: a time of today, or a date before it."""
    now = time.time() if now is None else now
    try:
        then, today = time.localtime(at), time.localtime(now)
    except (ValueError, OverflowError, OSError):  # a clock that was never set
        return "?"
    if then[:3] == today[:3]:
        return time.strftime("%H:%M:%S", then)
    return time.strftime("%b %d %H:%M" if then[0] == today[0] else "%Y-%m-%d", then)


def exactly(at: float) -> str:
    """Return a moment with its date, its second and its zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at)).strip()
    except (ValueError, OverflowError, OSError):
        return "?"
