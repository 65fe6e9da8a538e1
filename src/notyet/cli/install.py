"""`notyet install`: register notyet with a host, and put this project's gates into force."""

from __future__ import annotations

import os
import sys

from notyet.cli.installing import add_options, guarded
from notyet.cli.person import refuse
from notyet.cli.trusting import Show, files_to_trust, offer
from notyet.config.files import NAME, native_files
from notyet.config.scalars import Seconds
from notyet.config.shape import check
from notyet.core.record import replace
from notyet.core.text import bounded, visible
from notyet.install import HOSTS, host_named
from notyet.install.edit import is_dropped
from notyet.install.entry import EVENTS, START_TIMEOUT, entries
from notyet.install.hooks_file import found_in
from notyet.install.launcher import is_laid, lay, own_folder, own_root
from notyet.install.place import is_same_file
from notyet.install.planning import to_install
from notyet.install.refused import CannotInstall
from notyet.install.start import Start, absolute_start, launched_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from notyet.cli.installing import Outcome, Screen
    from notyet.install.change import Change
    from notyet.install.entry import Entry
    from notyet.install.host import Host
    from notyet.install.place import Place

SUMMARY = "register notyet with Claude Code or Codex, and trust the gates of this project"
EXAMPLES = (
    ("notyet install claude", "for every project of yours"),
    ("notyet install codex --trust", "also approve the hooks, instead of in /hooks"),
    ("notyet install claude --project", "in the project's settings, for everybody who works on it"),
    ("notyet install claude --dry-run", "only show what would change"),
    ("notyet install codex --timeout 1h", "let Codex wait longer for the gates"),
)
_DIGITS = 9  # of a number of seconds
_TIMEOUT = 1800  # seconds: a stage of gates may take 600, and there may be a few


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("host", choices=HOSTS, metavar="HOST", help=" or ".join(HOSTS))
    add_options(parser, " (default)")
    parser.add_argument(
        "--timeout",
        metavar="T",
        help="how long the host waits for the gates, like 600, 90s or 1h (default: 30m)",
    )
    parser.add_argument(
        "--trust", action="store_true", help="codex: approve the hooks too, instead of in /hooks"
    )


def run(args: argparse.Namespace) -> int:
    """Show what changes, write it, and offer the gates that are in force here."""
    host = host_named(args.host)
    seconds = _TIMEOUT
    if args.timeout is not None:
        text = args.timeout
        is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
        said, wrong = check(int(text) if is_number else text, Seconds())
        if wrong or said < 1 or said % 1:
            words = "is no time in whole seconds, up to a day; write 600, 90s, 10m or 1h"
            return refuse("install", f"{bounded(text, 40)!r} {words}")
        seconds = int(said)
    if args.trust and not host.TRUSTS:
        return refuse("install", f"{host.TITLE} has no trust in hooks; leave --trust out")
    return guarded("install", args, lambda screen: _install(screen, host, args, seconds))


