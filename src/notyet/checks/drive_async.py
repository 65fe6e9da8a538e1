"""Driving a line on an event loop: every question gets a task or a thread of its own.

A gate that is too late is cancelled and left behind, so that one which swallows its cancellation
cannot hold anybody up; and what one does to its task or its context concerns no other.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial

from notyet.checks.drive import Call
from notyet.checks.function import (
    asked_by,
    cannot_start,
    crashed,
    ended_early,
    guarded,
    guarded_async,
)
from notyet.checks.threads import run_in_thread, run_or_do
from notyet.core.verdict import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from notyet.checks.drive import Line, Stage
    from notyet.checks.function import Question
    from notyet.core.verdict import Report

    T = TypeVar("T")

_FOREVER = 1e7  # seconds; the clocks of event loops overflow somewhere above
_LAST_RESORT = 10.0  # seconds that the runner gets to end commands whose time is up


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


# Not loop.create_task: it costs as much again. Where Python can, a task starts at once, so that
# a gate which waits for nothing takes no turn of the loop.
_start_task: Callable[..., asyncio.Task[None]] = asyncio.Task
if sys.version_info >= (3, 12):
    _start_task = partial(asyncio.Task, eager_start=True)


class _Asked:
    """A stage whose questions are being asked, all at the same time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stage: Stage) -> None:
        self.loop = loop
        self.stage = stage
        self.missing = len(stage.functions) + len(stage.commands)
        self.reports: list[Any] = [None] * self.missing
        self.cancelled = -1  # a pipe that ends the commands when it is written to
        self.told: set[int] = set()  # the places of those that somebody has heard of
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
                    _leave_behind(task)
            if self.cancelled >= 0:
                self._end_commands()
        return self.reports

    def _ask(self) -> None:
        functions = self.stage.functions
        for question, _ in functions.values():
            self.stage.tell(question.name)
        engines = frozenset(question.engine for question, _ in functions.values())
        outside = asked_by.set(asked_by.get() | engines)
        try:
            for place, (question, args) in functions.items():
                if question.is_async:
                    coroutine = guarded_async(question, args, self._deliver, place)
                    task = _start_task(coroutine, loop=self.loop, name=question.name)
                    self.tasks[place] = task
                    # Where a timer wakes us up in any case, it is not needed.
                    if self.stage.ends(question, 0.0) is None:
                        task.add_done_callback(self._ended_silently(place, question))
                    continue
                try:
                    run_in_thread(self._job(place, question, args))
                except RuntimeError as error:  # the system has no thread left
                    self._deliver(place, cannot_start(question, error))
        finally:
            asked_by.reset(outside)
        if self.stage.commands:
            self._run_commands()

    def _run_commands(self) -> None:
        """Run the commands in a thread of their own; a pipe is there to end them."""
        from notyet.checks.question import ask_commands

        questions = list(self.stage.commands.values())
        places = list(self.stage.commands)
        for question in questions:
            self.stage.tell(question.name)
        try:
            heard, self.cancelled = os.pipe()
        except OSError as error:  # too many files are open
            self._deliver_broken(Problem("cannot_start", f"no pipe to run it with: {error}"))
            return

        def answered(at: int, report: Report) -> None:
            _tell(self.loop, self._tell_of, places[at], report)

        def job() -> None:
            listens = answered if self.stage.progress is not None else None
            try:
                reports = ask_commands(questions, self.stage.deadline, heard, answered=listens)
            except BaseException as error:  # noqa: BLE001  # somebody waits for it, and not here
                _tell(self.loop, self._deliver_broken, crashed(error))
            else:
                _tell(self.loop, self._deliver_all, places, reports)
            finally:
                os.close(heard)

        run_or_do(job)

    def _end_commands(self) -> None:
        """End the commands that still run, and close our end of their pipe."""
        from notyet.checks.process import hold_sigpipe, release_sigpipe

        if self._asks_commands():
            # Not the closing alone: a fork of this program may hold the same end for long.
            held = hold_sigpipe()
            try:
                os.write(self.cancelled, b".")
            except OSError:  # they have ended just now
                pass
            finally:
                release_sigpipe(held)
        os.close(self.cancelled)
        self.cancelled = -1

    def _asks_commands(self) -> bool:
        return any(self.reports[place] is None for place in self.stage.commands)

    def _deliver_broken(self, problem: Problem) -> None:
        for place, question in self.stage.commands.items():
            self._deliver(place, question.broken(problem))

    def _deliver_all(self, places: list[int], reports: list[Report]) -> None:
        for place, report in zip(places, reports, strict=True):
            self._deliver(place, report)

    def _job(self, place: int, question: Question, args: tuple[Any, ...]) -> Callable[[], None]:
        def job() -> None:
            _tell(self.loop, self._deliver, place, guarded(question, args))

        return job

    def _ended_silently(
        self, place: int, question: Question
    ) -> Callable[[asyncio.Task[None]], None]:
        """Return what reports a task that somebody cancelled before it began."""

        def ended(task: asyncio.Task[None]) -> None:
            if task.cancelled():
                self._deliver(place, ended_early(question))

        return ended

    def _deliver(self, place: int, report: Report) -> None:
        if self.reports[place] is None:  # else it comes too late
            self.reports[place] = report
            self.missing -= 1
            if self.stage.progress is not None:
                self._tell_of(place, report)
            if not self.missing and not self.complete.done():
                self.complete.set_result(None)

    def _tell_of(self, place: int, report: Report) -> None:
        """Say once what a gate said, as long as somebody waits for it."""
        if place not in self.told and not self.complete.done():
            self.told.add(place)
            self.stage.tell(self.stage.name_of(place), report)

    def _set_timer(self) -> None:
        """Wake up when the next question is out of time: one timer for all of them."""
        ends = [
            end
            for place, (question, _) in self.stage.functions.items()
            if self.reports[place] is None
            and (end := self.stage.ends(question, self.started)) is not None
        ]
        if self._asks_commands() and (end := self._last_resort()) is not None:
            ends.append(end)
        if ends:
            self.timer = self.loop.call_at(min(ends), self._ring, min(ends))

    def _ring(self, now: float) -> None:
        for place, (question, _) in self.stage.functions.items():
            end = self.stage.ends(question, self.started)
            if self.reports[place] is None and end is not None and end <= now:
                if place in self.tasks:
                    _leave_behind(self.tasks[place])
                self._deliver(place, self.stage.late(question, self.started))
        end = self._last_resort()
        if self._asks_commands() and end is not None and end <= now:
            self._end_commands()
            self._deliver_broken(Problem("timeout", "it was not ended in time"))
        if self.missing:
            self._set_timer()

    def _last_resort(self) -> float | None:
        """Return when even the runner, which knows the commands' times itself, is too late."""
        if self.stage.deadline is not None:
            return self.stage.deadline + _LAST_RESORT
        # They run together, or at worst one after another.
        timeouts = [question.job.timeout for question in self.stage.commands.values()]
        known = [timeout for timeout in timeouts if timeout is not None]
        if len(known) < len(timeouts) or sum(known) > _FOREVER:
            return None
        return self.started + sum(known) + _LAST_RESORT


_left_behind: set[asyncio.Task[None]] = set()  # a loop itself holds its tasks only weakly


def _leave_behind(task: asyncio.Task[None]) -> None:
    """Cancel a task and do not wait for it, whatever it makes of that."""
    if task.cancel():
        _left_behind.add(task)
        task.add_done_callback(_left_behind.discard)


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
