"""Drive steps, which are the logic of a stop as a generator, in the calling thread.

The generator yields a stage of gates to run, or a `Call` that may block, and is sent the reports or
the result. So the logic is written once, and a driver only knows how to wait. `drive_async` is the
driver for event loops. `functions` has what only Python gates need, which a hook rarely has.
"""

from __future__ import annotations

from notyet.errors import NotyetError, attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, TypeVar

    from notyet.core.verdict import Report
    from notyet.run.functions import GateFunction
    from notyet.run.gate_command import GateCommand

    T = TypeVar("T")
    FunctionCall = tuple[GateFunction, tuple[Any, ...]]  # and its arguments
    # Called in the driving thread with a gate that starts, and again with its report. It may have
    # a method `planned`, called before with the names of all gates, and a method `printed`, called
    # in any thread with a gate and the bytes that its command printed.
    Progress = Callable[[str, Report | None], None]
    # Returns True if no function after this index is to run, given the report at this index.
    Ends = Callable[[int, Report], bool]
    Steps = Generator["Stage | Call", Any, T]
    Watch = Callable[[int, bytes], None]


class Stage:
    """Functions and commands that run together, each with its index among the reports.

    None is waited for beyond `deadline`, a time of the monotonic clock (E9). With `ends`, functions
    run one after another until it returns True, and the stage has no later reports.
    `while_waiting` is called once, while commands run. `jobs` is how many commands run at a time.
    """

    __slots__ = ("commands", "deadline", "ends", "functions", "jobs", "progress", "while_waiting")

    def __init__(
        self,
        functions: dict[int, FunctionCall],
        commands: dict[int, GateCommand],
        deadline: float | None = None,
        progress: Progress | None = None,
        *,
        ends: Ends | None = None,
        while_waiting: Callable[[], None] | None = None,
        jobs: int | None = None,
    ) -> None:
        self.functions = functions
        self.commands = commands
        self.deadline = deadline
        self.progress = progress
        self.ends = ends
        self.while_waiting = while_waiting
        self.jobs = jobs

    def report_progress(self, name: str, report: Report | None = None) -> None:
        """Report progress: a gate starts, or has a report. Log what the callback raises."""
        if self.progress is not None:
            call_progress(self.progress, name, report)

    def watch(self, names: Sequence[str], started: Callable[[int], None]) -> Watch:
        """Return a function that calls `started`, and reports what commands print."""
        printed = getattr(self.progress, "printed", None)

        def watch(index: int, chunk: bytes) -> None:
            if not chunk:
                started(index)
            elif printed is not None:
                call_progress(printed, names[index], chunk)

        return watch


def call_progress(progress: Callable[..., None], *args: object) -> None:
    """Report progress; log what the callback raises."""
    _, error = attempt(progress, *args)
    if error is not None:  # it must not affect the outcome
        import logging

        logging.getLogger("notyet").debug("progress", exc_info=error)


class Call:
    """A function of ours that may block, such as a ledger's transaction.

    `undo` is called with the result if the steps are cancelled before they receive the result.
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


def drive_sync(steps: Steps[T]) -> T:
    """Drive the steps to their end in this thread, which may be inside a running event loop."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, Call):
                try:
                    result = step.call(*step.args)
                except NotyetError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
            else:
                step = steps.send(run_stage(step))
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()


def run_stage(stage: Stage) -> list[Report]:
    """Run all gates of a stage at once; abandon those that time out."""
    if not stage.functions:  # the usual case in a hook; no thread is needed
        return run_stage_commands(stage)
    from notyet.run.functions import run_functions

    return run_functions(stage)


def run_stage_commands(stage: Stage, meanwhile: Callable[[], None] | None = None) -> list[Report]:
    """Run the commands of a stage; with progress, call `meanwhile` from time to time."""
    from notyet.run import gate_command as runner

    commands = list(stage.commands.values())
    if stage.progress is None:
        return runner.run_commands(
            commands, stage.deadline, while_waiting=stage.while_waiting, jobs=stage.jobs
        )
    names = [command.name for command in commands]

    def answered(index: int, report: Report) -> None:
        stage.report_progress(names[index], report)

    return runner.run_commands(
        commands,
        stage.deadline,
        answered=answered,
        meanwhile=meanwhile,
        watch=stage.watch(names, lambda index: stage.report_progress(names[index])),
        jobs=stage.jobs,
    )
