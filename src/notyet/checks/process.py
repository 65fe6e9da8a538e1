"""One command while it runs: what it was given, what came back, and how it ended."""

from __future__ import annotations

from time import monotonic

from notyet import system
from notyet.checks.groups import send
from notyet.checks.kept import Framed, Kept
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
_LOST = (
    "its exit code was lost: this program ignores SIGCHLD, or another part of it collects "
    "processes that it did not start"
)


class Process:
    """One command: what it was given, what came back, and what happens to it next."""

    is_here = True  # a process of ours runs it
    is_ready = True  # to be written to

    def __init__(self, job: Job) -> None:
        self.job = job
        self.pid = 0
        self.stdin = -1
        self.exit_fd = -1  # wakes us up when it has exited
        self.outputs: dict[int, Kept] = {}  # those still open
        self.wrote = self._blank()
        self.before: Process | None = None  # starts once that one is ready
        self.todo = memoryview(job.stdin)
        self.parts = job.parts  # what comes then
        self.started = self.seconds = 0.0
        self.due = _NEVER  # when `next` is called
        self.next: Callable[[Process], None] | None = None
        self.exited = self.reaped = self.over = False  # over: nothing is left of its group
        self.forced = self.timed_out = self.cancelled = False
        self.cut = False  # its time ends with the deadline, not with its own timeout
        self.was_refused = False  # and may be started elsewhere
        self.is_full = False  # because there is no room for it
        self.moves = 0  # how often that happened
        self.keeping = True
        self.code: int | None = None
        self.signal = 0
        self.problem = ""

    @property
    def is_started(self) -> bool:
        """Tell whether there is something to end."""
        return bool(self.pid)

    def call(self) -> bool:
        """Start it without a process of ours, if that is possible."""
        return False

    def give_up(self) -> None:
        """Do not wait for it to be ready."""

    def start(self, argv: list[str], environ: dict[str, str], close: list[int]) -> None:
        """Start it with three pipes; raises OSError or ValueError and leaves nothing open."""
        ends: list[int] = []
        try:
            for _ in range(3):
                ends += pipe()
            stdin, ours, out, stdout, err, stderr = ends
            self.started = self.started or monotonic()
            self.pid = launch(argv, environ, (stdin, stdout, stderr), close)
        except BaseException:
            for end in ends:
                system.close(end)
            raise
        self.stdin = ours
        self.outputs = {out: self.wrote[0], err: self.wrote[1]}
        for end in (stdin, stdout, stderr):
            system.close(end)
        for end in (ours, out, err):
            system.set_blocking(end, False)
        try:
            self.exit_fd = system.pidfd_open(self.pid)
        except (AttributeError, OSError):  # no such call here, or too many files
            self.exit_fd = -1

    def tell(self, number: int) -> None:
        """Send a signal to all of its group."""
        send(-self.pid, number)

    def has_ended(self) -> bool:
        """Take note of how it ended, if it did."""
        return take_status(self)

    def forget_output(self) -> None:
        """Give back what its output takes."""
        self.wrote = self._blank()

    def pause(self) -> float | None:
        """Return after how many seconds it is to be started again, or None if it is not."""
        if self.was_refused:
            return 0.0
        return self.job.again(self) if self.code and self.job.again is not None else None

    def again(self) -> None:
        """Begin anew."""
        self.wrote = self._blank()
        self.todo, self.parts = memoryview(self.job.stdin), self.job.parts
        self.exited = self.reaped = False
        self.pid = self.signal = 0
        self.code = None

    def take(self, fd: int, chunk: bytes) -> None:
        """Keep what it printed."""
        try:
            self.outputs[fd].add(chunk)
        except Exception as error:  # noqa: BLE001  # others run too, and are none of its business
            self.problem = self.problem or _unreadable(error)

    def is_complete(self) -> bool:
        """Tell whether all that counts has been read, whoever still holds the pipes."""
        return all(isinstance(stream, Framed) and stream.is_complete for stream in self.wrote)

    def exit(self) -> Exit:
        """Return how it ended: what it was, or what it was told about a command elsewhere."""
        if self.job.told is None:
            return self.own_exit()
        try:
            return self.job.told(self)
        except Exception as error:  # noqa: BLE001  # as above
            return Exit(problem=self.problem or _unreadable(error), seconds=self.seconds)

    def own_exit(self) -> Exit:
        """Return how the process itself ended."""
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

    def _blank(self) -> tuple[Kept, Kept]:
        mark, room = self.job.framed, self.job.head
        return (Framed(mark, room), Framed(mark, room)) if mark else (Kept(room), Kept(room))


def _unreadable(error: Exception) -> str:
    return f"what it said could not be read, which is a mistake in notyet: {error!r}"


def take_status(process: Process) -> bool:
    """Note how the command's own process ended, if it did; it stays to be collected."""
    if not hasattr(system, "waitid"):  # macOS before Python 3.13
        return _take_status_and_reap(process)
    try:
        seen = system.waitid(
            system.P_PID, process.pid, system.WEXITED | system.WNOHANG | system.WNOWAIT
        )
    except ChildProcessError:
        process.problem, process.reaped = _LOST, True
        return True
    if seen is None:
        return False
    if seen.si_code == system.CLD_EXITED:
        process.code = seen.si_status
    else:
        process.signal = seen.si_status
    return True


def _take_status_and_reap(process: Process) -> bool:
    """Do the same where a child cannot be left: its number stays taken while its group lives."""
    try:
        pid, status = system.waitpid(process.pid, system.WNOHANG)
    except ChildProcessError:
        process.problem, process.reaped = _LOST, True
        return True
    if not pid:
        return False
    process.reaped = True
    if system.WIFEXITED(status):
        process.code = system.WEXITSTATUS(status)
    else:
        process.signal = system.WTERMSIG(status)
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
