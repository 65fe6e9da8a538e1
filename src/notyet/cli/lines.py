"""Writing for readers that may have stopped reading: a thread of its own waits for them."""

from __future__ import annotations

import os
import threading
import time
from collections import deque

from notyet.cli.terminal import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_MOST = 1000  # lines that wait for their reader
_PATIENCE = 1.0  # seconds that the end waits for it


class Writer:
    """Writes lines to a file descriptor in the background; whoever calls it never waits.

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
        """Let a line be written, in its turn; where too many wait, it is only counted."""
        with self._changed:
            if self._is_gone:
                return
            if len(self._lines) >= _MOST:
                self._dropped += 1
                return
            if self._dropped:
                self._lines.append(_left_out(self._dropped))
                self._dropped = 0
            self._lines.append(line)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def flush(self, patience: float = _PATIENCE) -> None:
        """Wait until all is written, but not for long."""
        ends = time.monotonic() + patience
        with self._changed:
            while (self._lines or self._is_writing) and time.monotonic() < ends:
                self._changed.wait(ends - time.monotonic())

    def _work(self) -> None:
        while True:
            content = self._take()
            try:
                while content:
                    content = content[os.write(self._fd, content) :]
            except OSError:  # its reader is gone
                with self._changed:
                    self._is_gone, self._is_writing = True, False
                    self._lines.clear()
                    self._changed.notify_all()
                return

    def _take(self) -> bytes:
        """Wait for lines, and return them in bytes."""
        with self._changed:
            self._is_writing = False
            if not self._lines and self._dropped:
                self._lines.append(_left_out(self._dropped))
                self._dropped = 0
            self._changed.notify_all()
            while not self._lines:
                self._changed.wait()
            self._is_writing = True
            return f"{self._lines.popleft()}\n".encode(self._encoding, "replace")


def _left_out(count: int) -> str:
    return f"  ... {count} line{'' if count == 1 else 's'} not shown: nobody was reading"


_WIDE = 160  # columns where no terminal tells
_NARROW = 24
_MARGIN = 18  # columns before the text


class Lines:
    """Prints lines while things happen. A stream that nobody reads any more raises OSError."""

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
        """How long it has been."""
        return time.monotonic() - self._started

    @property
    def room(self) -> int:
        """How many characters of an event fit on one line."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):  # not a terminal
            columns = _WIDE
        return max(_NARROW, (columns or _WIDE) - _MARGIN - 1)


class QuietLines(Lines):
    """Lines that are not worth an error or a wait: a reader that is gone or asleep misses them."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._writer: Writer | None = None
        try:
            stream.fileno()
        except (OSError, ValueError):  # text that stays in this process
            return
        self._writer = Writer(stream)

    def line(self, text: str = "") -> None:
        """Print a line, if somebody still reads."""
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
