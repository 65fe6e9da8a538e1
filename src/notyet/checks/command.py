"""The one runner of commands: starts them together and waits for all, in one poll loop (E1 to E4).

A result is taken when the command's own process exits, not when its pipes close: something it
left in the background may hold them for hours. Then its group is ended, and only then is the
leader collected, because until then nobody else can get the number that we signal.
"""

from __future__ import annotations

import os
import select
from time import monotonic

from notyet.checks.groups import Watchdog, living, reap, send
from notyet.checks.process import Process, hold_sigpipe, release_sigpipe, take_status
from notyet.checks.spawn import CannotStart, Job, folder_id, inherited, prepare, shell_argv, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence

    from notyet.core.command import Exit
else:
    import _signal as signal  # without the enum that `signal` imports

__all__ = ["Job", "answer_to", "run_together", "shell_argv"]

_GRACE = 0.5  # between TERM and KILL for a command that is cut off
_LAST_GRACE = 0.1  # the same at the deadline: somebody waits for us
_STRAGGLERS = 0.05  # how long output may still come, and what is left of a group has to go
_GIVE_UP = 1.0  # after KILL: something the system cannot end, or root's
_LOOK_AGAIN = 0.004  # where nothing wakes us up
_CHUNK = 64 * 1024
_PIPEFUL = 2  # chunks that a pipe holds at most, and the end
_NEVER = float("inf")
_LONGEST = 3600.0  # poll overflows somewhere above
_READ = select.POLLIN | select.POLLPRI


_heard: tuple[int, Callable[[], None]] | None = None


def answer_to(fd: int, when_gone: Callable[[], None]) -> None:
    """Say on which descriptor somebody waits for our answer.

    Once nobody can hear it any more, `when_gone` is called in the midst of `run_together`, and is
    to raise: a host that was killed tells us in no other way, and its gates would run on.
    """
    global _heard  # noqa: PLW0603  # a process has one host
    _heard = (fd, when_gone)


def run_together(
    jobs: Sequence[Job], *, deadline: float | None = None, cancel: int | None = None
) -> list[Exit]:
    """Run commands at the same time and return how each ended, in order; nothing is left behind.

    What still runs at `deadline` (of `time.monotonic`) is ended as timed out; when the descriptor
    `cancel` becomes readable or hangs up, everything is ended as cancelled. Any thread may call.
    """
    if not jobs:
        return []
    stage = _Stage(_NEVER if deadline is None else deadline, cancel)
    held = hold_sigpipe()
    try:
        try:
            stage.start(jobs)
            stage.wait()
        except BaseException:
            stage.cancel_all()
            stage.wait()
            raise
        finally:
            stage.close()
    finally:
        release_sigpipe(held)
    return [process.exit() for process in stage.processes]


