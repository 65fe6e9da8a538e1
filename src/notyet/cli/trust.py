"""`notyet trust`: look at the commands a project's files name, and put them into force."""

from __future__ import annotations

import os

from notyet.cli.person import refuse, why_refused, write_down
from notyet.cli.trust_show import Show
from notyet.cli.trusting import files_to_trust, offer
from notyet.config.files import NAME, READABLE
from notyet.config.store import read_record, remove_record, state_folder
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from notyet.cli.trusting import Consent
    from notyet.config.files import ConfigFile

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
    files = files_to_trust(args.path, args.read, environ)
    if not files:
        if not os.path.exists(args.path):
            return refuse("trust", f"there is no {visible(args.path)}")
        others = "files of other hosts are found with --read"
        return refuse("trust", f"no {NAME} in {os.path.abspath(args.path)} or above; {others}")
    if args.revoke:
        return _revoke(files, environ, show)
    consent: Consent = "refused" if args.show else "given" if args.yes else "asked"
    results = [offer(file, consent, environ, show) for file in files]
    return 0 if all(results) else 1


def _revoke(files: list[ConfigFile], environ: Mapping[str, str], show: Show) -> int:
    state = state_folder(environ)
    known = [file.path for file in files if read_record(state, file.path) is not None]
    for path in known:
        remove_record(state, path)
        write_down("revoke", path, "")
        show.done(f"no longer trusted: {visible(path)}")
    return 0 if known else refuse("trust", "nothing here is trusted")
