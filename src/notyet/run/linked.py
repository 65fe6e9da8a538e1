"""Commands that need more than to be run: those elsewhere, and the connections that they need.

Each of these fields is for one of the two; `linked_stage` does what they ask for.
"""

from __future__ import annotations

from notyet.core.gate import Exit
from notyet.run.output import Framed
from notyet.run.process import Process
from notyet.run.spawn import MARK, Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.core.remote import Remote
    from notyet.run.output import Kept


class LinkedJob(Job, kw_only=True):
    """One command, and what is special about it."""

    machine: str = ""  # which has to be connected to first
    refused: str = ""  # why it cannot be started, where that is known already
    parts: tuple[bytes, ...] = ()  # what follows on stdin; others may have the same
    lifeline: bool = False  # its stdin stays open while we want it to run, and is its end
    framed: bytes = b""  # marks its output; what both streams end with makes it complete
    told: Callable[[LinkedProcess], Exit] | None = None  # reads how it ended
    # Not before that one has exited with 0; its own time runs already.
    after: Job | None = None
    # What it leaves behind is wanted, and carries no mark; called once it has exited with 0.
    leaves: Callable[[LinkedProcess], None] | None = None
    # Asked when it failed: after how many seconds to start it again, if at all.
    again: Callable[[LinkedProcess], float | None] | None = None


class LinkedProcess(Process):
    """Such a command while it runs."""

    job: LinkedJob
    is_here = True  # a process of ours runs it
    is_ready = True  # to be written to
    before: LinkedProcess | None = None  # starts once that one is ready
    was_refused = False  # and may be started elsewhere
    is_full = False  # because there is no room for it
    moves = 0  # how often that happened

    def __init__(self, job: LinkedJob) -> None:
        super().__init__(job)
        self.parts = job.parts

    def start(self, argv: list[str], environ: dict[str, str], close: list[int]) -> None:
        """Start it with three pipes; raises OSError or ValueError and leaves nothing open."""
        if self.job.leaves is not None:
            del environ[MARK]
        super().start(argv, environ, close)

    def call(self) -> bool:
        """Start it without a process of ours, if that is possible."""
        return False

    def give_up(self) -> None:
        """Do not wait for it to be ready."""

    def pause(self) -> float | None:
        """Return after how many seconds it is to be started again, or None if it is not."""
        if self.was_refused:
            return 0.0
        return self.job.again(self) if self.code and self.job.again is not None else None

    def begin_anew(self) -> None:
        """Be as if it had not been started."""
        self.forget_output()
        self.todo, self.parts = memoryview(self.job.stdin), self.job.parts
        self.exited = self.reaped = False
        self.pid = self.signal = 0
        self.code = None

    def take(self, fd: int, chunk: bytes) -> bool:
        """Keep what it printed; tells whether that is known to be all, whoever holds the pipe."""
        try:
            super().take(fd, chunk)
        except Exception as error:  # noqa: BLE001  # others run too, and are none of its business
            self.problem = self.problem or _unreadable(error)
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
        return super().exit()

    def _blank(self) -> tuple[Kept, Kept]:
        mark, room = self.job.framed, self.job.head
        return (Framed(mark, room), Framed(mark, room)) if mark else super()._blank()


def _unreadable(error: Exception) -> str:
    return f"what it said could not be read, which is a mistake in notyet: {error!r}"


class RemoteJob(LinkedJob, kw_only=True):
    """One command to run elsewhere."""

    remote: Remote
    token: str  # what it and its children carry there; not the secret that frames its output
    program: str
    folder: str
    command: str  # for the login shell there
    socket: str = ""  # of the connection that it shares; ssh writes into the log beside it
    number: int = 0  # of that connection, among those to the same machine
    patience: float = 0.0  # seconds that connecting may take
    reach: str = ""  # the machine as it is connected to now, by another name
