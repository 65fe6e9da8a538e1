"""The one runner of commands: starts them together and waits for all, in one poll loop (E1 to E4).

At most `_WIDTH` run at a time, and the others wait for their turn: each takes four descriptors,
of which a program often has 1024 and sometimes 256. Where there are fewer, fewer run at a time.
That limit is never raised: `posix_spawn` cannot lower it again for the commands, and some
programs fail, or take very long to start, with a high one.
"""

from __future__ import annotations

import errno
from time import monotonic

from notyet import system
from notyet.checks.groups import Watchdog, reap
from notyet.checks.loop import NEVER, Loop
from notyet.checks.process import Process, hold_sigpipe, release_sigpipe
from notyet.checks.spawn import CannotStart, Job, folder_id, inherited, prepare, shell_argv, why
from notyet.checks.started import Started

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence

    from notyet.core.command import Exit

    Told = Callable[[int, Process], None]
else:
    import _signal as signal  # without the enum that `signal` imports

__all__ = ["Job", "run_processes", "run_together", "shell_argv"]

_WIDTH = 128  # a hundred at once, which is much, do not wait for each other
_LOOK_AGAIN = 0.004  # where nothing wakes us up
_LONGEST = 3600.0  # poll overflows somewhere above
_MEANWHILE = 0.1  # seconds between two looks at what else goes on, where somebody wants to know
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
    jobs: Sequence[Job],
    *,
    deadline: float | None = None,
    cancel: int | None = None,
    told: Told | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> list[Process]:
    """Do the same, and return what there is to know about each.

    `told` hears of each that has ended, with its place, while others may still run; `meanwhile` is
    called now and then. Neither may raise.
    """
    if not jobs:
        return []
    stage = _Stage(jobs, NEVER if deadline is None else deadline, cancel)
    if told is not None:
        stage.tell(told, meanwhile)
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
    return stage.processes[: stage.count]


def _process(job: Job) -> Process:
    if not job.machine:
        return Process(job)
    from notyet.checks.remote_process import RemoteProcess

    return RemoteProcess(job)


class _Stage(Started):
    """Commands that run together, and those that wait for their turn."""

    def __init__(self, jobs: Sequence[Job], deadline: float, cancel: int | None) -> None:
        super().__init__(deadline, Loop(cancel, self.cancel_all))
        self.count = len(jobs)  # others may come before them, such as a connection
        if any(job.machine for job in jobs):
            from notyet.checks.connecting import Connections

            self.connections = Connections(deadline)
            jobs = self.connections.before(jobs)
        self.processes = [_process(job) for job in jobs]
        self.held: dict[Process, list[Process]] = {}  # who is waited for, and by whom
        self.firsts: dict[int, Process] = {}  # those, by the id of the job
        self.waiting: list[Process] = []  # the next one is the last
        self.width = _WIDTH
        self.here, self.inherited = folder_id("."), inherited()
        self.token = system.urandom(12).hex()
        self.told: Told | None = None
        self.untold: dict[int, Process] = {}
        self.meanwhile: Callable[[], None] | None = None
        for process in tuple(self.processes):
            self._put_behind(process)
        self.waiting.reverse()
        self.waiting.sort(key=self.held.__contains__)  # who is waited for comes first

    def _put_behind(self, process: Process) -> None:
        """Let it wait for the one that it comes after, if any, and then for its turn."""
        job = process.job.after
        process.before = None
        if job is None:
            self.waiting.append(process)
            return
        first = self.firsts.get(id(job))
        is_over = first is not None and first not in self.held
        if first is None:
            first = self.firsts[id(job)] = Process(job)
            self.processes.append(first)
            self.waiting.append(first)
        process.before = first
        process.started = process.started or monotonic()
        self.held.setdefault(first, []).append(process)
        self._limit(process, self._never_ready)
        if is_over:
            self._release(first)

    def tell(self, told: Told, meanwhile: Callable[[], None] | None) -> None:
        """Say from now on which commands have ended."""
        self.told, self.meanwhile = told, meanwhile
        self.untold = dict(enumerate(self.processes[: self.count]))

    def _tell_ended(self, told: Told) -> None:
        """Tell of those that neither run nor wait any more, and were not told of before."""
        if self.meanwhile is not None:
            self.meanwhile()
        left = {*self.running, *self.waiting}
        left.update(*self.held.values())
        for place in [place for place, process in self.untold.items() if process not in left]:
            told(place, self.untold.pop(place))

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
            if self.told is not None:
                self._tell_ended(self.told)
                limit = limit if self.meanwhile is None else min(limit, _MEANWHILE)
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
            if not self._start(process):
                self.waiting.append(process)
                break  # it needs what those that run or are ending hold; they need a turn
            if process.pid:
                started.append(process.pid)
        if started and self.watchdog is not None:  # all in one message; see Watchdog
            self.watchdog.watch(started)

    def _start(self, process: Process) -> bool:
        """Start it, or take note of why not; tells whether there was room for it."""
        try:
            if not process.is_here:
                self._call(process)
                return True
            argv, environ = prepare(process.job, self.here, self.token)
            # Before the first command: whenever we are killed, somebody is there to end it.
            self.watchdog = self.watchdog or Watchdog(self.token, self.inherited)
            process.start(argv, environ, self.inherited)
        except CannotStart as reason:
            process.problem = str(reason)
            self._release(process)
        except (OSError, ValueError) as error:
            if (self.running or self.ending) and getattr(error, "errno", 0) in _FULL:
                self.width = max(1, len(self.running))
                return False
            process.problem = why(error, process.job.argv)
            self._release(process)
        if process.pid:
            self._listen_to(process)
        return True

    def _call(self, process: Process) -> None:
        """Start a command elsewhere, over another connection if it was refused over one."""
        if not process.was_refused and process.call():
            self._listen_to(process)
            return
        process.job = self.connections.another(process)
        process.again()
        process.was_refused = False
        self._put_behind(process)

    def start_again(self, process: Process) -> None:
        """Start a command that did not get as far as to start."""
        self.waiting.append(process)

    def exited(self, process: Process) -> None:
        """Hear that a command has exited, on behalf of those that wait for it."""
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
            if process in self.running and not process.is_started:  # it was to be started again
                process.cancelled = True
                self.stop_waiting(process)
            elif process.is_started and not process.exited and not process.forced:
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
            if first is not None and not left:
                self._not_wanted(first)

    def _not_wanted(self, first: Process) -> None:
        """End one for which nobody waits any more."""
        if first.is_started and not first.forced:
            self._force(first)
        elif first in self.running:  # it was to be started again
            self.stop_waiting(first)
        elif first in self.waiting:
            self.waiting.remove(first)
