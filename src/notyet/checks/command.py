"""The one runner of commands: starts them together and waits for all, in one poll loop (E1 to E4).

A result is taken when the command's own process exits, not when its pipes close: something it
left in the background may hold them for hours. Then its group is ended, and only then is the
leader collected, because until then nobody else can get the number that we signal.

At most `_WIDTH` run at a time, and the others wait for their turn: each takes four descriptors,
of which a program often has 1024 and sometimes 256. Where there are fewer, fewer run at a time.
That limit is never raised: `posix_spawn` cannot lower it again for the commands, and some
programs fail, or take very long to start, with a high one.
"""

from __future__ import annotations

import errno
import os
from time import monotonic

from notyet.checks.groups import Watchdog, reap
from notyet.checks.loop import NEVER, Loop
from notyet.checks.process import Process, hold_sigpipe, release_sigpipe
from notyet.checks.spawn import CannotStart, Job, folder_id, inherited, prepare, shell_argv, why
from notyet.checks.stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from notyet.core.command import Exit
else:
    import _signal as signal  # without the enum that `signal` imports

__all__ = ["Job", "run_processes", "run_together", "shell_argv"]

_WIDTH = 128  # a hundred at once, which is much, do not wait for each other
_LOOK_AGAIN = 0.004  # where nothing wakes us up
_LONGEST = 3600.0  # poll overflows somewhere above
_NOT_READY = "what it needs could not be made ready"
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN})  # there may be room again later


def run_together(
    jobs: Sequence[Job], *, deadline: float | None = None, cancel: int | None = None
) -> list[Exit]:
    """Run commands at the same time and return how each ended, in order; nothing is left behind.

    What still runs at `deadline` (of `time.monotonic`) is ended as timed out; when the descriptor
    `cancel` becomes readable or hangs up, everything is ended as cancelled. Any thread may call.
    """
    return [process.exit() for process in run_processes(jobs, deadline=deadline, cancel=cancel)]


def run_processes(
    jobs: Sequence[Job], *, deadline: float | None = None, cancel: int | None = None
) -> list[Process]:
    """Do the same, and return what there is to know about each."""
    if not jobs:
        return []
    count = len(jobs)
    if any(job.machine for job in jobs):
        from notyet.checks.connecting import connected

        jobs = connected(jobs)
    stage = _Stage(jobs, NEVER if deadline is None else deadline, cancel)
    held = hold_sigpipe()
    try:
        try:
            stage.wait()
        except BaseException:
            stage.cancel_all()
            stage.wait()
            raise
        finally:
            stage.close()
    finally:
        release_sigpipe(held)
    return stage.processes[:count]


def _process(job: Job) -> Process:
    if not job.machine:
        return Process(job)
    from notyet.checks.session import Session

    return Session(job)


def _held_back(processes: Sequence[Process]) -> dict[Process, list[Process]]:
    """Return the processes that are to come first, each with those that wait for it."""
    firsts: dict[int, Process] = {}
    held: dict[Process, list[Process]] = {}
    for process in processes:
        job = process.job.after
        if job is not None:
            process.before = firsts.get(id(job)) or Process(job)
            firsts[id(job)] = process.before
            held.setdefault(process.before, []).append(process)
    return held


