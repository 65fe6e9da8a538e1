"""Asking functions in threads, so that one which never returns holds nobody.

To wake a thread costs more than most functions take, so one thread asks one after another. Where
they are to be asked together, and some are still not asked after a moment, each of those gets a
thread of its own. The thread that drives only watches the clock.
"""

from __future__ import annotations

from _thread import allocate_lock
from contextvars import copy_context
from time import monotonic

from notyet.checks import threads
from notyet.checks.drive import ask_commands
from notyet.checks.function import asked_by, cannot_start, ends_at, guarded, too_late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

    from notyet.checks.drive import Asking, Stage
    from notyet.core.verdict import Report

_LONGEST = 3600.0  # seconds; locks overflow somewhere above
_MOMENT = 0.001  # seconds; far above what it takes to ask a function that does not wait


def ask(stage: Stage) -> list[Report]:
    """Ask a stage that has functions; those without an answer in time are left behind."""
    for question, _ in stage.functions.values():
        stage.tell(question.name)
    answered = allocate_lock()  # held until there is something to look at
    answered.acquire()

    def wake() -> None:
        if answered.locked():
            answered.release()

    crew = Crew(stage, stage.functions, wake)
    told: set[int] = set()

    def meanwhile() -> None:
        if stage.progress is None:
            return
        for place in [place for place in crew.reports if place not in told]:
            told.add(place)
            stage.tell(stage.functions[place][0].name, crew.reports[place])

    crew.start()
    reports: dict[int, Report] = {}
    if stage.commands:
        crew.spread()
        reports |= zip(stage.commands, ask_commands(stage, meanwhile), strict=True)
    while crew.missing:
        _wait(answered, crew.patience())
        crew.look()
        meanwhile()
    meanwhile()
    reports |= crew.reports
    return [reports[place] for place in sorted(reports)]


def _wait(answered: LockType, patience: float | None) -> None:
    answered.acquire(timeout=-1 if patience is None else patience)


class Crew:
    """Functions of a stage, and the threads that ask them.

    `heard` is called, by whichever thread it is, when all have answered; where somebody listens to
    the progress, whenever one has.
    """

    def __init__(
        self, stage: Stage, functions: dict[int, Asking], heard: Callable[[], None]
    ) -> None:
        self.reports: dict[int, Report] = {}
        self.missing = len(functions)
        self._stage = stage
        self._functions = functions
        self._heard = heard
        self._waiting = [*functions][::-1]  # the next one is the last
        self._engine = next(iter(functions.values()))[0].engine  # one asks them all
        self._begun: dict[int, float] = {}
        self._lock = allocate_lock()
        self._started = monotonic()  # in order: when the next one could be asked
        self._spreads = self._started + _MOMENT if stage.ends is None else None

    def start(self) -> None:
        """Let a thread ask; the functions know that they are being asked, and by whom."""
        outside = asked_by.set(asked_by.get() | {self._engine})
        try:
            threads.run_in_thread(self._ask_on)
        except RuntimeError as error:  # the system has no thread left
            self._nobody_asks(error)
        finally:
            asked_by.reset(outside)

    def spread(self) -> None:
        """Give each function that nobody has asked yet a thread of its own."""
        self._spreads = None
        for _ in tuple(self._waiting):
            self.start()

    def patience(self) -> float | None:
        """Return for how many seconds there is nothing to do but to wait; None: for ever."""
        now = monotonic()
        ends = [now + _LONGEST]
        if self._waiting:
            if self._spreads is not None:
                ends.append(self._spreads)
            if self._stage.ends is not None:  # any of them may be asked while we wait
                ends += [end for place in (*self._waiting,) if (end := self._end(place, now))]
        ends += [end for place in self._asked() if (end := self._end(place)) is not None]
        return max(0.0, min(ends) - now) if len(ends) > 1 else None

    def look(self) -> None:
        """Leave those behind whose time is up, and see that the others are asked."""
        now = monotonic()
        if self._spreads is not None and now >= self._spreads:
            self.spread()
        for place in self._asked():
            end = self._end(place)
            if end is None or end > now or not self._take(place, self._late(place)):
                continue
            if self._waiting and self._stage.ends is not None:
                self.start()  # the thread that was to ask the next one does not come back

    def _asked(self) -> list[int]:
        """Return who is being asked, or is to be asked now; in order, that is one at a time."""
        if self._stage.ends is None:
            return [place for place in self._functions if place not in self.reports]
        begun = [place for place in (*self._begun,) if place not in self.reports]
        return begun or [*self._waiting[-1:]]

    def _ask_on(self) -> None:
        """Ask one function after another, as long as their answers are waited for."""
        while True:
            with self._lock:
                if not self._waiting:
                    return
                place = self._waiting.pop()
                self._begun[place] = monotonic()
            # What one does to its context concerns no other.
            report = copy_context().run(guarded, *self._functions[place])
            if not self._take(place, report):
                return

    def _take(self, place: int, report: Report) -> bool:
        """Take what a function said; False if it was left behind before."""
        with self._lock:
            if place in self.reports:
                return False
            end = self._end(place)
            if end is not None and monotonic() > end:  # a late answer is dropped (A9)
                report = self._late(place)
            self.reports[place] = report
            self.missing -= 1
            if place not in self._begun and place in self._waiting:
                self._waiting.remove(place)  # nobody has begun with it, and nobody shall
            if self._stage.ends is not None:
                self._started = monotonic()
                if self._stage.ends(place, report):
                    self._waiting.clear()
                    self.missing = 0
            if not self.missing or self._stage.progress is not None:
                self._heard()
        return True

    def _nobody_asks(self, error: RuntimeError) -> None:
        with self._lock:
            places = self._waiting[::-1]
            self._waiting.clear()
        for place in places:
            if not self.missing:  # one of them ended the stage
                return
            self._take(place, cannot_start(self._functions[place][0], error))

    def _end(self, place: int, began: float | None = None) -> float | None:
        began = self._begun.get(place, began or self._started)
        return ends_at(self._functions[place][0], began, self._stage.deadline)

    def _late(self, place: int) -> Report:
        began = self._begun.get(place, self._started)
        return too_late(self._functions[place][0], began, self._stage.deadline)
