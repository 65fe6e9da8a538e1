"""A command elsewhere, over a connection that is there: the process that holds it is asked.

That is what ssh's own client does after it has started, read its configuration and found the
socket, which together takes longer than all the rest. Our three pipes are handed over, and the
line to the holder is the command's life: when it is closed, so is the session there. Nothing is
written to the command before the holder said that there is a session, so that one which was
refused, or not answered, can be asked for again elsewhere: nothing has run.
"""

from __future__ import annotations

import errno
import os
import sys
from time import monotonic

from notyet.checks.control import (
    DENIED,
    FAILED,
    HELLO,
    NEW_SESSION,
    NO_ESCAPE,
    OPENED,
    WORD,
    first,
    message,
    numbers,
    text,
)
from notyet.checks.linked import LinkedProcess
from notyet.checks.spawn import pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from notyet.checks.linked import LinkedJob
    from notyet.checks.remote_job import RemoteJob
else:
    import _signal as signal  # without the enum that `signal` imports

_CHUNK = 4096
_TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})


class RemoteProcess(LinkedProcess):
    """One command elsewhere; no process of ours is needed for it."""

    is_here = False

    def __init__(self, job: LinkedJob) -> None:
        super().__init__(job)
        self._is_called = self.is_ready = self._is_over = False
        self._heard = b""

    @property
    def is_started(self) -> bool:
        """Tell whether there is something to end."""
        return self._is_called

    def call(self) -> bool:
        """Hand the command over to whoever holds the connection; tells whether that is possible.

        Raises OSError when too many files are open.
        """
        job: RemoteJob = self.job  # type: ignore[assignment]  # only they have a machine
        self.started = self.started or monotonic()
        try:
            self._hand_over(job)
        except OSError as error:
            if error.errno in _TOO_MANY:
                raise
            # Where too many ask at this moment, there is nothing wrong with it.
            self._refused(is_full=isinstance(error, BlockingIOError))
        return self._is_called

    def _hand_over(self, job: RemoteJob) -> None:
        import _socket

        ends: list[int] = []
        line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            line.settimeout(1.0)
            line.connect(job.socket)
            for _ in range(3):
                ends += pipe()
            stdin, ours, out, stdout, err, stderr = ends
            # No terminal, no X11, no agent, no subsystem.
            wanted = numbers(*(0,) * 4, NO_ESCAPE) + text(b"") + text(job.command.encode())
            line.sendall(HELLO)
            line.sendall(message(numbers(NEW_SESSION, 0), text(b""), wanted))
            for fd in (stdin, stdout, stderr):
                rights = fd.to_bytes(WORD, sys.byteorder)
                line.sendmsg([b"\0"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        except BaseException:
            line.close()
            for end in ends:
                os.close(end)
            raise
        self._is_called = True
        self.exit_fd, self.stdin = line.detach(), ours
        self.outputs = {out: self.wrote[0], err: self.wrote[1]}
        for end in (stdin, stdout, stderr):
            os.close(end)
        for end in (self.exit_fd, ours, out, err):
            os.set_blocking(end, False)

    def tell(self, number: int) -> None:
        """Hang up, for what would end a process."""
        if number in {signal.SIGTERM, signal.SIGKILL}:
            self._is_over = True

    def give_up(self) -> None:
        """Hang up on a holder that does not answer; whoever comes next shall not find it."""
        self._refused(is_full=False)

    def begin_anew(self) -> None:
        """Be as if it had not been started."""
        super().begin_anew()
        self._is_called = self.is_ready = self._is_over = False
        self._heard = b""

    def has_ended(self) -> bool:
        """Hear what the holder of the connection has to say."""
        if not self._is_over:
            try:
                chunk = os.read(self.exit_fd, _CHUNK)
            except BlockingIOError:
                return False
            except OSError:
                chunk = b""
            self._hear(chunk)
            if not chunk and self.is_ready:
                self._is_over = True
            elif not chunk:
                self._refused(is_full=False)
        return self._is_over

    def _hear(self, chunk: bytes) -> None:
        said, self._heard = first(self._heard + chunk)
        while said is not None:
            if said[:1] == [OPENED]:
                self.is_ready = True
            elif said[:1] in ([DENIED], [FAILED]) and not self.is_ready:
                self._refused(is_full=True)
            said, self._heard = first(self._heard)

    def _refused(self, *, is_full: bool) -> None:
        self._is_over = self.was_refused = True
        self.is_full = is_full
