"""`notyet uninstall`: remove notyet from a host's settings again."""

from __future__ import annotations

import glob
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.cli.hosts import add_host
from notyet.cli.install import add_options, guarded
from notyet.cli.person import agreed, refuse
from notyet.config.find import state_folder, user_folder
from notyet.config.readers import read_file
from notyet.core.text import visible
from notyet.install.change import changed_files, to_uninstall
from notyet.install.launcher import (
    data_folder,
    launcher_path,
    may_be_used,
    own_folder,
    own_root,
    remove,
)
from notyet.install.notyet_line import LAUNCHER
from notyet.install.settings import CannotInstall, installable, settings_of
from notyet.ledger.connection import LEDGER, SHIP_STAMP, SHIP_STATE, default_path
from notyet.ledger.logs import log_files
from notyet.ledger.repair import is_ours

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
    ("notyet uninstall --all", "from the settings of all hosts"),
    ("notyet uninstall --all --purge", "the same, with the ledger, trust and all that is stored"),
)
_OURS = (
    "trust",
    "trust-there",
    "off",
    "sessions",
    "backups",
    "demo",
    "install.lock",
    "snapshots",
    "baselines",
    "runs",
    "judge",
    "acp",
    "fleet",
)  # in the state folder
_LEDGER = ("", "-wal", "-shm", ".lock", SHIP_STAMP, SHIP_STATE)  # the endings of its files


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_host(parser, nargs="?")
    add_options(parser, " (without an option: all of these)")
    parser.add_argument("--all", action="store_true", help="from all hosts")
    parser.add_argument(
        "--purge",
        action="store_true",
        help="from all hosts; also remove the ledger, trust, backups, snapshots and launchers",
    )


def run(args: argparse.Namespace) -> int:
    """Show what changes, and write it."""
    if args.purge:
        if args.host or args.scope:
            return refuse("uninstall", "--purge is for all hosts and settings; give it alone", 2)
        return guarded("uninstall", args, lambda screen: _purge(screen, yes=args.yes))
    if args.all and args.host:
        return refuse("uninstall", f"{args.host} or --all; give one of them", 2)
    if args.all:
        return guarded("uninstall", args, lambda screen: _from_all(screen, args.scope))
    if not args.host:
        return refuse(
            "uninstall", "name a host (list them with: notyet hosts), or add --all or --purge", 2
        )
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
        if not one.is_hook and not one.is_mixed and not one.is_plugin:
            screen.note(f"kept, because it is conclaude's command line: {one.where}")
    wanted = [one for one in found if scope in ("", one.file.scope)]
    is_left = screen.note_mixed(one for one in wanted if one.file.scope in host.scopes)
    is_left |= not scope and _note_plugin(screen, host, found)
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


def _note_plugin(screen: Screen, host: Settings, found: list[Registration]) -> bool:
    """Say how the plugin is removed, which only its host can do; return True if it is there."""
    plugin = host.host.plugin
    if plugin is None or not any(one.is_plugin for one in found):
        return False
    screen.note(f"{host.title} has the plugin notyet; to remove it, {plugin.remove}")
    return True


def _from_all(screen: Screen, scope: SettingsLevel | Literal[""]) -> int:
    """Remove notyet from every host that has it here; return 1 if something is left."""
    hosts = [settings_of(name) for name in installable()]
    results = [_uninstall(screen, host, scope) for host in hosts if _everywhere(host)[0]]
    if not results:
        print("notyet is not registered with any host here")
    return int(any(results))


def _purge(screen: Screen, *, yes: bool) -> int:
    """Remove notyet from all hosts here, and then all that it stored; nothing else."""
    known = {*changed_files(state_folder(os.environ))}
    if _from_all(screen, ""):
        return refuse("uninstall", "notyet is still registered, so nothing else was removed")
    for path in sorted(known):
        text, _ = read_file(path)
        if not screen.is_dry and text is not None and "/notyet/" in text and LAUNCHER in text:
            screen.note(f"{path} still registers notyet; run notyet uninstall there")
    launchers, stored = _launchers(), _stored(screen)
    if not launchers and not stored:
        print("nothing is stored")
        return 0
    print("to remove:", *(f"  {visible(path)}" for path in (*stored, *launchers)), sep="\n")
    if screen.is_dry:
        print("dry run: nothing was changed")
        return 0
    if not yes and not agreed("Remove all of this?", "uninstall", "to do this"):
        print("nothing of it was removed")
        return 1
    _remove_all(stored, launchers)
    kept = visible(user_folder(os.environ))
    print(f"removed; your own configuration ({kept}) and the notyet.toml of projects stay")
    print("to remove the program, too: uv tool uninstall notyet (or with pipx or pip)")
    return 0


def _remove_all(stored: list[str], launchers: list[str]) -> None:
    for path in stored:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    for folder in launchers:
        remove(folder)
    state, data = state_folder(os.environ), data_folder(os.environ)
    with suppress(OSError):  # other files are in it
        os.rmdir(os.path.join(state, "logs"))
    for folder in filter(None, (state, data)):
        with suppress(OSError):  # as above
            _remove_empty(folder)


def _remove_empty(folder: str) -> None:
    """Remove an empty folder, and those around it in the home folder that are empty then."""
    home = os.path.expanduser("~") + "/"
    with suppress(FileNotFoundError):
        os.rmdir(folder)
    while (folder := os.path.dirname(folder)).startswith(home):
        os.rmdir(folder)


def _stored(screen: Screen) -> list[str]:
    """Return the files and folders of ours in the state folder, and where the ledger is."""
    state = state_folder(os.environ)
    found = [os.path.join(state, name) for name in _OURS]
    for ledger in dict.fromkeys((os.path.join(state, LEDGER), default_path(os.environ))):
        if os.path.exists(ledger) and not is_ours(ledger):
            screen.note(f"{ledger} is not a ledger, and is kept")
            continue
        found += [ledger + ending for ending in _LEDGER]
        aside = glob.escape(ledger)
        found += [*glob.glob(f"{aside}.corrupt-*"), *glob.glob(f"{aside}.before-*")]
        found += log_files(ledger)
    return [path for path in found if os.path.lexists(path)]


def _launchers() -> list[str]:
    """Return the folders of launchers, also of other installations of notyet."""
    data = data_folder(os.environ)
    if not data:
        return []
    folders = (data, *glob.glob(f"{glob.escape(data)}/*"))
    return [folder for folder in folders if os.path.isfile(launcher_path(folder))]


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
    if not any(may_be_used(folder, path, _project_of(path)) for path in files):
        remove(folder)


def _project_of(path: str) -> str:
    """Return the folder that a settings file is for: the one around the path that its host has."""
    for name in installable():
        for below in settings_of(name).host.settings.values():
            if path.endswith(f"/{below}"):
                return path.removesuffix(below)
    return os.path.dirname(os.path.dirname(path))


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
