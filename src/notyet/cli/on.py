"""`notyet on`: undo `notyet off`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from notyet.cli.off import project_of
from notyet.cli.person import record_act, refuse
from notyet.config.off import switch_on, switched_off
from notyet.core.text import visible

if TYPE_CHECKING:
    import argparse

SUMMARY = "check stops again after `notyet off`"
EXAMPLES = (
    ("notyet on", "check stops in this project again"),
    ("notyet on --global", "check stops everywhere again"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--global", dest="everywhere", action="store_true", help="undo `notyet off --global`"
    )


def run(args: argparse.Namespace) -> int:
    """Switch on whatever is off for this folder, and record it."""
    place = "" if args.everywhere else project_of(os.getcwd())
    try:
        switched = switch_on(place, os.environ)
    except OSError as error:
        return refuse("on", f"the switch cannot be removed: {error}")
    for folder in switched:
        record_act("on", folder, "")
        print(f"notyet is on again {'in ' + visible(folder) if folder else 'everywhere'}")
    if not switched:
        print("notyet was not off here")
    left = switched_off(place, os.environ)
    if left:
        print(f"notyet is still {left}")
    return 0
