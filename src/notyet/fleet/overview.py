"""What people see of a fleet: its workers, its queues, its schedules. Needs no engine."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from notyet.core.record import Record
from notyet.fleet.queue import OTHERS, queue_named
from notyet.ledger.placements import Placements

if TYPE_CHECKING:
    from notyet.fleet.queue import Queue
    from notyet.ledger.ledger import Ledger


class WorkerView(Record, kw_only=True):
    """A worker that lives, or that has tasks which no other has taken over yet."""

    id: str
    name: str  # of its machine
    version: str
    queues: tuple[str, ...]
    at_once: int
    tasks: int  # at work
    is_alive: bool
    is_draining: bool
    lease: float  # seconds that are left


class ModelView(Record, kw_only=True):
    """The tasks of one model in a queue, and its limit."""

    model: str
    waiting: int
    at_work: int
    limit: str = ""  # as it was written
    begun: int = 0  # in the period of the limit


class QueueView(Record, kw_only=True):
    """A queue."""

    name: str
    per_worker: int | None
    by: str
    waiting: int
    at_work: int
    models: tuple[ModelView, ...]
    workers: int  # that serve it


class ScheduleView(Record, kw_only=True):
    """A schedule."""

    name: str
    cron: str
    queue: str
    agent: str
    prompt: str
    next_at: float | None = None  # None: the extra `fleet` is not installed here


class FleetView(Record, kw_only=True):
    """A whole fleet."""

    workers: tuple[WorkerView, ...]
    queues: tuple[QueueView, ...]
    schedules: tuple[ScheduleView, ...]
    untaken: int  # results that nobody has taken

    @property
    def is_there(self) -> bool:
        """True if a queue was ever defined."""
        return bool(self.queues)


def overview(ledger: Ledger) -> FleetView:
    """Return a fleet as its ledger knows it. Raises LedgerError and Refused."""
    placements = Placements(ledger)
    workers = [
        WorkerView(
            id=str(about.get("id", "")),
            name=str(about.get("name", "")),
            version=str(about.get("version", "")),
            queues=tuple(about.get("queues", ())),
            at_once=int(about.get("at_once", 0)),
            tasks=tasks,
            is_alive=is_alive,
            is_draining=bool(about.get("draining")),
            lease=lease,
        )
        for about, tasks, lease, is_alive in placements.workers_at_work()
    ]
    workers.sort(key=lambda worker: (worker.name, worker.id))
    counts = placements.counts()
    queues = []
    known = placements.queues()
    for name in known:
        queue = queue_named(name, known)
        models = {model for held, model in counts if held == name}
        models |= set(queue.limits) - {OTHERS}
        if models <= set(queue.limits) and OTHERS in queue.limits:
            models.add(OTHERS)  # its limit is shown, although no task needs it
        views = tuple(
            _model(placements, queue, model, counts.get((name, model), (0, 0)))
            for model in sorted(models)
        )
        queues.append(
            QueueView(
                name=name,
                per_worker=queue.per_worker,
                by=queue.by,
                waiting=sum(view.waiting for view in views),
                at_work=sum(view.at_work for view in views),
                models=views,
                workers=sum(name in worker.queues for worker in workers if worker.is_alive),
            )
        )
    return FleetView(
        workers=tuple(workers),
        queues=tuple(queues),
        schedules=tuple(
            ScheduleView(
                name=name,
                cron=cron,
                queue=str(order.get("queue", "")),
                agent=str(order.get("agent", "")),
                prompt=str(order.get("prompt", "")),
                next_at=_next(cron),
            )
            for name, cron, order in placements.schedules()
        ),
        untaken=placements.untaken(),
    )


def _next(cron: str) -> float | None:
    """Return when a schedule is due, as DBOS reads it."""
    try:
        from croniter import croniter  # type: ignore[import-untyped]  # comes with DBOS
    except ImportError:
        return None
    try:
        return float(croniter(cron, datetime.now(UTC), second_at_beginning=True).get_next(float))
    except (ValueError, KeyError):
        return None


def _model(placements: Placements, queue: Queue, model: str, counts: tuple[int, int]) -> ModelView:
    room = queue.room_for(model)
    begun = placements.begun_within(queue.name, room.model, room.period) if room.rate else 0
    return ModelView(
        model=model,
        waiting=counts[0],
        at_work=counts[1],
        limit=queue.limits.get(model, queue.limits.get(OTHERS, "")),
        begun=begun,
    )
