"""The commands of a stage, asked in a thread while an event loop goes on, and ended from there."""

from __future__ import annotations

import os
from time import monotonic

from notyet.checks.function import crashed
from notyet.checks.process import hold_sigpipe, release_sigpipe
from notyet.checks.question import ask_commands
from notyet.checks.threads import run_or_do, tell
from notyet.core.verdict import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from notyet.checks.drive import Stage
    from notyet.core.verdict import Report

    Deliver = Callable[[int, Report], None]  # takes a report by its place, in the loop's thread

_FOREVER = 1e7  # seconds that nobody waits for
_LAST_RESORT = 10.0  # seconds that the runner gets to end commands whose time is up


class Commands:
    """Commands that are asked; `deliver` takes their reports, `tell_of` hears of each at once."""

    def __init__(
        self, loop: AbstractEventLoop, stage: Stage, deliver: Deliver, tell_of: Deliver
    ) -> None:
        self._loop = loop
        self._stage = stage
        self._deliver = deliver
        self._tell_of = tell_of
        self._places = list(stage.commands)
        self._questions = list(stage.commands.values())
        self._asked = True
        self._cancel = -1  # a pipe that ends them when it is written to
        self._last_resort: float | None = None

    @property
    def last_resort(self) -> float | None:
        """When even the runner, which knows the commands' times itself, is too late."""
        return self._last_resort if self._asked else None

    def start(self) -> None:
        """Run them, and listen."""
        for question in self._questions:
            self._stage.tell(question.name)
        try:
            heard, self._cancel = os.pipe()
        except OSError as error:  # too many files are open
            self._broken(Problem("cannot_start", f"no pipe to run it with: {error}"))
            return
        self._last_resort = self._latest()
        run_or_do(lambda: self._run(heard))

    def look(self, now: float) -> None:
        """Give up on them where they should have been ended long ago."""
        if self.last_resort is not None and self.last_resort <= now:
            self.end()
            self._broken(Problem("timeout", "it was not ended in time"))

    def end(self) -> None:
        """End those that still run, and close our end of their pipe."""
        if self._cancel < 0:
            return
        if self._asked:
            # Not the closing alone: a fork of this program may hold the same end for long.
            held = hold_sigpipe()
            try:
                os.write(self._cancel, b".")
            except OSError:  # they have ended just now
                pass
            finally:
                release_sigpipe(held)
        os.close(self._cancel)
        self._cancel = -1

    def _run(self, heard: int) -> None:
        listens = self._answered if self._stage.progress is not None else None
        try:
            reports = ask_commands(self._questions, self._stage.deadline, heard, answered=listens)
        except BaseException as error:  # noqa: BLE001  # somebody waits for it, and not here
            tell(self._loop, self._broken, crashed(error))
        else:
            tell(self._loop, self._deliver_all, reports)
        finally:
            os.close(heard)

    def _answered(self, at: int, report: Report) -> None:
        tell(self._loop, self._tell_of, self._places[at], report)

    def _broken(self, problem: Problem) -> None:
        self._deliver_all([question.broken(problem) for question in self._questions])

    def _deliver_all(self, reports: list[Report]) -> None:
        self._asked = False
        for place, report in zip(self._places, reports, strict=True):
            self._deliver(place, report)

    def _latest(self) -> float | None:
        if self._stage.deadline is not None:
            return self._stage.deadline + _LAST_RESORT
        # They run together, or at worst one after another.
        timeouts = [question.job.timeout for question in self._questions]
        known = [timeout for timeout in timeouts if timeout is not None]
        if len(known) < len(timeouts) or sum(known) > _FOREVER:
            return None
        return monotonic() + sum(known) + _LAST_RESORT