def _install(screen: Screen, host: Host, args: argparse.Namespace, seconds: int) -> int:
    environ = os.environ
    place = host.target(args.scope or "user", os.getcwd(), environ)
    start = Start(line="") if place.scope == "project" else _start(environ)
    wanted = entries(host.NAME, start.line, seconds)
    for one in filter(is_dropped, found_in(host.NAME, [place])[0]):
        screen.note(
            f"{one.where}: the matcher {one.matcher!r} is dropped; which agents are gated is said "
            f"in {NAME}"
        )
    screen.first = lambda: _lay(start)  # a line in force must find what it starts
    outcome = screen.settle_with_trust(
        host, place, lambda: to_install(host, place, wanted), f"Register notyet with {host.TITLE}"
    )
    if outcome == "declined":
        return 1
    if outcome == "nothing":
        print(f"already installed for {host.TITLE}: {visible(place.path)}")
        if start.folder and not args.dry_run and not is_laid(start.folder, own_root()):
            _lay(start)
            screen.done("renewed what hooks start with", folder=start.folder)
    elif outcome == "done":
        screen.done(
            f"installed for {host.TITLE}: {', '.join(EVENTS)}",
            file=place.path,
            command=wanted[0].command,
            timeout=f"{seconds} s at a stop, {min(seconds, START_TIMEOUT)} s at a start",
        )
        screen.tell_trust(f"{host.TITLE}'s trust follows its hooks")
    screen.note(start.note)
    _look_around(screen, host, place)
    if args.trust:
        outcome = _approve(screen, host, place, wanted)
    elif host.TRUSTS and not _is_approved(host, place, wanted):
        screen.next(host.APPROVE)
    for line in host.advice(place, os.getcwd()):
        screen.next(line)
    if args.dry_run:
        return 0
    is_gated = _offer_gates(screen, args)
    screen.next(f"see that all is well with: notyet status {host.NAME}")
    return 0 if is_gated and outcome != "declined" else 1


def _start(environ: Mapping[str, str]) -> Start:
    main = os.path.join(own_root(), "notyet", "__main__.py")
    usual = absolute_start(sys.argv[0], sys.prefix, sys.executable, main)
    return launched_start(usual, own_folder(environ, own_root()), sys.executable)


def _lay(start: Start) -> None:
    if start.folder:
        lay(start.folder, own_root())


def _look_around(screen: Screen, host: Host, place: Place) -> None:
    """Say where else notyet is registered, and which files the host cannot read."""
    found, mistakes = host.found(os.getcwd(), os.environ)
    screen.note_mixed(one for one in found if is_same_file(one.place, place))
    others = {one.place.path: one for one in found if not is_same_file(one.place, place)}
    for path, one in others.items():
        how = f"notyet uninstall {host.NAME} --{one.place.scope}"
        remove = f"; remove one, as with: {how}" if one.place.scope in host.SCOPES else ""
        screen.note(f"also registered in {path}, so agents read everything twice{remove}")
    for mistake in mistakes:
        screen.note(f"{host.TITLE} cannot read a file: {mistake}")


def _approval(host: Host, place: Place, wanted: tuple[Entry, ...]) -> Change:
    """Return what makes a host that trusts hooks trust ours. Raises CannotInstall."""
    after = to_install(host, place, wanted).after or b""
    change = host.approval(place, after.decode(), os.environ)
    if change is None:
        raise CannotInstall(f"there is no home folder in which {host.TITLE} keeps its trust")
    return change


def _is_approved(host: Host, place: Place, wanted: tuple[Entry, ...]) -> bool:
    try:
        return _approval(host, place, wanted).is_empty
    except CannotInstall:  # it cannot be told, so a person had better look
        return False


def _approve(screen: Screen, host: Host, place: Place, wanted: tuple[Entry, ...]) -> Outcome:
    """Write the host's own trust in our entries, after saying what that means."""

    def plan() -> Change:
        return _approval(host, place, wanted)

    print(
        f"--trust: {host.TITLE} will run these commands at every stop without asking you, outside "
        "its sandbox; change one, and it asks again"
    )
    config = replace(place, scope="user", path=plan().path)
    outcome = screen.settle(host, config, plan, f"Let {host.TITLE} trust them")
    if outcome == "done":
        screen.done(f"trusted by {host.TITLE}", file=config.path)
    return outcome


def _offer_gates(screen: Screen, args: argparse.Namespace) -> bool:
    """Show the gates in force here, and trust them if a person says so."""
    environ = os.environ
    files = files_to_trust(".", [], environ)
    if files:
        show = Show("install")
        results = [offer(f, "given" if args.yes else "asked", environ, show) for f in files]
        return all(results)  # each is offered, whatever became of others
    if not native_files(os.path.realpath("."), environ, lambda _path: False):
        screen.next("make gates of what your project checks itself with: notyet init")
    return True
