"""Drive the logic of a stop on an event loop: async gates get tasks, other gates threads.

Tasks take their first step at once, so that a gate that does not wait costs no turn of the loop:
three handlers then take as long as with pluggy, and twice as long otherwise. Python 3.12 has such
tasks; for 3.11 see "Task lifetime support" in the documentation of asyncio.

A gate that times out is cancelled and abandoned, so that one that swallows its cancellation does
not block the stop. Tasks and contexts are not shared between gates. One timer fires at the next
timeout; it is not set if all gates answer at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import Any

from notyet.core.verdict import Problem
from notyet.errors import attempt
from notyet.run.drive import Call
from notyet.run.functions import (
    FunctionThreads,
    call_in_loop,
    calling_engines,
    crashed,
    ends_at,
    guarded_async,
    run_in_thread_or_here,
    too_late,
)
from notyet.run.gate_command import run_commands
from notyet.run.process import block_sigpipe, restore_sigpipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import TypeVar

    from notyet.core.verdict import Report
    from notyet.run.drive import FunctionCall, Stage, Steps

    Deliver = Callable[
        [int, Report], None
    ]  # called with an index and a report in the loop's thread
    T = TypeVar("T")

start_task: Callable[..., asyncio.Task[None]]
if sys.version_info >= (3, 12):
    # Not loop.create_task: it costs as much again.
    start_task = partial(asyncio.Task, eager_start=True)
else:

    class _Begun(Coroutine[Any, Any, None]):
        """A coroutine of which a task's first step was taken before the loop takes it."""

        def __init__(self, coro: Coroutine[Any, Any, None]) -> None:
            self._coro = coro
            self._first: tuple[object, BaseException | None] | None = None

        def begin(self) -> None:
            try:
                self._first = self._coro.send(None), None
            except (StopIteration, KeyboardInterrupt) as error:  # raised in the task
                self._first = None, error

        def send(self, value: Any) -> Any:
            if self._first is None:
                return self._coro.send(value)
            (waits_for, error), self._first = self._first, None
            if error is not None:
                raise error
            return waits_for

        def throw(self, *error: Any) -> Any:
            if self._first is not None and self._first[1] is not None:  # it has ended
                raise error[0]
            self._first = None
            return self._coro.throw(*error)

        def close(self) -> None:
            self._coro.close()

        def __await__(self) -> Any:
            raise NotImplementedError  # only a task runs it

    def _start_task(
        coro: Coroutine[Any, Any, None], *, loop: AbstractEventLoop, name: str
    ) -> asyncio.Task[None]:
        begun, context = _Begun(coro), copy_context()
        task = asyncio.Task(begun, loop=loop, name=name, context=context)
        caller = asyncio.current_task(loop)
        if caller is not None:
            _leave_task(loop, caller)
        _enter_task(loop, task)
        try:
            context.run(begun.begin)
        finally:
            _leave_task(loop, task)
            if caller is not None:
                _enter_task(loop, caller)
        return task

    start_task = _start_task


