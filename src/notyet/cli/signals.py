"""End in order on a signal: stop what was started, undo what was begun, then exit."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LEFT_ALONE = (signal.SIG_IGN, None)  # None: it was set by something that is not Python


@contextmanager
def ended_in_order(last: Callable[[], object] | None = None) -> Iterator[None]:
    """Let a signal end the block, and call `last` in any case, undisturbed by more signals.

    Signals that were ignored before, as by `nohup`, stay ignored.
    """
    received: list[int] = []
    is_over = False

    def end(number: int, _frame: object) -> None:
        received.append(number)
        if not is_over and len(received) == 1:
            _end_by(number)

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
            if last is not None:
                last()
        finally:
            for number, known in kept.items():
                signal.signal(number, signal.SIG_IGN if received else known)
    if received:
        _end_by(received[0])


@contextmanager
def passed_on(end: Callable[[int], object]) -> Iterator[None]:
    """Call `end` with each signal that would end this process during the block.

    Signals that were ignored before, as by `nohup`, stay ignored.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    kept = {number: known for number, known in before.items() if known not in _LEFT_ALONE}
    for number in kept:
        signal.signal(number, lambda number, _frame: end(number))
    try:
        yield
    finally:
        for number, known in kept.items():
            signal.signal(number, known)


@contextmanager
def around_suspension(before: Callable[[], object], after: Callable[[], object]) -> Iterator[None]:
    """Call `before` when a user suspends this process (Ctrl-Z), and `after` when it continues."""
    known = signal.getsignal(signal.SIGTSTP)
    if known is not signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield
        return

    def suspend(number: int, _frame: object) -> None:
        before()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # returns when the process continues
        signal.signal(number, suspend)
        after()

    signal.signal(signal.SIGTSTP, suspend)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, known)


def _end_by(number: int) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)
