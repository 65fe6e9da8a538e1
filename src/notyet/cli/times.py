"""Times and durations in options, for argparse."""

from __future__ import annotations

import argparse

from notyet.config.shapes import Seconds, check
from notyet.core.text import bounded, visible
from notyet.times import since, until

_MAX_LENGTH = 40


def since_option(text: str) -> float:
    """Parse the value of `--since`, for argparse."""
    try:
        return since(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def until_option(text: str) -> float:
    """Parse the value of `--until`, for argparse."""
    try:
        return until(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def duration(text: str, most: int = 86_400) -> float:
    """Return the seconds of a duration that a file could name too. Raises ValueError."""
    value = int(text) if text.isascii() and text.isdecimal() and len(text) < _MAX_LENGTH else text
    seconds, wrong = check(value, Seconds(most=most))
    if wrong:
        wrong_text = visible(bounded(text, _MAX_LENGTH))
        raise ValueError(f"invalid duration {wrong_text!r}; try 90s, 30m or 2h")
    return float(seconds)
