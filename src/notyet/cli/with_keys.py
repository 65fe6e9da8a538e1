"""Ctrl-C, Escape and signals while an agent works: interrupt, then kill, then leave."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ESCAPE = b"\x1b"
_ALONE = 0.05  # seconds; keys such as the arrows send an escape, and more right after it


class Presses:
    """Calls `press` with the signal that came; Escape on a terminal counts as Ctrl-C.

    `with_keyboard` is False where stdin is not ours to read.
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
        self._signals: list[int] = []
        self._keyboard = Keyboard(loop, lambda: press(signal.SIGINT)) if with_keyboard else None

    def __enter__(self) -> Presses:
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` wants it
                self._loop.add_signal_handler(number, self._press, number)
                self._signals.append(number)
        if self._keyboard is not None:
            self._loop.add_signal_handler(signal.SIGCONT, self._keyboard.listen)
            self._signals.append(signal.SIGCONT)
            self._keyboard.listen()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()
        for number in self._signals:
            self._loop.remove_signal_handler(number)

    def restore(self) -> None:
        """Leave the terminal as it was found."""
        if self._keyboard is not None:
            self._keyboard.restore()


class Keyboard:
    """Reads keys as they are pressed, while this process is in the foreground of its terminal."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_escape: Callable[[], None], fd: int = 0
    ) -> None:
        self._fd = fd
        self._loop = loop
        self._on_escape = on_escape
        self._before: list[Any] | None = None  # how the terminal was
        self._waiting: asyncio.TimerHandle | None = None  # whether more follows an escape

    def listen(self) -> None:
        """Begin, or go on after the process was stopped, or be silent in the background."""
        if not is_foreground(self._fd):
            if self._before is not None:
                self._loop.remove_reader(self._fd)
            return
        import atexit
        import termios
        import tty

        try:
            if self._before is None:
                self._before = termios.tcgetattr(self._fd)
                atexit.register(self.restore)
            tty.setcbreak(self._fd, termios.TCSADRAIN)
            self._loop.add_reader(self._fd, self._read)
        except (termios.error, OSError):  # a terminal that went away
            self.restore()

    def restore(self) -> None:
        """Leave the terminal as it was found; from the background too, where that is a stop."""
        if self._before is None:
            return
        import atexit
        import termios

        before, self._before = self._before, None
        atexit.unregister(self.restore)
        if self._waiting is not None:
            self._waiting.cancel()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        held = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)
        except (termios.error, OSError):
            pass
        finally:
            signal.signal(signal.SIGTTOU, held)

    def _read(self) -> None:
        try:
            keys = os.read(self._fd, 1024) if is_foreground(self._fd) else b""
        except OSError:
            keys = b""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if keys == _ESCAPE:
            self._waiting = self._loop.call_later(_ALONE, self._on_escape)
        elif not keys:  # the terminal is gone, or somebody else's now
            self._loop.remove_reader(self._fd)


def is_foreground(fd: int) -> bool:
    """Tell whether keys that are pressed are meant for us: else to read them would stop us."""
    try:
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
