"""`notyet trust`: show the commands that a project's files name, and put them into force."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from notyet.cli.person import refuse, why_refused, write_down
from notyet.cli.terminal import waiting
from notyet.cli.trusting import Show, files_there, files_to_trust, folder_there, offer, records
from notyet.config.files import NAME, above, known_as
from notyet.config.find import has_record, state_folder
from notyet.config.host_files import looked_for
from notyet.config.load import PATIENCE
from notyet.config.records import read_record, remove_record
from notyet.config.remote import RemoteTree
from notyet.config.scalars import meant_workspace
from notyet.core.remote import is_remote
from notyet.core.text import visible
from notyet.hosts.files import ABOVE, READABLE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from notyet.cli.trusting import Consent
    from notyet.config.files import ConfigFile

SUMMARY = "review the gates of this project and put them into force"
EXAMPLES = (
    ("notyet trust", "review this project's gates, and put them into force"),
    ("notyet trust --show", "only show which files are trusted"),
    ("notyet trust --read claude", "also the hooks of Claude Code, for other agents"),
    ("notyet trust ssh://dev@box/srv/app", "the gates of a workspace on another machine"),
    ("notyet trust --revoke", "stop trusting"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "path",
        nargs="?",
        default=".",
        help="a folder or file (default: here), or a workspace: ssh://host/path",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only show which files are trusted")
    what.add_argument("--revoke", action="store_true", help="stop trusting")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument(
        "--read", action="append", choices=READABLE, default=[], help="also files of this host"
    )


def run(args: argparse.Namespace) -> int:
    """Show, trust or revoke; exit 0 when all files that were found are trusted."""
    environ = os.environ
    show = Show()
    why = "" if args.show else why_refused()
    if why:
        return refuse("trust", why)
    if args.revoke:
        return _revoke(args.path, environ, show)
    try:
        files = _files(args, environ)
    except _NotFound as error:
        return refuse("trust", str(error))
    consent: Consent = "refused" if args.show else "given" if args.yes else "asked"
    results = [offer(file, consent, environ, show) for file in files]
    return 0 if all(results) else 1


class _NotFound(Exception):  # noqa: N818  # it never leaves this module
    """Why there is nothing to trust."""


def _files(args: argparse.Namespace, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files to trust. Raises _NotFound."""
    others = "add --read HOST for files of another host"
    if is_remote(args.path):
        files, place = _files_there(args, environ)
        if not files:
            raise _NotFound(f"no {NAME} in {visible(place)} or above; {others}")
        return files
    files = files_to_trust(args.path, args.read, environ)
    if not files and not os.path.exists(args.path):
        hint = meant_workspace(args.path)
        raise _NotFound(
            f"no such file or folder: {visible(args.path)}" + (f"; {visible(hint)}" if hint else "")
        )
    if not files:
        raise _NotFound(f"no {NAME} in {os.path.abspath(args.path)} or above; {others}")
    return files


def _files_there(
    args: argparse.Namespace, environ: Mapping[str, str]
) -> tuple[list[ConfigFile], str]:
    """Return the files of a workspace, and its folder."""
    try:
        folder, named = folder_there(args.path)
    except ValueError as error:
        raise _NotFound(f"{visible(args.path)}: {error}") from None
    with waiting(f"looking at {visible(folder)} ..."):
        hosts = READABLE if named else args.read
        tree = RemoteTree(folder, PATIENCE, hosts, records(environ))
        files = files_there(tree, named, args.read, environ)
    if tree.unseen:
        raise _NotFound(f"{visible(folder)} cannot be read: {tree.unseen}")
    return files, named or folder


def _revoke(place: str, environ: Mapping[str, str], show: Show) -> int:
    state = state_folder(environ)
    try:
        known = trusted_paths(place, state)
    except ValueError as error:
        return refuse("trust", f"{visible(place)}: {error}")
    for path in known:
        remove_record(state, path)
        write_down("revoke", path, "")
        show.done(f"no longer trusted: {visible(path)}")
    what = "here" if place == "." else f"of {visible(place)}"
    return 0 if known else refuse("trust", f"nothing {what} is trusted")


def trusted_paths(path: str, state: str) -> list[str]:
    """Return the trusted files that count for a folder, or the one that is named.

    Only records say so: the machine of a workspace, or a file that cannot be read, could hide
    them. Raises ValueError for a bad workspace.
    """
    if is_remote(path):
        folder, named = folder_there(path)
        found = [named] if named else _around(folder, state)
    elif os.path.isdir(path):
        # A folder may have been replaced by a link to another one since it was trusted.
        places = (os.path.realpath(path), os.path.abspath(path))
        found = [name for place in places for name in _around(place, state)]
    elif os.path.basename(path) == NAME:
        found = _around(os.path.dirname(known_as(path)), state)
    else:
        found = [known_as(path)]
    return [name for name in dict.fromkeys(found) if _was_trusted(state, name)]


def _around(place: str, state: str) -> list[str]:
    """Return the files that may count for a folder."""
    every, projects = looked_for(READABLE)
    # Of these only the nearest one counts; one further up belongs to another project.
    nearest = [_nearest(place, names, state) for names in ((NAME,), tuple(ABOVE))]
    names = [name for name in (*every, *projects) if name not in (NAME, *ABOVE)]
    others = [os.path.join(folder, name) for folder in above(place) for name in names]
    return [*filter(None, nearest), *others]


def _nearest(place: str, names: tuple[str, ...], state: str) -> str:
    for folder in above(place):
        for name in names:
            path = os.path.join(folder, name)
            is_here = not is_remote(path) and os.path.lexists(path)
            if is_here or _was_trusted(state, path):
                return path
    return ""


def _was_trusted(state: str, path: str) -> bool:
    """Return True if a person trusted a file; the user's own file has a record without a time."""
    known = read_record(state, path)
    return has_record(state, path) if known is None else known.at > 0