class Commands:
    """Run commands in a thread: `deliver` gets all reports.

    If the stage has progress, `on_report` gets None for each that starts, and its report at once.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        stage: Stage,
        deliver: Deliver,
        on_report: Callable[[int, Report | None], None],
    ) -> None:
        self._loop = loop
        self._stage = stage
        self._deliver = deliver
        self._on_report = on_report
        self._indexes = list(stage.commands)
        self._commands = list(stage.commands.values())
        self._cancel = -1  # a pipe; writing to it ends the commands

    def start(self) -> None:
        """Start the commands."""
        try:
            cancel, self._cancel = os.pipe()
        except OSError as error:  # too many files are open
            self._fail(Problem("internal", f"no pipe to run it with: {error}"))
        else:
            run_in_thread_or_here(lambda: self._run(cancel))

    def end(self) -> None:
        """End the commands that still run, and close our end of the pipe."""
        if self._cancel < 0:
            return
        # Closing alone is not enough: a fork of this program may hold the same end.
        held = block_sigpipe()
        with suppress(OSError):  # all have ended
            os.write(self._cancel, b".")
        restore_sigpipe(held)
        os.close(self._cancel)
        self._cancel = -1

    def _run(self, cancel: int) -> None:
        answered = watch = None
        if self._stage.progress is not None:
            names = [command.name for command in self._commands]
            answered, watch = self._report, self._stage.watch(names, self._report)
        run = partial(
            run_commands,
            self._commands,
            self._stage.deadline,
            cancel,
            answered=answered,
            watch=watch,
            jobs=self._stage.jobs,
        )
        try:
            reports, error = attempt(run)
            if error is not None:  # reported in the loop's thread, which waits
                call_in_loop(self._loop, self._fail, crashed(error))
            else:
                call_in_loop(self._loop, self._deliver_all, reports)
        finally:
            os.close(cancel)

    def _report(self, at: int, report: Report | None = None) -> None:
        call_in_loop(self._loop, self._on_report, self._indexes[at], report)

    def _fail(self, problem: Problem) -> None:
        self._deliver_all([command.broken(problem) for command in self._commands])

    def _deliver_all(self, reports: list[Report]) -> None:
        for index, report in zip(self._indexes, reports, strict=True):
            self._deliver(index, report)


_LONGEST = 3600.0  # seconds; the clocks of event loops overflow somewhere above


async def drive(steps: Steps[T]) -> T:
    """Drive the steps to their end; cancelling this cancels the gates and closes the steps."""
    loop = asyncio.get_running_loop()
    try:
        step = next(steps)
        while True:
            if isinstance(step, Call):
                result, error = await _in_thread(loop, step)
                step = steps.send(result) if error is None else steps.throw(error)
            else:
                step = steps.send(await _RunningStage(loop, step).reports_in_time())
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()


class _RunningStage:
    """A stage while its gates run."""

    __slots__ = (
        "began",
        "commands",
        "complete",
        "is_over",
        "loop",
        "missing",
        "reported",
        "reports",
        "stage",
        "tasks",
        "threads",
        "timer",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, stage: Stage) -> None:
        self.loop = loop
        self.stage = stage
        self.reports: dict[int, Report] = {}
        self.missing = 0  # answers to wait for
        self.began: dict[int, float] = {}  # when each async function was called, by index
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.threads: FunctionThreads | None = None  # they call the other functions
        self.commands: Commands | None = None
        self.reported: set[int] = set()  # indexes whose report was passed to `progress`
        self.complete: asyncio.Future[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.is_over = False

    async def reports_in_time(self) -> list[Report]:
        """Run the gates, and wait until each has answered or timed out."""
        stage = self.stage
        try:
            if stage.ends is None:
                self._call(stage.functions)
                if stage.commands:
                    self._run_commands()
                if self.missing:
                    await self._wait_for_answers()
            else:
                await self._call_in_order(stage.ends)
        finally:
            self.is_over = True
            if self.timer is not None:
                self.timer.cancel()
            if self.missing:  # cancelled, or interrupted
                for task in self.tasks.values():
                    _abandon(task)
            if self.commands is not None:
                self.commands.end()
        return [self.reports[index] for index in sorted(self.reports)]

    async def _call_in_order(self, ends: Callable[[int, Report], bool]) -> None:
        """Call one function after another, until `ends` returns True."""
        others: dict[int, FunctionCall] = {}
        for index, call in self.stage.functions.items():
            if not call[0].is_async:
                others[index] = call  # such a stage has only one kind; the threads keep the order
                continue
            self._call({index: call})
            if self.missing:
                await self._wait_for_answers()
            if ends(index, self.reports[index]):
                return
        if others:
            self._call(others)
            await self._wait_for_answers()

    def _call(self, functions: dict[int, FunctionCall]) -> None:
        if self.stage.progress is not None:
            for function, _ in functions.values():
                self.stage.report_progress(function.name)
        others: dict[int, FunctionCall] = {}
        outside = None
        try:
            for index, (function, args) in functions.items():
                if not function.is_async:
                    others[index] = (function, args)
                    continue
                if outside is None:  # all gates of a stage belong to one engine
                    outside = calling_engines.set(calling_engines.get() | {function.engine})
                self.missing += 1
                began = monotonic()
                coroutine = guarded_async(function, args, self._deliver, index, began)
                task = start_task(coroutine, loop=self.loop, name=function.name)
                if index not in self.reports:
                    self.began[index], self.tasks[index] = began, task
        finally:
            if outside is not None:
                calling_engines.reset(outside)
        if others:
            self.missing += 1  # the threads count as one
            self.threads = FunctionThreads(self.stage, others, self._on_thread_report)
            self.threads.start()

    async def _wait_for_answers(self) -> None:
        """Wait until no answer is missing."""
        if not self.missing:
            return
        self.complete = self.loop.create_future()
        self._set_timer()
        await self.complete
        if self.timer is not None:
            self.timer.cancel()

    def _on_thread_report(self) -> None:
        call_in_loop(self.loop, self._take_thread_reports)

    def _take_thread_reports(self) -> None:
        if self.threads is None:
            return
        for index in [index for index in self.threads.reports if index not in self.reports]:
            self.reports[index] = self.threads.reports[index]
            self._report_progress(index, self.reports[index])
        if not self.threads.missing:
            self.threads = None
            self._count_down()

    def _run_commands(self) -> None:
        self.missing += len(self.stage.commands)
        self.commands = Commands(self.loop, self.stage, self._deliver, self._report_progress)
        self.commands.start()

    def _deliver(self, index: int, report: Report) -> None:
        if index not in self.reports:  # else it timed out before
            self.reports[index] = report
            if self.stage.progress is not None:
                self._report_progress(index, report)
            self._count_down()

    def _count_down(self) -> None:
        self.missing -= 1
        if not self.missing and self.complete is not None and not self.complete.done():
            self.complete.set_result(None)

    def _report_progress(self, index: int, report: Report | None) -> None:
        """Report that a gate starts, and its report once, unless the stage is over."""
        if index not in self.reported and not self.is_over:
            if report is not None:
                self.reported.add(index)
            asked = self.stage.functions.get(index)
            name = self.stage.commands[index].name if asked is None else asked[0].name
            self.stage.report_progress(name, report)

    def _end(self, index: int) -> float | None:
        function, _ = self.stage.functions[index]
        return ends_at(function, self.began[index], self.stage.deadline)

    def _set_timer(self) -> None:
        """Set the timer to the next timeout: one timer for all gates."""
        now = monotonic()
        waits = [
            end - now
            for index in self.tasks
            if index not in self.reports and (end := self._end(index)) is not None
        ]
        if self.threads is not None and (wait := self.threads.patience()) is not None:
            waits.append(wait)
        if waits:
            self.timer = self.loop.call_later(max(0.0, min(*waits, _LONGEST)), self._on_timer)

    def _on_timer(self) -> None:
        now = monotonic()
        for index, task in self.tasks.items():
            if index not in self.reports and (end := self._end(index)) is not None and end <= now:
                _abandon(task)
                function, _ = self.stage.functions[index]
                self._deliver(index, too_late(function, self.began[index], self.stage.deadline))
        if self.threads is not None:
            self.threads.look()
            self._take_thread_reports()
        if self.missing:
            self._set_timer()


_abandoned: set[asyncio.Task[None]] = set()  # a loop itself holds its tasks only weakly


def _abandon(task: asyncio.Task[None]) -> None:
    """Cancel a task and abandon it, even if it ignores the cancellation."""
    if task.cancel():
        _abandoned.add(task)
        task.add_done_callback(_abandoned.discard)


async def _in_thread(
    loop: asyncio.AbstractEventLoop, step: Call
) -> tuple[Any, BaseException | None]:
    """Make a call in a thread, so that it does not block the loop."""
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def undo(result: Any, error: BaseException | None) -> None:
        if step.undo is not None and error is None:
            step.undo(result)

    def deliver(result: Any, error: BaseException | None) -> None:
        if done.done():  # cancelled
            run_in_thread_or_here(lambda: undo(result, error))
        else:
            done.set_result((result, error))

    def job() -> None:
        result, failure = attempt(step.call, *step.args)
        if not call_in_loop(loop, deliver, result, failure):
            undo(result, failure)

    run_in_thread_or_here(job)
    try:
        return await done
    except asyncio.CancelledError:
        if done.done() and not done.cancelled():  # in the same turn of the loop
            result, error = done.result()
            run_in_thread_or_here(lambda: undo(result, error))
        raise
