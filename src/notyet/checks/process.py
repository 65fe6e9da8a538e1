"""One command while it runs: what it was given, what came back, and how it ended."""

from __future__ import annotations

import os
from time import monotonic

from notyet.checks.spawn import launch, pipe
from notyet.core.command import Exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    from notyet.checks.spawn import Job
else:
    import _signal as signal  # without the enum that `signal` imports

_NEVER = float("inf")
_HEAD = 64 * 1024  # of each stream, bytes that are kept; as text they take many times as much
_TAIL = 192 * 1024
_LOST = (
    "its exit code was lost: this program ignores SIGCHLD, or another part of it collects "
    "processes that it did not start"
)


class Kept:
    """What came on one stream, bounded while it is read: its beginning and its end (E4)."""

    __slots__ = ("_head", "_tail", "_total")

    def __init__(self) -> None:
        self._head = b""
        self._tail = bytearray()
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._total += len(chunk)
        room = _HEAD - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * _TAIL:
            del self._tail[:-_TAIL]

    @property
    def left_out(self) -> int:
        """How many bytes were not kept."""
        return max(0, self._total - _HEAD - _TAIL)

    def text(self) -> bytes:
        """Return what was kept, with a line that says how much is missing."""
        if not self.left_out:
            return self._head + bytes(self._tail)
        mark = b"\n... %d bytes left out ...\n" % self.left_out
        return self._head + mark + bytes(self._tail[-_TAIL:])


class Process:
    """One command: what it was given, what came back, and what happens to it next."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.pid = 0
        self.pidfd = self.stdin = -1
        self.outputs: dict[int, Kept] = {}  # those still open
        self.wrote = (Kept(), Kept())
        self.todo = memoryview(job.stdin)
        self.started = self.seconds = 0.0
        self.due = _NEVER  # when `next` is called
        self.next: Callable[[Process], None] | None = None
        self.exited = self.reaped = self.over = False  # over: nothing is left of its group
        self.forced = self.timed_out = self.cancelled = False
        self.cut = False  # its time ends with the deadline, not with its own timeout
        self.keeping = True
        self.code: int | None = None
        self.signal = 0
        self.problem = ""

    def start(self, argv: list[str], environ: dict[str, str], close: list[int]) -> None:
        """Start it with three pipes; raises OSError or ValueError and leaves nothing open."""
        ends: list[int] = []
        try:
            for _ in range(3):
                ends += pipe()
            stdin, ours, out, stdout, err, stderr = ends
            self.started = monotonic()
            self.pid = launch(argv, environ, (stdin, stdout, stderr), close)
        except BaseException:
            for end in ends:
                os.close(end)
            raise
        self.stdin = ours
        self.outputs = {out: self.wrote[0], err: self.wrote[1]}
        for end in (stdin, stdout, stderr):
            os.close(end)
        for end in (ours, out, err):
            os.set_blocking(end, False)
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # no such call here, or too many files
            self.pidfd = -1

    def forget_output(self) -> None:
        """Give back what its output takes."""
        self.wrote = (Kept(), Kept())

    def exit(self) -> Exit:
        """Return how it ended."""
        stdout, stderr = self.wrote
        return Exit(
            code=self.code,
            signal=self.signal,
            timed_out=self.timed_out,
            cancelled=self.cancelled,
            problem=self.problem,
            stdout=stdout.text(),
            stderr=stderr.text(),
            left_out=stdout.left_out + stderr.left_out,
            seconds=self.seconds,
        )


def take_status(process: Process) -> bool:
    """Note how the command's own process ended, if it did; it stays to be collected."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return _take_status_and_reap(process)
    try:
        seen = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        process.problem, process.reaped = _LOST, True
        return True
    if seen is None:
        return False
    if seen.si_code == os.CLD_EXITED:
        process.code = seen.si_status
    else:
        process.signal = seen.si_status
    return True


def _take_status_and_reap(process: Process) -> bool:
    """Do the same where a child cannot be left: its number stays taken while its group lives."""
    try:
        pid, status = os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        process.problem, process.reaped = _LOST, True
        return True
    if not pid:
        return False
    process.reaped = True
    if os.WIFEXITED(status):
        process.code = os.WEXITSTATUS(status)
    else:
        process.signal = os.WTERMSIG(status)
    return True


def hold_sigpipe() -> bool:
    """Keep a command that does not read from killing us, whatever this program does with SIGPIPE.

    Only for this thread: the signal goes to the one that writes. Tells whether it was held before.
    """
    return signal.SIGPIPE in signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGPIPE,))


def release_sigpipe(held: bool) -> None:  # noqa: FBT001  # what hold_sigpipe returned
    """Forget the signals that came, and let others through again."""
    if held:
        return
    if signal.SIGPIPE in signal.sigpending():
        if hasattr(signal, "sigtimedwait"):
            signal.sigtimedwait((signal.SIGPIPE,), 0)
        else:
            signal.sigwait((signal.SIGPIPE,))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGPIPE,))
