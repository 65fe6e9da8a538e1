"""`notyet replay`: recorded stops against today's configuration, or one that you have in mind."""

from __future__ import annotations

import argparse
import os
import sys

from notyet.cli.moments import since_option
from notyet.core.verdict import OUTCOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.config.drafts import Draft
    from notyet.ledger.past import Past
    from notyet.ledger.sqlite import Ledger
    from notyet.report.replay import Finding, Then
    from notyet.report.replay_places import Places

SUMMARY = "replay recorded stops: which decisions would differ with today's gates, or others"
EXAMPLES = (
    ("notyet replay", "the last 200 stops of this project, against what is in force now"),
    ("notyet replay --config notyet.toml", "against the file as it is, before it is trusted"),
    ("notyet replay 41 42 --config new.toml", "two stops, against a file that only you have seen"),
    ("notyet replay --since 7d --outcome capped", "would those who ran out of tries still do?"),
    ("notyet replay 41 --run", "ask the gates that have no recorded answer, on today's files"),
    ("notyet replay --json", "one JSON object for each stop, and one for all, for programs"),
)
_INSIDE = "this runs inside a gate, and a gate does not ask the gates; leave out --run"
_MOST = 200
_ALL = -1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("ids", nargs="*", type=_number, metavar="ID", help="only these stops")
    parser.add_argument(
        "--since",
        type=since_option,
        default=0.0,
        metavar="WHEN",
        help=f'all since "2d", "today", "2026-11-01" ...; default: the last {_MOST}',
    )
    parser.add_argument("--session", default="", metavar="S", help="of it; its beginning is enough")
    parser.add_argument(
        "--outcome",
        action="append",
        default=[],
        choices=OUTCOMES,
        metavar="O",
        help=f"that came to this; may be repeated: {', '.join(OUTCOMES)}",
    )
    parser.add_argument("--all", action="store_true", help="of every folder, not of this project")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="as if this notyet.toml were the project's; it is only read",
    )
    parser.add_argument(
        "--run",
        action="store_true",
        help="really ask the gates that have no recorded answer, once each, on today's files",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def run(args: argparse.Namespace) -> int:
    """Replay; exit 1 when a decision would differ, 2 when that cannot be found out."""
    from notyet.cli.replay_draft import Unusable, draft_of
    from notyet.errors import NotyetError
    from notyet.ledger.sqlite import Ledger

    if args.run and os.environ.get("NOTYET_INSIDE"):  # it would ask itself, for ever (E11)
        print(f"notyet replay: {_INSIDE}", file=sys.stderr)
        return 2
    ledger = Ledger(mends=False)
    try:
        draft = draft_of(args.config, os.environ, is_run=args.run) if args.config else None
        return _replay(args, ledger, draft)
    except (Unusable, NotyetError) as error:
        print(f"notyet replay: {error}", file=sys.stderr)
        return 2
    finally:
        for warning in ledger.file.take_warnings():
            print(f"notyet replay: {warning}", file=sys.stderr)
        ledger.close()


def _replay(args: argparse.Namespace, ledger: Ledger, draft: Draft | None) -> int:
    from notyet.cli.replay_show import show, show_json
    from notyet.cli.waiting import waiting
    from notyet.report.replay_past import programs, turns
    from notyet.report.replay_places import Places

    pasts = _chosen(args, ledger)
    with waiting(f"replaying what was recorded ({len(pasts)}) ..."):
        found = turns(ledger, pasts)
        every = [then.past for turn in found for then in turn]
        places = Places(os.environ, draft, programs(ledger, every))
        wanted = {past.id for past in pasts}
        findings = _findings(found, places, wanted)
    if args.run:
        from notyet.cli.replay_run import ask_missing

        if ask_missing(findings, places):
            findings = _findings(found, places, wanted)
    for said in places.said:
        print(f"notyet replay: {said}", file=sys.stderr)
    if args.json:
        show_json(findings)
    else:
        show(
            findings,
            args.config or "",
            is_narrowed=bool(args.since or args.outcome or args.session),
        )
    return 1 if any(finding.result == "differs" for finding in findings) else 0


def _chosen(args: argparse.Namespace, ledger: Ledger) -> list[Past]:
    from notyet.cli.log import project_of
    from notyet.cli.replay_draft import Unusable
    from notyet.core.record import replace
    from notyet.core.text import visible
    from notyet.ledger.past import Wish, stops
    from notyet.report.replay_past import chosen

    narrowed = [f"--{name}" for name in ("since", "session", "outcome", "all") if vars(args)[name]]
    if args.ids and narrowed:
        raise Unusable(f"an ID does not go together with {narrowed[0]}; choose one")
    wish = Wish(
        session=args.session,
        outcomes=tuple(dict.fromkeys(args.outcome)),
        place="" if args.all or args.ids else project_of(os.getcwd()),
        since=args.since,
        most=_ALL if args.since else _MOST,
    )
    found = chosen(ledger, wish, args.ids)
    # In CI, the name of a session with a typo must not look like a success.
    if args.session and not found and not stops(ledger, replace(wish, outcomes=(), since=0.0)):
        where = "is recorded" if args.all else "is recorded here"
        raise Unusable(
            f"no stop of session {visible(args.session)} {where}; list them with: notyet log --all"
        )
    gone = sorted(set(args.ids) - {past.id for past in found})
    if gone:
        raise Unusable(f"there is no stop {gone[0]}; list them with: notyet log --all")
    return found


def _findings(turns: Sequence[Sequence[Then]], places: Places, wanted: set[int]) -> list[Finding]:
    from notyet.report.replay import replay

    return [finding for finding in replay(turns, places.today) if finding.past.id in wanted]


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:  # noqa: PLR2004  # digits that SQLite counts to
        raise argparse.ArgumentTypeError(
            f"a stop has a number, not {text!r}; list them: notyet log"
        )
    return int(text)