class _Stage:
    """Commands that run together."""

    def __init__(self, deadline: float, cancel: int | None) -> None:
        self.processes: list[Process] = []
        self.deadline = deadline
        self.cancel = cancel
        self.poller = select.poll()
        self.events: dict[int, tuple[Callable[[Process, int], None], Process]] = {}
        self.unwatched: set[Process] = set()  # those whose exit does not wake us up
        self.running = 0  # those that have not exited, or whose output is still read
        self.wake = _NEVER  # never later than the first `due`
        self.watchdog: Watchdog | None = None

    def start(self, jobs: Sequence[Job]) -> None:
        """Start all commands; one that cannot start has its problem and is over."""
        if self.cancel is not None:
            self.poller.register(self.cancel, _READ)
        late = bool(self.cancel is not None and self.poller.poll(0))
        if _heard is not None:
            self.poller.register(_heard[0], 0)  # to hear of errors and hang-ups only
        here, close, token = folder_id("."), inherited(), os.urandom(12).hex()
        for job in jobs:
            process = Process(job)
            self.processes.append(process)
            process.cancelled = late
            process.timed_out = not late and monotonic() >= self.deadline
            if late or process.timed_out:
                continue
            try:
                process.start(*prepare(job, here, token), close)
            except CannotStart as reason:
                process.problem = str(reason)
            except (OSError, ValueError) as error:
                process.problem = why(error, job.argv)
            if process.pid:
                # The first command does not wait for the watchdog to be there.
                self.watchdog = self.watchdog or Watchdog(token, close)
                self._listen_to(process)
        if self.watchdog is not None:  # all in one message; until then it goes by our mark alone
            self.watchdog.watch(process.pid for process in self.processes if process.pid)

    def _listen_to(self, process: Process) -> None:
        self.running += 1
        for fd in process.outputs:
            self._listen(fd, _READ, self._read, process)
        self._feed(process, process.stdin)  # what is short is written at once
        if process.stdin >= 0:
            self._listen(process.stdin, select.POLLOUT, self._feed, process)
        if process.pidfd >= 0:
            self._listen(process.pidfd, _READ, self._look, process)
        else:
            self.unwatched.add(process)
        timeout = _NEVER if process.job.timeout is None else process.job.timeout
        self._plan(process, min(process.started + timeout, self.deadline), self._out_of_time)

    def wait(self) -> None:
        """Wait until every command has ended, and its group with it."""
        pause = 0.0005
        while True:
            if self.unwatched:
                pause = min(pause * 1.5, _LOOK_AGAIN * 2)
                for process in tuple(self.unwatched):
                    self._look(process, -1)
            limit = pause if self.unwatched else _LONGEST
            if not self.running:
                ending = {p.pid: p for p in self.processes if p.pid and not p.over}
                self._over(ending)
                if all(process.over for process in ending.values()):
                    return
                limit = _LOOK_AGAIN
            limit = max(0.0, min(self.wake - monotonic(), limit))
            for fd, _ in self.poller.poll(int(limit * 1000 + 0.999)):
                self._hear(fd)
            if monotonic() >= self.wake:
                self._ring()

    def _hear(self, fd: int) -> None:
        if fd == self.cancel:
            self.cancel_all()
        elif fd in self.events:
            do, process = self.events[fd]
            do(process, fd)
        elif _heard is not None and fd == _heard[0]:
            self.poller.unregister(fd)
            _heard[1]()

    def cancel_all(self) -> None:
        """End everything that still runs."""
        if self.cancel is not None:
            self.poller.unregister(self.cancel)
            self.cancel = None
        for process in self.processes:
            if process.pid and not process.exited and not process.forced:
                process.cancelled = True
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

    def _listen(
        self, fd: int, events: int, do: Callable[[Process, int], None], process: Process
    ) -> None:
        self.events[fd] = (do, process)
        self.poller.register(fd, events)

    def _close(self, fd: int) -> None:
        if self.events.pop(fd, None):
            self.poller.unregister(fd)
        os.close(fd)

    def _close_pipes(self, process: Process) -> None:
        for fd in (process.stdin, process.pidfd, *process.outputs):
            if fd >= 0:
                self._close(fd)
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
        self._close(fd)

    def _read(self, process: Process, fd: int) -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            del process.outputs[fd]
            self._close(fd)
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
                self._close(fd)
        process.pidfd = process.stdin = -1
        if process.forced:  # its group was told to end, and has the time that is left
            self.running -= 1
        elif process.outputs:
            self._plan(process, monotonic() + _STRAGGLERS, self._dismiss)
        else:
            self._dismiss(process)

    # What is due.

    def _plan(self, process: Process, due: float, step: Callable[[Process], None]) -> None:
        process.due, process.next = due, step
        self.wake = min(self.wake, due)

    def _ring(self) -> None:
        now = monotonic()
        for process in self.processes:
            if process.due <= now and process.next is not None:
                step, process.due, process.next = process.next, _NEVER, None
                step(process)
        self.wake = min(process.due for process in self.processes)

    def _out_of_time(self, process: Process) -> None:
        self._look(process, -1)
        if not process.exited:
            process.timed_out = True
            self._force(process, _LAST_GRACE if monotonic() >= self.deadline else _GRACE)

    def _force(self, process: Process, grace: float = _GRACE) -> None:
        process.forced = True
        send(-process.pid, signal.SIGTERM)
        send(-process.pid, signal.SIGCONT)  # one that is stopped cannot hear us
        self._plan(process, monotonic() + grace, self._kill)

    def _dismiss(self, process: Process) -> None:
        """End what an exited command left behind; what that still prints is not the command's."""
        process.keeping = False
        self.running -= 1
        send(-process.pid, signal.SIGTERM)
        self._plan(process, monotonic() + _STRAGGLERS, self._kill)

    def _kill(self, process: Process) -> None:
        send(-process.pid, signal.SIGKILL)
        wait = _STRAGGLERS if process.exited else _GIVE_UP
        self._plan(process, monotonic() + wait, self._let_go)

    def _let_go(self, process: Process) -> None:
        """Stop waiting for something that SIGKILL did not end."""
        if not process.exited:
            process.seconds = monotonic() - process.started
            process.exited = process.reaped = True  # as if: nobody can wait for it
            self.unwatched.discard(process)
            self.running -= 1
        for fd in tuple(process.outputs) if process.keeping else ():
            for _ in range(_PIPEFUL):
                if fd in process.outputs:
                    self._read(process, fd)
        process.over = True
        process.due, process.next = _NEVER, None
        self._close_pipes(process)

    def _over(self, ending: dict[int, Process]) -> None:
        """Let go of the groups in which nothing runs any more, without waiting for their time."""
        if not ending:
            return
        left = living(set(ending))
        for pid, process in ending.items():
            if pid not in left:
                send(-pid, signal.SIGKILL)  # costs nothing, and nobody can have slipped through
                self._let_go(process)
