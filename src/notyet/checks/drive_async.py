"""Driving a line on an event loop: every question gets a task or a thread of its own.

A gate that is too late is cancelled and left behind, so that one which swallows its cancellation
cannot hold anybody up; and what one does to its task or its context concerns no other.
"""

from __future__ import annotations

import asyncio
import sys
from math import inf

from notyet.checks.drive import Call
from notyet.checks.function import asked_by, cannot_start, guarded, guarded_async, timed_out
from notyet.checks.threads import run_in_thread, run_or_do

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    from notyet.checks.drive import Asking, Line, Stage
    from notyet.core.verdict import Report

    T = TypeVar("T")


async def drive(line: Line[T]) -> T:
    """Drive a line to its end; cancelling this cancels the gates and closes the line."""
    loop = asyncio.get_running_loop()
    try:
        step = next(line)
        while True:
            if isinstance(step, Call):
                result, error = await _in_thread(loop, step)
                step = line.send(result) if error is None else line.throw(error)
            else:
                step = line.send(await _Asked(loop, step).reports_in_time())
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        line.close()


if sys.version_info >= (3, 12):

    def _start_task(
        coroutine: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop, name: str
    ) -> asyncio.Task[None]:
        """Start a task at once: a gate that waits for nothing takes no turn of the loop."""
        return asyncio.Task(coroutine, loop=loop, name=name, eager_start=True)

else:

    def _start_task(
        coroutine: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop, name: str
    ) -> asyncio.Task[None]:
        return asyncio.Task(coroutine, loop=loop, name=name)


class _Asked:
    """A stage whose questions are being asked, all at the same time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stage: Stage) -> None:
        self.loop = loop
        self.stage = stage
        self.reports: list[Any] = [None] * len(stage)
        self.missing = len(stage)
        self.complete: asyncio.Future[None] = loop.create_future()
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.started = loop.time()
        self.timer: asyncio.TimerHandle | None = None

    async def reports_in_time(self) -> list[Report]:
        """Ask, and wait until every question has an answer or is out of time."""
        try:
            self._ask()
            if self.missing:
                self._set_timer()
                await self.complete
        finally:
            if self.timer is not None:
                self.timer.cancel()
            if self.missing:  # we were cancelled, or interrupted
                for task in self.tasks.values():
                    task.cancel()
        return self.reports

    def _ask(self) -> None:
        outside = asked_by.set(asked_by.get() | {self.stage[0][0].engine})
        try:
            for place, asking in enumerate(self.stage):
                question = asking[0]
                if question.is_async:
                    coroutine = self._ask_in_task(place, asking)
                    self.tasks[place] = _start_task(coroutine, self.loop, question.name)
                    continue
                try:
                    run_in_thread(self._job(place, asking))
                except RuntimeError as error:  # the system has no thread left
                    self._deliver(place, cannot_start(question, error))
        finally:
            asked_by.reset(outside)

    async def _ask_in_task(self, place: int, asking: Asking) -> None:
        self._deliver(place, await guarded_async(*asking))

    def _job(self, place: int, asking: Asking) -> Callable[[], None]:
        def job() -> None:
            _tell(self.loop, self._deliver, place, guarded(*asking))

        return job

    def _deliver(self, place: int, report: Report) -> None:
        if self.reports[place] is None:  # else it comes too late
            self.reports[place] = report
            self.missing -= 1
            if not self.missing and not self.complete.done():
                self.complete.set_result(None)

    def _set_timer(self) -> None:
        """Wake up when the next question is out of time: one timer for all of them."""
        soonest = min(self._end_of(place) for place in self._unanswered())
        if soonest != inf:
            self.timer = self.loop.call_at(soonest, self._ring, soonest)

    def _ring(self, now: float) -> None:
        for place in self._unanswered():
            if self._end_of(place) <= now:
                if place in self.tasks:
                    self.tasks[place].cancel()
                self._deliver(place, timed_out(self.stage[place][0]))
        if self.missing:
            self._set_timer()

    def _unanswered(self) -> list[int]:
        return [place for place, report in enumerate(self.reports) if report is None]

    def _end_of(self, place: int) -> float:
        timeout = self.stage[place][0].timeout
        return inf if timeout is None else self.started + timeout


async def _in_thread(
    loop: asyncio.AbstractEventLoop, step: Call
) -> tuple[Any, BaseException | None]:
    """Make a call of ours that may block, without blocking the loop."""
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def undo(result: Any, error: BaseException | None) -> None:
        if step.undo is not None and error is None:
            step.undo(result)

    def deliver(result: Any, error: BaseException | None) -> None:
        if done.done():  # nobody waits any more
            run_or_do(lambda: undo(result, error))
        else:
            done.set_result((result, error))

    def job() -> None:
        result, failure = None, None
        try:
            result = step.call(*step.args)
        except Exception as error:  # noqa: BLE001  # carried over to the line, which raises it
            failure = error
        if not _tell(loop, deliver, result, failure):
            undo(result, failure)

    run_or_do(job)
    try:
        return await done
    except asyncio.CancelledError:
        if done.done() and not done.cancelled():  # in the same turn of the loop
            result, error = done.result()
            run_or_do(lambda: undo(result, error))
        raise


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: object) -> bool:
    """Call something in the loop's thread; False when the loop is closed and nobody listens."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        return False
    return True
