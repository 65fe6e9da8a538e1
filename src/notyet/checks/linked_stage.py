"""A stage with commands that need others: a connection first, or to be started once more."""

# mypy: disable-error-code="override"
# All processes of such a stage are linked ones.

from __future__ import annotations

from time import monotonic

from notyet.checks.cannot_start import CannotStart
from notyet.checks.command import Stage
from notyet.checks.groups import reap
from notyet.checks.linked import LinkedJob, LinkedProcess
from notyet.checks.loop import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

    from notyet.checks.process import Process
    from notyet.checks.spawn import Job
else:
    import _signal as signal  # without the enum that `signal` imports

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
            from notyet.checks.connecting import Connections

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
    from notyet.checks.remote_process import RemoteProcess

    return RemoteProcess(job)
