"""`notyet page`: watch agents and their stops in a browser."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from argparse import ArgumentTypeError
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from notyet.cli.fleet_options import add_ledger, ledger_address
from notyet.cli.person import refuse
from notyet.cli.signals import passed_on
from notyet.config.compiled import write_private
from notyet.core.text import visible
from notyet.errors import LedgerError
from notyet.ledger.connection import default_path, demo_ledger

if TYPE_CHECKING:
    import argparse
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    from notyet.web.proxy import Proxy

SUMMARY = "watch agents and their stops in a browser"
EXAMPLES = (
    ("notyet page", "open the page"),
    ("notyet page --no-open --port 8700", "only print its address"),
    ("notyet page --demo", "look at the agents of `notyet demo`"),
    ("notyet page --save stops.html", "write one file instead, for CI or a colleague"),
    ("notyet page --ledger postgresql://notyet@db/notyet", "show the ledger of a fleet"),
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
_NOT_A_LEDGER = "--ledger takes a file or postgresql://USER@HOST/DATABASE, not {}"
_UNENCRYPTED = (
    "the ledger of a team is not shown to other machines without a sign-in and encryption: leave"
    " out --listen, or put a proxy in front of it with --behind-proxy"
)
_FOR_PROXY = ("origin", "user", "users", "user_header", "proxy", "allow_actions")
_BEHIND = "{} (the proxy reaches it at {})"
_STDOUT = "-"
_POSTGRESQL = ("postgresql://", "postgres://")
_LAST_PORT = 65_535


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--port", type=_port, default=0, help="the port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--read-only", action="store_true", help="only show: nothing can be done on the page"
    )
    add_ledger(parser)
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
    _configure_proxy(parser.add_argument_group("for a team, behind a proxy that signs people in"))
    saving = parser.add_argument_group("a file instead of a page")
    saving.add_argument(
        "--save", metavar="FILE", help="write stops and gates into one HTML file; - is stdout"
    )
    saving.add_argument(
        "--since", metavar="WHEN", help='only since "2d", "today", "2026-11-01" ... (default: 30d)'
    )
    saving.add_argument("--place", metavar="DIR", help="only stops in this folder and below it")


def _configure_proxy(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--behind-proxy", action="store_true", help="let the users in whom the proxy names"
    )
    group.add_argument("--origin", metavar="URL", help="the address that people open")
    group.add_argument(
        "--user", metavar="NAME", action="append", help="who may see it; * is all; repeatable"
    )
    group.add_argument(
        "--users", metavar="FILE", help="a file of them, a line for each, read at every request"
    )
    group.add_argument(
        "--user-header", metavar="NAME", help="what the proxy sets (default: X-Forwarded-User)"
    )
    group.add_argument(
        "--proxy",
        metavar="ADDRESS",
        type=_network,
        action="append",
        help="of the proxy, or 10.0.0.0/8; repeatable (default: this machine)",
    )
    group.add_argument(
        "--allow-actions", action="store_true", help="have buttons; who used them is recorded"
    )


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network("127.0.0.1" if text == "localhost" else text)
    except ValueError:
        what = f"it takes an IP address or a network as 10.0.0.0/8, not {visible(text)!r}"
        raise ArgumentTypeError(what) from None


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


class _MistakeError(Exception):
    """Options that cannot be meant; its text says why."""


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or save it."""
    try:
        _check(args)
        return _serve(args) if args.save is None else _save(args)
    except _MistakeError as error:
        return refuse("page", str(error), 2)
    except LedgerError as error:
        return refuse("page", str(error))


def _serve(args: argparse.Namespace) -> int:
    try:
        from notyet.web.server import ListenError, Page, listen
        from notyet.web.site import Site
    except ModuleNotFoundError as error:
        return refuse("page", _MISSING.format(error.name), 2)
    path = _ledger(args)
    if args.demo and not os.path.exists(path):
        return refuse("page", "there was no demo yet; run: notyet demo")
    proxy = _proxy(args) if args.behind_proxy else None
    if proxy is None and path.startswith(_POSTGRESQL) and not args.listen.is_loopback:
        raise _MistakeError(_UNENCRYPTED)
    is_shown_only = args.read_only or (proxy is not None and not args.allow_actions)
    site = Site(path, read_only=is_shown_only, proxy=proxy)
    site.ledger.connection.read(lambda _: None)
    try:
        listening = listen(args.port, str(args.listen))
    except ListenError as error:
        return refuse("page", str(error))

    page = Page(site, listening)
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        page.end()

    with passed_on(end):
        print(_BEHIND.format(page.address, page.origin) if proxy else page.address, flush=True)
        if not args.listen.is_loopback and proxy is None:
            refuse("page", _REACHABLE.format(port=page.port))
        if not args.no_open and proxy is None:
            _open_browser(page.address_once, page.port)
        page.run()
    if received and received[0] != signal.SIGINT:
        sys.exit(128 + received[0])
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse options that do not belong together. Raises _MistakeError."""
    is_saved = args.save is not None
    given = [f"--{name.replace('_', '-')}" for name in _FOR_PROXY if getattr(args, name)]
    wrong = {
        "--since and --place are for --save; the page has filters": not is_saved
        and (args.since is not None or args.place is not None),
        "--demo shows a ledger of its own; leave out --demo or --ledger": args.demo and args.ledger,
        "--behind-proxy serves a page, and --save writes a file; leave out one": is_saved
        and args.behind_proxy,
        f"{', '.join(given[:1])} is for --behind-proxy; add that, or leave it out": given
        and not args.behind_proxy,
    }
    if args.behind_proxy:
        wrong |= {
            "--behind-proxy needs --origin: the address that people open": not args.origin,
            "--behind-proxy needs --user or --users: who may see it": not (args.user or args.users),
            "--behind-proxy needs --port: the proxy must know it": not args.port,
            "--read-only has no actions; leave out --allow-actions": args.read_only
            and args.allow_actions,
        }
    for words, is_wrong in wrong.items():
        if is_wrong:
            raise _MistakeError(words)


def _proxy(args: argparse.Namespace) -> Proxy:
    """Return the proxy that the options describe. Raises _MistakeError."""
    from notyet.web.proxy import LOOPBACK, USER_HEADER, Proxy, Users, origin_of

    try:
        origin = origin_of(args.origin)
    except ValueError:
        what = f"--origin takes https://HOST without a path, not {visible(args.origin)}"
        raise _MistakeError(what) from None
    header = args.user_header or USER_HEADER
    if not header.isascii() or not header.replace("-", "a").isalnum():
        raise _MistakeError(f"--user-header takes the name of a header, not {visible(header)}")
    file = os.path.abspath(os.path.expanduser(args.users)) if args.users else ""
    users = Users(tuple(args.user or ()), file)
    try:
        if not users.names():
            raise _MistakeError(f"{visible(file)} names no user; write one on each line")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise _MistakeError(f"cannot read {visible(file)}: {why}") from None
    return Proxy(origin, users, header, tuple(args.proxy or LOOPBACK))


def _ledger(args: argparse.Namespace) -> str:
    """Return the address or file of the ledger to show. Raises _MistakeError."""
    if args.demo:
        return demo_ledger(os.environ)
    environ = os.environ
    given = ledger_address(args.ledger) or environ.get("NOTYET_LEDGER") or ""
    if given.startswith(_POSTGRESQL):
        return given
    if "://" in given:  # the rest may have a password
        raise _MistakeError(_NOT_A_LEDGER.format(visible(given.partition("://")[0] + "://…")))
    return os.path.abspath(os.path.expanduser(given)) if given else default_path(environ)


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
