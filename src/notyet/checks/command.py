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

from notyet.checks.groups import Watchdog, living, reap, send
from notyet.checks.loop import NEVER, READ, WRITE, Loop
from notyet.checks.process import Process, hold_sigpipe, release_sigpipe, take_status
from notyet.checks.spawn import CannotStart, Job, folder_id, inherited, prepare, shell_argv, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from notyet.core.command import Exit
else:
    import _signal as signal  # without the enum that `signal` imports

__all__ = ["Job", "run_processes", "run_together", "shell_argv"]

_WIDTH = 128  # a hundred at once, which is much, do not wait for each other
_GRACE = 0.5  # between TERM and KILL for a command that is cut off
_LAST_GRACE = 0.1  # the same at the deadline: somebody waits for us
_STRAGGLERS = 0.05  # how long output may still come, and what is left of a group has to go
_GIVE_UP = 1.0  # after KILL: something the system cannot end, or root's
_LOOK_AGAIN = 0.004  # where nothing wakes us up
_CHUNK = 64 * 1024
_PIPEFUL = 2  # chunks that a pipe holds at most, and the end
_LONGEST = 3600.0  # poll overflows somewhere above
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
    return stage.processes


class _Stage:
    """Commands that run together."""

    def __init__(self, jobs: Sequence[Job], deadline: float, cancel: int | None) -> None:
        self.processes = [Process(job) for job in jobs]
        self.waiting = self.processes[::-1]  # the next one is the last
        self.width = _WIDTH
        self.deadline = deadline
        self.loop = Loop(cancel, self.cancel_all)
        self.here, self.inherited = folder_id("."), inherited()
        self.token = os.urandom(12).hex()
        self.unwatched: set[Process] = set()  # those whose exit does not wake us up
        self.ending: dict[int, Process] = {}  # those of whose group something may be left
        self.running: set[Process] = set()  # have not exited, or their output is still read
        self.watchdog: Watchdog | None = None

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
            argv, environ = prepare(process.job, self.here, self.token)
            # Before the first command: whenever we are killed, somebody is there to end it.
            self.watchdog = self.watchdog or Watchdog(self.token, self.inherited)
            process.start(argv, environ, self.inherited)
        except CannotStart as reason:
            process.problem = str(reason)
        except (OSError, ValueError) as error:
            if self.ending and getattr(error, "errno", 0) in _FULL:
                self.width = max(1, len(self.running))
                self.waiting.append(process)
            else:
                process.problem = why(error, process.job.argv)
        if process.pid:
            self._listen_to(process)

    def _listen_to(self, process: Process) -> None:
        self.running.add(process)
        self.ending[process.pid] = process
        for fd in process.outputs:
            self.loop.listen(fd, READ, self._read, process)
        self._feed(process, process.stdin)  # what is short is written at once
        if process.stdin >= 0:
            self.loop.listen(process.stdin, WRITE, self._feed, process)
        if process.pidfd >= 0:
            self.loop.listen(process.pidfd, READ, self._look, process)
        else:
            self.unwatched.add(process)
        timeout = NEVER if process.job.timeout is None else process.job.timeout
        ends = process.started + timeout
        process.cut = ends > self.deadline
        self.loop.plan(process, min(ends, self.deadline), self._out_of_time)

    def cancel_all(self) -> None:
        """End everything that still runs, and start nothing more."""
        self.loop.ignore_cancel()
        while self.waiting:
            self.waiting.pop().cancelled = True
        for process in self.processes:
            if process.pid and not process.exited and not process.forced:
                process.cancelled = True
                self.unwatched.add(process)  # we may have been interrupted before we listened
                self._force(process)

    def close(self) -> None:
        """Kill what is left, if anything, and give everything back."""
        started = [process for process in self.processes if process.pid]
        for process in started:
            if not process.over:
                send(-process.pid, signal.SIGKILL)
            self._close_pipes(process)
        if self.watchdog is not None:  # before their numbers are free for others
            self.watchdog.stop()
        for process in started:
            if not process.reaped:
                reap(process.pid)

    def _close_pipes(self, process: Process) -> None:
        for fd in (process.stdin, process.pidfd, *process.outputs):
            if fd >= 0:
                self.loop.close(fd)
        process.stdin = process.pidfd = -1
        process.outputs = {}

    # Events.

    def _feed(self, process: Process, fd: int) -> None:
        """Write as much as the pipe takes; a command need not read it (E1)."""
        try:
            if process.todo:
                process.todo = process.todo[os.write(fd, process.todo[:_CHUNK]) :]
            if process.todo:
                return
        except BlockingIOError:
            return
        except OSError:  # it does not want any more
            pass
        process.stdin = -1
        self.loop.close(fd)

    def _read(self, process: Process, fd: int) -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            del process.outputs[fd]
            self.loop.close(fd)
            if process.exited and not process.forced and process.keeping and not process.outputs:
                self._dismiss(process)
        elif process.keeping:
            process.outputs[fd].add(chunk)

    def _look(self, process: Process, _fd: int) -> None:
        """Take the result if the command's own process has exited."""
        if not take_status(process):
            return
        process.seconds = monotonic() - process.started
        process.exited = True
        self.unwatched.discard(process)
        for fd in (process.pidfd, process.stdin):
            if fd >= 0:
                self.loop.close(fd)
        process.pidfd = process.stdin = -1
        if process.forced:  # its group was told to end, and has the time that is left
            self.running.discard(process)
        elif process.outputs:
            self.loop.plan(process, monotonic() + _STRAGGLERS, self._dismiss)
        else:
            self._dismiss(process)

    # What is due.

    def _out_of_time(self, process: Process) -> None:
        self._look(process, -1)
        if not process.exited:
            process.timed_out = True
            self._force(process)

    def _force(self, process: Process) -> None:
        process.forced = True
        send(-process.pid, signal.SIGTERM)
        send(-process.pid, signal.SIGCONT)  # one that is stopped cannot hear us
        grace = _LAST_GRACE if monotonic() >= self.deadline else _GRACE
        self.loop.plan(process, monotonic() + grace, self._kill)

    def _dismiss(self, process: Process) -> None:
        """End what an exited command left behind; what that still prints is not the command's."""
        process.keeping = False
        self.running.discard(process)
        send(-process.pid, signal.SIGTERM)
        self.loop.plan(process, monotonic() + _STRAGGLERS, self._kill)

    def _kill(self, process: Process) -> None:
        send(-process.pid, signal.SIGKILL)
        wait = _STRAGGLERS if process.exited else _GIVE_UP
        self.loop.plan(process, monotonic() + wait, self._let_go)

    def _let_go(self, process: Process) -> None:
        """Stop waiting for something that SIGKILL did not end."""
        if not process.exited:
            process.seconds = monotonic() - process.started
            process.exited = process.reaped = True  # as if: nobody can wait for it
            self.unwatched.discard(process)
            self.running.discard(process)
        for fd in tuple(process.outputs) if process.keeping else ():
            for _ in range(_PIPEFUL):
                if fd in process.outputs:
                    self._read(process, fd)
        process.over = True
        self.loop.forget(process)
        self.ending.pop(process.pid, None)
        self._close_pipes(process)

    def _over(self) -> None:
        """Let go of the groups in which nothing runs any more, without waiting for their time."""
        if not self.ending:
            return
        left = living(set(self.ending))
        for pid, process in tuple(self.ending.items()):
            if pid not in left:
                send(-pid, signal.SIGKILL)  # costs nothing, and nobody can have slipped through
                self._let_go(process)
