"""The time of `notyet hook`: how long its host waits, and the one timer of its process.

A timer goes off anywhere, between any two steps. So it raises only where time is really up, and
from then on the answer that is still due is not disturbed once more.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal as signal  # without the enum that `signal` imports

SHORTLY = 0.2  # seconds that an answer may take in any case
TICK = 0.05  # seconds after which we look again, where nothing else tells us
NEVER = float("inf")
_SOON = 0.001  # 0 would stop a timer
_LATE = 1e6  # timers overflow somewhere above


class Ended(BaseException):
    """The host, or a person, wants us gone."""


class OutOfTime(BaseException):
    """The host stops waiting for us soon; what we do now is not done in time.

    Not an Exception: whoever keeps a fault of somebody else to himself must not keep this one.
    """


class Alarm:
    """The one timer of a process, and what it does."""

    def __init__(self) -> None:
        self._do: Callable[[], None] = _nothing
        self.started = 0.0  # 0: no host waits for us
        self.patience = NEVER
        self.is_ending = False  # then it is set for nothing else any more, until it is stopped

    def set(self, seconds: float, again: float, do: Callable[[], None]) -> None:
        """Call something after so many seconds, and then in intervals."""
        if self.is_ending:
            return
        self.stop()  # else a timer that runs could do at once what the next one is for
        signal.signal(signal.SIGALRM, self._ring)  # after which it has gone off, or never will
        self._do = do
        signal.setitimer(signal.ITIMER_REAL, min(max(seconds, _SOON), _LATE), again)

    def stop(self) -> None:
        """Call nothing any more."""
        self._do, self.is_ending = _nothing, False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def guard(self) -> None:
        """Raise OutOfTime shortly before the host stops waiting, and again until it is taken.

        The gates were ended before that, at two margins more; so something else takes so long.
        """
        if self.patience == NEVER:
            self.stop()
            return
        margin = min(1.0, self.patience / 15)  # a third of that of the gates
        self.set(self.left() - margin, max(margin / 2, TICK), raise_out_of_time)

    def left(self) -> float:
        """Return how many seconds the host still waits."""
        return self.started + self.patience - time.monotonic()

    def _ring(self, _number: int, _frame: Any) -> None:
        self._do()


def _nothing() -> None:
    """Do nothing: the alarm was stopped while it rang."""


def raise_out_of_time() -> None:
    """Say that time is up to whatever is being done."""
    sys.unraisablehook = raise_again
    raise OutOfTime


alarm = Alarm()


def raise_again(lost: Any) -> None:
    """See to it that what was raised where Python can only print it comes again, and elsewhere.

    Such places are callbacks, like those that importlib has for its locks.
    """
    if isinstance(lost.exc_value, Ended):
        alarm.set(TICK, TICK, _end_after_all)
        alarm.is_ending = True  # the last step, because in here it would be lost for good
    elif not isinstance(lost.exc_value, OutOfTime):  # which comes again by itself
        sys.__unraisablehook__(lost)


def _end_after_all() -> None:
    if alarm.is_ending:
        alarm.stop()
        raise Ended


def host_waits(seconds: float) -> None:
    """Say how long the host waits for us, all in all; does nothing in any other program."""
    if alarm.started:
        alarm.patience = seconds
        alarm.guard()


def be_undisturbed() -> None:
    """Raise OutOfTime no more: it was taken, or all that is left is to write the answer."""
    if alarm.started:
        alarm.stop()


def be_brief() -> None:
    """Raise OutOfTime once more halfway to the very end, but leave time for what is brief."""
    if alarm.started:
        seconds = max(SHORTLY, alarm.left() / 2)
        alarm.set(seconds, seconds, raise_out_of_time)
