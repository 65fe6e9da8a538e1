"""Ending in order: what was started is ended and what was begun is undone, whoever ends us."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ENOUGH = 10.0  # seconds in which whatever is being ended has ended


def _nothing() -> None:
    """Do nothing at last."""


@contextmanager
def ended_in_order(last: Callable[[], object] = _nothing) -> Iterator[None]:
    """Leave nothing behind when somebody ends us: neither what was started, nor files.

    A signal ends the block, and then `last` is done. Who says it again, or says it meanwhile, is
    heard when that is over: somebody in a hurry would leave half of it. What whoever started us
    lets us ignore, as `nohup` does, stays ignored.
    """
    told: list[int] = []
    heard_at = -_ENOUGH
    is_over = False

    def end(number: int, _frame: object) -> None:
        nonlocal heard_at
        told.append(number)
        now = time.monotonic()
        # Once more after a while: Python drops what is raised in the midst of a finalizer.
        if not is_over and now - heard_at >= _ENOUGH:
            heard_at = now
            _end_of(number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    kept = {number: known for number, known in before.items() if known not in _LEFT_ALONE}
    for number in kept:
        signal.signal(number, end)
    try:
        try:
            yield
        finally:
            is_over = True
    finally:
        is_over = True  # once more: a signal may have come just before
        try:
            last()
        finally:
            for number, known in kept.items():
                # Who was told to end ends now, and need not be told again.
                signal.signal(number, signal.SIG_IGN if told else known)
    if told:
        _end_of(told[0])


_LEFT_ALONE = (signal.SIG_IGN, None)  # None: it was set by something that is not Python


def _end_of(number: int) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)
