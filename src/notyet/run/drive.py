"""Driving a line in the calling thread.

A line is a generator: it yields what it needs, a stage of questions or a `Call` that may
block, and is sent the reports or the result. So the logic of a stop is written once, and each
driver only knows how to wait. The driver for event loops is `drive_async`; what only functions
need, which a hook rarely has, is in `drive_functions`.
"""

from __future__ import annotations

from notyet.errors import NotyetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, TypeVar

    from notyet.core.verdict import Report
    from notyet.run.command import CommandQuestion
    from notyet.run.functions import Question

    T = TypeVar("T")
    Asking = tuple[Question, tuple[Any, ...]]  # and its arguments
    # Hears of a gate that is being asked, and of its report; in the thread that drives.
    Progress = Callable[[str, Report | None], None]
    # Tells of a report by its place whether those that come after it are not to be asked.
    Ends = Callable[[int, Report], bool]
    Line = Generator["Stage | Call", Any, T]


class Stage:
    """What is asked together: functions and commands, each with its place among the reports.

    Nobody is waited for beyond `deadline`, a time of the monotonic clock (E9). Functions are asked
    one after another where there is an `ends`, until it says so; the reports are those till then.
    `while_waiting` is called once, while commands are at work.
    """

    __slots__ = ("commands", "deadline", "ends", "functions", "progress", "while_waiting")

    def __init__(
        self,
        functions: dict[int, Asking],
        commands: dict[int, CommandQuestion],
        deadline: float | None = None,
        progress: Progress | None = None,
        *,
        ends: Ends | None = None,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        self.functions = functions
        self.commands = commands
        self.deadline = deadline
        self.progress = progress
        self.ends = ends
        self.while_waiting = while_waiting

    def tell(self, name: str, report: Report | None = None) -> None:
        """Say that a gate is being asked, or what it said; whoever hears it can harm nothing."""
        if self.progress is None:
            return
        try:
            self.progress(name, report)
        except Exception:  # foreign code, for which nobody is asked or held
            import logging

            logging.getLogger("notyet").debug("progress", exc_info=True)


class Call:
    """Something of ours that may block, such as a ledger's transaction.

    `undo` is called with the result if the line was cancelled before it could be handed over.
    """

    __slots__ = ("args", "call", "undo")

    def __init__(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...] = (),
        undo: Callable[[Any], None] | None = None,
    ) -> None:
        self.call = call
        self.args = args
        self.undo = undo


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
        return ask_commands(stage)
    from notyet.run.functions import ask

    return ask(stage)


def ask_commands(stage: Stage, meanwhile: Callable[[], None] | None = None) -> list[Report]:
    """Ask the commands of a stage; `meanwhile` is called now and then, where somebody listens."""
    from notyet.run import command as question

    questions = list(stage.commands.values())
    if stage.progress is None:
        return question.ask_commands(questions, stage.deadline, while_waiting=stage.while_waiting)
    for asked in questions:
        stage.tell(asked.name)

    def answered(place: int, report: Report) -> None:
        stage.tell(questions[place].name, report)

    return question.ask_commands(questions, stage.deadline, answered=answered, meanwhile=meanwhile)
