"""Lines that are printed while things happen; a reader that is slow or gone stops nothing."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from notyet.cli.terminal import Style

if TYPE_CHECKING:
    from typing import TextIO

_MAX_WAITING = 1000  # lines that wait for their reader
_FLUSH_TIMEOUT = 1.0  # seconds
_PIPE_WIDTH = 160  # columns where there is no terminal
_MIN_ROOM = 24
_MARGIN = 18  # columns before the text


class Writer:
    """Writes lines to a file descriptor in a thread of its own, so that no caller waits.

    Not with O_NONBLOCK: the descriptor is shared with the shell that started us.
    """

    def __init__(self, stream: TextIO) -> None:
        self._fd = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._is_writing = self._is_gone = False
        self._thread: threading.Thread | None = None

    def write(self, line: str) -> None:
        """Write a line after the others; drop it if too many wait."""
        with self._changed:
            if self._is_gone:
                return
            if len(self._lines) >= _MAX_WAITING:
                self._dropped += 1
                return
            self._say_dropped()
            self._lines.append(line)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def flush(self, timeout: float = _FLUSH_TIMEOUT) -> None:
        """Wait until all is written, but not longer than the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lines and not self._is_writing, timeout)

    def _say_dropped(self) -> None:
        if self._dropped:
            lines = "line" if self._dropped == 1 else "lines"
            self._lines.append(f"  ... {self._dropped} {lines} not shown: the reader was too slow")
            self._dropped = 0

    def _work(self) -> None:
        while True:
            content = self._take()
            try:
                while content:
                    content = content[os.write(self._fd, content) :]
            except OSError:  # the reader is gone
                with self._changed:
                    self._is_gone, self._is_writing = True, False
                    self._lines.clear()
                    self._changed.notify_all()
                return

    def _take(self) -> bytes:
        """Wait for a line, and return its bytes."""
        with self._changed:
            self._is_writing = False
            if not self._lines:
                self._say_dropped()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._lines)
            self._is_writing = True
            return f"{self._lines.popleft()}\n".encode(self._encoding, "replace")


class Lines:
    """Prints lines with the seconds since the start. Raises OSError if the reader is gone."""

    def __init__(self, stream: TextIO) -> None:
        self.paint = Style(stream).paint
        self._stream = stream
        self._started = time.monotonic()

    def event(self, who: str, text: str) -> None:
        """Print one event; without `who` it goes on with the one before."""
        at = f"{self.seconds:5.1f}s" if who else " " * 6
        self.line(f"  {self.paint(at, 'dim')}  {who:<8}  {text}".rstrip())

    def line(self, text: str = "") -> None:
        """Print a line as it is."""
        print(text, file=self._stream, flush=True)

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self._started

    @property
    def room(self) -> int:
        """The columns for the text of an event."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return max(_MIN_ROOM, (columns or _PIPE_WIDTH) - _MARGIN - 1)


class QuietLines(Lines):
    """Lines for a program that must not wait for its reader, nor fail without one."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._writer: Writer | None = None
        try:
            self._writer = Writer(stream)
        except (OSError, ValueError):  # a text in this process, without a descriptor
            return

    def line(self, text: str = "") -> None:
        """Print a line, if it can be."""
        if self._writer is not None:
            self._writer.write(text)
            return
        try:
            super().line(text)
        except (OSError, ValueError):
            return

    def flush(self) -> None:
        """Give a slow reader a moment for the rest."""
        if self._writer is not None:
            self._writer.flush()
