"""Wait for descriptors and for points in time, on behalf of all commands of a stage."""

from __future__ import annotations

import select
from time import monotonic

from notyet import light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from notyet.run.process import Process

    Do = Callable[[Any, int], None]  # with the process
    Step = Callable[[Any], None]  # the same

READ = select.POLLIN | select.POLLPRI
WRITE = select.POLLOUT
NEVER = float("inf")

_heard: tuple[int, Callable[[], None]] | None = None


def answer_to(fd: int, when_gone: Callable[[], None]) -> None:
    """Say on which descriptor somebody waits for our answer.

    Once nobody can hear it any more, `when_gone` is called in the midst of `run_together`, and is
    to raise: a host that was killed tells us in no other way, and its gates would run on.
    """
    global _heard  # noqa: PLW0603  # a process has one host
    _heard = (fd, when_gone)


class Loop:
    """What is listened to, and what is due; `cancel` is a descriptor that ends everything."""

    def __init__(self, cancel: int | None, when_cancelled: Callable[[], None]) -> None:
        self._poller = select.poll()
        self._events: dict[int, tuple[Do, Process]] = {}
        self._planned: set[Process] = set()
        self._wake = NEVER  # never later than the first `due`
        self._cancel = cancel
        self._when_cancelled = when_cancelled
        if cancel is not None:
            self._poller.register(cancel, READ)
        self.cancelled = bool(cancel is not None and self._poller.poll(0))
        if _heard is not None:
            self._poller.register(_heard[0], 0)  # to hear of errors and hang-ups only

    def turn(self, limit: float) -> None:
        """Wait for at most so many seconds, and do what there is to do."""
        limit = max(0.0, min(self._wake - monotonic(), limit))
        for fd, _ in self._poller.poll(int(limit * 1000 + 0.999)):
            self._hear(fd)
        if monotonic() >= self._wake:
            self._ring()

    def ignore_cancel(self) -> None:
        """Hear of a cancellation only once."""
        if self._cancel is not None:
            self._poller.unregister(self._cancel)
            self._cancel = None

    def listen(self, fd: int, events: int, do: Do, process: Process) -> None:
        """Call `do` whenever something happens on a descriptor."""
        self._events[fd] = (do, process)
        self._poller.register(fd, events)

    def ignore(self, fd: int) -> None:
        """Leave a descriptor open, and listen to it no more."""
        if self._events.pop(fd, None):
            self._poller.unregister(fd)

    def close(self, fd: int) -> None:
        """Close a descriptor, whether or not it is listened to."""
        self.ignore(fd)
        light.close(fd)

    def plan(self, process: Process, due: float, step: Step) -> None:
        """Take a step at a time, instead of the one that was planned."""
        process.due, process.next = due, step
        self._planned.add(process)
        self._wake = min(self._wake, due)

    def forget(self, process: Process) -> None:
        """Plan nothing more for a process."""
        process.due, process.next = NEVER, None
        self._planned.discard(process)

    def _hear(self, fd: int) -> None:
        if fd == self._cancel:
            self._when_cancelled()
        elif fd in self._events:
            do, process = self._events[fd]
            do(process, fd)
        elif _heard is not None and fd == _heard[0]:
            self._poller.unregister(fd)
            _heard[1]()

    def _ring(self) -> None:
        now = monotonic()
        for process in tuple(self._planned):
            if process.due <= now and process.next is not None:
                step, process.due, process.next = process.next, NEVER, None
                step(process)
        self._wake = min((process.due for process in self._planned), default=NEVER)
