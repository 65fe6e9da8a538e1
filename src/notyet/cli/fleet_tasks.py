"""`notyet tasks queue` and `notyet tasks workers`: a fleet's queues, limits, schedules, workers."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

from notyet.cli.fleet_options import fleet_at
from notyet.cli.streams import readable
from notyet.cli.terminal import Style, counted, one_line, table
from notyet.core.record import as_dict, replace
from notyet.core.text import visible
from notyet.errors import Refused
from notyet.fleet.overview import overview
from notyet.ledger.placements import Placements

if TYPE_CHECKING:
    import argparse

    from notyet.fleet.overview import FleetView, ModelView, WorkerView
    from notyet.ledger.ledger import Ledger

_QUEUES = ("QUEUE", "MODEL", "WAITING", "AT WORK", "LIMIT", "BEGUN", "WORKERS")
_WORKERS = ("WORKER", "STATE", "TASKS", "QUEUES", "LEASE", "VERSION")
_SCHEDULES = ("SCHEDULE", "WHEN (UTC)", "QUEUE", "AGENT", "TASK")
_LONGEST = 400


def define_or_show_queue(args: argparse.Namespace, ledger: Ledger) -> int:
    """Define a queue; without options, show it or all. Raises Refused and LedgerError."""
    is_new = args.id and args.id not in Placements(ledger).queues()
    if is_new or args.limit or args.per_worker:
        return _define_queue(args)
    return _show_queues(ledger, as_json=args.json, only=args.id or "")


def _show_queues(ledger: Ledger, *, as_json: bool, only: str = "") -> int:
    """Print the queues and schedules; or only one queue."""
    fleet = overview(ledger)
    if only:
        known = [queue for queue in fleet.queues if queue.name == only]
        fleet = replace(fleet, queues=tuple(known), schedules=(), untaken=0)
    if as_json:
        about = {"queues": as_dict(fleet)["queues"], "schedules": as_dict(fleet)["schedules"]}
        print(json.dumps(readable(about), indent=2))
        return 0
    if not fleet.is_there:
        print("no queues yet; define one with: notyet tasks queue NAME")
        return 0
    style = Style(sys.stdout)
    print(*table(_QUEUES, _queue_rows(fleet), style), sep="\n")
    if fleet.schedules:
        rows = [
            (one.name, one.cron, one.queue, visible(one.agent), one_line(one.prompt, _LONGEST))
            for one in fleet.schedules
        ]
        print("", *table(_SCHEDULES, rows, style), sep="\n")
    if fleet.untaken:
        print(f"\n{counted(fleet.untaken, 'result')} not taken yet; see: notyet tasks")
    return 0


def _queue_rows(fleet: FleetView) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for queue in fleet.queues:
        rows += [
            (
                queue.name if not number else "",
                visible(model.model) or "-",
                f"{model.waiting:,}",
                f"{model.at_work:,}",
                model.limit or "-",
                _begun(model),
                str(queue.workers) if not number else "",
            )
            for number, model in enumerate(queue.models)
        ] or [(queue.name, "-", "0", "0", "-", "-", str(queue.workers))]
    return rows


def _begun(model: ModelView) -> str:
    return str(model.begun) if "/" in model.limit else "-"


def show_workers(args: argparse.Namespace, ledger: Ledger) -> int:
    """Print the workers. Raises LedgerError."""
    workers = overview(ledger).workers
    if args.json:
        print(json.dumps(readable([as_dict(worker) for worker in workers]), indent=2))
        return 0
    if not workers:
        print("no worker is running; start one with: notyet worker --queue NAME")
        return 0
    rows = [
        (
            visible(worker.name),
            _state(worker),
            f"{worker.tasks} of {worker.at_once}",
            ", ".join(worker.queues),
            f"{worker.lease:.0f} s",
            worker.version,
        )
        for worker in workers
    ]
    print(*table(_WORKERS, rows, Style(sys.stdout)), sep="\n")
    return 0


def _state(worker: WorkerView) -> str | tuple[str, str]:
    if not worker.is_alive:
        return "gone", "yellow"
    return "draining" if worker.is_draining else "working"


def _define_queue(args: argparse.Namespace) -> int:
    """Define a queue, or change what it allows. Raises Refused and LedgerError."""
    from notyet.fleet import Queue

    limits = {}
    for text in args.limit:
        model, equals, limit = text.rpartition("=")
        if not equals:
            raise Refused(f"invalid limit {text!r}; write for example: --limit '*=50/min'")
        limits[model] = limit
    try:
        queue = Queue(args.id, per_worker=args.per_worker, limits=limits)
    except ValueError as error:
        raise Refused(str(error)) from None

    async def define() -> None:
        async with fleet_at(args.ledger) as fleet:
            await fleet.define(queue)

    asyncio.run(define())
    print(f"queue {queue.name} is defined; serve it with: notyet worker --queue {queue.name}")
    return 0
