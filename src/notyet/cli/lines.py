"""Lines for people: when it happened, who it is about, and what."""

from __future__ import annotations

import os
import time

from notyet.cli.style import Style
from notyet.core.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_WIDE = 160  # columns where no terminal tells
_NARROW = 40
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
        return max(_NARROW, columns - _MARGIN - 1)


class QuietLines(Lines):
    """Lines that are not worth an error: when their reader is gone, nothing more is printed."""

    _is_gone = False

    def line(self, text: str = "") -> None:
        """Print a line, if somebody still reads."""
        if not self._is_gone:
            try:
                super().line(text)
            except (OSError, ValueError):
                self._is_gone = True
                give_up(self._stream)


def give_up(stream: TextIO) -> None:
    """Let what is still written to a stream go nowhere: Python tries once more when it ends."""
    try:
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        return


def in_a_line(text: str, most: int) -> str:
    """Return a text of many lines as one that fits: what is left out is shown as dots."""
    flat = " ".join(clean(text[: 20 * most]).split())
    return flat if len(flat) <= most and len(text) <= 20 * most else flat[: most - 4] + " ..."
