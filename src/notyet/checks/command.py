"""The one runner of commands: starts them together and waits for all, in one poll loop (E1 to E4).

At most `_WIDTH` run at a time, and the others wait for their turn: each takes four descriptors,
of which a program often has 1024 and sometimes 256. Where there are fewer, fewer run at a time.
That limit is never raised: `posix_spawn` cannot lower it again for the commands, and some
programs fail, or take very long to start, with a high one.
"""

from __future__ import annotations

from time import monotonic

from notyet.checks.first_command import will_start
from notyet.checks.groups import Watchdog, reap, reap_in_time
from notyet.checks.loop import NEVER
from notyet.checks.process import Process, hold_sigpipe, release_sigpipe
from notyet.checks.spawn import (
    Job,
    folder_id,
    inherited,
    is_full,
    new_token,
    prepare,
    shell_argv,
    why,
)
from notyet.checks.started import Started

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence

    from notyet.checks.news import News, Told
    from notyet.core.command import Exit
else:
    import _signal as signal  # without the enum that `signal` imports

__all__ = ["Job", "run_processes", "run_together", "shell_argv"]

_WIDTH = 128  # a hundred at once, which is much, do not wait for each other
_LOOK_AGAIN = 0.004  # where nothing wakes us up
_LONGEST = 3600.0  # poll overflows somewhere above


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
    while_waiting: Callable[[], None] | None = None,
) -> list[Process]:
    """Do the same, and return what there is to know about each.

    `told` hears of each that has ended, with its place, while others may still run; `meanwhile` is
    then called now and then. `while_waiting` is called once, when all that could be started is on
    its way. None of them may raise.
    """
    if not jobs:
        return []
    will_start()
    kind = Stage
    if any(type(job) is not Job for job in jobs):
        from notyet.checks.linked_stage import LinkedStage as kind  # noqa: N813  # of stages
    stage = kind(jobs, NEVER if deadline is None else deadline, cancel)
    stage.while_waiting = while_waiting
    if told is not None:
        from notyet.checks.news import News

        stage.news = News(stage.processes[: len(jobs)], told, meanwhile)
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
    return stage.processes[: len(jobs)]


class Stage(Started):
    """Commands that run together, and those that wait for their turn."""

    watchdog: Watchdog | None = None
    news: News | None = None  # for somebody who wants to know at once
    while_waiting: Callable[[], None] | None = None

    def __init__(self, jobs: Sequence[Job], deadline: float, cancel: int | None) -> None:
        super().__init__(deadline, cancel)
        self.width = _WIDTH
        self.here, self.inherited = folder_id("."), inherited()
        self.token = new_token()
        self.processes = self._processes(jobs)
        self.waiting = self.processes[::-1]  # the next one is the last

    def _processes(self, jobs: Sequence[Job]) -> list[Process]:
        return [Process(job) for job in jobs]

    def wait(self) -> None:
        """Start everything, and wait until it has ended, and its groups with it."""
        pause = 0.0005
        while True:
            if self.waiting:
                self._start_more()
            if self.while_waiting is not None:
                call, self.while_waiting = self.while_waiting, None
                call()
            if self.unwatched:
                pause = min(pause * 1.5, _LOOK_AGAIN * 2)
                for process in tuple(self.unwatched):
                    self._look(process, -1)
            limit = pause if self.unwatched else _LONGEST
            if self.news is not None:
                limit = min(limit, self.news.tell(self.left()))
            if not self.running:
                self._over()
                if not self.ending and not self.waiting:
                    return
                limit = _LOOK_AGAIN
            self.loop.turn(limit)

    def left(self) -> set[Process]:
        """Return those that run or wait."""
        return {*self.running, *self.waiting}

    def _start_more(self) -> None:
        """Start what there is room for; what cannot start has its problem and is over."""
        if self.loop.cancelled:
            self.cancel_all()
        started = []
        while self.waiting and (len(self.running) < self.width or monotonic() >= self.deadline):
            process = self.waiting.pop()
            if monotonic() >= self.deadline:
                process.timed_out = process.cut = True
                self._will_not_run(process)
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
            self._launch(process)
        except (OSError, ValueError) as error:
            if (self.running or self.ending) and is_full(error):
                self.width = max(1, len(self.running))
                return False
            process.problem = why(error, process.job.argv)
            self._will_not_run(process)
        if process.pid:
            self._listen_to(process)
        return True

    def _launch(self, process: Process) -> None:
        argv, environ = prepare(process.job, self.here, self.token)
        # Before the first command: whenever we are killed, somebody is there to end it.
        self.watchdog = self.watchdog or Watchdog(self.token, self.inherited)
        process.start(argv, environ, self.inherited)

    def _will_not_run(self, process: Process) -> None:
        """Hear of one that is over before it began."""

    def cancel_all(self) -> None:
        """End everything that still runs, and start nothing more."""
        self.loop.ignore_cancel()
        while self.waiting:
            self.waiting.pop().cancelled = True
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
            self.watchdog.end()
        for process in started:
            if process.pid and not process.reaped:
                reap(process.pid)
        if self.watchdog is not None:
            reap_in_time(self.watchdog.pid)
