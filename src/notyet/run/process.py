"""One command while it runs: its pipes, its output, and how it ended."""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.core.gate import Exit
from notyet.run.groups import send
from notyet.run.output import Kept
from notyet.run.spawn import launch, pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.run.spawn import Job


def take_status_and_reap(process: Process) -> bool:
    """Return True if a command's process has exited; reap it and note how it ended.

    Its id is not given to another process as long as its group has members.
    """
    try:
        pid, status = light.waitpid(process.pid, light.WNOHANG)
    except ChildProcessError:
        lose_status(process)
        return True
    if not pid:
        return False
    process.reaped = True
    if light.WIFEXITED(status):
        process.code = light.WEXITSTATUS(status)
    else:
        process.signal = light.WTERMSIG(status)
    return True


if TYPE_CHECKING:
    import signal

else:
    import _signal as signal  # without the enum that `signal` imports

_NEVER = float("inf")
_LOST = (
    "its exit code was lost: this program ignores SIGCHLD, or another part of it collects "
    "processes that it did not start"
)


class Process:
    """One command: its job, its pipes and output, its state, and its timer."""

    pid = 0
    stdin = exit_fd = -1  # `exit_fd` becomes readable when it exits
    started = seconds = 0.0
    due = _NEVER  # when `next` is called
    next: Callable[[Process], None] | None = None
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
        self.outputs: dict[int, Kept] = {}  # those still open
        self.wrote = self._blank()

    @property
    def is_started(self) -> bool:
        """Return True if it was started."""
        return bool(self.pid)

    def start(self, argv: list[str], environ: dict[str, str], close: list[int]) -> None:
        """Start it with three pipes. Raises OSError or ValueError, and then leaves none open."""
        ends: list[int] = []
        try:
            for _ in range(3):
                ends += pipe()
            stdin, ours, out, stdout, err, stderr = ends
            self.started = self.started or monotonic()
            self.pid = launch(argv, environ, (stdin, stdout, stderr), close)
        except BaseException:
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
        """Return True if it has exited, and note how."""
        return take_status(self)

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
        self.wrote = self._blank()

    def _blank(self) -> tuple[Kept, Kept]:
        return Kept(self.job.head), Kept(self.job.head)


def take_status(process: Process) -> bool:
    """Return True if a command's process has exited, and note how, without reaping it."""
    if not hasattr(light, "waitid"):  # macOS before Python 3.13
        return take_status_and_reap(process)
    try:
        seen = light.waitid(light.P_PID, process.pid, light.WEXITED | light.WNOHANG | light.WNOWAIT)
    except ChildProcessError:
        lose_status(process)
        return True
    if seen is None:
        return False
    if seen.si_code == light.CLD_EXITED:
        process.code = seen.si_status
    else:
        process.signal = seen.si_status
    return True


def lose_status(process: Process) -> None:
    """Note that its exit code is unknown, because it was reaped elsewhere."""
    process.problem, process.reaped = _LOST, True


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
