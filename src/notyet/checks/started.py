"""Commands once they have started: what happens on their pipes, and what is due for each.

A result is taken when the command's own process exits, not when its pipes close: something it
left in the background may hold them for hours. Then its group is ended, and only then is the
leader collected, because until then nobody else can get the number that we signal.
"""

from __future__ import annotations

from time import monotonic

from notyet import system
from notyet.checks.groups import living
from notyet.checks.loop import NEVER, READ, WRITE, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from notyet.checks.loop import Step
    from notyet.checks.process import Process
else:
    import _signal as signal  # without the enum that `signal` imports

_GRACE = 0.5  # between TERM and KILL for a command that is cut off
_LAST_GRACE = 0.1  # the same at the deadline: somebody waits for us
_STRAGGLERS = 0.05  # how long output may still come from what a command left behind
_CLEARING = 0.03  # how long that has to go; with the former, less than anybody notices
_GIVE_UP = 1.0  # after KILL: something the system cannot end, or root's
_CHUNK = 64 * 1024
_PIPEFUL = 2  # chunks that a pipe holds at most, and the end


class Started:
    """Those of the commands of a stage that have started; what waits for its turn is `Stage`'s."""

    def __init__(self, deadline: float, cancel: int | None) -> None:
        self.deadline = deadline
        self.loop = Loop(cancel, self.cancel_all)
        self.unwatched: set[Process] = set()  # those whose exit does not wake us up
        self.ending: dict[int, Process] = {}  # those of whose group something may be left
        self.running: set[Process] = set()  # have not exited, or their output is still read

    def cancel_all(self) -> None:
        """End everything that still runs, and start nothing more."""
        raise NotImplementedError

    def _listen_to(self, process: Process) -> None:
        self.running.add(process)
        if process.pid:
            self.ending[process.pid] = process
        for fd in process.outputs:
            self.loop.listen(fd, READ, self._read, process)
        if process.exit_fd >= 0:
            self.loop.listen(process.exit_fd, READ, self._look, process)
        else:
            self.unwatched.add(process)
        self._begin(process)

    def _begin(self, process: Process) -> None:
        self._feed(process, process.stdin)  # what is short is written at once
        if process.stdin >= 0 and process.todo:
            self.loop.listen(process.stdin, WRITE, self._feed, process)
        self._limit(process, self._out_of_time)

    def _limit(self, process: Process, step: Step) -> None:
        timeout = NEVER if process.job.timeout is None else process.job.timeout
        ends = process.started + timeout
        process.cut = ends > self.deadline
        self.loop.plan(process, min(ends, self.deadline), step)

    def _close_pipes(self, process: Process) -> None:
        for fd in (process.stdin, process.exit_fd, *process.outputs):
            if fd >= 0:
                self.loop.close(fd)
        process.stdin = process.exit_fd = -1
        process.outputs = {}

    # Events.

    def _feed(self, process: Process, fd: int) -> None:
        """Write as much as the pipe takes; a command need not read it (E1)."""
        try:
            if process.todo:
                process.todo = process.todo[system.write(fd, process.todo[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it does not want any more
            self._close_stdin(process)
            return
        if not process.todo:
            self._has_fed(process)

    def _has_fed(self, process: Process) -> None:
        """Do what comes when all is written."""
        self._close_stdin(process)

    def _close_stdin(self, process: Process) -> None:
        self.loop.close(process.stdin)
        process.stdin = -1

    def _read(self, process: Process, fd: int) -> None:
        try:
            chunk = system.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            del process.outputs[fd]
            self.loop.close(fd)
            if process.exited and not process.forced and process.keeping and not process.outputs:
                self._dismiss(process)
        elif process.keeping and process.take(fd, chunk):
            process.tell(signal.SIGKILL)  # nothing that it still does is of use
            self._look(process, -1)

    def _look(self, process: Process, _fd: int) -> None:
        """Take the result if the command's own process has exited."""
        if process.exited or not process.has_ended():
            return
        process.seconds = monotonic() - process.started
        process.exited = True
        self.unwatched.discard(process)
        for fd in (process.exit_fd, process.stdin):
            if fd >= 0:
                self.loop.close(fd)
        process.exit_fd = process.stdin = -1
        self._has_exited(process)

    def _has_exited(self, process: Process) -> None:
        """Do what comes when a command's own process is gone."""
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
        self._ask_to_end(process)
        process.tell(signal.SIGCONT)  # one that is stopped cannot hear us
        grace = _LAST_GRACE if monotonic() >= self.deadline else _GRACE
        self.loop.plan(process, monotonic() + grace, self._kill)

    def _ask_to_end(self, process: Process) -> None:
        process.tell(signal.SIGTERM)

    def _dismiss(self, process: Process) -> None:
        """End what an exited command left behind; what that still prints is not the command's."""
        process.keeping = False
        self.running.discard(process)
        process.tell(signal.SIGTERM)
        self.loop.plan(process, monotonic() + _CLEARING, self._kill)

    def _kill(self, process: Process) -> None:
        process.tell(signal.SIGKILL)
        self._look(process, -1)
        if process.over:
            return
        wait = _CLEARING if process.exited else _GIVE_UP
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
                process.tell(signal.SIGKILL)  # costs nothing, and nobody can have slipped through
                self._let_go(process)
