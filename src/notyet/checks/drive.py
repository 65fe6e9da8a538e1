"""Driving a line in the calling thread.

A line is a generator: it yields what it needs, a stage of questions or a `Call` that may
block, and is sent the reports or the result. So the logic of a stop is written once, and each
driver only knows how to wait. The driver for event loops is `drive_async`.
"""

from __future__ import annotations

from time import monotonic

from notyet.checks.function import (
    asked_by,
    cannot_start,
    guarded,
    out_of_time,
    timed_out,
)
from notyet.core.record import Record
from notyet.errors import NotyetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from queue import SimpleQueue
    from typing import Any, TypeVar

    from notyet.checks.function import Question
    from notyet.checks.question import CommandQuestion
    from notyet.core.verdict import Report

    T = TypeVar("T")
    Asking = tuple[Question, tuple[Any, ...]]  # and its arguments
    Answered = tuple[int, Report, float]  # its place, what it said, and when
    # Hears of a gate that is being asked, and of its report; in the thread that drives.
    Progress = Callable[[str, Report | None], None]
    Line = Generator["Stage | Call", Any, T]


class Stage(Record):
    """What is asked together: functions and commands, each with its place among the reports.

    Nobody is waited for beyond `deadline`, a time of the monotonic clock (E9).
    """

    functions: dict[int, Asking]
    commands: dict[int, CommandQuestion]
    deadline: float | None = None
    progress: Progress | None = None

    def tell(self, name: str, report: Report | None = None) -> None:
        """Say that a gate is being asked, or what it said; whoever hears it can harm nothing."""
        if self.progress is None:
            return
        try:
            self.progress(name, report)
        except Exception:  # foreign code, for which nobody is asked or held
            import logging

            logging.getLogger("notyet").debug("progress", exc_info=True)

    def name_of(self, place: int) -> str:
        """Return whose report stands at a place."""
        asked = self.functions.get(place)
        return self.commands[place].name if asked is None else asked[0].name

    def ends(self, question: Question, started: float) -> float | None:
        """Return when a function's time is up; None when it may take as long as it likes."""
        own = None if question.timeout is None else started + question.timeout
        if own is None or self.deadline is None:
            return self.deadline if own is None else own
        return min(own, self.deadline)

    def late(self, question: Question, started: float) -> Report:
        """Write down that a function's own time, or the host's, was up."""
        own = None if question.timeout is None else started + question.timeout
        if self.deadline is not None and (own is None or self.deadline < own):
            return out_of_time(question, self.deadline - started)
        return timed_out(question)


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
    if not stage.functions:  # as in a hook: no thread is needed
        return _ask_commands(stage)
    from queue import SimpleQueue

    from notyet.checks.threads import run_in_thread

    started = monotonic()
    answers: SimpleQueue[Answered] = SimpleQueue()
    reports: dict[int, Report] = {}
    for question, _ in stage.functions.values():
        stage.tell(question.name)
    engines = frozenset(question.engine for question, _ in stage.functions.values())
    outside = asked_by.set(asked_by.get() | engines)
    try:
        for place, asking in stage.functions.items():
            try:
                run_in_thread(_job(place, asking, answers))
            except RuntimeError as error:  # the system has no thread left
                answers.put((place, cannot_start(asking[0], error), started))
    finally:
        asked_by.reset(outside)

    def meanwhile() -> None:
        while not answers.empty():
            _take(stage, started, answers.get(), reports)

    if stage.commands:
        reports |= zip(stage.commands, _ask_commands(stage, meanwhile), strict=True)
    _await_answers(stage, started, answers, reports)
    return [reports[place] for place in sorted(reports)]


def _await_answers(
    stage: Stage, started: float, answers: SimpleQueue[Answered], reports: dict[int, Report]
) -> None:
    """Add a report for each function that has none; after the commands, so some may be late."""
    from queue import Empty

    while len(reports) < len(stage.functions) + len(stage.commands):
        waiting = {p: question for p, (question, _) in stage.functions.items() if p not in reports}
        ends = {place: stage.ends(question, started) for place, question in waiting.items()}
        soonest = min((end for end in ends.values() if end is not None), default=None)
        try:
            patience = None if soonest is None else max(0.0, soonest - monotonic())
            answer = answers.get(timeout=patience)
        except Empty:
            now = monotonic()
            for place, end in ends.items():
                if end is not None and end <= now:
                    reports[place] = stage.late(waiting[place], started)
                    stage.tell(waiting[place].name, reports[place])
        else:
            _take(stage, started, answer, reports)


def _take(stage: Stage, started: float, answer: Answered, reports: dict[int, Report]) -> None:
    """Take the answer of a function, unless its time was up before."""
    place, report, came = answer
    if place in reports:
        return
    question, _ = stage.functions[place]
    end = stage.ends(question, started)
    if end is not None and came > end:  # a late answer is dropped (A9)
        report = stage.late(question, started)
    reports[place] = report
    stage.tell(question.name, report)


def _ask_commands(stage: Stage, meanwhile: Callable[[], None] | None = None) -> list[Report]:
    from notyet.checks.question import ask_commands

    questions = list(stage.commands.values())
    if stage.progress is None:
        return ask_commands(questions, stage.deadline)
    for question in questions:
        stage.tell(question.name)

    def answered(place: int, report: Report) -> None:
        stage.tell(questions[place].name, report)

    return ask_commands(questions, stage.deadline, answered=answered, meanwhile=meanwhile)


def _job(place: int, asking: Asking, answers: SimpleQueue[Answered]) -> Callable[[], None]:
    return lambda: answers.put((place, guarded(*asking), monotonic()))
