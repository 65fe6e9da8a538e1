"""`notyet log`: the stops of agents, what was decided, and why."""

from __future__ import annotations

import argparse
import os
import sys

from notyet.cli.moments import since_option, until_option
from notyet.core.verdict import OUTCOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.ledger.past import Wish
    from notyet.ledger.sqlite import Ledger

SUMMARY = "look back: what stops came to, and which gates are worth their seconds"
EXAMPLES = (
    ("notyet log", "the last stops in this project, the newest at the bottom"),
    ("notyet log 41", "everything about one stop, with all that its gates printed"),
    ("notyet log -f --all", "every stop everywhere, as it happens"),
    ("notyet log --outcome blocked --since 2d", "who was sent back in the last two days"),
    ("notyet log --stats --since 30d", "gate by gate: how often asked, what came of it, how long"),
    ("notyet log --json -n all", "one JSON object in each line, for programs"),
    ("notyet log --prune", "remove now what is older than you keep, and give its space back"),
)
_MOST = 20
_ALL = -1
_MOST_DIGITS = 40


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("id", nargs="?", type=_number, metavar="ID", help="show one stop, whole")
    parser.add_argument("--session", default="", metavar="S", help="of it; its beginning is enough")
    parser.add_argument(
        "--outcome",
        action="append",
        default=[],
        choices=(*OUTCOMES, "asking"),
        metavar="O",
        help=f"of these; may be repeated: {', '.join(OUTCOMES)}, or asking",
    )
    parser.add_argument("--host", default="", metavar="H", help="of agents of this host")
    parser.add_argument("--gate", default="", metavar="G", help="in which this gate has a report")
    parser.add_argument(
        "--since",
        type=since_option,
        default=0.0,
        metavar="WHEN",
        help='since "2d", "90m", "today", "2026-11-01" or "2026-11-01T14:30"',
    )
    parser.add_argument(
        "--until", type=until_option, default=0.0, metavar="WHEN", help="until then; a day: its end"
    )
    parser.add_argument("--all", action="store_true", help="of every folder, not of this project")
    parser.add_argument(
        "-n", type=_most, dest="most", metavar="N", help=f"at most N, or all; default {_MOST}"
    )
    parser.add_argument("--stats", action="store_true", help="what they come to, gate by gate")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with those to come")
    parser.add_argument("--prune", action="store_true", help="remove what is older than you keep")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def run(args: argparse.Namespace) -> int:
    """Show what was asked for; 1 when there is no such stop, or no ledger that can be read."""
    wrong = _wrong(args)
    if wrong:
        print(f"notyet log: {wrong}", file=sys.stderr)
        return 2
    from notyet.errors import NotyetError
    from notyet.ledger.sqlite import Ledger

    ledger = Ledger(mends=False)
    try:
        return _do(args, ledger)
    except NotyetError as error:
        print(f"notyet log: {error}", file=sys.stderr)
        return 1
    finally:
        for warning in ledger.file.take_warnings():
            print(f"notyet log: {warning}", file=sys.stderr)
        ledger.close()


def _wrong(args: argparse.Namespace) -> str:
    """Say what is wrong with the command line."""
    kinds = {"an ID": args.id is not None, "--stats": args.stats, "--follow": args.follow}
    kinds["--prune"] = args.prune
    chosen = [name for name, is_chosen in kinds.items() if is_chosen]
    if len(chosen) > 1:
        return f"{chosen[0]} and {chosen[1]} do not go together; choose one"
    narrowed = _narrowed(args)
    if narrowed and (args.id is not None or args.prune):
        return f"{chosen[0]} does not go together with {narrowed[0]}"
    if args.prune and args.json:
        return "--prune has no JSON"
    if args.until and args.since and args.until <= args.since:
        return "--until is before --since; nothing can lie between"
    if args.until and args.follow:
        return "--follow and --until do not go together: it has no end"
    return ""


def _narrowed(args: argparse.Namespace) -> list[str]:
    given = {
        "--session": args.session,
        "--outcome": args.outcome,
        "--host": args.host,
        "--gate": args.gate,
        "--since": args.since,
        "--until": args.until,
        "-n": args.most,
    }
    return [name for name, value in given.items() if value]


def _do(args: argparse.Namespace, ledger: Ledger) -> int:
    if args.prune:
        from notyet.cli.log_prune import prune

        return prune(ledger)
    if args.id is not None:
        from notyet.cli.log_show import show_one

        return show_one(ledger, args.id, as_json=args.json)
    wish = _wish(args)
    if args.stats:
        from notyet.cli.log_stats import show_stats

        return show_stats(ledger, wish, as_json=args.json)
    if args.follow:
        from notyet.cli.log_follow import follow

        return follow(ledger, wish, as_json=args.json)
    from notyet.cli.log_list import show_list

    return show_list(ledger, wish, is_narrowed=bool(_narrowed(args)), as_json=args.json)


def _wish(args: argparse.Namespace) -> Wish:
    from notyet.ledger.past import Wish

    return Wish(
        session=args.session,
        outcomes=tuple(dict.fromkeys(args.outcome)),
        host=args.host,
        place="" if args.all else project_of(os.getcwd()),
        gate=args.gate.encode("utf-8", "replace").decode(),  # as it is stored
        since=args.since,
        until=args.until,
        most=args.most or (_ALL if args.stats else _MOST),
    )


def project_of(folder: str) -> str:
    """Return the project that a folder is in: of the nearest notyet.toml, else its repository."""
    from notyet.config.files import NAME, above, root_of

    for place in above(folder):
        if os.path.isfile(os.path.join(place, NAME)):
            return place
    return root_of(folder)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        from notyet.cli.lines import in_a_line

        raise argparse.ArgumentTypeError(
            f"a stop has a number, not {in_a_line(text, _MOST_DIGITS)!r}; list them: notyet log"
        )
    return int(text)


def _most(text: str) -> int:
    if text == "all":
        return _ALL
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    if not is_number or not 0 < int(text) < 1 << 31:
        from notyet.cli.lines import in_a_line

        raise argparse.ArgumentTypeError(
            f"a number from 1 up, or all; not {in_a_line(text, _MOST_DIGITS)!r}"
        )
    return int(text)
