"""An agent's program while it runs, read by the event loop; and ending one that a crash left."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from notyet.run.cannot_start import CannotStart
from notyet.run.groups import Watchdog, living, reap, send
from notyet.run.proc import group_members, start_time, variable
from notyet.run.process import Process, block_sigpipe, restore_sigpipe
from notyet.run.spawn import MARK, folder_id, inheritable_fds, prepare, start_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.run.spawn import Job

_LONGEST = 8 * 1024 * 1024  # bytes of a line; a picture in base64 fits


class Lines:
    """Splits a stream into lines; drops and counts those that are too long."""

    def __init__(self) -> None:
        self._held = b""
        self._is_skipping = False
        self.too_long = 0

    def add(self, chunk: bytes) -> list[bytes]:
        """Add bytes and return the lines that are complete now."""
        *lines, self._held = (self._held + chunk).split(b"\n")
        if lines and self._is_skipping:
            del lines[0]
            self._is_skipping = False
        if len(self._held) > _LONGEST:
            self.too_long += not self._is_skipping
            self._held, self._is_skipping = b"", True
        return [line for line in lines if line.strip()]

    def end(self) -> list[bytes]:
        """Return the last line, if it has no newline."""
        return [] if self._is_skipping else self.add(b"\n")


_CHUNK = 64 * 1024
_PIPEFUL = 20  # chunks that a pipe can hold when its writer has exited
_LOOK_AGAIN = 0.02  # where nothing wakes us up
_GRACE = 0.3  # for what a program left in its group
_STDERR = 8 * 1024  # bytes of its end that are kept


class AgentProgram:
    """A started program. `wait` for it, also after `stop`.

    It has its own process group, and a watchdog ends the group if we are killed. When the program
    exits, the rest of its group is ended before it is reaped: until then its number cannot be given
    to another process (E2).
    """

    def __init__(
        self,
        job: Job,
        on_line: Callable[[bytes], None] | None,
        *,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> None:
        """Start it. Raises CannotStart, and then leaves no process behind.

        `on_line` gets the lines of its stdout; without it, the caller moves `stdin` and `stdout`.
        """
        self._process = Process(job)
        self._on_line = on_line
        self._on_stderr = on_stderr
        self.on_exit: Callable[[], None] | None = None  # called before its pipes are closed
        self._lines = Lines()
        self._stderr = bytearray()
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._closed = False
        self._fds: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.mark = os.urandom(12).hex()  # its children inherit it
        close = inheritable_fds()
        argv, environ = prepare(job, folder_id("."), self.mark)
        self._watchdog = Watchdog(self.mark, close)
        try:
            self._process.start(argv, environ, close)
        except (OSError, ValueError) as error:
            self._watchdog.stop()
            raise CannotStart(start_failure(error, job.argv)) from None
        self.started = start_time(self.pid)
        self._watchdog.watch((self.pid,))
        self._stdout = next(iter(self._process.outputs))
        self._listen()

    @property
    def pid(self) -> int:
        """The process id, which is also that of its group."""
        return self._process.pid

    @property
    def stdin(self) -> int:
        """The descriptor that it reads from, for a caller that writes to it."""
        return self._process.stdin

    @property
    def stdout(self) -> int:
        """The descriptor that it writes to, for a caller that reads it."""
        return self._stdout

    def close_stdin(self) -> None:
        """Close its stdin, once."""
        self._forget(self._process.stdin)

    @property
    def code(self) -> int | None:
        """The exit code; None if a signal ended it."""
        return self._process.code

    @property
    def signal(self) -> int:
        """The signal that ended it, or 0."""
        return self._process.signal

    @property
    def too_long(self) -> int:
        """How many lines were too long, and dropped."""
        return self._lines.too_long

    def stderr(self) -> str:
        """Return the end of its stderr."""
        return self._stderr[-_STDERR:].decode("utf-8", "replace")

    async def wait(self) -> None:
        """Wait until it and its group have ended; kill them if cancelled."""
        try:
            await asyncio.wait({self._exited})
            self._drain()
            await self._end_group()
        finally:
            self._close()

    async def stop(self) -> None:
        """End it by SIGINT, then SIGTERM, then SIGKILL."""
        for number, patience in STEPS:
            if not self._exited.done():
                self.send(number)
                await asyncio.wait({self._exited}, timeout=patience)

    async def kill(self) -> None:
        """Kill it."""
        self.send(signal.SIGKILL)
        await asyncio.wait({self._exited})

    def end_within(self, seconds: float) -> None:
        """Kill it unless it exits within so many seconds."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self.send, signal.SIGKILL)

    def send(self, number: int) -> None:
        """Signal its whole group, unless it was reaped."""
        if not self._closed:
            send(-self.pid, number)
            send(-self.pid, signal.SIGCONT)

    # -- the loop calls these

    def _listen(self) -> None:
        process = self._process
        self._fds |= {*process.outputs, process.stdin}
        for fd in process.outputs:
            if self._on_line is not None or fd != self._stdout:
                self._loop.add_reader(fd, self._read, fd)
        if self._on_line is not None:
            self._loop.add_writer(process.stdin, self._write)
        if process.exit_fd >= 0:
            self._fds.add(process.exit_fd)
            self._loop.add_reader(process.exit_fd, self._look)
        else:
            self._look()

    def _look(self) -> None:
        if self._exited.done():
            return
        if self._process.has_ended():
            self._forget(self._process.exit_fd)
            self._exited.set_result(None)
        elif self._process.exit_fd < 0:
            self._loop.call_later(_LOOK_AGAIN, self._look)

    def _read(self, fd: int) -> bool:
        """Read once; return True if there may be more."""
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
            if self._on_stderr is not None:
                self._on_stderr(chunk)
            if len(self._stderr) > 2 * _STDERR:
                del self._stderr[:-_STDERR]
        else:
            self._take(self._lines.add(chunk))
        return True

    def _take(self, lines: list[bytes]) -> None:
        assert self._on_line is not None
        for line in lines:
            self._on_line(line)

    def _write(self) -> None:
        process = self._process
        held = block_sigpipe()
        try:
            written = os.write(process.stdin, process.todo[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:  # it closed its stdin
            written = len(process.todo)
        finally:
            restore_sigpipe(held)
        process.todo = process.todo[written:]
        if not process.todo:
            self._forget(process.stdin)

    # -- the end

    def _drain(self) -> None:
        for fd in [fd for fd in self._process.outputs if fd in self._fds]:
            if self._on_line is None and fd == self._stdout:
                continue  # the caller reads it
            for _ in range(_PIPEFUL):
                if not self._read(fd):
                    break
        if self._on_line is not None:
            self._take(self._lines.end())
        if self.on_exit is not None:
            self.on_exit()

    async def _end_group(self) -> None:
        if self._process.reaped:
            return
        if living({self.pid}):
            send(-self.pid, signal.SIGTERM)  # once: a program that ends by itself is left in peace
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


# An orphan is a program that a dead process of ours left running. Its number may belong to another
# program by now: a group is still ours if its leader started at the recorded time, or if a member
# carries our mark. While a group has a member, the system does not give its number away.

# Signals, and the seconds to wait after each.
STEPS = ((signal.SIGINT, 1.5), (signal.SIGTERM, 1.5), (signal.SIGKILL, 1.0))


async def end_orphan(pid: int, started: str, mark: str = "") -> bool:
    """End an orphan's process group; True if it was there and is gone now."""
    if pid <= 1 or not started:
        return False
    group = _Group(pid, started, mark)
    if not group.lives():
        return False
    loop = asyncio.get_running_loop()
    for number, patience in STEPS:
        group.send(number)
        ends = loop.time() + patience
        while group.lives():
            if loop.time() > ends:
                break
            if number == signal.SIGKILL:  # also for what was started a moment ago
                group.send(number)
            await asyncio.sleep(_LOOK_AGAIN)
        else:
            return True
    return False


class _Group:
    """A process group that is certain to be the orphan's."""

    def __init__(self, pid: int, started: str, mark: str) -> None:
        self._pid, self._mark = pid, mark
        self._known = {(pid, started)}  # members seen

    def lives(self) -> bool:
        """Return True while it has members."""
        members = {(pid, start_time(pid)) for pid in group_members(self._pid)}
        if not members:
            return False
        leader = (self._pid, start_time(self._pid))  # which may be a zombie
        is_it = bool(self._known & (members | {leader}))
        if not is_it and not any(_carries(pid, self._mark) for pid, _ in members):
            return False
        self._known |= members
        return True

    def send(self, number: int) -> None:
        """Signal all members."""
        send(-self._pid, number)
        send(-self._pid, signal.SIGCONT)


def _carries(pid: int, mark: str) -> bool:
    """Return True if a process inherited this mark."""
    return bool(mark) and mark.encode("utf-8", "replace") in (variable(pid, MARK) or b"").split()
