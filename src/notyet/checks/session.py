"""A command elsewhere over a connection that is there already: the process that holds it is asked.

That is what ssh's own client does after it has started, read its configuration and found the
socket, which together takes longer than all the rest. Our three pipes are handed over, and the
line to the holder is the command's life: when it is closed, so is the session there. Whatever is
not as expected, the client itself is started instead.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from notyet.checks.process import Process, take_status
from notyet.checks.sharing import message, numbers, text
from notyet.checks.spawn import pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from notyet.checks.remote_job import RemoteJob
    from notyet.checks.spawn import Job
else:
    import _signal as signal  # without the enum that `signal` imports

_HELLO, _VERSION, _NEW_SESSION = 1, 4, 0x10000002
_DENIED, _FAILED, _EXITED, _OPENED = 0x80000002, 0x80000003, 0x80000004, 0x80000006
_NO_ESCAPE = 0xFFFFFFFF
_WORD = 4
_CHUNK = 4096


class Session(Process):
    """One command elsewhere, run by a process of ours only where it has to be."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._is_new = True
        self._is_called = self._is_open = self._is_over = False
        self._heard = b""

    @property
    def is_started(self) -> bool:
        """Tell whether there is something to end."""
        return bool(self.pid) or self._is_called

    def call(self) -> bool:
        """Hand the command over to whoever holds the connection."""
        job: RemoteJob = self.job  # type: ignore[assignment]  # only they have a machine
        if not self._is_new or not job.socket or job.refused:
            return False
        self._is_new = False
        try:
            self._hand_over(job)
        except OSError:
            return False
        return True

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
            wanted = (*(0,) * 4, _NO_ESCAPE)
            ask = numbers(_NEW_SESSION, 0) + text(b"") + numbers(*wanted) + text(b"")
            line.sendall(message(numbers(_HELLO, _VERSION)))
            line.sendall(message(ask + text(job.command.encode())))
            for fd in (stdin, stdout, stderr):
                rights = fd.to_bytes(_WORD, sys.byteorder)
                line.sendmsg([b"\0"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        except BaseException:
            line.close()
            for end in ends:
                os.close(end)
            raise
        self.started = self.started or monotonic()
        self._is_called = True
        self.pidfd, self.stdin = line.detach(), ours
        self.outputs = {out: self.wrote[0], err: self.wrote[1]}
        for end in (stdin, stdout, stderr):
            os.close(end)
        for end in (self.pidfd, ours, out, err):
            os.set_blocking(end, False)

    def tell(self, number: int) -> None:
        """Hang up, for what would end a process."""
        if self.pid:
            super().tell(number)
        elif number in {signal.SIGTERM, signal.SIGKILL}:
            self._is_over = True

    def has_ended(self) -> bool:
        """Hear what the holder of the connection has to say."""
        if self.pid:
            return take_status(self)
        if not self._is_over:
            try:
                chunk = os.read(self.pidfd, _CHUNK)
            except BlockingIOError:
                return False
            except OSError:
                chunk = b""
            self._hear(chunk)
            if not chunk:
                self._is_over = True
                self.was_refused = not self._is_open
        if self._is_over and self.was_refused:
            self._is_called = False
        return self._is_over

    def _hear(self, chunk: bytes) -> None:
        self._heard += chunk
        while len(self._heard) >= _WORD:
            length = int.from_bytes(self._heard[:_WORD], "big")
            if len(self._heard) < _WORD + length:
                return
            kind = int.from_bytes(self._heard[_WORD : 2 * _WORD], "big")
            self._heard = self._heard[_WORD + length :]
            if kind == _OPENED:
                self._is_open = True
            elif kind in {_DENIED, _FAILED}:
                self._is_over = self.was_refused = True
