"""Commands once they have started: what happens on their pipes, and what is due for each.

A result is taken when the command's own process exits, not when its pipes close: something it
left in the background may hold them for hours. Then its group is ended, and only then is the
leader collected, because until then nobody else can get the number that we signal.
"""

from __future__ import annotations

from time import monotonic

from notyet import system
from notyet.checks.groups import Watchdog, living, reap
from notyet.checks.loop import NEVER, READ, WRITE, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    from notyet.checks.process import Process
else:
    import _signal as signal  # without the enum that `signal` imports

_GRACE = 0.5  # between TERM and KILL for a command that is cut off
_LAST_GRACE = 0.1  # the same at the deadline: somebody waits for us
_STRAGGLERS = 0.05  # how long output may still come, and what is left of a group has to go
_GIVE_UP = 1.0  # after KILL: something the system cannot end, or root's
_ANSWER = 2.5  # whoever holds a connection does so at once, unless the connection is dead
_MOMENT = 0.3  # most commands elsewhere end before that
_SPARE = 10  # by then we would have ended it ourselves
_CHUNK = 64 * 1024
_PIPEFUL = 2  # chunks that a pipe holds at most, and the end


class Started:
    """Those of the commands of a stage that have started; what waits for its turn is `_Stage`'s."""

    def __init__(self, deadline: float, loop: Loop) -> None:
        self.deadline = deadline
        self.loop = loop
        self.unwatched: set[Process] = set()  # those whose exit does not wake us up
        self.ending: dict[int, Process] = {}  # those of whose group something may be left
        self.running: set[Process] = set()  # have not exited, or their output is still read
        self.watchdog: Watchdog | None = None

    def exited(self, process: Process) -> None:
        """Hear that a command has exited, on behalf of those that wait for it."""
        raise NotImplementedError

    def start_again(self, process: Process) -> None:
        """Start a command that did not get as far as to start."""
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
        if process.is_ready:
            self._begin(process)
            return
        self._limit(process, self._out_of_time)
        if process.before is None:  # the connection was there already
            self.loop.plan(process, min(process.due, monotonic() + _ANSWER), self._unanswered)

    def _begin(self, process: Process) -> None:
        self._feed(process, process.stdin)  # what is short is written at once
        if process.stdin >= 0 and process.todo:
            self.loop.listen(process.stdin, WRITE, self._feed, process)
        self._limit(process, self._out_of_time)
        if process.job.lifeline and process.due < NEVER:
            self.loop.plan(process, min(process.due, monotonic() + _MOMENT), self._say_how_long)

    def _limit(self, process: Process, step: Callable[[Process], None]) -> None:
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
            while process.parts and not process.todo:
                process.todo, process.parts = memoryview(process.parts[0]), process.parts[1:]
            if process.todo:
                return
            if process.job.lifeline:
                self.loop.ignore(fd)
                return
        except BlockingIOError:
            return
        except OSError:  # it does not want any more
            pass
        process.stdin = -1
        self.loop.close(fd)

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
        elif process.keeping:
            process.take(fd, chunk)
            if process.job.framed and process.is_complete():
                process.tell(signal.SIGKILL)  # nothing that it still does is of use
                self._look(process, -1)

    def _look(self, process: Process, _fd: int) -> None:
        """Take the result if the command's own process has exited."""
        if process.exited:
            return
        was_ready = process.is_ready
        if not process.has_ended():
            if process.is_ready and not was_ready and not process.forced:
                self._begin(process)
            return
        self._take_result(process)

    def _take_result(self, process: Process) -> None:
        process.seconds = monotonic() - process.started
        process.exited = True
        self.unwatched.discard(process)
        for fd in (process.exit_fd, process.stdin):
            if fd >= 0:
                self.loop.close(fd)
        process.exit_fd = process.stdin = -1
        pause = None if process.forced else process.pause()
        if pause is not None:
            self._try_again(process, pause)
            return
        if process.job.leaves is not None and process.code == 0:
            self._leave(process)
        self.exited(process)
        if process.over:
            return
        if process.forced:  # its group was told to end, and has the time that is left
            self.running.discard(process)
            if not process.is_here:
                self._let_go(process)
        elif process.outputs:
            self.loop.plan(process, monotonic() + _STRAGGLERS, self._dismiss)
        else:
            self._dismiss(process)

    def _leave(self, process: Process) -> None:
        """Let what a command left behind go on: that is what it was for."""
        if self.watchdog is not None:
            self.watchdog.leave(process.pid)
        process.keeping = False
        self.running.discard(process)
        self._let_go(process)
        if process.job.leaves is not None:
            process.job.leaves(process)

    def _try_again(self, process: Process, pause: float) -> None:
        """Start a command again after a while; until then it counts as running."""
        self._close_pipes(process)
        if process.pid:
            process.tell(signal.SIGKILL)
            if self.watchdog is not None:  # soon its number is somebody else's
                self.watchdog.leave(process.pid)
            if not process.reaped:
                reap(process.pid)
            del self.ending[process.pid]
        process.again()
        if pause:
            self.loop.plan(process, monotonic() + pause, self._resume)
        else:
            self._resume(process)

    def _resume(self, process: Process) -> None:
        self.stop_waiting(process)
        self.start_again(process)

    def stop_waiting(self, process: Process) -> None:
        """Give up on one that is not started at the moment."""
        self.running.discard(process)
        self.loop.forget(process)

    # What is due.

    def _out_of_time(self, process: Process) -> None:
        self._look(process, -1)
        if not process.exited:
            process.timed_out = True
            self._force(process)

    def _unanswered(self, process: Process) -> None:
        """Ask for another connection, if there is none behind the one that was found."""
        self._look(process, -1)
        if process.exited or process.is_ready or not process.is_started:
            return
        self._limit(process, self._out_of_time)
        if process.due <= monotonic():
            self._out_of_time(process)
        else:
            process.give_up()
            self._look(process, -1)

    def _say_how_long(self, process: Process) -> None:
        """Tell a command elsewhere how long it may take, in case it never hears of us again."""
        self._limit(process, self._out_of_time)
        if process.due <= monotonic():
            self._out_of_time(process)
        elif process.todo:  # which must be there first
            self.loop.plan(process, min(process.due, monotonic() + _MOMENT), self._say_how_long)
        elif process.stdin >= 0:
            seconds = process.due - monotonic() + _SPARE
            process.todo = memoryview(b"%d\n" % seconds)
            self._feed(process, process.stdin)

    def _force(self, process: Process) -> None:
        process.forced = True
        if process.job.lifeline and process.stdin >= 0:  # it does the same where it runs
            self.loop.close(process.stdin)
            process.stdin = -1
        else:
            process.tell(signal.SIGTERM)
        process.tell(signal.SIGCONT)  # one that is stopped cannot hear us
        grace = _LAST_GRACE if monotonic() >= self.deadline else _GRACE
        self.loop.plan(process, monotonic() + grace, self._kill)

    def _dismiss(self, process: Process) -> None:
        """End what an exited command left behind; what that still prints is not the command's."""
        process.keeping = False
        self.running.discard(process)
        if not process.is_here:
            self._let_go(process)
            return
        process.tell(signal.SIGTERM)
        self.loop.plan(process, monotonic() + _STRAGGLERS, self._kill)

    def _kill(self, process: Process) -> None:
        process.tell(signal.SIGKILL)
        self._look(process, -1)
        if process.over:
            return
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
                process.tell(signal.SIGKILL)  # costs nothing, and nobody can have slipped through
                self._let_go(process)
