"""`notyet uninstall`: take notyet out of a host's settings again."""

from __future__ import annotations

import os
from contextlib import suppress

from notyet.cli.installing import add_options, guarded
from notyet.config.find import state_folder
from notyet.install import HOSTS, host_named
from notyet.install.backup import changed_files
from notyet.install.edit import is_hook, is_mixed
from notyet.install.hooks_file import found_in
from notyet.install.launcher import may_be_used, own_folder, own_root, remove
from notyet.install.place import is_same_file
from notyet.install.planning import to_uninstall
from notyet.install.refused import CannotInstall

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Literal

    from notyet.cli.installing import Screen
    from notyet.config.document import Mistake
    from notyet.install.host import Host
    from notyet.install.place import Place, Scope
    from notyet.install.registered import Registration

SUMMARY = "take notyet out of the settings of Claude Code or Codex"
EXAMPLES = (
    ("notyet uninstall claude", "out of all settings here"),
    ("notyet uninstall codex --user", "only out of your own"),
    ("notyet uninstall claude --dry-run", "only show what would change"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("host", choices=HOSTS, metavar="HOST", help=" or ".join(HOSTS))
    add_options(parser, " (without an option: all of these)")


def run(args: argparse.Namespace) -> int:
    """Show what changes, and write it."""
    host = host_named(args.host)
    return guarded("uninstall", args, lambda screen: _uninstall(screen, host, args.scope))


def _uninstall(screen: Screen, host: Host, scope: Scope | Literal[""]) -> int:
    if scope:
        host.target(scope, os.getcwd(), os.environ)  # which says why there is no such scope
    known = {*changed_files(state_folder(os.environ))}
    found, mistakes = _everywhere(host)
    for mistake in mistakes:
        screen.note(f"not looked into: {mistake}")
    own = [one for one in found if is_hook(one)]
    for one in found:
        if not is_hook(one) and not is_mixed(one):
            screen.note(f"left as it is, because it is conclaude's command line: {one.where}")
    wanted = [one for one in found if scope in ("", one.place.scope)]
    is_left = screen.note_mixed(one for one in wanted if one.place.scope in host.SCOPES)
    for path in dict.fromkeys(one.place.path for one in own if one.place.scope == "managed"):
        screen.note(f"{path} is your administrator's, and stays as it is")
    places = {
        one.place.path: one.place
        for one in own
        if one.place.scope in host.SCOPES and scope in ("", one.place.scope)
    }
    if not places:
        where = f"its {scope} settings" if scope else "its settings here"
        print(f"not installed for {host.TITLE}: nothing of notyet in {where}")
        _clear(screen, known)
        return 1 if mistakes or is_left else 0
    results = [_from(screen, host, place) for place in places.values()]
    if places.keys() <= known:  # else there may be others that nobody remembers
        _clear(screen, known)
    return 0 if all(results) and not mistakes and not is_left else 1


def _clear(screen: Screen, known: set[str]) -> None:
    """Remove this notyet's launcher once none of the settings that we ever changed may start it.

    One that is left behind harms nobody; without it a line that was forgotten would fail.
    """
    folder = own_folder(os.environ, own_root())
    if screen.is_dry or not known or not folder or not os.path.isdir(folder):
        return
    files = {*known}
    for name in HOSTS:
        files |= {place.path for place in host_named(name).places(os.getcwd(), os.environ)}
    if not any(may_be_used(folder, path) for path in files):
        remove(folder)


def _everywhere(host: Host) -> tuple[list[Registration], list[Mistake]]:
    """Look where the host would look, and where an installation from here would have written."""
    cwd, environ = os.getcwd(), os.environ
    found, mistakes = host.found(cwd, environ)
    places = [*host.places(cwd, environ)]
    for scope in host.SCOPES:
        with suppress(CannotInstall):
            place = host.target(scope, cwd, environ)
            if not any(is_same_file(place, other) for other in places):
                more, wrong = found_in(host.NAME, [place])
                found, mistakes = [*found, *more], [*mistakes, *wrong]
    return found, mistakes


def _from(screen: Screen, host: Host, place: Place) -> bool:
    """Take notyet out of one file, and out of what the host trusts."""
    state = state_folder(os.environ)
    outcome = screen.settle_with_trust(
        host, place, lambda: to_uninstall(host, place, state), f"Take notyet out of {host.TITLE}"
    )
    if outcome == "declined":
        return False
    if outcome == "done":
        screen.done(f"uninstalled from {host.TITLE}", file=place.path)
        screen.tell_trust(f"no longer trusted by {host.TITLE}")
    return True
