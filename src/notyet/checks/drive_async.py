"""Driving a line on an event loop.

A stage of several questions gives each a task or a thread. Single coroutines, as plugin
handlers are, are asked one after another by one task for all of them, which takes the line
along. Either way a gate that is too late is cancelled and left behind, so that one which swallows
its cancellation cannot hold anybody up.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from functools import partial
from math import inf

from notyet.checks.drive import Call
from notyet.checks.function import asked_by, cannot_start, guarded, guarded_async, timed_out
from notyet.checks.threads import run_in_thread
from notyet.core.verdict import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeGuard, TypeVar

    from notyet.checks.drive import Asking, Line, Stage
    from notyet.checks.function import Question

    T = TypeVar("T")


async def drive(line: Line[T]) -> T:
    """Drive a line to its end; cancelling this cancels the gates and closes the line."""
    loop = asyncio.get_running_loop()
    alarm = _Alarm(loop)
    try:
        step = next(line)
        while True:
            if isinstance(step, Call):
                result, error = await _in_thread(loop, step)
                step = line.send(result) if error is None else line.throw(error)
            elif _is_single_coroutine(step):
                came_to = await _ask_in_turn(loop, alarm, line, step)
                if isinstance(came_to, _End):
                    ending: T = came_to.value
                    return ending
                step = line.send([came_to]) if isinstance(came_to, Report) else came_to
            else:
                step = line.send(await _Together(loop, alarm, step).ask())
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        alarm.stop()
        line.close()


def _is_single_coroutine(step: Stage | Call) -> TypeGuard[Stage]:
    return not isinstance(step, Call) and len(step) == 1 and step[0][0].is_async


class _End:
    """The line came to its end; a StopIteration cannot leave a coroutine."""

    def __init__(self, value: Any) -> None:
        self.value = value


async def _ask_in_turn(
    loop: asyncio.AbstractEventLoop, alarm: _Alarm, line: Line[Any], step: Stage
) -> Stage | Call | _End | Report:
    """Ask single coroutines until the line ends or wants something else.

    When one is too late, its report is returned, still to be sent to the line.
    """
    rider = _Rider(loop, alarm, line)
    task = loop.create_task(rider.ride(step), name="notyet-line")
    try:
        return await rider.came_to
    finally:
        rider.is_left_behind = True
        alarm.put_off()
        task.cancel()


class _Rider:
    """Takes a line along from one coroutine to the next, in a task that can be left behind."""

    def __init__(self, loop: asyncio.AbstractEventLoop, alarm: _Alarm, line: Line[Any]) -> None:
        self.loop = loop
        self.alarm = alarm
        self.line = line
        self.is_left_behind = False
        self.came_to: asyncio.Future[Stage | Call | _End | Report] = loop.create_future()

    async def ride(self, step: Stage) -> None:
        me = asyncio.current_task()
        assert me is not None
        asked_by.set(asked_by.get() | {step[0][0].engine})  # in this task's own context
        next_step: Stage | Call = step
        try:
            while _is_single_coroutine(next_step):
                question, args = next_step[0]
                self._watch(question)
                report = await guarded_async(question, args)
                if self.is_left_behind:
                    return  # this answer comes too late
                self.alarm.put_off()
                if me.cancelling():
                    await _take_back_cancellation(me)
                next_step = self.line.send([report])
        except StopIteration as end:
            self.came_to.set_result(_End(end.value))
        except Exception as fault:  # noqa: BLE001  # of the line itself: the caller's to see
            self.came_to.set_exception(fault)
        else:
            self.came_to.set_result(next_step)

    def _watch(self, question: Question) -> None:
        def late(_now: float) -> None:
            if not self.came_to.done():
                self.is_left_behind = True
                self.came_to.set_result(timed_out(question))

        if question.timeout is not None:
            self.alarm.set(self.loop.time() + question.timeout, late)


async def _take_back_cancellation(task: asyncio.Task[Any]) -> None:
    """Take back a cancellation that a gate aimed at the task it was asked in."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling():
        task.uncancel()


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


class _Together:
    """A stage whose questions are asked at the same time, each in a task or thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, alarm: _Alarm, stage: Stage) -> None:
        self.loop = loop
        self.alarm = alarm
        self.stage = stage
        self.reports: list[Any] = [None] * len(stage)
        self.missing = len(stage)
        self.complete: asyncio.Future[None] = loop.create_future()
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.started = 0.0

    async def ask(self) -> list[Report]:
        outside = asked_by.get()
        asked_by.set(outside | {self.stage[0][0].engine})
        for place, asking in enumerate(self.stage):
            question = asking[0]
            if question.is_async:
                coroutine = self._ask_in_task(place, asking)
                self.tasks[place] = _start_task(coroutine, self.loop, question.name)
            else:
                try:
                    run_in_thread(self._job(place, asking))
                except RuntimeError as error:  # the system has no thread left
                    self._deliver(place, cannot_start(question, error))
        asked_by.set(outside)
        self.started = self.loop.time()
        if self.missing:
            self._await_next()
        try:
            await self.complete
        except BaseException:
            for task in self.tasks.values():
                task.cancel()
            raise
        finally:
            self.alarm.put_off()
        return self.reports

    async def _ask_in_task(self, place: int, asking: Asking) -> None:
        self._deliver(place, await guarded_async(*asking))

    def _job(self, place: int, asking: Asking) -> Callable[[], None]:
        def job() -> None:
            _tell(self.loop, self._deliver, place, guarded(*asking))

        return job

    def _deliver(self, place: int, report: Report) -> None:
        if self.reports[place] is None:
            self.reports[place] = report
            self.missing -= 1
            if not self.missing and not self.complete.done():
                self.complete.set_result(None)

    def _await_next(self) -> None:
        timeouts = [
            question.timeout
            for (question, _), report in zip(self.stage, self.reports, strict=True)
            if report is None and question.timeout is not None
        ]
        if timeouts:
            self.alarm.set(self.started + min(timeouts), self._late)

    def _late(self, now: float) -> None:
        for place, (question, _) in enumerate(self.stage):
            timeout = question.timeout
            if (
                self.reports[place] is None
                and timeout is not None
                and self.started + timeout <= now
            ):
                if place in self.tasks:
                    self.tasks[place].cancel()
                self._deliver(place, timed_out(question))
        self._await_next()


class _Alarm:
    """One timer for a whole line: put off by moving `when`, set anew only when it rings early."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.when = inf
        self.late: Callable[[float], None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def set(self, when: float, late: Callable[[float], None]) -> None:
        """Call `late` at this time of the loop's clock."""
        self.when, self.late = when, late
        if self.timer is None or when < self.timer.when():
            self.stop()
            self.timer = self.loop.call_at(when, self._ring)

    def put_off(self) -> None:
        """Leave the timer as it is, but let it call nobody."""
        self.when = inf

    def stop(self) -> None:
        """Forget the timer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _ring(self) -> None:
        self.timer = None
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
            if not _tell(loop, deliver, result, None) and step.undo is not None:
                step.undo(result)

    run_in_thread(job)
    return await done


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: object) -> bool:
    """Call something in the loop's thread; False when the loop is closed and nobody listens."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        return False
    return True
