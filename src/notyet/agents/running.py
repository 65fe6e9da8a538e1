"""One program while it runs, read by the event loop itself: no thread, no executor.

It has a session and a process group of its own, and a watchdog that ends the group if we are
killed. When the program exits, what is left of its group is ended before it is collected,
because until then nobody else can get the number that we signal (E2).
"""

from __future__ import annotations

import asyncio
import os
import signal

from notyet.agents.lines import Lines
from notyet.agents.orphans import STEPS, start_of
from notyet.checks.cannot_start import CannotStart
from notyet.checks.groups import Watchdog, living, reap, send
from notyet.checks.process import Process, hold_sigpipe, release_sigpipe, take_status
from notyet.checks.spawn import folder_id, inherited, prepare, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.checks.spawn import Job

_CHUNK = 64 * 1024
_PIPEFUL = 20  # chunks that a pipe can hold when its writer has exited
_LOOK_AGAIN = 0.02  # where nothing wakes us up
_GRACE = 0.3  # for what a program left in its group
_STDERR = 8 * 1024  # bytes of its end that are kept


class Running:
    """A program that was started. `wait` for it, also when it is told to stop."""

    def __init__(self, job: Job, on_line: Callable[[bytes], None]) -> None:
        """Start it; raises CannotStart and leaves nothing behind."""
        self._process = Process(job)
        self._on_line = on_line
        self._lines = Lines()
        self._stderr = bytearray()
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._closed = False
        self._fds: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.mark, close = os.urandom(12).hex(), inherited()  # that all it starts carries
        argv, environ = prepare(job, folder_id("."), self.mark)
        self._watchdog = Watchdog(self.mark, close)
        try:
            self._process.start(argv, environ, close)
        except (OSError, ValueError) as error:
            self._watchdog.stop()
            raise CannotStart(why(error, job.argv)) from None
        self.started = start_of(self.pid)
        self._watchdog.watch((self.pid,))
        self._listen()

    @property
    def pid(self) -> int:
        """Its number, which is that of its group."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None when a signal ended it."""
        return self._process.code

    @property
    def signal(self) -> int:
        """The signal that ended it, or 0."""
        return self._process.signal

    @property
    def too_long(self) -> int:
        """How many lines were too long to be read."""
        return self._lines.too_long

    def stderr(self) -> str:
        """Return the end of what it wrote to stderr."""
        return self._stderr[-_STDERR:].decode("utf-8", "replace")

    async def wait(self) -> None:
        """Wait until it has exited and nothing is left of its group; ends it when cancelled."""
        try:
            await asyncio.wait({self._exited})
            self._drain()
            await self._end_group()
        finally:
            self._close()

    async def stop(self) -> None:
        """End it: politely, then less so, then by force."""
        for number, patience in STEPS:
            if not self._exited.done():
                self.send(number)
                await asyncio.wait({self._exited}, timeout=patience)

    async def kill(self) -> None:
        """End it by force."""
        self.send(signal.SIGKILL)
        await asyncio.wait({self._exited})

    def end_within(self, seconds: float) -> None:
        """End it by force unless it exits within so many seconds from now."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self.send, signal.SIGKILL)

    def send(self, number: int) -> None:
        """Signal its whole group, unless it has been collected."""
        if not self._closed:
            send(-self.pid, number)
            send(-self.pid, signal.SIGCONT)

    # -- the loop calls these

    def _listen(self) -> None:
        process = self._process
        for fd in process.outputs:
            self._fds.add(fd)
            self._loop.add_reader(fd, self._read, fd)
        self._fds.add(process.stdin)
        self._loop.add_writer(process.stdin, self._write)
        if process.exit_fd >= 0:
            self._fds.add(process.exit_fd)
            self._loop.add_reader(process.exit_fd, self._look)
        else:
            self._look()

    def _look(self) -> None:
        if self._exited.done():
            return
        if take_status(self._process):
            self._forget(self._process.exit_fd)
            self._exited.set_result(None)
        elif self._process.exit_fd < 0:
            self._loop.call_later(_LOOK_AGAIN, self._look)

    def _read(self, fd: int) -> bool:
        """Read once; tells whether there may be more."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._forget(fd)
            return False
        if self._process.outputs[fd] is self._process.wrote[1]:
            self._stderr += chunk
            if len(self._stderr) > 2 * _STDERR:
                del self._stderr[:-_STDERR]
        else:
            for line in self._lines.add(chunk):
                self._on_line(line)
        return True

    def _write(self) -> None:
        process = self._process
        held = hold_sigpipe()
        try:
            written = os.write(process.stdin, process.todo[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:  # it does not want to read
            written = len(process.todo)
        finally:
            release_sigpipe(held)
        process.todo = process.todo[written:]
        if not process.todo:
            self._forget(process.stdin)

    # -- the end

    def _drain(self) -> None:
        for fd in [fd for fd in self._process.outputs if fd in self._fds]:
            for _ in range(_PIPEFUL):
                if not self._read(fd):
                    break
        for line in self._lines.end():
            self._on_line(line)

    async def _end_group(self) -> None:
        if self._process.reaped:
            return
        if living({self.pid}):
            send(-self.pid, signal.SIGTERM)  # once: what ends politely is not to be disturbed
        for number in (0, signal.SIGKILL):
            ends = self._loop.time() + _GRACE
            while living({self.pid}):
                send(-self.pid, number)
                if self._loop.time() > ends:
                    break
                await asyncio.sleep(_LOOK_AGAIN)

    def _forget(self, fd: int) -> None:
        if fd not in self._fds:
            return
        self._fds.discard(fd)
        if fd == self._process.stdin:
            self._loop.remove_writer(fd)
        else:
            self._loop.remove_reader(fd)
        os.close(fd)

    def _close(self) -> None:
        if self._closed:
            return
        for fd in tuple(self._fds):
            self._forget(fd)
        if not self._process.reaped:
            send(-self.pid, signal.SIGKILL)
            reap(self.pid)
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if not self._exited.done():
            self._exited.set_result(None)
        self._watchdog.stop()
