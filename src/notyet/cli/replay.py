"""`notyet replay`: recorded stops against today's configuration, or one that you have in mind."""

from __future__ import annotations

import argparse
import os
import sys

from notyet.cli.ending import ended_in_order
from notyet.cli.moments import since_option
from notyet.cli.terminal import waiting
from notyet.config.compile import compile_text
from notyet.config.files import NATIVE, known_as
from notyet.config.find import state_folder
from notyet.config.load import Draft
from notyet.config.readers import read_file
from notyet.config.records import read_record
from notyet.core.record import variant
from notyet.core.text import visible
from notyet.core.verdict import OUTCOMES
from notyet.engine.engine import Engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.limits import History, Limits
    from notyet.core.verdict import Report
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past import Past
    from notyet.replay.past import Places
    from notyet.replay.replay import Finding, Then

    Asked = tuple[StopEvent, History, Limits, Gate]

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
    from notyet.errors import NotyetError
    from notyet.ledger.ledger import Ledger

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
    from notyet.cli.terminal import waiting
    from notyet.replay.past import Places, programs, turns

    pasts = _chosen(args, ledger)
    with waiting(f"replaying what was recorded ({len(pasts)}) ..."):
        found = turns(ledger, pasts)
        every = [then.past for turn in found for then in turn]
        places = Places(os.environ, draft, programs(ledger, every))
        wanted = {past.id for past in pasts}
        findings = _findings(found, places, wanted)
    if args.run and ask_missing(findings, places):
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
    from notyet.core.record import replace
    from notyet.core.text import visible
    from notyet.ledger.past import Wish, stops
    from notyet.replay.past import chosen

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
    from notyet.replay.replay import replay

    return [finding for finding in replay(turns, places.today) if finding.past.id in wanted]


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:  # noqa: PLR2004  # digits that SQLite counts to
        raise argparse.ArgumentTypeError(
            f"a stop has a number, not {text!r}; list them: notyet log"
        )
    return int(text)


class Unusable(Exception):  # noqa: N818  # said to whoever asked, and never raised further
    """What was asked for cannot be found out; says why."""


def draft_of(path: str, environ: Mapping[str, str], *, is_run: bool) -> Draft:
    """Read a file that somebody has in mind. Raises Unusable: for mistakes, each in a line."""
    text, fault = read_file(path)
    if fault is not None or text is None:
        raise Unusable(visible(str(fault)))
    name = known_as(path)
    mistakes = compile_text(text, name, NATIVE).mistakes
    if mistakes:
        lines = "\n".join(f"  {visible(str(mistake))}" for mistake in mistakes)
        raise Unusable(f"{visible(path)} has mistakes, so it cannot be in force:\n{lines}")
    if is_run:
        known = read_record(state_folder(environ), name)
        if known is None or not known.at or known.content != text:
            raise Unusable(
                f"{visible(path)} is not trusted, so nothing of it is run; leave out --run, or "
                f"run: notyet trust {visible(path)}"
            )
    return Draft(text=text, path=name)


def ask_missing(findings: Sequence[Finding], places: Places) -> int:
    """Ask each gate whose missing answer matters, once for each place; return how many answered.

    It is asked about the newest stop that it matters for, as that stop would ask it.
    """
    from notyet.run.sweep import adopt_orphans, sweep

    wanted: dict[tuple[str, str], Asked] = {}
    for finding in findings:
        wanted |= _wanted(finding, places)
    count = 0
    adopt_orphans()  # before the first one is asked (E2)
    with ended_in_order(sweep):
        for (cwd, definition), asked in wanted.items():
            with waiting(f"asking {visible(asked[-1].name)} ..."):
                report = _answer(*asked)
            if report is not None:
                places.answer(cwd, definition, report)
                count += 1
    return count


def _wanted(finding: Finding, places: Places) -> dict[tuple[str, str], Asked]:
    """Return whom to ask about a stop: those of whom it is not known what they say."""
    today = places.today(finding.past) if finding.missing else ""
    if isinstance(today, str):
        return {}
    event = variant(finding.past.event, {"workspace": today.workspace})
    return {
        (event.cwd, today.definitions[missing.gate.name]): (
            event,
            finding.history,
            today.limits,
            missing.gate,
        )
        for missing in finding.missing
        if missing.report is None and today.definitions[missing.gate.name]
    }


def _answer(event: StopEvent, history: History, limits: Limits, gate: Gate) -> Report | None:
    """Ask a gate; None if the stop would not have asked it after all."""
    decision = Engine([gate], limits=limits).decide_sync(event, history, asked="all")
    (report,) = decision.reports or (None,)
    return report if report is not None and report.answer is not None else None
