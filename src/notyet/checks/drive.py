"""Driving a line in the calling thread.

A line is a generator: it yields what it needs, a stage of questions or a `Call` that may
block, and is sent the reports or the result. So the logic of a stop is written once, and each
driver only knows how to wait. The driver for event loops is `drive_async`.
"""

from __future__ import annotations

from time import monotonic

from notyet.checks.function import Question, asked_by, cannot_start, guarded, timed_out
from notyet.core.record import Record
from notyet.errors import NotyetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from queue import SimpleQueue
    from typing import Any, TypeVar

    from notyet.core.verdict import Report

    T = TypeVar("T")
    Asking = tuple[Question, tuple[Any, ...]]  # and its arguments
    Stage = list[Asking]
    Line = Generator["Stage | Call", Any, T]


class Call(Record):
    """Something of ours that may block, such as a ledger's transaction.

    `undo` is called with the result if the line was cancelled before it could be handed over.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    undo: Callable[[Any], None] | None = None


def drive_sync(line: Line[T]) -> T:
    """Drive a line to its end in this thread, which may be inside a running event loop."""
    try:
        step = next(line)
        while True:
            if isinstance(step, Call):
                try:
                    result = step.call(*step.args)
                except NotyetError as error:
                    step = line.throw(error)
                else:
                    step = line.send(result)
            else:
                step = line.send(ask_together(step))
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        line.close()


def ask_together(stage: Stage) -> list[Report]:
    """Ask all questions of a stage at once; those without an answer in time are left behind."""
    from queue import Empty, SimpleQueue

    from notyet.checks.threads import run_in_thread

    started = monotonic()
    answers: SimpleQueue[tuple[int, Report]] = SimpleQueue()
    reports: dict[int, Report] = {}
    outside = asked_by.set(asked_by.get() | {stage[0][0].engine})
    try:
        for place, asking in enumerate(stage):
            try:
                run_in_thread(_job(place, asking, answers))
            except RuntimeError as error:  # the system has no thread left
                reports[place] = cannot_start(asking[0], error)
    finally:
        asked_by.reset(outside)
    while len(reports) < len(stage):
        waiting = {place: q for place, (q, _) in enumerate(stage) if place not in reports}
        ends = [started + q.timeout for q in waiting.values() if q.timeout is not None]
        try:
            place, report = answers.get(timeout=max(0.0, min(ends) - monotonic()) if ends else None)
        except Empty:
            now = monotonic()
            for place, question in waiting.items():
                if question.timeout is not None and started + question.timeout <= now:
                    reports[place] = timed_out(question)
        else:
            reports.setdefault(place, report)
    return [reports[place] for place in range(len(stage))]


def _job(
    place: int, asking: Asking, answers: SimpleQueue[tuple[int, Report]]
) -> Callable[[], None]:
    return lambda: answers.put((place, guarded(*asking)))
