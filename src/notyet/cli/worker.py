"""`notyet worker`: take tasks from the queues of a fleet, and run them on this machine."""

from __future__ import annotations

import asyncio
import platform
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.cli.fleet_options import add_ledger, fleet_at, whole_number
from notyet.cli.person import record_act, refuse, why_refused
from notyet.cli.signals import ended_in_order
from notyet.cli.terminal import OUTCOME_COLOURS, Style, counted
from notyet.core.text import clean, shortened
from notyet.core.verdict import outcome_words
from notyet.errors import NotyetError
from notyet.run.groups import adopt_orphans, sweep

if TYPE_CHECKING:
    import argparse

    from notyet.core.task import Result
    from notyet.fleet import Fleet, Worker
    from notyet.supervise import Progress

SUMMARY = "take tasks from the queues of a fleet, and run them on this machine"
EXAMPLES = (
    (
        "notyet worker --ledger postgresql://notyet@db/notyet --queue agents --at-once 8",
        "one for each machine",
    ),
    (
        "notyet worker --queue agents --trust 'git@host:shop.git'",
        "the gates of this repository are trusted; the address is in NOTYET_FLEET",
    ),
)
NOTES = """\
SIGTERM or Ctrl-C drains: it takes no more tasks, and ends when those at work have ended. A second
signal leaves those to other workers at once. Gates of a task's project run only where --trust
names its address. Clones are in --work, the newest 20 of ended tasks are kept.
"""
_AT_ONCE = 4
_MOST = 1_000
_SWEPT = 2.0  # seconds for what agents left behind
HINTS = {"required: ": "as in: notyet worker --queue agents"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_ledger(parser)
    parser.add_argument(
        "--queue",
        metavar="NAME",
        action="append",
        required=True,
        help="the queue to serve; may be given again",
    )
    parser.add_argument(
        "--at-once",
        metavar="N",
        type=whole_number(1, _MOST),
        default=_AT_ONCE,
        help=f"tasks at work (default {_AT_ONCE})",
    )
    parser.add_argument(
        "--trust",
        metavar="PATTERN",
        action="append",
        default=[],
        help="run the gates of projects whose git address or folder matches; may be given again",
    )
    parser.add_argument("--work", metavar="DIR", default="", help="the folder for clones")


def run(args: argparse.Namespace) -> int:
    """Serve the queues until a signal; exit 0 if all tasks at work could end."""
    if args.trust and (why := why_refused()):
        return refuse("worker", why)
    adopt_orphans()
    try:
        with ended_in_order(lambda: sweep(_SWEPT)):
            return asyncio.run(_serve(args))
    except NotyetError as error:
        return refuse("worker", str(error))


async def _serve(args: argparse.Namespace) -> int:
    fleet = fleet_at(args.ledger)
    from notyet.fleet import Worker, Workspaces

    for pattern in args.trust:
        record_act("trust", pattern, "notyet worker --trust")
    screen = _Screen(fleet)
    worker = Worker(
        fleet,
        args.queue,
        at_once=args.at_once,
        trust=args.trust,
        workspaces=Workspaces(args.work),
        warn=screen.warn,
        on_progress=screen.on_progress,
    )
    async with fleet:
        screen.say(
            f"worker on {platform.node()} serves {', '.join(args.queue)}, {args.at_once} at once,"
            f" ledger {fleet.ledger.path}"
        )
        return await _until_signal(worker, screen)


async def _until_signal(worker: Worker, screen: _Screen) -> int:
    loop, received = asyncio.get_running_loop(), list[int]()
    working = asyncio.ensure_future(worker.run())

    def end(number: int) -> None:
        received.append(number)
        at_work = counted(len(worker.tasks), "task")
        if len(received) == 1:
            screen.say(f"draining: {at_work} at work; signal again to leave them to other workers")
            worker.drain()
        else:
            screen.say(f"leaving {at_work} to other workers")
            working.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    with suppress(asyncio.CancelledError):
        await working
        screen.say("drained")
        return 0
    return 128 + received[-1]


class _Screen:
    """Prints a line for what happens to each task."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._paint = Style(sys.stdout).paint

    def say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)

    def warn(self, text: str) -> None:
        self.say(self._paint(shortened(" ".join(clean(text).split()), 1_000), "yellow"))

    def on_progress(self, progress: Progress) -> None:
        task, kind = progress.task_id, progress.kind
        if kind == "sent" and progress.generation == 1:
            self.say(f"{task}  began")
        elif kind == "steering":
            self.say(f"{task}  sent back")
        elif kind == "ended" and progress.result is not None:
            self.say(f"{task}  {self._ending(progress.result)}")

    def _ending(self, result: Result) -> str:
        if result.ending != "done":
            why = f": {shortened(clean(result.error or ''), 200)}" if result.error else ""
            return self._paint(result.ending, "yellow") + why
        words = outcome_words(result.outcome, result.stop_reason or "")
        back = f" after {counted(result.steers, 'send-back')}" if result.steers else ""
        return self._paint(words, OUTCOME_COLOURS.get(result.outcome, "")) + back
