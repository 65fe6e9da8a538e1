"""`notyet trust`: look at the commands a project's files name, and put them into force."""

from __future__ import annotations

import os

from notyet.cli.person import refuse, why_refused, write_down
from notyet.cli.trust_show import Show
from notyet.cli.trusting import files_there, files_to_trust, folder_there, offer, records
from notyet.cli.waiting import waiting
from notyet.config.files import NAME, READABLE
from notyet.config.load import PATIENCE
from notyet.config.scalars_places import meant_workspace
from notyet.config.store import remove_record, state_folder
from notyet.core.remote import is_remote
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from notyet.cli.trusting import Consent
    from notyet.config.files import ConfigFile

SUMMARY = "look at the gates of this project and put them into force"
EXAMPLES = (
    ("notyet trust", "look at this project's gates, and put them into force"),
    ("notyet trust --show", "only show what is, and is not, trusted"),
    ("notyet trust --read claude", "also the hooks of Claude Code, for other agents"),
    ("notyet trust ssh://dev@box/srv/app", "the gates of a workspace on another machine"),
    ("notyet trust --revoke", "take trust back"),
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
    """There is nothing to trust; says why."""


def _files(args: argparse.Namespace, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files that are meant. Raises _NotFound."""
    others = "files of other hosts are found with --read"
    if is_remote(args.path):
        files, place = _files_there(args, environ)
        if not files:
            raise _NotFound(f"no {NAME} in {visible(place)} or above; {others}")
        return files
    files = files_to_trust(args.path, args.read, environ)
    if not files and not os.path.exists(args.path):
        hint = meant_workspace(args.path)
        raise _NotFound(
            f"there is no {visible(args.path)}" + (f"; {visible(hint)}" if hint else "")
        )
    if not files:
        raise _NotFound(f"no {NAME} in {os.path.abspath(args.path)} or above; {others}")
    return files


def _files_there(
    args: argparse.Namespace, environ: Mapping[str, str]
) -> tuple[list[ConfigFile], str]:
    """Return the files of a workspace, and its folder."""
    from notyet.config.tree_remote import RemoteTree

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
    from notyet.cli.trust_revoke import trusted_paths

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
