"""What a command shows while it works: lines as things happen, and a live view below them.

The view is painted again and again at the bottom of a terminal, and wiped at the end. Not by
rich.live: that hides the cursor, which a process that is killed leaves hidden, keeps the width with
which it began, and raises in its thread when the terminal is gone.
"""

from __future__ import annotations

import codecs
import os
import queue
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import cell_len

from notyet.cli.gate_words import MARKS, how_it_ended, result
from notyet.cli.signals import around_suspension
from notyet.cli.streams import IN_ASCII
from notyet.cli.terminal import (
    Style,
    cut,
    is_terminal,
    one_line,
    shorten_middle,
    terminal_size,
    width,
)
from notyet.core.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self, TextIO

    from notyet.core.verdict import Report

    # Returns the lines of a view for so many columns and rows. Called in a thread of its own.
    Draw: TypeAlias = Callable[[int, int], Sequence[str]]

_FRAME = 0.125  # seconds between two paintings
_FIRST = 0.15  # seconds after which a view appears: what is quicker needs none
_MAX_WAITING = 1000  # lines that wait for their reader
_TIMEOUT = 1.0  # seconds for a slow reader
# A terminal cuts what is too long, rather than wrapping it: it may take a letter to be wider.
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"


class Writer:
    """Writes lines in a thread of its own, so that no caller waits, and paints a view below them.

    Not with O_NONBLOCK: the descriptor is shared with the shell that started us. `draw` returns the
    lines of the view; it is painted between `show` and `hide`, if the stream is a terminal that we
    are in the foreground of.
    """

    def __init__(self, stream: TextIO, draw: Draw | None = None) -> None:
        self._stream = stream
        self._fd = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self._draw = draw if is_terminal(stream) else None
        self._is_shown = False
        self._painted: Sequence[str] = ()  # the lines of the view
        self._columns = 0  # of the terminal, when it was painted
        # Not a Queue: a signal handler that puts an item while we do would wait for ever.
        self._items: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        self._dropped = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Write a line after the others; drop it if too many wait."""
        if self._items.qsize() >= _MAX_WAITING:
            self._dropped += 1
            return
        if self._dropped:
            lines = "line" if self._dropped == 1 else "lines"
            line = f"  ... {self._dropped} {lines} not shown: the reader was too slow\n{line}"
            self._dropped = 0
        self._items.put(line)

    def flush(self, timeout: float = _TIMEOUT) -> None:
        """Wait until all is written, but not longer than the timeout."""
        written = threading.Event()
        self._items.put(written)
        written.wait(timeout)

    def show(self) -> None:
        """Paint the view from now on."""
        if self._draw is not None:
            self._is_shown = True
            self._items.put(threading.Event())  # wakes the thread

    def hide(self) -> None:
        """Wipe the view, after the lines before it are written."""
        if self._draw is not None:
            self._is_shown = False
            self.flush()

    def close(self) -> None:
        """Wipe the view, and end the thread."""
        self._is_shown = False
        self._is_over = True
        self.flush()

    def _work(self) -> None:
        while not self._is_over or not self._items.empty():
            item: str | threading.Event | None = None
            with suppress(queue.Empty):
                item = self._items.get(timeout=_FRAME if self._is_shown else None)
            content = self._frame(item if isinstance(item, str) else None)
            encoded = content.encode(self._encoding, IN_ASCII)
            with suppress(OSError):  # the reader is gone
                while encoded:
                    encoded = encoded[os.write(self._fd, encoded) :]
            if isinstance(item, threading.Event):
                item.set()

    def _frame(self, line: str | None) -> str:
        """Return what puts a line, and the view as it is now, in the place of the last view."""
        columns, rows = terminal_size(self._stream)
        text = "" if line is None else f"{line}\n"
        lines: Sequence[str] = ()
        if self._draw is not None and self._is_shown and self._items.empty():
            lines = () if _is_background(self._fd) else self._draw(columns, rows)[: rows - 1]
        before, self._painted = self._painted, lines
        if not text and (list(before), self._columns) == (list(lines), columns):
            return ""  # a user may be selecting it with the mouse
        self._columns = columns
        if not before and not lines:
            return text
        # A terminal that was made narrower has wrapped the lines that are too long for it now.
        above = sum(max(1, -(-cell_len(clean(shown)) // columns)) for shown in before)
        to_top = f"\r\x1b[{above}A" if above else "\r"
        view = "".join(f"{shown}{_ERASE_LINE}\n" for shown in lines)
        erased = _ERASE_BELOW if text else ""  # else each line replaces one, without a flicker
        return f"{to_top}{erased}{text}{_NO_WRAP}{view}{_ERASE_BELOW}{_WRAP}"


@contextmanager
def live_view(stream: TextIO, draw: Draw) -> Iterator[Writer | None]:
    """Show a view while a block runs, also after a suspension; None if there is no terminal."""
    if not is_terminal(stream):
        yield None
        return
    writer = Writer(stream, draw)
    try:
        with around_suspension(writer.hide, writer.show):
            writer.show()
            yield writer
    finally:
        writer.close()


def _is_background(fd: int) -> bool:
    """Return True if another job of a shell has the terminal now."""
    try:
        return os.tcgetpgrp(fd) != os.getpgrp()
    except OSError:  # it is not the terminal that controls us
        return False


_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧"
_MAX_TAIL = 4096  # bytes of an output that are searched for its last line
_MIN_NAME, _MAX_NAME = 8, 40  # columns
_MIN_BAR, _MAX_BAR = 8, 30
_INDENT = "  "


@dataclass
class _Job:
    began: float | None = None  # None: it waits
    took: float | None = None  # None: it runs
    mark: str = ""
    colour: str = ""
    words: str = ""
    tail: bytes = b""  # of its output


class Jobs:
    """Jobs as lines: what runs, for how long and what it printed last, what came of others.

    It is a progress callback of the engine: gates are its jobs.
    """

    def __init__(self, style: Style, note: str = "", *, keeps_ended: bool = True) -> None:
        self._paint = style.paint
        self._note = note  # shown while there is no job
        self._keeps_ended = keeps_ended
        self._jobs: dict[str, _Job] = {}
        self._shown_from = time.monotonic() + _FIRST

    def planned(self, names: Sequence[str]) -> None:
        """Show jobs that wait."""
        self._jobs.update({name: _Job() for name in names})

    def __call__(self, gate: str, report: Report | None) -> None:
        """Show that a gate runs, or its report."""
        if report is None:
            self.begin(gate)
            return
        mark = MARKS.get(report.status, "-")
        self.end(gate, report.seconds, mark, result(report)[1], how_it_ended(report))

    def begin(self, name: str) -> None:
        """Show that a job runs, which may have printed something already."""
        self._jobs.setdefault(name, _Job()).began = time.monotonic()

    def printed(self, name: str, chunk: bytes) -> None:
        """Take what a job prints, of which the last line is shown."""
        job = self._jobs.setdefault(name, _Job())
        if len(chunk) < _MAX_TAIL:  # else nothing before it is needed
            chunk = job.tail + chunk
        job.tail = chunk[-_MAX_TAIL:]

    def end(
        self, name: str, seconds: float, mark: str = "", colour: str = "", words: str = ""
    ) -> None:
        """Show what came of a job."""
        self._jobs[name] = _Job(0.0, seconds, mark, colour, words)

    def clear(self) -> None:
        """Forget all jobs."""
        self._jobs = {}

    def draw(self, columns: int, rows: int, more: str = "") -> list[str]:
        """Return the lines of the jobs, and a last one that counts them and ends with `more`."""
        now = time.monotonic()
        if now < self._shown_from:
            return []
        jobs = dict(self._jobs)  # other threads add to it
        if not jobs:
            note = [(f"{spinner(now)} ", "cyan"), (one_line(self._note, columns), "dim")]
            return [fitted(note, columns - 1, self._paint)] if self._note else []
        ended = {name: job for name, job in jobs.items() if job.took is not None}
        running = {
            name: job for name, job in jobs.items() if job.began is not None and name not in ended
        }
        shown = {name: jobs[name] for name in jobs if self._keeps_ended or name not in ended}
        if len(shown) > rows - 2:
            order = (*running.items(), *jobs.items())
            shown = {name: job for name, job in dict(order).items() if name not in ended}
            shown = dict([*shown.items()][: max(0, rows - 2)])
        lines = self._rows(shown, now, columns)
        if len(jobs) > 1 or more:
            count = f"{len(ended)} of {len(jobs)} done"
            if len(running) > sum(name in shown for name in running):
                count += f", {len(running)} running"
            lines.append(self._counted(count, len(ended) / len(jobs), more, columns))
        return lines

    def _rows(self, jobs: dict[str, _Job], now: float, columns: int) -> list[str]:
        most = min(_MAX_NAME, max(_MIN_NAME, columns // 3))
        names = [shorten_middle(name, most) for name in jobs]
        wide = max(map(cell_len, names), default=0)
        lines = []
        for name, job in zip(names, jobs.values(), strict=True):
            seconds, mark, words = "", (job.mark, job.colour), (job.words, job.colour)
            if job.began is None:
                mark, words = ("·", "dim"), ("waiting", "dim")
            elif job.took is None:
                seconds = f"{now - job.began:.1f} s"
                mark, words = (spinner(now), "cyan"), (last_line(job.tail), "dim")
            else:
                seconds = f"{job.took:.1f} s"
            start = f" {name}{' ' * (wide - cell_len(name))}  {seconds:>6}"
            room = columns - 1 - cell_len(start) - 2 * len(_INDENT) - 1
            said = (f"{_INDENT}{one_line(words[0], room)}".rstrip(), words[1])
            cells = [(_INDENT, ""), mark, (start, ""), said]
            lines.append(fitted(cells, columns - 1, self._paint))
        return lines

    def _counted(self, count: str, part: float, more: str, columns: int) -> str:
        text = f"{_INDENT}{count}{' · ' if more else ''}{more}"
        room = min(_MAX_BAR, columns - 1 - cell_len(text) - len(_INDENT))
        full = round(part * room)
        bar = [(_INDENT, ""), ("━" * full, "green"), ("─" * (room - full), "dim")]
        cells = [(text, "dim"), *(bar if room >= _MIN_BAR else ())]
        return fitted(cells, columns - 1, self._paint)


def spinner(now: float) -> str:
    """Return a sign that changes as time goes by."""
    return _SPINNER[int(now / _FRAME) % len(_SPINNER)]


def fitted(cells: Sequence[tuple[str, str]], columns: int, paint: Callable[..., str]) -> str:
    """Return texts in their colours on one line of at most so many columns."""
    line = ""
    for text, colour in cells:
        kept = cut(text, columns)
        columns -= cell_len(kept)
        line += paint(kept, colour)
    return line


def last_line(tail: bytes) -> str:
    """Return the last line with a letter in it of the end of an output.

    A carriage return begins a line too, as progress bars do.
    """
    # A letter of which only the first bytes are there yet is left out.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(tail)
    return next((line for line in reversed(clean(text).split("\n")) if line.strip()), "")


def waiting(words: str) -> Progress:
    """Show the words on standard error while a block runs, if that is a terminal."""
    return Progress(words)


class Progress:
    """Shows jobs on standard error while a block runs; where that is not a terminal, nothing."""

    def __init__(
        self, note: str = "", *, stream: TextIO | None = None, keeps_ended: bool = True
    ) -> None:
        self._stream = stream or sys.stderr
        self.jobs = Jobs(Style(self._stream), note, keeps_ended=keeps_ended)
        self._writer: Writer | None = None
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        self._writer = self._exits.enter_context(live_view(self._stream, self.jobs.draw))
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Wipe the view while a block prints to the terminal, and show it again below."""
        if self._writer is None:
            yield
            return
        self._writer.hide()
        yield
        self._writer.show()


_MIN_ROOM = 16
MARGIN = 20  # columns before the text of an event


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
        return max(_MIN_ROOM, width(self._stream) - MARGIN - 1)


class QuietLines(Lines):
    """Lines for a program that must not wait for its reader, nor fail without one."""

    def __init__(self, stream: TextIO, draw: Draw | None = None) -> None:
        super().__init__(stream)
        self.writer: Writer | None = None
        with suppress(OSError, ValueError):  # a text in this process has no descriptor
            self.writer = Writer(stream, draw)

    def line(self, text: str = "") -> None:
        """Print a line, if it can be."""
        if self.writer is not None:
            self.writer.write(text)
            return
        with suppress(OSError, ValueError):
            super().line(text)

    def flush(self) -> None:
        """Give a slow reader a moment for the rest."""
        if self.writer is not None:
            self.writer.flush()
