"""`notyet page`: watch agents and their stops in a browser."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from notyet.cli.person import refuse
from notyet.cli.signals import passed_on
from notyet.ledger.connection import default_path

if TYPE_CHECKING:
    import argparse

SUMMARY = "watch agents and their stops in a browser"
EXAMPLES = (
    ("notyet page", "open the page"),
    ("notyet page --no-open --port 8700", "only print its address"),
)
_MISSING = "it needs more packages; install them with: pip install 'notyet[page]'"
_LAST_PORT = 65_535


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    try:
        from notyet.web.server import Page, PortTakenError, listen
        from notyet.web.site import Site
    except ModuleNotFoundError:
        return refuse("page", _MISSING, 2)
    if not 0 <= args.port <= _LAST_PORT:
        return refuse("page", f"a port is a number up to {_LAST_PORT}, not {args.port}", 2)
    try:
        listening = listen(args.port)
    except PortTakenError as error:
        return refuse("page", f"{error}; choose another one, or leave out --port")

    page = Page(Site(default_path(os.environ)), listening)
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        page.end()

    with passed_on(end):
        print(page.address, flush=True)
        page.run()
    if received and received[0] != signal.SIGINT:
        sys.exit(128 + received[0])
    return 0
