"""A command elsewhere, over a connection that is there: the process that holds it is asked.

That is what ssh's own client does after it has started, read its configuration and found the
socket, which together takes longer than all the rest. Our three pipes are handed over, and the
line to the holder is the command's life: when it is closed, so is the session there. Nothing is
written to the command before the holder said that there is a session, so that one which was
refused, or not answered, can be asked for again elsewhere: nothing has run.
"""

from __future__ import annotations

import errno
import os
import sys
from time import monotonic

from notyet.run.cannot_start import CannotStart
from notyet.run.groups import reap
from notyet.run.linked import LinkedJob, LinkedProcess
from notyet.run.loop import NEVER
from notyet.run.spawn import pipe
from notyet.run.ssh import (
    DENIED,
    FAILED,
    HELLO,
    NEW_SESSION,
    NO_ESCAPE,
    OPENED,
    WORD,
    first,
    message,
    numbers,
    text,
)
from notyet.run.stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.run.linked import RemoteJob
    from notyet.run.process import Process
    from notyet.run.spawn import Job

if TYPE_CHECKING:
    import signal

else:
    import _signal as signal  # without the enum that `signal` imports

_CHUNK = 4096
_TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})


class RemoteProcess(LinkedProcess):
    """One command elsewhere; no process of ours is needed for it."""

    is_here = False

    def __init__(self, job: LinkedJob) -> None:
        super().__init__(job)
        self._is_called = self.is_ready = self._is_over = False
        self._heard = b""

    @property
    def is_started(self) -> bool:
        """Tell whether there is something to end."""
        return self._is_called

    def call(self) -> bool:
        """Hand the command over to whoever holds the connection; tells whether that is possible.

        Raises OSError when too many files are open.
        """
        job: RemoteJob = self.job  # type: ignore[assignment]  # only they have a machine
        self.started = self.started or monotonic()
        try:
            self._hand_over(job)
        except OSError as error:
            if error.errno in _TOO_MANY:
                raise
            # Where too many ask at this moment, there is nothing wrong with it.
            self._refused(is_full=isinstance(error, BlockingIOError))
        return self._is_called

    def _hand_over(self, job: RemoteJob) -> None:
        import _socket

        ends: list[int] = []
        line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            line.settimeout(1.0)
            line.connect(job.socket)
            for _ in range(3):
                ends += pipe()
            stdin, ours, out, stdout, err, stderr = ends
            # No terminal, no X11, no agent, no subsystem.
            wanted = numbers(*(0,) * 4, NO_ESCAPE) + text(b"") + text(job.command.encode())
            line.sendall(HELLO)
            line.sendall(message(numbers(NEW_SESSION, 0), text(b""), wanted))
            for fd in (stdin, stdout, stderr):
                rights = fd.to_bytes(WORD, sys.byteorder)
                line.sendmsg([b"\0"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        except BaseException:
            line.close()
            for end in ends:
                os.close(end)
            raise
        self._is_called = True
        self.exit_fd, self.stdin = line.detach(), ours
        self.outputs = {out: self.wrote[0], err: self.wrote[1]}
        for end in (stdin, stdout, stderr):
            os.close(end)
        for end in (self.exit_fd, ours, out, err):
            os.set_blocking(end, False)

    def tell(self, number: int) -> None:
        """Hang up, for what would end a process."""
        if number in {signal.SIGTERM, signal.SIGKILL}:
            self._is_over = True

    def give_up(self) -> None:
        """Hang up on a holder that does not answer; whoever comes next shall not find it."""
        self._refused(is_full=False)

    def begin_anew(self) -> None:
        """Be as if it had not been started."""
        super().begin_anew()
        self._is_called = self.is_ready = self._is_over = False
        self._heard = b""

    def has_ended(self) -> bool:
        """Hear what the holder of the connection has to say."""
        if not self._is_over:
            try:
                chunk = os.read(self.exit_fd, _CHUNK)
            except BlockingIOError:
                return False
            except OSError:
                chunk = b""
            self._hear(chunk)
            if not chunk and self.is_ready:
                self._is_over = True
            elif not chunk:
                self._refused(is_full=False)
        return self._is_over

    def _hear(self, chunk: bytes) -> None:
        said, self._heard = first(self._heard + chunk)
        while said is not None:
            if said[:1] == [OPENED]:
                self.is_ready = True
            elif said[:1] in ([DENIED], [FAILED]) and not self.is_ready:
                self._refused(is_full=True)
            said, self._heard = first(self._heard)

    def _refused(self, *, is_full: bool) -> None:
        self._is_over = self.was_refused = True
        self.is_full = is_full


# mypy: disable-error-code="override"
# All processes of such a stage are linked ones.


_ANSWER = 2.5  # whoever holds a connection does so at once, unless the connection is dead
_MOMENT = 0.3  # most commands elsewhere end before that
_SPARE = 10  # by then we would have ended it ourselves
_NOT_READY = "what it needs could not be made ready"


class LinkedStage(Stage):
    """Commands that run together, some of them behind others."""

    processes: list[LinkedProcess]  # type: ignore[assignment]  # as above
    waiting: list[LinkedProcess]  # type: ignore[assignment]  # as above

    def __init__(self, jobs: Sequence[Job], deadline: float, cancel: int | None) -> None:
        self.held: dict[LinkedProcess, list[LinkedProcess]] = {}  # who is waited for, and by whom
        self.firsts: dict[int, LinkedProcess] = {}  # those, by the id of the job
        super().__init__(jobs, deadline, cancel)
        self.waiting.clear()
        for process in tuple(self.processes):  # those that they wait for come behind them
            self._put_behind(process)
        self.waiting.reverse()
        self.waiting.sort(key=self.held.__contains__)  # who is waited for comes first

    def _processes(self, jobs: Sequence[Job]) -> list[LinkedProcess]:
        if any(isinstance(job, LinkedJob) and job.machine for job in jobs):
            from notyet.run.connecting import Connections

            self.connections = Connections(self.deadline)
            jobs = self.connections.before(jobs)
        return [_process(job) for job in jobs]

    def left(self) -> set[Process]:
        """Return those that run or wait."""
        return super().left().union(*self.held.values())

    # Those that wait for others.

    def _put_behind(self, process: LinkedProcess) -> None:
        """Let it wait for the one that it comes after, if any, and then for its turn."""
        job = process.job.after
        process.before = None
        if job is None:
            self.waiting.append(process)
            return
        first = self.firsts.get(id(job))
        is_over = first is not None and first not in self.held
        if first is None:
            first = self.firsts[id(job)] = _process(job)
            self.processes.append(first)
            self.waiting.append(first)
        process.before = first
        process.started = process.started or monotonic()
        self.held.setdefault(first, []).append(process)
        self._limit(process, self._never_ready)
        if is_over:
            self._will_not_run(first)

    def _will_not_run(self, process: LinkedProcess) -> None:
        """Let those start that waited for one that is over, unless it failed."""
        for late in self.held.pop(process, ())[::-1]:
            due = late.due
            self.loop.forget(late)
            if process.code == 0:
                self.waiting.append(late)
            elif monotonic() >= due:
                self._never_ready(late)
            else:
                late.problem, late.seconds = _NOT_READY, monotonic() - late.started

    def _never_ready(self, process: LinkedProcess) -> None:
        """Give up on one that waits for another."""
        process.timed_out = True
        process.seconds = monotonic() - process.started
        first = process.before
        left = self.held.get(first, []) if first is not None else []
        if process in left:
            left.remove(process)
            if first is not None and not left:
                self._not_wanted(first)

    def _not_wanted(self, first: LinkedProcess) -> None:
        """End one for which nobody waits any more."""
        if first.is_started and not first.forced:
            self._force(first)
        elif first in self.running:  # it was to be started again
            self._stop_waiting(first)
        elif first in self.waiting:
            self.waiting.remove(first)

    def cancel_all(self) -> None:
        """End everything that still runs, and start nothing more."""
        for process in [late for lates in self.held.values() for late in lates]:
            process.cancelled = True
            self.loop.forget(process)
        self.held.clear()
        for process in self.processes:
            if process in self.running and not process.is_started:  # it was to be started again
                process.cancelled = True
                self._stop_waiting(process)
        super().cancel_all()

    # Those elsewhere.

    def _launch(self, process: LinkedProcess) -> None:
        """Start a command, over another connection if it was refused over one."""
        if process.job.refused:
            raise CannotStart(process.job.refused)
        if process.is_here:
            super()._launch(process)
        elif not process.was_refused and process.call():
            self._listen_to(process)
        else:
            process.job = self.connections.another(process)
            process.begin_anew()
            process.was_refused = False
            self._put_behind(process)

    def _begin(self, process: LinkedProcess) -> None:
        if not process.is_ready:
            self._limit(process, self._out_of_time)
            if process.before is None:  # the connection was there already
                self.loop.plan(process, min(process.due, monotonic() + _ANSWER), self._unanswered)
            return
        super()._begin(process)
        if process.job.lifeline and process.due < NEVER:
            self.loop.plan(process, min(process.due, monotonic() + _MOMENT), self._say_how_long)

    def _has_fed(self, process: LinkedProcess) -> None:
        while process.parts and not process.todo:
            process.todo, process.parts = memoryview(process.parts[0]), process.parts[1:]
        if process.todo:
            return
        if process.job.lifeline:
            self.loop.ignore(process.stdin)
        else:
            super()._has_fed(process)

    def _look(self, process: LinkedProcess, fd: int) -> None:
        was_ready = process.is_ready
        super()._look(process, fd)
        if process.is_ready and not was_ready and not process.exited and not process.forced:
            self._begin(process)

    def _has_exited(self, process: LinkedProcess) -> None:
        pause = None if process.forced else process.pause()
        if pause is not None:
            self._try_again(process, pause)
            return
        if process.job.leaves is not None and process.code == 0:
            self._leave(process)
        if process in self.held:
            self._will_not_run(process)
        if process.over:
            return
        super()._has_exited(process)
        if process.forced and not process.is_here:
            self._let_go(process)

    def _leave(self, process: LinkedProcess) -> None:
        """Let what a command left behind go on: that is what it was for."""
        if self.watchdog is not None:
            self.watchdog.leave(process.pid)
        process.keeping = False
        self.running.discard(process)
        self._let_go(process)
        if process.job.leaves is not None:
            process.job.leaves(process)

    def _dismiss(self, process: LinkedProcess) -> None:
        if process.is_here:
            super()._dismiss(process)
            return
        process.keeping = False
        self.running.discard(process)
        self._let_go(process)

    def _ask_to_end(self, process: LinkedProcess) -> None:
        if process.job.lifeline and process.stdin >= 0:  # it does the same where it runs
            self._close_stdin(process)
        else:
            super()._ask_to_end(process)

    def _unanswered(self, process: LinkedProcess) -> None:
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

    def _say_how_long(self, process: LinkedProcess) -> None:
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

    # Those that are started again.

    def _try_again(self, process: LinkedProcess, pause: float) -> None:
        """Start a command again after a while; until then it counts as running."""
        self._close_pipes(process)
        if process.pid:
            process.tell(signal.SIGKILL)
            if self.watchdog is not None:  # soon its number is somebody else's
                self.watchdog.leave(process.pid)
            if not process.reaped:
                reap(process.pid)
            del self.ending[process.pid]
        process.begin_anew()
        if pause:
            self.loop.plan(process, monotonic() + pause, self._resume)
        else:
            self._resume(process)

    def _resume(self, process: LinkedProcess) -> None:
        self._stop_waiting(process)
        self.waiting.append(process)

    def _stop_waiting(self, process: LinkedProcess) -> None:
        """Give up on one that is not started at the moment."""
        self.running.discard(process)
        self.loop.forget(process)


def _process(job: Job) -> LinkedProcess:
    if not isinstance(job, LinkedJob):
        return LinkedProcess(LinkedJob(**job.__dict__))
    if not job.machine:
        return LinkedProcess(job)
    return RemoteProcess(job)
