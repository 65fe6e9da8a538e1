"""The options of commands that work with a fleet."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from notyet.ledger.placements import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.fleet import Fleet


def add_ledger(parser: argparse.ArgumentParser) -> None:
    """Add `--ledger`."""
    parser.add_argument(
        "--ledger",
        metavar="URL",
        default="",
        help=f"the ledger of a fleet, postgresql://USER@HOST/NAME (default: {ADDRESS})",
    )


def ledger_address(given: str) -> str | None:
    """Return the ledger that was named or is in NOTYET_FLEET; None for the one of this machine."""
    return given or os.environ.get(ADDRESS) or None


def fleet_at(given: str) -> Fleet:
    """Return the fleet of a ledger. Raises Refused, also if its extra is not installed."""
    from notyet.fleet import Fleet  # dbos takes a second to load

    return Fleet(given)


def whole_number(least: int, most: int = 10**9) -> Callable[[str], int]:
    """Return a parser of whole numbers, for argparse."""

    def parse(text: str) -> int:
        if text.isascii() and text.isdecimal() and least <= int(text[:20]) <= most:
            return int(text)
        upper = "" if most == 10**9 else f" to {most:,}"
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a whole number from {least}{upper or ' up'}"
        )

    return parse
