"""Run the commands of a stage together, in one poll loop (E1 to E4).

The result of a command is final when its own process exits, not when its pipes close: a background
process may hold them open for hours. Then its group is ended, and only then is the leader reaped,
because until then its process id cannot belong to another process.

At most `_WIDTH` commands run at a time: each takes four descriptors, and the system's limit may be
1024, or 256. If descriptors run out, fewer run at a time. The limit is never raised:
`posix_spawn` cannot lower it again for the commands, and some programs fail, or start very slowly,
with a high one.
"""

from __future__ import annotations

import select
from time import monotonic

from notyet import light
from notyet.run.cannot_start import CannotStart
from notyet.run.groups import Watchdog, living, reap, reap_or_defer
from notyet.run.process import NEVER, Process, block_sigpipe, restore_sigpipe
from notyet.run.spawn import (
    Job,
    folder_id,
    inheritable_fds,
    is_out_of_room,
    new_stage_token,
    prepare,
    start_failure,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence
    from typing import Any

    from notyet.core.gate import Exit

    Do = Callable[[Any, int], None]  # with the process
    Step = Callable[[Any], None]  # with the process
    OnEnd = Callable[[int, Process], None]
    Watch = Callable[[int, bytes], None]
else:
    import _signal as signal  # without the enum that `signal` imports

READ = select.POLLIN | select.POLLPRI
WRITE = select.POLLOUT
_WIDTH = 128
_CHUNK = 64 * 1024
_PIPEFUL = 2  # chunks that a pipe holds at most, and the end
# Seconds.
_GRACE = 0.5  # between TERM and KILL for a command that timed out
_LAST_GRACE = 0.1  # the same at the deadline, when the host waits for us
_STRAGGLERS = 0.05  # for the output of background processes after a command exits
_CLEARING = 0.03  # between TERM and KILL for background processes
_GIVE_UP = 1.0  # after KILL, which fails for root's processes and in uninterruptible sleep
_MEANWHILE = 0.1  # between two calls of `meanwhile`
_LOOK_AGAIN = 0.004  # between two polls for an exit
_LONGEST = 3600.0  # poll overflows somewhere above


def run_together(
    jobs: Sequence[Job], *, deadline: float | None = None, cancel: int | None = None
) -> list[Exit]:
    """Run commands together and return how each ended, in order; leave no process behind.

    Commands that still run at `deadline` (of `time.monotonic`) time out; when the descriptor
    `cancel` becomes readable or hangs up, all are cancelled. Any thread may call.
    """
    return [process.exit() for process in run_processes(jobs, deadline=deadline, cancel=cancel)]


def run_processes(
    jobs: Sequence[Job],
    *,
    deadline: float | None = None,
    cancel: int | None = None,
    on_end: OnEnd | None = None,
    meanwhile: Callable[[], None] | None = None,
    while_waiting: Callable[[], None] | None = None,
    watch: Watch | None = None,
    at_once: int = _WIDTH,
) -> list[Process]:
    """Run commands like `run_together`, and return their processes.

    At most `at_once` run at a time, unless one of them runs on another machine.
    `on_end` is called with the index and the process of each that ends, while others may still run;
    `meanwhile` is then called from time to time. `while_waiting` is called once, when all commands
    that could start have started. `watch` is called with the index of a command and b"" when it
    starts, then with what it prints, as far as that runs here. None of them may raise.
    """
    if not jobs:
        return []
    kind = CommandRunner
    if any(type(job) is not Job for job in jobs):
        from notyet.run.ssh_runner import SshRunner as kind  # noqa: N813  # of runners
    runner = kind(jobs, NEVER if deadline is None else deadline, cancel)
    if kind is CommandRunner:
        runner.width = min(_WIDTH, at_once)
    runner.while_waiting = while_waiting
    if on_end is not None:
        runner.on_end, runner.meanwhile = on_end, meanwhile
        runner.unreported = dict(enumerate(runner.processes[: len(jobs)]))
    if watch is not None:
        runner.watch(watch, len(jobs))
    held = block_sigpipe()
    try:
        try:
            runner.wait()
        except BaseException:
            runner.cancel_all()
            runner.wait()
            raise
        finally:
            runner.close()
    finally:
        restore_sigpipe(held)
    return runner.processes[: len(jobs)]


class CommandRunner:
    """Commands that run together, and those that wait for their turn."""

    watchdog: Watchdog | None = None
    on_end: OnEnd | None = None
    meanwhile: Callable[[], None] | None = None
    while_waiting: Callable[[], None] | None = None

    def __init__(self, jobs: Sequence[Job], deadline: float, cancel: int | None) -> None:
        self.deadline = deadline
        self.loop = Loop(cancel, self.cancel_all)
        self.width = _WIDTH
        self.here, self.inheritable_fds = folder_id("."), inheritable_fds()
        self.token = new_stage_token()
        self.processes = [self._process(job) for job in jobs]
        self.waiting = self.processes[::-1]  # the next one is the last
        self.running: set[Process] = set()  # not exited, or with output to read
        self.unwatched: set[Process] = set()  # their exit must be polled for
        self.ending: dict[int, Process] = {}  # their group may have processes, by id
        self.unreported: dict[int, Process] = {}  # to `on_end`, by index

    def _process(self, job: Job) -> Process:
        return Process(job)

    def watch(self, watch: Watch, count: int) -> None:
        """Have the first processes watched; those on other machines have started."""
        for index, process in enumerate(self.processes[:count]):
            process.watch = lambda chunk, index=index: watch(index, chunk)
            if process not in self.waiting:
                watch(index, b"")

    def wait(self) -> None:
        """Start all commands, and wait until they and their groups have ended."""
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
                    self._check_exit(process, -1)
            limit = pause if self.unwatched else _LONGEST
            if self.on_end is not None:
                self._report_ended(self.on_end)
                if self.meanwhile is not None:
                    self.meanwhile()
                    limit = min(limit, _MEANWHILE)
            if not self.running:
                self._finish_empty_groups()
                if not self.ending and not self.waiting:
                    return
                limit = _LOOK_AGAIN
            self.loop.poll_once(limit)

    def left(self) -> set[Process]:
        """Return the processes that run, or wait for their turn."""
        return {*self.running, *self.waiting}

    def _report_ended(self, on_end: OnEnd) -> None:
        left = self.left()
        for index in [index for index, one in self.unreported.items() if one not in left]:
            on_end(index, self.unreported.pop(index))

    def cancel_all(self) -> None:
        """End all that run, and start no more."""
        self.loop.ignore_cancel()
        while self.waiting:
            self.waiting.pop().cancelled = True
        for process in self.processes:
            if process.pid and not process.exited and not process.forced:
                process.cancelled = True
                self.unwatched.add(process)  # it may have been interrupted before `_listen_to`
                self._force(process)

    def close(self) -> None:
        """Kill and reap what is left, and close all descriptors."""
        started = [process for process in self.processes if process.pid]
        for process in started:
            if not process.over:
                process.send_signal(signal.SIGKILL)
            self._close_pipes(process)
        if self.watchdog is not None:  # before their ids are free for other processes
            self.watchdog.end()
        for process in started:
            if not process.reaped:
                reap(process.pid)
        if self.watchdog is not None:
            reap_or_defer(self.watchdog.pid)

    # Starting.

    def _start_more(self) -> None:
        """Start as many as there is room for; note the problem of those that cannot start."""
        if self.loop.cancelled:
            self.cancel_all()
        started = []
        while self.waiting and (len(self.running) < self.width or monotonic() >= self.deadline):
            process = self.waiting.pop()
            if monotonic() >= self.deadline:
                process.timed_out = process.cut = True
                self._not_started(process)
                continue
            if not self._start(process):
                self.waiting.append(process)
                break  # it needs descriptors of those that run or end
            if process.watch is not None:
                process.watch(b"")
            if process.pid and process.is_guarded:
                started.append(process.pid)
        if started and self.watchdog is not None:  # all in one message; see Watchdog
            self.watchdog.watch(started)

    def _start(self, process: Process) -> bool:
        """Start it, or note why it cannot start; return False if there is no room for it now."""
        try:
            self._launch(process)
        except (OSError, ValueError) as error:
            if (self.running or self.ending) and is_out_of_room(error):
                self.width = max(1, len(self.running))
                return False
            process.problem = start_failure(error, process.job.argv)
            self._not_started(process)
        if process.pid:
            self._listen_to(process)
        return True

    def _launch(self, process: Process) -> None:
        if process.job.refused:
            raise CannotStart(process.job.refused)
        argv, environ = prepare(process.job, self.here, self.token)
        # Before the first command, so that it is ended whenever we are killed.
        self.watchdog = self.watchdog or Watchdog(self.token, self.inheritable_fds)
        process.start(argv, environ, self.inheritable_fds)

    def _not_started(self, process: Process) -> None:
        """Handle a command that ended before it started."""

    def _listen_to(self, process: Process) -> None:
        self.running.add(process)
        self.ending[process.pid] = process
        for fd in process.outputs:
            self.loop.listen(fd, READ, self._read, process)
        if process.exit_fd >= 0:
            self.loop.listen(process.exit_fd, READ, self._check_exit, process)
        else:
            self.unwatched.add(process)
        self._feed(process, process.stdin)  # a short input is written at once
        if process.stdin >= 0 and process.todo:
            self.loop.listen(process.stdin, WRITE, self._feed, process)
        self._limit(process, self._out_of_time)

    def _limit(self, process: Process, step: Step) -> None:
        timeout = NEVER if process.job.timeout is None else process.job.timeout
        ends = process.started + timeout
        process.cut = ends > self.deadline
        self.loop.set_timer(process, min(ends, self.deadline), step)

    # Events.

    def _feed(self, process: Process, fd: int) -> None:
        """Write as much as the pipe takes; a command need not read it (E1)."""
        try:
            if process.todo:
                process.todo = process.todo[light.write(fd, process.todo[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it closed its stdin
            self._close_stdin(process)
            return
        if not process.todo:
            self._input_written(process)

    def _input_written(self, process: Process) -> None:
        self._close_stdin(process)

    def _close_stdin(self, process: Process) -> None:
        self.loop.close(process.stdin)
        process.stdin = -1

    def _read(self, process: Process, fd: int) -> None:
        try:
            chunk = light.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            del process.outputs[fd]
            self.loop.close(fd)
            if process.exited and not process.forced and process.keeping and not process.outputs:
                self._end_group(process)
        elif process.keeping:
            process.outputs[fd].add(chunk)
            if process.watch is not None:
                process.watch(chunk)

    def _check_exit(self, process: Process, _fd: int) -> None:
        """Take the result if the command's process has exited."""
        if process.exited or not process.has_ended():
            return
        process.seconds = monotonic() - process.started
        process.exited = True
        self.unwatched.discard(process)
        for fd in (process.exit_fd, process.stdin):
            if fd >= 0:
                self.loop.close(fd)
        process.exit_fd = process.stdin = -1
        self._on_exit(process)

    def _on_exit(self, process: Process) -> None:
        if process.forced:  # its group has had SIGTERM, and its timer runs
            self.running.discard(process)
        elif process.outputs:
            self.loop.set_timer(process, monotonic() + _STRAGGLERS, self._end_group)
        else:
            self._end_group(process)

    # Timers.

    def _out_of_time(self, process: Process) -> None:
        self._check_exit(process, -1)
        if not process.exited:
            process.timed_out = True
            self._force(process)

    def _force(self, process: Process) -> None:
        process.forced = True
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)  # a suspended process does not act on SIGTERM
        grace = _LAST_GRACE if monotonic() >= self.deadline else _GRACE
        self.loop.set_timer(process, monotonic() + grace, self._kill)

    def _end_group(self, process: Process) -> None:
        """End the background processes of an exited command, and ignore their output."""
        process.keeping = False
        self.running.discard(process)
        process.send_signal(signal.SIGTERM)
        self.loop.set_timer(process, monotonic() + _CLEARING, self._kill)

    def _kill(self, process: Process) -> None:
        process.send_signal(signal.SIGKILL)
        self._check_exit(process, -1)
        if process.over:
            return
        wait = _CLEARING if process.exited else _GIVE_UP
        self.loop.set_timer(process, monotonic() + wait, self._abandon)

    def _abandon(self, process: Process) -> None:
        """Stop waiting for a group that SIGKILL did not end."""
        if not process.exited:
            process.seconds = monotonic() - process.started
            process.exited = process.reaped = True  # pretend, since it cannot be reaped
            self.unwatched.discard(process)
            self.running.discard(process)
        for fd in tuple(process.outputs) if process.keeping else ():
            for _ in range(_PIPEFUL):
                if fd in process.outputs:
                    self._read(process, fd)
        process.over = True
        self.loop.clear_timer(process)
        self.ending.pop(process.pid, None)
        self._close_pipes(process)

    def _finish_empty_groups(self) -> None:
        """Finish the groups in which nothing runs, without waiting for their timers."""
        if not self.ending:
            return
        left = living(set(self.ending))
        for pid, process in tuple(self.ending.items()):
            if pid not in left:
                process.send_signal(signal.SIGKILL)  # for a process that forked while we looked
                self._abandon(process)

    def _close_pipes(self, process: Process) -> None:
        for fd in (process.stdin, process.exit_fd, *process.outputs):
            if fd >= 0:
                self.loop.close(fd)
        process.stdin = process.exit_fd = -1
        process.outputs = {}


# The poll loop: file descriptors and timers of all commands.

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
