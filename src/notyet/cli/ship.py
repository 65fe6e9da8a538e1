"""`notyet ship`: copy finished stops to the team's database, and to OpenTelemetry."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from notyet.cli.person import refuse
from notyet.cli.times import duration
from notyet.config.find import real_folder
from notyet.errors import LedgerError, NotyetError, Refused
from notyet.ledger.ledger import Ledger
from notyet.share import ShareError
from notyet.share.settings import TO, share_settings
from notyet.share.ship import ship

if TYPE_CHECKING:
    from notyet.share.settings import Share

SUMMARY = "copy finished stops to your team's database, and to OpenTelemetry"
EXAMPLES = (
    ("notyet ship", "copy what is new; a hook does this once a minute where `[share]` says so"),
    ("notyet ship --wait 20s", "as the last step of CI: wait for the database, if need be"),
    ("notyet ship --create", "create the team's tables, and print the rights that others need"),
)
_PLACES = {"to": "PostgreSQL", "otel": "OpenTelemetry"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--wait",
        type=_wait,
        default=0.0,
        metavar="T",
        help="try for so long where the database cannot be reached, or another ship is at work",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="copy all stops of the ledger to PostgreSQL, also those that were copied before",
    )
    parser.add_argument(
        "--create", action="store_true", help="only create the tables that the stops go into"
    )


def _wait(text: str) -> float:
    try:
        return duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Copy stops; exit 1 if that failed, 2 if nothing says where to."""
    try:
        share = share_settings(_here(), os.environ)
    except Refused as error:
        return refuse("ship", str(error), 2)
    if args.create:
        return _create(share)
    ledger = Ledger(repair=False)
    try:
        done = ship(ledger, share, args.wait, again=args.again)
    except NotyetError as error:
        return refuse("ship", str(error))
    except OSError as error:
        return refuse("ship", f"{error.filename or ledger.path}: {error.strerror or error}")
    finally:
        ledger.close()
    if done.counts is None:
        print("another notyet ship is at work")
        return 0
    for name, count in done.counts.items():
        print(f"{count:,} {'stop' if count == 1 else 'stops'} copied to {_PLACES[name]}")
    for fault in done.faults:
        refuse("ship", fault)
    return 1 if done.faults else 0


def _here() -> str:
    try:
        return real_folder(os.getcwd())
    except FileNotFoundError:  # an agent's folder may be gone when its stop is copied
        return ""


def _create(share: Share) -> int:
    if not share.to:
        return refuse("ship", f"--create needs a database; set `share.to`, or {TO}", 2)
    try:
        from notyet.share.team import Team, grants

        team = Team(share.to)
        is_new = team.create()
        team.close()
    except LedgerError as error:
        return refuse("ship", f"{error.path}: {error.detail}")
    except ShareError as error:
        return refuse("ship", str(error))
    schema = team.address.schema
    print(f"the tables of the schema {schema} {'were created' if is_new else 'are there'}")
    print(f"who ships needs no more than: {grants(schema, 'ROLE')}")
    return 0