class _Stage(Stage):
    """Commands that run together, and those that wait for their turn."""

    def __init__(self, jobs: Sequence[Job], deadline: float, cancel: int | None) -> None:
        super().__init__(deadline, Loop(cancel, self.cancel_all))
        own = [_process(job) for job in jobs]
        self.held = _held_back(own)  # who is waited for, and by whom
        self.processes = [*own, *self.held]
        # The next one is the last.
        self.waiting = [process for process in own[::-1] if process.before is None]
        self.waiting += self.held
        self.width = _WIDTH
        self.here, self.inherited = folder_id("."), inherited()
        self.token = os.urandom(12).hex()
        for process in own if self.held else ():
            if process.before is not None:
                process.started = monotonic()
                self._limit(process, self._never_ready)

    def wait(self) -> None:
        """Start everything, and wait until it has ended, and its groups with it."""
        pause = 0.0005
        while True:
            if self.waiting:
                self._start_more()
            if self.unwatched:
                pause = min(pause * 1.5, _LOOK_AGAIN * 2)
                for process in tuple(self.unwatched):
                    self._look(process, -1)
            limit = pause if self.unwatched else _LONGEST
            if not self.running:
                self._over()
                if not self.ending and not self.waiting:
                    return
                limit = _LOOK_AGAIN
            self.loop.turn(limit)

    def _start_more(self) -> None:
        """Start what there is room for; what cannot start has its problem and is over."""
        if self.loop.cancelled:
            self.cancel_all()
        started = []
        while self.waiting and (len(self.running) < self.width or monotonic() >= self.deadline):
            process = self.waiting.pop()
            if monotonic() >= self.deadline:
                process.timed_out = process.cut = True
                self._release(process)
                continue
            self._start(process)
            if process.pid:
                started.append(process.pid)
            elif self.waiting[-1:] == [process]:
                break  # it needs what those that are ending still hold; they need a turn
        if started and self.watchdog is not None:  # all in one message; see Watchdog
            self.watchdog.watch(started)

    def _start(self, process: Process) -> None:
        try:
            if process.call():
                self._listen_to(process)
                return
            argv, environ = prepare(process.job, self.here, self.token)
            # Before the first command: whenever we are killed, somebody is there to end it.
            self.watchdog = self.watchdog or Watchdog(self.token, self.inherited)
            process.start(argv, environ, self.inherited)
        except CannotStart as reason:
            process.problem = str(reason)
            self._release(process)
        except (OSError, ValueError) as error:
            if self.ending and getattr(error, "errno", 0) in _FULL:
                self.width = max(1, len(self.running))
                self.waiting.append(process)
            else:
                process.problem = why(error, process.job.argv)
                self._release(process)
        if process.pid:
            self._listen_to(process)

    def start_again(self, process: Process) -> None:
        """Start a command that did not get as far as to start."""
        self.waiting.append(process)

    def exited(self, process: Process) -> None:
        """Let those start that waited for it, unless it failed."""
        if process in self.held:
            self._release(process)

    def _release(self, first: Process) -> None:
        """Let those start that waited for it, unless it failed."""
        for process in self.held.pop(first, ())[::-1]:
            due = process.due
            self.loop.forget(process)
            if first.code == 0:
                self.waiting.append(process)
            elif monotonic() >= due:
                self._never_ready(process)
            else:
                process.problem, process.seconds = _NOT_READY, monotonic() - process.started

    def cancel_all(self) -> None:
        """End everything that still runs, and start nothing more."""
        self.loop.ignore_cancel()
        while self.waiting:
            self.waiting.pop().cancelled = True
        for process in [late for lates in self.held.values() for late in lates]:
            process.cancelled = True
            self.loop.forget(process)
        self.held.clear()
        for process in self.processes:
            if process.is_started and not process.exited and not process.forced:
                process.cancelled = True
                self.unwatched.add(process)  # we may have been interrupted before we listened
                self._force(process)

    def close(self) -> None:
        """Kill what is left, if anything, and give everything back."""
        started = [process for process in self.processes if process.is_started]
        for process in started:
            if not process.over:
                process.tell(signal.SIGKILL)
            self._close_pipes(process)
        if self.watchdog is not None:  # before their numbers are free for others
            self.watchdog.stop()
        for process in started:
            if process.pid and not process.reaped:
                reap(process.pid)

    def _never_ready(self, process: Process) -> None:
        """Give up on one that waits for another."""
        process.timed_out = True
        process.seconds = monotonic() - process.started
        first = process.before
        left = self.held.get(first, []) if first is not None else []
        if process in left:
            left.remove(process)
            if first is not None and not left and first.is_started and not first.forced:
                self._force(first)  # nobody waits for it any more
