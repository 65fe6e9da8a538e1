"""`notyet trust`: look at the commands a project's files name, and put them into force."""

from __future__ import annotations

import os
import sys

from notyet.cli.person import refuse, why_refused, write_down
from notyet.cli.trust_show import Show
from notyet.config.files import (
    NAME,
    NATIVE,
    READABLE,
    ConfigFile,
    host_files,
    known_as,
    native_files,
)
from notyet.config.store import read_record, record_path, remove_record, state_folder
from notyet.config.trust import candidate, grant
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

SUMMARY = "look at the gates of this project and put them into force"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("path", nargs="?", default=".", help="a folder or file (default: here)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only show what is, and is not, trusted")
    what.add_argument("--revoke", action="store_true", help="take trust back")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--read", action="append", choices=READABLE, default=[], help="also files of this host"
    )


def run(args: argparse.Namespace) -> int:
    """Show, trust or revoke; exit 0 when all that was found is trusted."""
    environ = os.environ
    show = Show()
    why = "" if args.show else why_refused()
    if why:
        return refuse("trust", why)
    files = _files(args.path, args.read, environ)
    if not files:
        if not os.path.exists(args.path):
            return refuse("trust", f"there is no {visible(args.path)}")
        others = "files of other hosts are found with --read"
        return refuse("trust", f"no {NAME} in {os.path.abspath(args.path)} or above; {others}")
    if args.revoke:
        return _revoke(files, environ, show)
    results = [_one(file, args, environ, show) for file in files]
    return 0 if all(results) else 1


def _files(path: str, hosts: list[str], environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files of projects that need trust; the user's own ones do not."""
    path = os.path.realpath(path) if os.path.isdir(path) else known_as(path)
    if not os.path.isdir(path) and os.path.basename(path) != NAME:
        return _named(path, environ)
    state = state_folder(environ)

    def is_trusted(file: str) -> bool:
        return os.path.exists(record_path(state, file))

    folder = path if os.path.isdir(path) else os.path.dirname(path)
    native = native_files(folder, environ, is_trusted)
    wanted = dict.fromkeys([*hosts, *_hosts_read(native, environ)])
    found = [file for file in native if not file.own][:1]  # the nearest
    for host in wanted:
        found += [f for f in host_files(host, folder, environ, is_trusted) if not f.own]
    return found


def _named(path: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return a file of another host that was named itself."""
    folder = os.path.dirname(path)
    for place in (folder, os.path.dirname(folder)):
        for host in READABLE:
            for file in host_files(host, place, environ):
                if file.path == path:
                    return [file]
    return [ConfigFile(path=path, kind="notyet")] if os.path.exists(path) else []


def _hosts_read(files: list[ConfigFile], environ: Mapping[str, str]) -> list[str]:
    hosts: list[str] = []
    for file in files:
        if not file.is_gone:
            try:
                hosts += candidate(file, environ).settings.read_hosts
            except OSError:
                continue
    return hosts


def _one(
    file: ConfigFile, args: argparse.Namespace, environ: Mapping[str, str], show: Show
) -> bool:
    """Show one file, and trust it if a person says so."""
    try:
        found = candidate(file, environ)
    except OSError as error:
        show.problem(file.path, str(error.strerror or error))
        return False
    show.file(found)
    if found.is_trusted or args.show:
        return found.is_trusted
    if found.settings.mistakes:
        show.problem(file.path, "it has mistakes, so it cannot be trusted; correct them first")
        return False
    if not args.yes and not _agreed():
        print("nothing was changed")
        return False
    try:
        grant(found, environ)
    except OSError as error:
        show.problem(file.path, f"that cannot be remembered: {error.strerror or error}")
        return False
    count = len(found.settings.gates)
    write_down("trust", file.path, f"{count} gates")
    gates = f"{count} gate{'' if count == 1 else 's'} of this file"
    whose = "" if file.kind == NATIVE else ", for hosts that read it"
    show.done(f"trusted: {gates} in force now{whose}" if count else "trusted: it has no gates")
    return True


def _agreed() -> bool:
    if not sys.stdin.isatty():
        print("notyet trust: not a terminal; add --yes to trust this", file=sys.stderr)
        return False
    try:
        return input("Trust this file, and run these commands? [y/N] ").strip().lower() in {
            "y",
            "yes",
        }
    except EOFError:
        return False


def _revoke(files: list[ConfigFile], environ: Mapping[str, str], show: Show) -> int:
    state = state_folder(environ)
    known = [file.path for file in files if read_record(state, file.path) is not None]
    for path in known:
        remove_record(state, path)
        write_down("revoke", path, "")
        show.done(f"no longer trusted: {visible(path)}")
    return 0 if known else refuse("trust", "nothing here is trusted")
