"""`notyet uninstall`: remove notyet from a host's settings again."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.cli.install import add_options, guarded
from notyet.config.find import state_folder
from notyet.install.change import changed_files, to_uninstall
from notyet.install.launcher import may_be_used, own_folder, own_root, remove
from notyet.install.settings import CannotInstall, installable, settings_of

if TYPE_CHECKING:
    import argparse
    from typing import Literal

    from notyet.cli.install import Screen
    from notyet.config.document import Mistake
    from notyet.install.settings import Registration, Settings, SettingsFile, SettingsLevel

SUMMARY = "remove notyet from a host's settings"
EXAMPLES = (
    ("notyet uninstall claude", "from all settings here"),
    ("notyet uninstall codex --user", "only from your own"),
    ("notyet uninstall claude --dry-run", "only show what would change"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    names = installable()
    parser.add_argument("host", choices=names, metavar="HOST", help=" or ".join(names))
    add_options(parser, " (without an option: all of these)")


def run(args: argparse.Namespace) -> int:
    """Show what changes, and write it."""
    host = settings_of(args.host)
    return guarded("uninstall", args, lambda screen: _uninstall(screen, host, args.scope))


def _uninstall(screen: Screen, host: Settings, scope: SettingsLevel | Literal[""]) -> int:
    if scope:
        host.target(scope, os.getcwd(), os.environ)  # which says why there is no such scope
    known = {*changed_files(state_folder(os.environ))}
    found, mistakes = _everywhere(host)
    for mistake in mistakes:
        screen.note(f"skipped: {mistake}")
    own = [one for one in found if one.is_hook]
    for one in found:
        if not one.is_hook and not one.is_mixed:
            screen.note(f"kept, because it is conclaude's command line: {one.where}")
    wanted = [one for one in found if scope in ("", one.file.scope)]
    is_left = screen.note_mixed(one for one in wanted if one.file.scope in host.scopes)
    for path in dict.fromkeys(one.file.path for one in own if one.file.scope == "managed"):
        screen.note(f"{path} belongs to your administrator, and is kept")
    files = {
        one.file.path: one.file
        for one in own
        if one.file.scope in host.scopes and scope in ("", one.file.scope)
    }
    if not files:
        where = f"its {scope} settings" if scope else "its settings here"
        print(f"not installed for {host.title}: notyet is not in {where}")
        _clear(screen, known)
        return 1 if mistakes or is_left else 0
    results = [_from(screen, host, file) for file in files.values()]
    if files.keys() <= known:  # else there may be unrecorded ones
        _clear(screen, known)
    return 0 if all(results) and not mistakes and not is_left else 1


def _clear(screen: Screen, known: set[str]) -> None:
    """Remove this notyet's launcher once none of the settings that we ever changed may start it.

    A launcher that is left behind is harmless; a registered line without one would fail.
    """
    folder = own_folder(os.environ, own_root())
    if screen.is_dry or not known or not folder or not os.path.isdir(folder):
        return
    files = {*known}
    for name in installable():
        files |= {file.path for file in settings_of(name).files(os.getcwd(), os.environ)}
    if not any(may_be_used(folder, path) for path in files):
        remove(folder)


def _everywhere(host: Settings) -> tuple[list[Registration], list[Mistake]]:
    """Look where the host would look, and where an installation from here would have written."""
    cwd, environ = os.getcwd(), os.environ
    found, mistakes = host.found(cwd, environ)
    files = [*host.files(cwd, environ)]
    for scope in host.scopes:
        with suppress(CannotInstall):
            file = host.target(scope, cwd, environ)
            if not any(file.is_same_file(other) for other in files):
                more, wrong = host.found_in([file])
                found, mistakes = [*found, *more], [*mistakes, *wrong]
    return found, mistakes


def _from(screen: Screen, host: Settings, file: SettingsFile) -> bool:
    """Remove notyet from one file, and out of what the host trusts."""
    state = state_folder(os.environ)
    outcome = screen.settle_with_trust(
        host, file, to_uninstall(host, file, state), f"Remove notyet from {host.title}"
    )
    if outcome == "declined":
        return False
    if outcome == "done":
        screen.done(f"uninstalled from {host.title}", file=file.path)
        screen.report_trust(f"no longer trusted by {host.title}")
    return True
