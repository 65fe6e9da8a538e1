"""`notyet on`: undo `notyet off`."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from notyet.cli.off import project_of
from notyet.cli.person import record_act, refuse
from notyet.config.find import OFF_VARIABLE, is_off_everywhere
from notyet.config.off import Off, switch_on, switches
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
    """Switch on this project, or what is off everywhere, and record it."""
    place = "" if args.everywhere else project_of(os.getcwd())
    try:
        is_switched = switch_on(place, os.environ)
    except OSError as error:
        return refuse("on", f"the switch cannot be removed: {error}")
    if is_switched:
        record_act("on", place, "")
        print(f"notyet is on again {'in ' + visible(place) if place else 'everywhere'}")
    if is_off_everywhere(os.environ):
        print(f"notyet is still off because {OFF_VARIABLE} is set; run: unset {OFF_VARIABLE}")
        return 0
    left = list(switches(os.getcwd(), os.environ))
    for off in left:
        print(f"notyet is still {where_and_fix(off, place)}")
    if not is_switched and not left:
        print("notyet was not off here")
    return 0


def where_and_fix(off: Off, place: str) -> str:
    """Return where notyet is off, and what lifts that from the folder of a project."""
    if not off.place:
        return f"off everywhere; run: {off.undo}"
    there = "" if off.place == place else f"cd {shlex.quote(off.place)} && "
    return f"off in {visible(off.place)}; run: {there}{off.undo}"
