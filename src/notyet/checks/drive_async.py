"""Driving a line on an event loop.

The line is ridden by a task of its own, and the caller only waits for the end. When a gate is
too late, that task is cancelled and left behind, and a fresh one rides on with a timeout in the
gate's place: a gate that swallows its cancellation cannot hold anybody up. A stage of a single
coroutine, as plugin handlers are, is awaited right in the task: one task and one timer for a
whole chain of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from math import inf

from notyet.checks.drive import Call
from notyet.checks.function import guarded, guarded_async, is_async, timed_out
from notyet.checks.threads import run_in_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from notyet.checks.drive import Line, Stage
    from notyet.checks.function import Question
    from notyet.core.verdict import Report

    T = TypeVar("T")


async def drive(line: Line[T]) -> T:
    """Drive a line to its end; cancelling this cancels the gates and closes the line."""
    ride = _Ride(line)
    ride.go_on(None)
    try:
        result: T = await ride.end
    finally:
        ride.leave()
        line.close()
    return result


class _Ride:
    def __init__(self, line: Line[Any]) -> None:
        self.line = line
        self.loop = asyncio.get_running_loop()
        self.end: asyncio.Future[Any] = self.loop.create_future()
        self.rider: asyncio.Task[None] | None = None
        self.stage: _Together | None = None
        self.alarm = _Alarm(self.loop)

    def go_on(self, answer: Any) -> None:
        """Let a fresh task ride on from here."""
        self.rider = self.loop.create_task(self._ride(answer), name="notyet-line")

    def leave(self) -> None:
        """Stop riding: whoever is still asked is cancelled, and not waited for."""
        rider, self.rider = self.rider, None
        if rider is not None:
            rider.cancel()
        if self.stage is not None:
            self.stage.leave()
        self.alarm.stop()

    async def _ride(self, answer: Any) -> None:
        me = self.rider = asyncio.current_task()
        error: BaseException | None = None
        try:
            while True:
                step = self.line.send(answer) if error is None else self.line.throw(error)
                error = None
                if isinstance(step, Call):
                    answer, error = await _in_thread(self.loop, step)
                elif len(step) == 1 and is_async(step[0].call):
                    answer = [await self._ask_alone(step[0])]
                else:
                    answer = await self._ask_together(step)
                if self.rider is not me:
                    return  # left behind: this answer comes too late
        except StopIteration as end:
            self.end.set_result(end.value)
        except Exception as failure:  # noqa: BLE001  # a fault of the line is the caller's to see
            self.end.set_exception(failure)

    async def _ask_alone(self, question: Question) -> Report:
        rider = self.rider
        assert rider is not None

        def late(_now: float) -> None:
            rider.cancel()
            self.go_on([timed_out(question)])

        timeout = question.timeout
        self.alarm.set(self.loop.time() + timeout if timeout is not None else inf, late)
        report = await guarded_async(question)
        if self.rider is rider:
            self.alarm.set(inf, late)
            if rider.cancelling():
                await _absorb_cancellation(rider)
        return report

    async def _ask_together(self, stage: Stage) -> list[Report]:
        self.stage = _Together(self.loop, stage, self.alarm)
        reports = await self.stage.ask()
        self.stage = None
        return reports


class _Together:
    """A stage whose questions are asked at the same time, each in a task or thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stage: Stage, alarm: _Alarm) -> None:
        self.loop = loop
        self.stage = stage
        self.alarm = alarm
        self.reports: list[Report | None] = [None] * len(stage)
        self.missing = len(stage)
        self.complete: asyncio.Future[list[Report]] = loop.create_future()
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.started = loop.time()

    async def ask(self) -> list[Report]:
        create_task = self.loop.create_task
        for place, question in enumerate(self.stage):
            if is_async(question.call):
                coroutine = self._ask_in_task(place, question)
                self.tasks[place] = create_task(coroutine, name=question.name)
            else:
                run_in_thread(self._asking(place, question))
        self._await_next()
        return await self.complete

    def leave(self) -> None:
        for task in self.tasks.values():
            task.cancel()

    async def _ask_in_task(self, place: int, question: Question) -> None:
        self._deliver(place, await guarded_async(question))

    def _asking(self, place: int, question: Question) -> Callable[[], None]:
        return lambda: _tell(self.loop, self._deliver, place, guarded(question))

    def _deliver(self, place: int, report: Report) -> None:
        if self.reports[place] is None:
            self.reports[place] = report
            self.missing -= 1
            if not self.missing and not self.complete.done():
                self.alarm.set(inf, self._late)
                self.complete.set_result([report for report in self.reports if report])

    def _await_next(self) -> None:
        ends = [
            self.started + question.timeout
            for question, report in zip(self.stage, self.reports, strict=True)
            if report is None and question.timeout is not None
        ]
        self.alarm.set(min(ends, default=inf), self._late)

    def _late(self, now: float) -> None:
        for place, question in enumerate(self.stage):
            timeout = question.timeout
            if (
                self.reports[place] is None
                and timeout is not None
                and self.started + timeout <= now
            ):
                if place in self.tasks:
                    self.tasks[place].cancel()
                self._deliver(place, timed_out(question))
        if self.missing:
            self._await_next()


class _Alarm:
    """One timer for a whole ride: put off by moving `when`, re-armed only when it rings early."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.when = inf
        self.late: Callable[[float], None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def set(self, when: float, late: Callable[[float], None]) -> None:
        self.when, self.late = when, late
        if when != inf and (self.timer is None or when < self.timer.when()):
            self.stop()
            self.timer = self.loop.call_at(when, self._ring)

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _ring(self) -> None:
        self.timer = None
        # The loop may ring up to its clock's resolution early; what was due then is late.
        if self.late is not None and self.when != inf:
            if self.when <= self.loop.time():
                self.late(self.when)
            else:
                self.set(self.when, self.late)


async def _in_thread(
    loop: asyncio.AbstractEventLoop, step: Call
) -> tuple[Any, BaseException | None]:
    """Make a call of ours that may block, without blocking the loop."""
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def deliver(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))
        elif step.undo is not None and error is None:
            run_in_thread(partial(step.undo, result))

    def job() -> None:
        try:
            result = step.call(*step.args)
        except Exception as error:  # noqa: BLE001  # carried over to the line, which raises it
            _tell(loop, deliver, None, error)
        else:
            _tell(loop, deliver, result, None)

    run_in_thread(job)
    return await done


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: object) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
        loop.call_soon_threadsafe(callback, *args)


async def _absorb_cancellation(task: asyncio.Task[None]) -> None:
    """Take back a cancellation that a gate aimed at the task it was asked in."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling():
        task.uncancel()
