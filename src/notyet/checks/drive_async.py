"""Driving a line on an event loop: async questions get a task of their own, others a thread.

A gate that is too late is cancelled and left behind, so that one which swallows its cancellation
cannot hold anybody up; and what one does to its task or its context concerns no other. One timer
wakes us up when the next of them is out of time; where all answer at once, there is none.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from notyet.checks.drive import Call
from notyet.checks.drive_functions import Crew
from notyet.checks.eager import start_task
from notyet.checks.function import asked_by, ends_at, guarded_async, too_late
from notyet.checks.threads import run_or_do, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from notyet.checks.drive import Asking, Line, Stage
    from notyet.checks.drive_commands import Commands
    from notyet.core.verdict import Report

    T = TypeVar("T")

_LONGEST = 3600.0  # seconds; the clocks of event loops overflow somewhere above


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


class _Asked:
    """A stage whose questions are being asked."""

    __slots__ = (
        "began",
        "commands",
        "complete",
        "crew",
        "is_over",
        "loop",
        "missing",
        "reports",
        "stage",
        "tasks",
        "timer",
        "told",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, stage: Stage) -> None:
        self.loop = loop
        self.stage = stage
        self.reports: dict[int, Report] = {}
        self.missing = 0  # answers that are waited for
        self.began: dict[int, float] = {}  # the async functions, and when each was asked
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.crew: Crew | None = None  # who asks the other functions
        self.commands: Commands | None = None
        self.told: set[int] = set()  # the places of those that somebody has heard of
        self.complete: asyncio.Future[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.is_over = False

    async def reports_in_time(self) -> list[Report]:
        """Ask, and wait until every question has an answer or is out of time."""
        stage = self.stage
        try:
            if stage.ends is None:
                self._ask(stage.functions)
                if stage.commands:
                    self._run_commands()
                if self.missing:
                    await self._answers()
            else:
                await self._ask_in_order(stage.ends)
        finally:
            self.is_over = True
            if self.timer is not None:
                self.timer.cancel()
            if self.missing:  # we were cancelled, or interrupted
                for task in self.tasks.values():
                    _leave_behind(task)
            if self.commands is not None:
                self.commands.end()
        return [self.reports[place] for place in sorted(self.reports)]

    async def _ask_in_order(self, ends: Callable[[int, Report], bool]) -> None:
        """Ask one function after another, until one ends it."""
        others: dict[int, Asking] = {}
        for place, asking in self.stage.functions.items():
            if not asking[0].is_async:
                others[place] = asking  # such a stage has no other kind; its crew knows the order
                continue
            self._ask({place: asking})
            if self.missing:
                await self._answers()
            if ends(place, self.reports[place]):
                return
        if others:
            self._ask(others)
            await self._answers()

    def _ask(self, functions: dict[int, Asking]) -> None:
        if self.stage.progress is not None:
            for question, _ in functions.values():
                self.stage.tell(question.name)
        others: dict[int, Asking] = {}
        outside = None
        try:
            for place, (question, args) in functions.items():
                if not question.is_async:
                    others[place] = (question, args)
                    continue
                if outside is None:  # all of a stage are asked by one engine
                    outside = asked_by.set(asked_by.get() | {question.engine})
                self.missing += 1
                began = monotonic()
                coroutine = guarded_async(question, args, self._deliver, place, began)
                task = start_task(coroutine, loop=self.loop, name=question.name)
                if place not in self.reports:
                    self.began[place], self.tasks[place] = began, task
        finally:
            if outside is not None:
                asked_by.reset(outside)
        if others:
            self.missing += 1  # they answer together
            self.crew = Crew(self.stage, others, self._crew_answers)
            self.crew.start()

    async def _answers(self) -> None:
        """Wait until there is an answer to all that was asked."""
        if not self.missing:
            return
        self.complete = self.loop.create_future()
        self._set_timer()
        await self.complete
        if self.timer is not None:
            self.timer.cancel()

    def _crew_answers(self) -> None:
        tell(self.loop, self._hear_crew)

    def _hear_crew(self) -> None:
        if self.crew is None:
            return
        for place in [place for place in self.crew.reports if place not in self.reports]:
            self.reports[place] = self.crew.reports[place]
            self._tell_of(place, self.reports[place])
        if not self.crew.missing:
            self.crew = None
            self._one_less()

    def _run_commands(self) -> None:
        from notyet.checks.drive_commands import Commands

        self.missing += len(self.stage.commands)
        self.commands = Commands(self.loop, self.stage, self._deliver, self._tell_of)
        self.commands.start()

    def _deliver(self, place: int, report: Report) -> None:
        if place not in self.reports:  # else it comes too late
            self.reports[place] = report
            if self.stage.progress is not None:
                self._tell_of(place, report)
            self._one_less()

    def _one_less(self) -> None:
        self.missing -= 1
        if not self.missing and self.complete is not None and not self.complete.done():
            self.complete.set_result(None)

    def _tell_of(self, place: int, report: Report) -> None:
        """Say once what a gate said, as long as somebody waits for it."""
        if place not in self.told and not self.is_over:
            self.told.add(place)
            asked = self.stage.functions.get(place)
            name = self.stage.commands[place].name if asked is None else asked[0].name
            self.stage.tell(name, report)

    def _end(self, place: int) -> float | None:
        question, _ = self.stage.functions[place]
        return ends_at(question, self.began[place], self.stage.deadline)

    def _set_timer(self) -> None:
        """Wake up when the next question is out of time: one timer for all of them."""
        now = monotonic()
        waits = [
            end - now
            for place in self.tasks
            if place not in self.reports and (end := self._end(place)) is not None
        ]
        if self.crew is not None and (wait := self.crew.patience()) is not None:
            waits.append(wait)
        if self.commands is not None and (end := self.commands.last_resort) is not None:
            waits.append(end - now)
        if waits:
            self.timer = self.loop.call_later(max(0.0, min(*waits, _LONGEST)), self._ring)

    def _ring(self) -> None:
        now = monotonic()
        for place, task in self.tasks.items():
            if place not in self.reports and (end := self._end(place)) is not None and end <= now:
                _leave_behind(task)
                question, _ = self.stage.functions[place]
                self._deliver(place, too_late(question, self.began[place], self.stage.deadline))
        if self.crew is not None:
            self.crew.look()
            self._hear_crew()
        if self.commands is not None:
            self.commands.look(now)
        if self.missing:
            self._set_timer()


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
        if not tell(loop, deliver, result, failure):
            undo(result, failure)

    run_or_do(job)
    try:
        return await done
    except asyncio.CancelledError:
        if done.done() and not done.cancelled():  # in the same turn of the loop
            result, error = done.result()
            run_or_do(lambda: undo(result, error))
        raise
