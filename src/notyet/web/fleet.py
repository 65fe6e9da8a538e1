"""The screen "Fleet": its workers, queues and limits, schedules, and results that wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import htpy as h

from notyet.core.text import shortened
from notyet.fleet.overview import overview
from notyet.fleet.queue import Limit
from notyet.ledger.tasks import Tasks
from notyet.supervise.actions import remarks
from notyet.times import exactly
from notyet.web.filters import expect_known
from notyet.web.layout import ago, bar, chip, one_line, section, span, table
from notyet.web.site import Drawing, Screen
from notyet.web.tasks import brief_json, state_chip, task_link

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from htpy import Element, Node

    from notyet.core.task import TaskView
    from notyet.fleet.overview import FleetView, ModelView, QueueView, ScheduleView, WorkerView
    from notyet.web.site import Query, Site

_MOST_RESULTS = 20
_MOST_TEXT = 120
_NO_FLEET = (
    "This ledger has no fleet: no queue was defined and no worker runs. A fleet places tasks on the"
    " workers of many machines. Define a queue with "
)
_ONE_MACHINE = "This ledger is a file of one machine. A fleet needs a ledger on PostgreSQL: "
_DEFINE = "notyet tasks queue NAME --ledger postgresql://…"
_PAGE = "notyet page --ledger postgresql://…"


@dataclass(frozen=True)
class FleetShown:
    """A fleet, and the newest of its results that wait."""

    fleet: FleetView
    results: tuple[TaskView, ...]
    is_file: bool  # the ledger is of one machine

    @property
    def is_there(self) -> bool:
        """True if there is something to show."""
        return self.fleet.is_there or bool(self.fleet.workers or self.fleet.untaken)


def load(site: Site, query: Query) -> FleetShown:
    """Read the fleet of the ledger."""
    expect_known(query)
    fleet = overview(site.ledger)
    page = Tasks(site.ledger).page("undelivered") if fleet.untaken else None
    waiting = [view for view in (page.tasks if page else ()) if view.queue]
    is_file = site.ledger.connection.is_file
    return FleetShown(fleet, tuple(waiting[:_MOST_RESULTS]), is_file)


def plain(data: FleetShown) -> dict[str, Any]:
    """Return what `notyet tasks queue --json` and `workers --json` print, and the results."""
    known = {name: getattr(data.fleet, name) for name in data.fleet._fields}
    return known | {"results": [brief_json(view) for view in data.results]}


def draw(data: FleetShown, _query: Query) -> Drawing:
    """Draw workers, queues, schedules and results; or say that there is no fleet."""
    if not data.is_there:
        words = [_ONE_MACHINE, h.code[_PAGE]] if data.is_file else [_NO_FLEET, h.code[_DEFINE]]
        return Drawing("Fleet", section("Fleet", h.p(".empty")[words], id="fleet"), live=("fleet",))
    fleet = data.fleet
    body = h.div("#fleet")[
        _workers(fleet.workers),
        _queues(fleet.queues),
        _schedules(fleet.schedules),
        _results(data),
    ]
    return Drawing("Fleet", body, live=("fleet",))


def _workers(workers: Sequence[WorkerView]) -> Element:
    rows: list[tuple[Node, ...]] = [
        (
            h.span(title=one_line(worker.id))[one_line(worker.name or worker.id)],
            _state(worker),
            [bar(worker.tasks, worker.at_once), f" {worker.tasks:,} of {worker.at_once:,}"],
            one_line(", ".join(worker.queues)),
            span(worker.lease) if worker.is_alive else "-",
            one_line(worker.version),
        )
        for worker in workers
    ]
    head = ("worker", "state", "tasks", "queues", "lease", "version")
    empty = "No worker is running. Start one on each machine with: notyet worker --queue NAME"
    note = f"{sum(worker.is_alive for worker in workers):,} at work" if workers else None
    return section(
        "Workers",
        table(head, rows, empty=empty, numbers=("lease",), has_links=False),
        id="workers",
        note=note,
    )


def _state(worker: WorkerView) -> Element:
    if not worker.is_alive:
        why = "Its lease ran out or its process ended; others take over its tasks."
        return h.span(".chip.bad", title=why)["gone"]
    if worker.is_draining:
        return h.span(".chip.warn", title="It finishes its tasks, and takes no more.")["draining"]
    return h.span(".chip.live")["working"]


def _queues(queues: Sequence[QueueView]) -> Element:
    rows: list[tuple[Node, ...]] = []
    for queue in queues:
        rows += [_model(queue, model) for model in queue.models] or [
            (_name(queue), "-", "0", "0", "", "")
        ]
    head = ("queue", "model", "waiting", "at work", "at once", "begun")
    empty = "No queue is defined. Define one with: notyet tasks queue NAME"
    waiting = sum(queue.waiting for queue in queues)
    note = f"{waiting:,} waiting · {sum(queue.at_work for queue in queues):,} at work"
    return section(
        "Queues",
        table(head, rows, empty=empty, numbers=("waiting", "at work"), has_links=False),
        id="queues",
        note=note if queues else None,
    )


def _name(queue: QueueView) -> Node:
    workers = "1 worker" if queue.workers == 1 else f"{queue.workers:,} workers"
    each = f", {queue.per_worker} on each" if queue.per_worker else ""
    unserved = ".warn" if queue.waiting and not queue.workers else ".mute"
    return [one_line(queue.name), " ", h.small(unserved)[workers, each]]


def _model(queue: QueueView, model: ModelView) -> tuple[Node, ...]:
    limit = Limit.read(model.limit) if model.limit else Limit()
    at_work = model.at_work if queue.by else queue.at_work  # a limit of the whole queue
    period = model.limit.partition("/")[2].partition(",")[0].strip()
    return (
        _name(queue),
        one_line(model.model) or "-",
        f"{model.waiting:,}",
        f"{model.at_work:,}",
        _use(at_work, limit.at_once, ""),
        _use(model.begun, limit.rate, f" / {one_line(period)}"),
    )


def _use(value: int, most: int | None, words: str) -> Node:
    """Return how much of a limit is in use."""
    if most is None:
        return h.span(".mute")["no limit"]
    return [bar(min(value, most), most), f" {value:,} of {most:,}{words}"]


def _schedules(schedules: Sequence[ScheduleView]) -> Element | None:
    if not schedules:
        return None
    rows: list[tuple[Node, ...]] = [
        (
            one_line(one.name),
            h.code[one_line(one.cron)],
            exactly(one.next_at) if one.next_at else "-",
            one_line(one.queue),
            one_line(one.agent),
            one_line(shortened(one.prompt, _MOST_TEXT)),
        )
        for one in schedules
    ]
    head = ("schedule", "cron (UTC)", "next", "queue", "agent", "task")
    return section("Schedules", table(head, rows, empty="", has_links=False), id="schedules")


def _results(data: FleetShown) -> Element | None:
    count = data.fleet.untaken
    if not count:
        return None
    rows: list[tuple[Node, ...]] = [
        (
            [task_link(view), (h.p(".warn")[one_line(words)] for words in remarks(view))],
            state_chip(view),
            view.outcome and chip(view.outcome, view.stop_reason or ""),
            one_line(view.queue),
            [ago(view.ended_at or view.created_at), " ago"],
        )
        for view in data.results
    ]
    head = ("task", "state", "outcome", "queue", "ended")
    every = h.a(href="/tasks?show=undelivered")["all of them"]
    note = [f"{count:,} · ", every] if count > len(rows) else f"{count:,}"
    return section(
        "Results that nobody took",
        table(head, rows, empty="They are in the list of undelivered tasks.", numbers=("ended",)),
        id="results",
        note=note,
    )


SCREEN = Screen(
    "/fleet",
    load,
    draw,
    name="Fleet",
    plain=plain,
    is_listed=lambda site: not site.ledger.connection.is_file,
)
