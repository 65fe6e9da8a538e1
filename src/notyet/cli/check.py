"""`notyet check`: ask the gates now, as a stop would, and show what an agent would be told."""

from __future__ import annotations

import argparse
import os
import sys

from notyet.cli.about_event import about, add_event_options
from notyet.cli.ending import ended_in_order
from notyet.cli.terminal import Progress
from notyet.errors import NotyetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.cli.check_asking import Answer, Checked, Wish
    from notyet.core.verdict import Report

SUMMARY = "ask the gates now, as a stop would"
EXAMPLES = (
    ("notyet check", "ask every gate that a stop of the main agent would meet"),
    ("notyet check tests lint", "only these"),
    ("notyet check --as claude", "with the exact answer that Claude Code would get"),
    ("notyet check --event subagent_stop --agent-type coder", "as for a subagent of this type"),
    ("notyet check --payload stop.json", "as for what a host really sent"),
    ("notyet check --answer 'tests=block:Mend the tests.'", "as if this gate had said so"),
    ("notyet check --json", "for programs"),
)
_USAGE = _UNASKED = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these gates")
    parser.add_argument(
        "--answer",
        action="append",
        default=[],
        type=_answer,
        metavar="NAME=VERDICT[:WORDS]",
        help="do not ask this gate: it says allow, block, halt, broken or exit:N",
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S", help="seconds that the host waits for an answer"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    add_event_options(parser)


def _answer(text: str) -> Answer:
    from notyet.cli.check_asking import answer_from

    try:
        return answer_from(text)
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
    """Ask the gates; exit 1 when the agent would be held, 2 when nobody could be asked."""
    try:
        cwd = os.getcwd()
    except OSError:
        return _refuse("this folder is gone; go to another one")
    if os.environ.get("NOTYET_INSIDE"):  # it would ask itself, for ever (E11)
        return _refuse("this runs inside a gate, and a gate does not ask the gates")
    from notyet.cli.check_asking import Wish

    try:
        stop = about(args, cwd)
        wish = Wish(
            stop=stop,
            names=tuple(args.names),
            answers=tuple(args.answer),
            timeout=args.timeout or "",
        )
        checked = _asked(wish)
    except NotyetError as error:
        return _refuse(str(error))
    if checked.unknown:
        return _refuse(_unknown(checked))
    if checked.trouble:
        print(f"notyet check: {checked.trouble}", file=sys.stderr)
    if args.json:
        from notyet.cli.check_show import plain
        from notyet.cli.streams import json_line

        print(json_line(plain(checked, args.as_host)))
    else:
        from notyet.cli.check_show import Show

        Show(sys.stdout, cwd).all(checked, args.as_host)
    if is_held(checked):
        return 1
    return _UNASKED if checked.is_unasked else 0


def is_held(checked: Checked) -> bool:
    """Tell whether the agent would go on, or be ended by a gate."""
    from notyet.core.verdict import Allow

    return not isinstance(checked.decision.verdict, Allow)


def _asked(wish: Wish) -> Checked:
    """Ask, with what goes on on the terminal; whoever ends us ends the gates."""
    from notyet.cli.check_asking import ask
    from notyet.cli.check_show import result
    from notyet.core.record import replace
    from notyet.run.sweep import sweep

    def hear(gate: str, report: Report | None) -> None:
        if report is None:
            live.begin(gate)
        else:
            live.end(gate, result(report), report.seconds)

    with ended_in_order(sweep), Progress("looking at the files ...", delay=1.0) as live:
        return ask(replace(wish, progress=hear), os.environ)


def _refuse(why: str) -> int:
    from notyet.core.text import visible

    print(f"notyet check: {visible(why)}", file=sys.stderr)
    return _USAGE


def _unknown(checked: Checked) -> str:
    from notyet.config.document import did_you_mean
    from notyet.core.text import listed

    names = [gate.name for gate in checked.setup.gates]
    (first, *_) = checked.unknown
    there = f"there is {listed(names)}" if names else "there is none here"
    meant = did_you_mean(first, names)
    said = f"no gate is called {first!r}; {meant or there}"
    # It may be in a file, or a part of one, that is not in force.
    return " | ".join([said, *checked.setup.warnings, *checked.setup.distrust])
