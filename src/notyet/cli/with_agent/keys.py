"""Ctrl-C, Escape and signals while an agent works."""

from __future__ import annotations

import atexit
import os
import signal
import termios
import time
import tty
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, Self

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ESCAPE = b"\x1b"
_ALONE = 0.05  # seconds; keys such as the arrows send an escape, and more right after it
_ONE_PRESS = 0.3  # seconds; `timeout` signals us once directly, and once with our group
_WATCH = 1.0  # seconds; a shell does not say that it brings a job to the foreground


class Presses:
    """Calls `press` with the signal that came; Escape on a terminal counts as Ctrl-C.

    `with_keyboard` is False if stdin is not ours to read.
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
        self._keyboard = Keyboard(loop, lambda: self._count(0)) if with_keyboard else None

    def __enter__(self) -> Self:
        for number in _ENDING:
            handler = signal.getsignal(number)
            if handler != signal.SIG_IGN:  # as `nohup` wants it
                self._before[number] = handler
                self._loop.add_signal_handler(number, self._count, number)
        if self._keyboard is not None:
            self._before[signal.SIGQUIT] = signal.signal(signal.SIGQUIT, self._quit)
            self._keyboard.watch()
        return self

    def __exit__(self, *_: object) -> None:
        self.restore_terminal()
        for number, handler in self._before.items():
            self._loop.remove_signal_handler(number)
            signal.signal(number, handler)

    @property
    def has_keyboard(self) -> bool:
        """Whether a person can press a key."""
        return self._keyboard is not None and os.isatty(0)

    async def answer(self) -> bool:
        """Wait until a person presses y or n; return whether it was y."""
        assert self._keyboard is not None
        answered: asyncio.Future[bool] = self._loop.create_future()

        def read(keys: bytes) -> None:
            for key in keys.lower():
                if key in b"yn" and not answered.done():
                    answered.set_result(key == ord("y"))

        self._keyboard.on_keys = read
        try:
            return await answered
        finally:
            self._keyboard.on_keys = None

    def restore_terminal(self) -> None:
        """Give the terminal back as it was."""
        if self._keyboard is not None:
            self._keyboard.restore()

    def _count(self, number: int) -> None:
        """Count a signal that comes twice as one press; 0 is Escape."""
        now = time.monotonic()
        is_new = now - self._last.get(number, -_ONE_PRESS) >= _ONE_PRESS
        self._last[number] = now
        if is_new:
            self._press(number or signal.SIGINT)

    def _quit(self, number: int, _frame: FrameType | None) -> None:
        """Restore the terminal, and die of the signal."""
        self.restore_terminal()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


class Keyboard:
    """Reads keys as they are pressed, while this process is in the foreground of its terminal."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_escape: Callable[[], None], fd: int = 0
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._on_escape = on_escape
        self.on_keys: Callable[[bytes], None] | None = None  # gets the others
        self._before: list[Any] | None = None  # how the terminal was
        self._escape: asyncio.TimerHandle | None = None  # pressed, unless more follows it
        self._watching: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Listen now, and again every second: a shell changes the terminal while we are stopped."""
        if os.isatty(self._fd):
            self.listen()
            self._watching = self._loop.call_later(_WATCH, self.watch)

    def listen(self) -> None:
        """Read keys in the foreground; pause in the background."""
        if not is_foreground(self._fd):
            self._pause()
            return
        try:
            if self._before is None:
                self._before = termios.tcgetattr(self._fd)
                atexit.register(self.restore)
            # At once: to wait for the output of a terminal that is held would hold us too.
            tty.setcbreak(self._fd, termios.TCSANOW)
            self._loop.add_reader(self._fd, self._read)
        except (termios.error, OSError):  # a terminal that went away
            self.restore()

    def restore(self) -> None:
        """Restore the terminal, from the background too, where writing to it would stop us."""
        for timer in (self._watching, self._escape):
            if timer is not None:
                timer.cancel()
        if self._before is None:
            return
        before, self._before = self._before, None
        atexit.unregister(self.restore)
        self._pause()
        held = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(termios.error, OSError):
            termios.tcsetattr(self._fd, termios.TCSANOW, before)
        signal.signal(signal.SIGTTOU, held)

    def _pause(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)

    def _read(self) -> None:
        try:
            keys = os.read(self._fd, 1024) if is_foreground(self._fd) else b""
        except OSError:
            keys = b""
        if self._escape is not None:
            self._escape.cancel()
        if keys.endswith(_ESCAPE):
            self._escape = self._loop.call_later(_ALONE, self._on_escape)
        elif not keys:  # the terminal is gone, or another job's now
            self._pause()
        elif self.on_keys is not None:
            self.on_keys(keys)


def is_foreground(fd: int) -> bool:
    """Return True if our process group has the terminal; reading from another would stop us."""
    try:
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
