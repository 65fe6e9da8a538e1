"""`notyet page`: watch agents and their stops in a browser."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from argparse import ArgumentTypeError
from ipaddress import ip_address
from typing import TYPE_CHECKING

from notyet.cli.person import refuse
from notyet.cli.signals import passed_on
from notyet.config.compiled import write_private
from notyet.core.text import visible
from notyet.errors import LedgerError
from notyet.ledger.connection import default_path, demo_ledger

if TYPE_CHECKING:
    import argparse
    from ipaddress import IPv4Address, IPv6Address

SUMMARY = "watch agents and their stops in a browser"
EXAMPLES = (
    ("notyet page", "open the page"),
    ("notyet page --no-open --port 8700", "only print its address"),
    ("notyet page --demo", "look at the agents of `notyet demo`"),
    ("notyet page --save stops.html", "write one file instead, for CI or a colleague"),
)
_MISSING = "it needs {}, which is not installed; in a checkout, run: pip install '.[page]'"
_NO_BROWSER = "no browser could be opened here; open the address above in one on this machine"
_OVER_SSH = (
    "no browser is opened over SSH; on your own machine run"
    " `ssh -L {port}:127.0.0.1:{port} {user}@{host}`, and open the address above there"
)
_REACHABLE = (
    "warning: other machines can reach this page, and nothing is encrypted on the way; safer is"
    " `ssh -L {port}:127.0.0.1:{port}` to this machine, without --listen"
)
_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
_STDOUT = "-"
_LAST_PORT = 65_535


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--port", type=_port, default=0, help="the port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--read-only", action="store_true", help="only show: nothing can be done on the page"
    )
    parser.add_argument(
        "--demo", action="store_true", help="show the agents of the last `notyet demo`"
    )
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        type=_address,
        default=ip_address("127.0.0.1"),
        help="an address of this machine, or 0.0.0.0 for all (default: 127.0.0.1, only from here)",
    )
    saving = parser.add_argument_group("a file instead of a page")
    saving.add_argument(
        "--save", metavar="FILE", help="write stops and gates into one HTML file; - is stdout"
    )
    saving.add_argument(
        "--since", metavar="WHEN", help='only since "2d", "today", "2026-11-01" ... (default: 30d)'
    )
    saving.add_argument("--place", metavar="DIR", help="only stops in this folder and below it")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= _LAST_PORT):
        raise ArgumentTypeError(f"a port is a number up to {_LAST_PORT}, not {text!r}")
    return int(text)


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address("127.0.0.1" if text == "localhost" else text)
    except ValueError:
        what = f"it takes an IP address of this machine, not {visible(text)!r}"
        raise ArgumentTypeError(what) from None


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or save it."""
    if args.save is not None:
        return _save(args)
    if args.since is not None or args.place is not None:
        return refuse("page", "--since and --place are for --save; the page has filters", 2)
    return _serve(args)


def _serve(args: argparse.Namespace) -> int:
    try:
        from notyet.web.server import ListenError, Page, listen
        from notyet.web.site import Site
    except ModuleNotFoundError as error:
        return refuse("page", _MISSING.format(error.name), 2)
    path = _ledger(args)
    if args.demo and not os.path.exists(path):
        return refuse("page", "there was no demo yet; run: notyet demo")
    site = Site(path, read_only=args.read_only)
    try:
        site.ledger.connection.read(lambda _: None)
        listening = listen(args.port, str(args.listen))
    except (LedgerError, ListenError) as error:
        return refuse("page", str(error))

    page = Page(site, listening)
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        page.end()

    with passed_on(end):
        print(page.address, flush=True)
        if not args.listen.is_loopback:
            refuse("page", _REACHABLE.format(port=page.port))
        if not args.no_open:
            _open_browser(page.address_once, page.port)
        page.run()
    if received and received[0] != signal.SIGINT:
        sys.exit(128 + received[0])
    return 0


def _ledger(args: argparse.Namespace) -> str:
    return demo_ledger(os.environ) if args.demo else default_path(os.environ)


def _open_browser(address: str, port: int) -> None:
    """Open the address in a browser, or say how to; the browser writes nothing to the terminal."""
    environ = os.environ
    if not environ.get("BROWSER"):  # which also programs set that show pages of other machines
        if "SSH_CONNECTION" in environ:
            where = [*environ["SSH_CONNECTION"].split(), "", "", "HOST"][2] or "HOST"
            user = environ.get("USER") or "USER"
            refuse("page", _OVER_SSH.format(port=port, user=visible(user), host=visible(where)))
            return
        has_display = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
        if sys.platform != "darwin" and not has_display and "WSL_DISTRO_NAME" not in environ:
            refuse("page", _NO_BROWSER)
            return
    try:
        opening = subprocess.Popen(  # noqa: S603  # our own words and address
            [sys.executable, "-I", "-c", _OPEN, address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the page, and not the browser
        )
    except OSError:
        refuse("page", _NO_BROWSER)
        return

    def wait() -> None:
        if opening.wait():
            refuse("page", _NO_BROWSER)

    threading.Thread(target=wait, daemon=True).start()


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
    site = Site(_ledger(args))
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
