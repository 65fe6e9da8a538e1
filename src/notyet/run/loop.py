"""The poll loop of a stage: file descriptors and timers of all its commands."""

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
    Step = Callable[[Any], None]  # with the process

READ = select.POLLIN | select.POLLPRI
WRITE = select.POLLOUT
NEVER = float("inf")

_host: tuple[int, Callable[[], None]] | None = None


def watch_host(fd: int, when_gone: Callable[[], None]) -> None:
    """Watch the descriptor on which the host waits for our answer.

    When its other end is closed, `when_gone` is called inside `run_together`, and must raise: a
    killed host gives no other sign, and its gates would run on.
    """
    global _host  # noqa: PLW0603  # a process has one host
    _host = (fd, when_gone)


class Loop:
    """Callbacks for descriptors and timers; `cancel` is a descriptor that ends everything."""

    def __init__(self, cancel: int | None, when_cancelled: Callable[[], None]) -> None:
        self._poller = select.poll()
        self._events: dict[int, tuple[Do, Process]] = {}
        self._timers: set[Process] = set()
        self._wake = NEVER  # at the latest the first `due`
        self._cancel = cancel
        self._when_cancelled = when_cancelled
        if cancel is not None:
            self._poller.register(cancel, READ)
        self.cancelled = bool(cancel is not None and self._poller.poll(0))
        if _host is not None:
            self._poller.register(_host[0], 0)  # for errors and hang-ups only

    def poll_once(self, limit: float) -> None:
        """Wait for at most `limit` seconds, then call what is ready or due."""
        limit = max(0.0, min(self._wake - monotonic(), limit))
        for fd, _ in self._poller.poll(int(limit * 1000 + 0.999)):
            self._dispatch(fd)
        if monotonic() >= self._wake:
            self._run_timers()

    def ignore_cancel(self) -> None:
        """Stop watching `cancel`, after the first cancellation."""
        if self._cancel is not None:
            self._poller.unregister(self._cancel)
            self._cancel = None

    def listen(self, fd: int, events: int, do: Do, process: Process) -> None:
        """Call `do` whenever a descriptor has one of the events."""
        self._events[fd] = (do, process)
        self._poller.register(fd, events)

    def ignore(self, fd: int) -> None:
        """Stop watching a descriptor, and leave it open."""
        if self._events.pop(fd, None):
            self._poller.unregister(fd)

    def close(self, fd: int) -> None:
        """Close a descriptor, and stop watching it."""
        self.ignore(fd)
        light.close(fd)

    def set_timer(self, process: Process, due: float, step: Step) -> None:
        """Set the timer of a process, replacing the one it had."""
        process.due, process.next = due, step
        self._timers.add(process)
        self._wake = min(self._wake, due)

    def clear_timer(self, process: Process) -> None:
        """Remove the timer of a process."""
        process.due, process.next = NEVER, None
        self._timers.discard(process)

    def _dispatch(self, fd: int) -> None:
        if fd == self._cancel:
            self._when_cancelled()
        elif fd in self._events:
            do, process = self._events[fd]
            do(process, fd)
        elif _host is not None and fd == _host[0]:
            self._poller.unregister(fd)
            _host[1]()

    def _run_timers(self) -> None:
        now = monotonic()
        for process in tuple(self._timers):
            if process.due <= now and process.next is not None:
                step, process.due, process.next = process.next, NEVER, None
                step(process)
        self._wake = min((process.due for process in self._timers), default=NEVER)
