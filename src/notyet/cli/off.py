"""`notyet off`: allow every stop, here or everywhere, for a while."""

from __future__ import annotations

import getpass
import os
import time
from typing import TYPE_CHECKING

from notyet.cli.person import record_act, refuse, why_refused
from notyet.cli.times import duration
from notyet.config.find import FILE_NAME, above
from notyet.config.off import switch_off

if TYPE_CHECKING:
    import argparse

_LONGEST = 365 * 86_400
SUMMARY = "allow every stop, here or everywhere, for a while"
EXAMPLES = (
    ("notyet off 30m", "allow every stop in this project for half an hour"),
    ("notyet off", "until you run: notyet on"),
    ("notyet off 2h --global", "in every project"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "duration", nargs="?", help="for how long, like 30m or 2h (default: until on)"
    )
    parser.add_argument("--global", dest="everywhere", action="store_true", help="in every project")


def run(args: argparse.Namespace) -> int:
    """Switch off, and record it."""
    why = why_refused()
    if why:
        return refuse("off", why)
    until = 0.0
    if args.duration is not None:
        try:
            until = time.time() + duration(args.duration, _LONGEST)
        except ValueError as error:
            return refuse("off", str(error))
    place = "" if args.everywhere else project_of(os.getcwd())
    try:
        off = switch_off(place, until, os.environ, by=_user())
    except OSError as error:
        return refuse("off", f"cannot store the switch: {error}")
    record_act("off", place, args.duration or "")
    print(f"notyet is {off}")
    return 0


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def project_of(cwd: str) -> str:
    """Return the folder of the nearest notyet.toml, or this one."""
    cwd = os.path.realpath(cwd)
    for folder in above(cwd):
        if os.path.lexists(os.path.join(folder, FILE_NAME)):
            return folder
    return cwd
