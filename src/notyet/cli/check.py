"""`notyet check`: run the gates now, as a stop would, and show what an agent would read."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from notyet.cli.about_event import about, add_event_options
from notyet.cli.check_run import Answer, Rehearsal, rehearse
from notyet.cli.check_show import Show, json_of, result
from notyet.cli.ending import ended_in_order
from notyet.cli.streams import json_line
from notyet.cli.terminal import Progress
from notyet.config.document import did_you_mean
from notyet.core.text import listed, visible
from notyet.core.verdict import Allow
from notyet.errors import NotyetError
from notyet.run.sweep import sweep

if TYPE_CHECKING:
    from notyet.core.verdict import Report

SUMMARY = "run the gates now, as a stop would"
EXAMPLES = (
    ("notyet check", "run every gate that a stop of the main agent would meet"),
    ("notyet check tests lint", "only these"),
    ("notyet check --as claude", "with the exact answer that Claude Code would get"),
    ("notyet check --event subagent_stop --agent-type coder", "as for a subagent of this type"),
    ("notyet check --payload stop.json", "as for what a host really sent"),
    ("notyet check --answer 'tests=block:Fix the tests.'", "as if this gate had said so"),
    ("notyet check --json", "for programs"),
)
_USAGE = _NOT_RUN = 2  # exit codes


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these gates")
    parser.add_argument(
        "--answer",
        action="append",
        default=[],
        type=_answer,
        metavar="NAME=VERDICT[:WORDS]",
        help="do not run this gate: it says allow, block, halt, broken or exit:N",
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S", help="seconds that the host waits for an answer"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    add_event_options(parser)


def _answer(text: str) -> Answer:
    try:
        return Answer.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> str:
    try:
        is_right = float(text) > 0
    except ValueError:
        is_right = False
    if not is_right:
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text!r}")
    return text


def run(args: argparse.Namespace) -> int:
    """Run the gates; exit 1 if the agent would be blocked, 2 if gates could not be run."""
    try:
        cwd = os.getcwd()
    except OSError:
        return _refuse("this folder is gone; go to another one")
    if os.environ.get("NOTYET_INSIDE"):  # it would run itself, for ever (E11)
        return _refuse("this runs inside a gate, and a gate does not run the gates")
    try:
        done = _rehearse(args, cwd)
    except NotyetError as error:
        return _refuse(str(error))
    if done.unknown:
        return _refuse(_unknown(done))
    if done.trouble:
        print(f"notyet check: {done.trouble}", file=sys.stderr)
    if args.json:
        print(json_line(json_of(done, args.as_host)))
    else:
        Show(sys.stdout, cwd).all(done, args.as_host)
    if not isinstance(done.decision.verdict, Allow):
        return 1
    return _NOT_RUN if done.lacks_answers else 0


def _rehearse(args: argparse.Namespace, cwd: str) -> Rehearsal:
    """Run the gates with progress on the terminal; a signal ends them too."""
    stop = about(args, cwd)

    def on_progress(gate: str, report: Report | None) -> None:
        if report is None:
            progress.begin(gate)
        else:
            progress.end(gate, result(report), report.seconds)

    with ended_in_order(sweep), Progress("looking at the files ...", delay=1.0) as progress:
        return rehearse(
            stop,
            os.environ,
            names=args.names,
            answers=args.answer,
            timeout=args.timeout or "",
            progress=on_progress,
        )


def _refuse(why: str) -> int:
    print(f"notyet check: {visible(why)}", file=sys.stderr)
    return _USAGE


def _unknown(done: Rehearsal) -> str:
    names = [gate.name for gate in done.setup.gates]
    there = f"there is {listed(names)}" if names else "there is none here"
    hint = did_you_mean(done.unknown[0], names) or there
    said = f"no gate is called {done.unknown[0]!r}; {hint}"
    # It may be in a file, or in a part of one, that is not in force.
    return " | ".join([said, *done.setup.warnings, *done.setup.distrust])
