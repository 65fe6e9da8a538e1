"""`notyet page`: watch agents and their stops in a browser."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import TYPE_CHECKING

from notyet.cli.person import refuse
from notyet.cli.signals import passed_on
from notyet.config.compiled import write_private
from notyet.core.text import visible
from notyet.errors import LedgerError
from notyet.ledger.connection import default_path

if TYPE_CHECKING:
    import argparse

SUMMARY = "watch agents and their stops in a browser"
EXAMPLES = (
    ("notyet page", "open the page"),
    ("notyet page --no-open --port 8700", "only print its address"),
    ("notyet page --save stops.html", "write one file instead, for CI or a colleague"),
)
_MISSING = "it needs {}, which is not installed; run: pip install 'notyet[page]'"
_STDOUT = "-"
_LAST_PORT = 65_535


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    saving = parser.add_argument_group("a file instead of a page")
    saving.add_argument(
        "--save", metavar="FILE", help="write stops and gates into one HTML file; - is stdout"
    )
    saving.add_argument(
        "--since", metavar="WHEN", help='only since "2d", "today", "2026-11-01" ... (default: 30d)'
    )
    saving.add_argument("--place", metavar="DIR", help="only stops in this folder and below it")


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or save it."""
    if args.save is not None:
        return _save(args)
    if args.since is not None or args.place is not None:
        return refuse("page", "--since and --place are for --save; the page has filters", 2)
    try:
        from notyet.web.server import Page, PortTakenError, listen
        from notyet.web.site import Site
    except ModuleNotFoundError as error:
        return refuse("page", _MISSING.format(error.name), 2)
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


def _save(args: argparse.Namespace) -> int:
    """Write the file, and say what is in it."""
    if not args.save:
        return refuse("page", "--save needs the name of a file, or - for stdout", 2)
    try:
        from notyet.web.saved import save
        from notyet.web.site import NotShownError, Site
    except ModuleNotFoundError as error:
        return refuse("page", _MISSING.format(error.name), 2)
    place = os.path.abspath(os.path.expanduser(args.place)) if args.place else ""
    site = Site(default_path(os.environ))
    try:
        saved = save(site, since=args.since or "", place=place)
    except NotShownError as error:
        return refuse("page", str(error), 2)
    except LedgerError as error:
        return refuse("page", str(error))
    finally:
        site.ledger.close()
    content = saved.html.encode()
    if args.save == _STDOUT:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return 0
    try:
        _write(args.save, content)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        return refuse("page", f"cannot write {visible(args.save)}: {why}")
    number = "1 stop" if saved.stops == 1 else f"{saved.stops:,} stops"
    number = number if saved.is_all else f"the newest {number}"
    print(f"{visible(args.save)}: {number}, {-(-len(content) // 1024):,} KB, readable by you only")
    return 0


def _write(path: str, content: bytes) -> None:
    """Write a file that only its user may read, whole or not at all. Raises OSError."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        with open(path, "wb") as file:  # a pipe or a device, which must not be replaced
            file.write(content)
        return
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file in it")
    write_private(path, content)
