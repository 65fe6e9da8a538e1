"""One command while it runs: its pipes, its output, and how it ended."""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.core.gate import Exit
from notyet.run.groups import send
from notyet.run.spawn import HEAD, launch, pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    from notyet.run.spawn import Job
else:
    import _signal as signal  # without the enum that `signal` imports

NEVER = float("inf")
TAIL = 192 * 1024  # bytes kept from the end of each stream
_LOST = (
    "its exit code was lost: this program ignores SIGCHLD, or another part of it collects "
    "processes that it did not start"
)


class Output:
    """The beginning and the end of one stream, limited in size while it is read (E4)."""

    __slots__ = ("_head", "_lines", "_room", "_tail", "_total")

    def __init__(self, room: int = HEAD) -> None:
        self._room = room
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._lines = 0  # whose end was not kept

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._total += len(chunk)
        room = self._room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * TAIL:
            self._cut()

    def _cut(self) -> None:
        self._lines += self._tail.count(b"\n", 0, -TAIL)
        del self._tail[:-TAIL]

    @property
    def left_out(self) -> int:
        """How many bytes were not kept."""
        return max(0, self._total - self._room - TAIL)

    def text(self) -> bytes:
        """Return what was kept, with a line that says how much is missing."""
        if not self.left_out:
            return bytes(self._head + self._tail)
        self._cut()
        mark = b"\n... %d lines (%d bytes) left out ...\n" % (self._lines, self.left_out)
        return bytes(self._head) + mark + bytes(self._tail)


class Process:
    """One command: its job, its pipes and output, its state, and its timer."""

    pid = 0  # 0 until it is started
    stdin = exit_fd = -1  # `exit_fd` becomes readable when it exits
    started = seconds = 0.0
    due = NEVER  # when `next` is called
    next: Callable[[Process], None] | None = None
    watch: Callable[[bytes], None] | None = None  # see `run_processes`
    is_guarded = True  # the watchdog ends it if we die
    exited = reaped = over = False  # over: its group is empty
    forced = timed_out = cancelled = False
    cut = False  # the deadline comes before its own timeout
    keeping = True
    code: int | None = None
    signal = 0
    problem = ""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.todo = memoryview(job.stdin)
        self.outputs: dict[int, Output] = {}  # those still open
        self.forget_output()

    def start(self, argv: list[str], environ: dict[str, str], close: list[int]) -> None:
        """Start it with three pipes. Raises OSError or ValueError, and then leaves none open."""
        ends: list[int] = []
        try:
            for _ in range(3):
                ends += pipe()
            stdin, ours, out, stdout, err, stderr = ends
            self.started = self.started or monotonic()
            self.pid = launch(argv, environ, (stdin, stdout, stderr), close)
        except (OSError, ValueError):
            for end in ends:
                light.close(end)
            raise
        self.stdin = ours
        self.outputs = {out: self.wrote[0], err: self.wrote[1]}
        for end in (stdin, stdout, stderr):
            light.close(end)
        for end in (ours, out, err):
            light.set_blocking(end, False)
        try:
            self.exit_fd = light.pidfd_open(self.pid)
        except (AttributeError, OSError):  # no such call here, or too many files
            self.exit_fd = -1

    def send_signal(self, number: int) -> None:
        """Signal its process group."""
        send(-self.pid, number)

    def has_ended(self) -> bool:
        """Return True if it has exited, and note how, without reaping it."""
        if not hasattr(light, "waitid"):  # macOS before Python 3.13
            return self._has_ended_and_reap()
        wanted = light.WEXITED | light.WNOHANG | light.WNOWAIT
        try:
            seen = light.waitid(light.P_PID, self.pid, wanted)
        except ChildProcessError:
            return self._lose_status()
        if seen is None:
            return False
        if seen.si_code == light.CLD_EXITED:
            self.code = seen.si_status
        else:
            self.signal = seen.si_status
        return True

    def _has_ended_and_reap(self) -> bool:
        """Do the same by reaping it: its id stays taken as long as its group has members."""
        try:
            pid, status = light.waitpid(self.pid, light.WNOHANG)
        except ChildProcessError:
            return self._lose_status()
        if not pid:
            return False
        self.reaped = True
        if light.WIFEXITED(status):
            self.code = light.WEXITSTATUS(status)
        else:
            self.signal = light.WTERMSIG(status)
        return True

    def _lose_status(self) -> bool:
        self.problem, self.reaped = _LOST, True
        return True

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

    def forget_output(self) -> None:
        """Free the memory of its output."""
        self.wrote = Output(self.job.head), Output(self.job.head)


def block_sigpipe() -> bool:
    """Block SIGPIPE in this thread, so that a command that does not read its stdin cannot kill us.

    The signal goes to the thread that writes. Returns True if it was blocked before.
    """
    return signal.SIGPIPE in signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGPIPE,))


def restore_sigpipe(held: bool) -> None:  # noqa: FBT001  # what block_sigpipe returned
    """Discard pending SIGPIPEs, and unblock the signal unless it was blocked before."""
    if held:
        return
    if signal.SIGPIPE in signal.sigpending():
        if hasattr(signal, "sigtimedwait"):
            signal.sigtimedwait((signal.SIGPIPE,), 0)
        else:
            signal.sigwait((signal.SIGPIPE,))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGPIPE,))
