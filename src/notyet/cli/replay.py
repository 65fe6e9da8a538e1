"""`notyet replay`: which recorded decisions would differ with today's gates, or with others."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from notyet.cli.log import project_of, stop_id
from notyet.cli.person import refuse
from notyet.cli.progress import waiting
from notyet.cli.signals import ended_in_order
from notyet.cli.streams import json_line
from notyet.cli.terminal import OUTCOME_COLOURS, Style, table
from notyet.cli.times import since_option
from notyet.config.compile import compile_text
from notyet.config.compiled import read_record
from notyet.config.find import KIND_NOTYET, known_as, state_folder
from notyet.config.load import Draft
from notyet.config.readers import read_file
from notyet.core.record import replace, variant
from notyet.core.text import listed, visible
from notyet.core.verdict import OUTCOMES
from notyet.engine.engine import Engine
from notyet.errors import NotyetError, Refused
from notyet.ledger.ledger import Ledger
from notyet.ledger.past_stops import PastStop, StopFilter, read_stops, stops
from notyet.replay import RESULTS, Config, Configs, Finding, replay, turns_of
from notyet.run.groups import adopt_orphans, sweep
from notyet.times import when

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from notyet.core.gate import Gate

SUMMARY = "replay recorded stops: which decisions would differ with today's gates, or others"
EXAMPLES = (
    ("notyet replay", "the last 200 stops of this project, against what is in force now"),
    ("notyet replay --config notyet.toml", "against the file as it is, before it is trusted"),
    ("notyet replay 41 42 --config new.toml", "two stops, against a file that only you have seen"),
    ("notyet replay --since 7d --outcome capped", "would agents still run out of send-backs?"),
    ("notyet replay 41 --run", "run the gates that have no recorded answer, on today's files"),
    ("notyet replay --json", "one JSON object for each stop, and one for all, for programs"),
)
_MOST = 200
_NAMES = {"differs": "differ", "left_out": "left out"}
_COLOURS = {"same": "green", "differs": "red", "unknown": "yellow"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("ids", nargs="*", type=stop_id, metavar="ID", help="only these stops")
    parser.add_argument(
        "--since",
        type=since_option,
        default=0.0,
        metavar="WHEN",
        help=f'only since "2d", "today", "2026-11-01" ...; default: the last {_MOST} stops',
    )
    parser.add_argument(
        "--session", default="", metavar="S", help="only this session; a prefix is enough"
    )
    parser.add_argument(
        "--outcome",
        action="append",
        default=[],
        choices=OUTCOMES,
        metavar="O",
        help=f"only this outcome; may be repeated: {', '.join(OUTCOMES)}",
    )
    parser.add_argument(
        "--all", action="store_true", help="stops of every folder, not only of this project"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="as if this notyet.toml were the project's; it is only read",
    )
    parser.add_argument(
        "--run",
        action="store_true",
        help="run the gates that have no recorded answer, once each, on today's files",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def run(args: argparse.Namespace) -> int:
    """Replay; exit 1 if a decision would differ, 2 if something that was named is not there."""
    ledger = Ledger(repair=False)
    try:
        findings = _findings(args, ledger)
    except NotyetError as error:
        return refuse("replay", str(error), 2)
    finally:
        for warning in ledger.connection.take_warnings():
            print(f"notyet replay: {warning}", file=sys.stderr)
        ledger.close()
    if args.json:
        _print_json(findings)
    elif findings:
        _print(findings, args.config or "")
    else:
        is_narrowed = bool(args.since or args.outcome or args.session)
        none = "no stop here matches" if is_narrowed else "none are recorded here"
        print(f"no stops to replay: {none}; try --all, or see: notyet log --all")
    return 1 if any(finding.result == "differs" for finding in findings) else 0


def _draft(path: str, *, is_run: bool) -> Draft:
    """Read a configuration that is not in force. Raises Refused."""
    text, fault = read_file(path)
    if fault is not None or text is None:
        raise Refused(visible(str(fault)))
    name = known_as(path)
    mistakes = [visible(str(mistake)) for mistake in compile_text(text, name, KIND_NOTYET).mistakes]
    if mistakes:
        lines = "".join(f"\n  {mistake}" for mistake in mistakes)
        raise Refused(f"{visible(path)} has mistakes, so it cannot be in force:{lines}")
    known = read_record(state_folder(os.environ), name) if is_run else None
    if is_run and (known is None or not known.at or known.content != text):
        shown = visible(path)
        raise Refused(
            f"{shown} is not trusted, so nothing of it is run; leave out --run, or "
            f"run: notyet trust {shown}"
        )
    return Draft(text=text, path=name)


def _findings(args: argparse.Namespace, ledger: Ledger) -> list[Finding]:
    """Replay the stops that the options name. Raises Refused, and what the ledger raises."""
    if args.run and os.environ.get("NOTYET_INSIDE"):  # it would run itself, for ever (E11)
        raise Refused("this runs inside a gate, which cannot run gates; leave out --run")
    draft = _draft(args.config, is_run=args.run) if args.config else None
    pasts = _chosen(args, ledger)
    wanted = {past.id for past in pasts}
    configs = Configs(os.environ, draft, ledger)
    with waiting(f"replaying recorded stops ({len(pasts)}) ..."):
        turns = turns_of(ledger, pasts)
        found = replay(turns, configs.of)
    while args.run and _run_missing([one for one in found if one.past.id in wanted], configs):
        found = replay(turns, configs.of)
    for note in configs.notes:
        print(f"notyet replay: {note}", file=sys.stderr)
    return [finding for finding in found if finding.past.id in wanted]


def _chosen(args: argparse.Namespace, ledger: Ledger) -> list[PastStop]:
    """Return the stops that the options name, the oldest first. Raises Refused."""
    narrowed = [f"--{name}" for name in ("since", "session", "outcome", "all") if vars(args)[name]]
    if args.ids and narrowed:
        raise Refused(f"an ID does not go together with {narrowed[0]}; choose one")
    if args.ids:
        found = read_stops(ledger, sorted(set(args.ids)))
        gone = sorted(set(args.ids) - {past.id for past in found})
        if gone:
            raise Refused(f"there is no stop {gone[0]}; list them with: notyet log --all")
        return sorted(found, key=lambda past: past.id)
    wish = StopFilter(
        session=args.session,
        outcomes=tuple(dict.fromkeys(args.outcome)),
        place="" if args.all else project_of(os.getcwd()),
        since=args.since,
        most=-1 if args.since else _MOST,
    )
    found = stops(ledger, wish)
    # In CI a misspelt session must not look like a success.
    if args.session and not found and not stops(ledger, replace(wish, outcomes=(), since=0.0)):
        where = "" if args.all else " here"
        raise Refused(
            f"no stop of session {visible(args.session)} is recorded{where}; "
            "list them with: notyet log --all"
        )
    return sorted(found, key=lambda past: past.id)


def _run_missing(findings: Sequence[Finding], configs: Configs) -> int:
    """Run each gate whose answer is missing, once for each folder; return how many answered.

    A gate runs as for the newest stop that needs its answer.
    """
    wanted: dict[tuple[str, str], tuple[Finding, Config, Gate]] = {}
    for finding in findings:
        config = configs.of(finding.past)
        if isinstance(config, str):
            continue
        for gate, _ in finding.missing:
            definition = config.definitions[gate.name]
            if definition and definition not in config.answers:
                wanted[finding.past.event.cwd, definition] = (finding, config, gate)
    count = 0
    adopt_orphans()  # before the first process starts (E2)
    with ended_in_order(sweep):
        for (_, definition), (finding, config, gate) in wanted.items():
            event = variant(finding.past.event, {"workspace": config.workspace})
            with waiting(f"running {visible(gate.name)} ..."):
                engine = Engine([gate], limits=config.limits)
                reports = engine.decide_sync(event, finding.history, asked="all").reports
            if reports and reports[0].answer is not None:
                config.answers[definition] = reports[0]
                count += 1
    return count


def _print(findings: Sequence[Finding], config: str) -> None:
    """Print the sums, then what differs and what is unknown."""
    style = Style(sys.stdout)
    number = f"{len(findings)} recorded stop{'' if len(findings) == 1 else 's'}"
    print(f"{number} against {visible(config) or 'what is in force now'}")
    for result in RESULTS:
        some = [finding for finding in findings if finding.result == result]
        if some or result in _COLOURS:
            count = style.paint(f"{len(some):>6}", _COLOURS.get(result, "dim") if some else "dim")
            print(f"{count}  {_NAMES.get(result, result)}{_remark(result, some)}")
    for result, reason in (("differs", "BECAUSE"), ("unknown", "NO RECORDED ANSWER")):
        some = [finding for finding in findings if finding.result == result]
        rows = [_row(finding) for finding in some]
        head = ("STOP", "WHEN", "HOST", "WAS", "NOW", reason)
        for line in ["", *table(head, rows, style, right=("STOP",))] if rows else ():
            print(line)
    ran = dict.fromkeys(name for finding in findings for name in finding.ran_now)
    if ran:
        names = ", ".join(map(visible, ran))
        print(f"\nRun just now, on today's files and not on those of then: {names}.")
    elif any(finding.missing for finding in findings):
        print("\nWith --run, gates without a recorded answer run on today's files.")


def _row(finding: Finding) -> tuple[Any, ...]:
    past = finding.past
    return (
        str(past.id),
        when(past.begun_at),
        past.host,
        (finding.was_words, OUTCOME_COLOURS.get(finding.was, "")),
        (finding.now_words, OUTCOME_COLOURS.get(finding.outcome, "")),
        finding.reasons,
    )


def _remark(result: str, some: Sequence[Finding]) -> str:
    if result == "hypothetical":
        return ": after a stop of their turn that differs"
    if result != "left_out":
        return ""
    causes = Counter(visible(finding.left_out) for finding in some)
    return f": {listed([f'{cause} ({count})' for cause, count in causes.items()], 5)}"


def _print_json(findings: Sequence[Finding]) -> None:
    """Print one object for each stop, and then the sums."""
    for finding in findings:
        print(json_line({"kind": "stop"} | finding.plain()))
    counts = {name: sum(finding.result == name for finding in findings) for name in RESULTS}
    print(json_line({"kind": "summary", "stops": len(findings)} | counts))
