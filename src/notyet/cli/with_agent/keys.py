"""Ctrl-C, Escape and signals while an agent works: interrupt, then kill, then leave."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import termios
import time
import tty
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ESCAPE = b"\x1b"
_ALONE = 0.05  # seconds; keys such as the arrows send an escape, and more right after it
_ONE_PRESS = 0.3  # seconds; `timeout` signals us once directly, and once with our group
_WATCH = 1.0  # seconds; a shell does not say that it brings a job to the foreground
_STUCK = 1.0  # seconds after which a write waits for a reader that does not read
_FINAL_BYTES = range(0x40, 0x7F)  # of what a key sends after ESC and [


class Presses:
    """Calls `press` with the signal that came; Escape on a terminal counts as Ctrl-C.

    `with_keyboard` is False if stdin is not ours to read. After the block, signals are only
    noted in `held`, until `release`: printing the result must not be cut off.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        press: Callable[[int], None],
        *,
        with_keyboard: bool,
    ) -> None:
        self._loop = loop
        self._press = press
        self._before: dict[int, Any] = {}  # how signals were handled
        self._last: dict[int, float] = {}  # when each of them came
        self._is_listening = False
        self._ours, self._theirs = socket.socketpair()
        self._keyboard = Keyboard(loop, lambda: self._count(0)) if with_keyboard else None
        self._stuck_at: float | None = None
        self.held: list[int] = []

    def __enter__(self) -> Presses:
        # Not `loop.add_signal_handler`: to remove that one is to be killed by what comes next.
        for end in (self._ours, self._theirs):
            end.setblocking(False)
        self._loop.add_reader(self._ours, self._drain)
        self._wakes = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        self._is_listening = True
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` wants it
                self._before[number] = signal.signal(number, self._hear)
        if self._keyboard is not None:
            self._before[signal.SIGQUIT] = signal.signal(signal.SIGQUIT, self._quit)
            self._before[signal.SIGCONT] = signal.signal(signal.SIGCONT, self._goes_on)
            self._keyboard.watch()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_listening = False
        self.restore()
        self._loop.remove_reader(self._ours)
        signal.set_wakeup_fd(self._wakes)

    def release(self) -> None:
        """Restore the signal handlers."""
        before, self._before = self._before, {}
        for number, handler in before.items():
            if number == signal.SIGINT:  # which was the loop's, and that is closed
                signal.signal(number, signal.default_int_handler)
            else:
                signal.signal(number, handler)
        for end in (self._ours, self._theirs):
            end.close()

    def hold_until_stuck(self) -> None:
        """Hold signals for a moment longer; then the first one ends us."""
        self._stuck_at = time.monotonic() + _STUCK

    def restore(self) -> None:
        """Restore the terminal."""
        if self._keyboard is not None:
            self._keyboard.restore()

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self._is_listening:
            self._loop.call_soon_threadsafe(self._count, number)
            return
        self.held.append(number)
        if self._stuck_at is not None and time.monotonic() > self._stuck_at:
            os._exit(128 + number)

    def _count(self, number: int) -> None:
        """Count a signal that comes twice as one press; 0 is Escape."""
        now = time.monotonic()
        is_new = now - self._last.get(number, -_ONE_PRESS) >= _ONE_PRESS
        self._last[number] = now
        if is_new:
            self._press(number or signal.SIGINT)

    def _quit(self, number: int, _frame: FrameType | None) -> None:
        """Restore the terminal, and die of the signal."""
        self.restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _goes_on(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_listening and self._keyboard is not None:
            self._loop.call_soon_threadsafe(self._keyboard.listen)

    def _drain(self) -> None:
        """Empty the socket that wakes the loop; the handlers have run."""
        try:
            while self._ours.recv(4096):
                continue
        except BlockingIOError:
            return


class Keyboard:
    """Reads keys as they are pressed, while this process is in the foreground of its terminal."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_escape: Callable[[], None], fd: int = 0
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._on_escape = on_escape
        self._before: list[Any] | None = None  # how the terminal was
        self._is_reading = False
        self._rest = b""  # an escape, and what may be the beginning of a key
        self._waiting: asyncio.TimerHandle | None = None  # whether more follows it
        self._watching: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Listen, and notice when we come to the foreground or leave it."""
        if not os.isatty(self._fd):
            return
        if self._is_reading != is_foreground(self._fd):
            self.listen()
        self._watching = self._loop.call_later(_WATCH, self.watch)

    def listen(self) -> None:
        """Begin to read, or go on after a stop; pause in the background."""
        if not is_foreground(self._fd):
            self._pause()
            return
        try:
            if self._before is None:
                self._before = termios.tcgetattr(self._fd)
                atexit.register(self.restore)
            # Not after what is still to be shown: a terminal that is held would hold us too.
            tty.setcbreak(self._fd, termios.TCSANOW)
            self._loop.add_reader(self._fd, self._read)
            self._is_reading = True
        except (termios.error, OSError):  # a terminal that went away
            self.restore()

    def restore(self) -> None:
        """Restore the terminal, from the background too, where writing to it would stop us."""
        if self._watching is not None:
            self._watching.cancel()
        if self._before is None:
            return
        before, self._before = self._before, None
        atexit.unregister(self.restore)
        if self._waiting is not None:
            self._waiting.cancel()
        self._pause()
        held = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            termios.tcsetattr(self._fd, termios.TCSANOW, before)
        except (termios.error, OSError):
            pass
        finally:
            signal.signal(signal.SIGTTOU, held)

    def _pause(self) -> None:
        if self._is_reading and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._is_reading = False

    def _read(self) -> None:
        try:
            keys = os.read(self._fd, 1024) if is_foreground(self._fd) else b""
        except OSError:
            keys = b""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if not keys:  # the terminal is gone, or another job's now
            self._pause()
            return
        escapes, self._rest = escapes_in(self._rest + keys)
        if escapes:
            self._on_escape()
        if self._rest:
            self._waiting = self._loop.call_later(_ALONE, self._no_more_keys)

    def _no_more_keys(self) -> None:
        rest, self._rest = self._rest, b""
        if rest == _ESCAPE:
            self._on_escape()


def escapes_in(keys: bytes) -> tuple[int, bytes]:
    """Return how often Escape was pressed for sure, and the rest, which may begin another key.

    Arrows and the like send an escape and more, and so does Alt with a letter.
    """
    escapes = at = 0
    while (at := keys.find(_ESCAPE, at)) >= 0:
        kind = keys[at + 1 : at + 2]
        if not kind:
            return escapes, keys[at:]
        if kind == _ESCAPE:
            # With Alt, an arrow sends two of them.
            escapes += keys[at + 2 : at + 3] not in {b"[", b"O"}
            at += 1
            continue
        end = at + 1
        if kind == b"O":
            end += 1
        elif kind == b"[":
            end += 1
            while end < len(keys) and keys[end] not in _FINAL_BYTES:
                end += 1
        if end >= len(keys):
            return escapes, keys[at:]
        at = end + 1
    return escapes, b""


def is_foreground(fd: int) -> bool:
    """Return True if our process group has the terminal; reading from another would stop us."""
    try:
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
