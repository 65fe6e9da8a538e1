"""Tables, colours and progress for people; plain text where the output is not a terminal.

Colour: only on a terminal, never with NO_COLOR or TERM=dumb, always with FORCE_COLOR.
"""

from __future__ import annotations

import io
import os
import queue
import shlex
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import cell_len, chop_cells

from notyet.core.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self, TextIO

    from rich.console import Console, Group
    from rich.live import Live

Cell: TypeAlias = "str | tuple[str, str]"  # a text, or a text and its colour

OUTCOME_COLOURS = {
    "passed": "green",
    "blocked": "red",
    "halted": "red",
    "overridden": "red",
    "failed_open": "yellow",
    "capped": "yellow",
    "stuck": "yellow",
    "handed_back": "cyan",
    "observed": "cyan",
    "skipped": "dim",
    "asking": "dim",
}
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_PIPE_WIDTH = 120  # columns where no terminal says how many it has
_PIPE_ROWS = 25
_GAP = "  "
NAME_WIDTH = 10  # columns of a name on a page about one thing
_MAX_NAME = 40  # columns of a cell that is not the last one of its row
_MIN_LAST = 16  # columns that the last cell gets even on a narrow terminal
_MIN_NAME = 8  # columns that the others get
_PAGER = "less -FRX"  # as git starts it


class Style:
    """Colours for one stream."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.has_colours = _has_colours(stream)

    def paint(self, text: str, *names: str) -> str:
        """Return the text in these colours."""
        codes = ";".join(_CODES[name] for name in names if name)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.has_colours and codes and text else text


def _has_colours(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Return True if a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def width(stream: TextIO | None = None) -> int:
    """Return the columns of a stream, standard output by default."""
    return _size(stream or sys.stdout)[0]


def _size(stream: TextIO) -> tuple[int, int]:
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns = rows = 0
    return columns or _PIPE_WIDTH, rows or _PIPE_ROWS


def console(stream: TextIO | None = None) -> Console:
    """Return a rich console for a stream, standard output by default."""
    from rich.console import Console  # only where it is used: it doubles the start of a command

    stream = stream or sys.stdout
    columns, rows = _size(stream)
    return Console(
        file=stream,
        force_terminal=is_terminal(stream),
        color_system="standard" if _has_colours(stream) else None,
        width=columns,
        height=rows,
        markup=False,
        emoji=False,
        highlight=False,
    )


def one_line(text: str, columns: int) -> str:
    """Return a text on one line of at most so many columns, without control characters."""
    flat = " ".join(clean(text[: 20 * columns]).split())
    if cell_len(flat) <= columns and len(text) <= 20 * columns:
        return flat
    return cut(flat, columns - 4) + " ..."


def shorten_middle(text: str, columns: int) -> str:
    """Return a text on one line, with dots in its middle if it is too long.

    The end of a long name or path tells more than its middle.
    """
    flat = " ".join(clean(text[:2000]).split())
    if cell_len(flat) <= columns:
        return flat
    end = (columns - 3) // 2
    return cut(flat, columns - 3 - end) + "..." + cut(flat[::-1], end)[::-1]


def cut(text: str, columns: int) -> str:
    """Return the start of a text that fits into so many columns."""
    if cell_len(text) <= columns:
        return text
    return next(iter(chop_cells(text, columns)), "") if columns > 0 else ""


def outcome_cell(outcome: str) -> Cell:
    """Return an outcome in its colour."""
    return outcome or "-", OUTCOME_COLOURS.get(outcome, "")


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    style: Style | None = None,
    *,
    columns: int = 0,
    right: Sequence[str] = (),
    least: Sequence[int] = (),
    wrap: bool = False,
) -> list[str]:
    """Return the lines of a table, the head first.

    `right` names the columns that are aligned to the right, `least` gives their minimum widths
    (for a table that grows later). With `wrap` the last cell goes on in the next line, without it
    is cut. Not by rich.table, which takes 0.2 ms for a cell: `log -n all` has thousands.
    """
    style = style or Style(sys.stdout)
    last = len(head) - 1
    names = [[shorten_middle(_text(cell), _MAX_NAME) for cell in row[:last]] for row in rows]
    widths = [max(cell_len(row[at]) for row in (list(head), *names)) for at in range(last)]
    widths = [max(pair) for pair in zip(widths, [*least, *([0] * last)], strict=False)]
    space = (columns or width(style.stream)) - len(_GAP) * last
    least_last = min(
        _MIN_LAST, max(cell_len(_text(row[last])[:_MIN_LAST]) for row in (head, *rows))
    )
    while sum(widths) + least_last > space and max(widths, default=0) > _MIN_NAME:
        widths[widths.index(max(widths))] -= 1
    heads = [*(cut(name, wide) for name, wide in zip(head, widths, strict=False)), *head[last:]]
    names = [[*map(shorten_middle, row, widths)] for row in names]
    room = max(least_last, space - sum(widths))

    def line(cells: Sequence[str], colours: Sequence[str]) -> str:
        shown = []
        for at, (cell, colour) in enumerate(zip(cells, colours, strict=True)):
            blank = "" if at == last else " " * (widths[at] - cell_len(cell))
            painted = style.paint(cell, colour)
            shown.append(blank + painted if head[at] in right else painted + blank)
        return _GAP.join(shown).rstrip()

    lines = [line(heads, ["bold"] * len(head))]
    for row, cells in zip(rows, names, strict=True):
        colours = [_colour(cell) for cell in row]
        if not wrap:
            lines.append(line([*cells, one_line(_text(row[last]), room)], colours))
            continue
        first, *more = wrapped(_text(row[last]), room) or [""]
        lines.append(line([*cells, first], colours))
        lines += [line([*([""] * last), part], colours) for part in more]
    return lines


def table_or_list(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    style: Style | None = None,
    *,
    right: Sequence[str] = (),
) -> list[str]:
    """Return the lines of a table; on a terminal too narrow for it, a line for each cell."""
    style = style or Style(sys.stdout)
    columns = width(style.stream)
    texts = [head, *([one_line(_text(cell), _MIN_LAST) for cell in row] for row in rows)]
    needed = [max(cell_len(row[at]) for row in texts) for at in range(len(head))]
    least = sum(min(wide, _MIN_NAME) for wide in needed[:-1]) + needed[-1]
    if least + len(_GAP) * (len(head) - 1) <= columns:
        return table(head, rows, style, right=right)
    indent = max(map(len, head)) + 2 * len(_GAP)
    lines = []
    for title, *cells in rows:
        lines.append(style.paint(one_line(f"{head[0]} {_text(title)}", columns), "bold"))
        for name, cell in zip(head[1:], cells, strict=True):
            parts = wrapped(_text(cell), max(_MIN_LAST, columns - indent)) if _text(cell) else ()
            for at, part in enumerate(parts):
                label = f"{_GAP}{name if not at else '':<{indent - len(_GAP)}}"
                lines.append(style.paint(label, "dim") + style.paint(part, _colour(cell)))
    return lines


def wrapped(text: str, columns: int) -> list[str]:
    """Return a text in lines of at most so many columns, broken at blanks where it has some."""
    from rich.text import Text

    flat = Text(" ".join(clean(text).split()))
    return [part.plain.rstrip() for part in flat.wrap(console(), columns)]


def folded(text: str, indent: int) -> str:
    """Return a text that begins after `indent` columns of standard output.

    On a terminal it is wrapped, and goes on below its beginning.
    """
    room = width() - indent
    if not is_terminal(sys.stdout) or cell_len(text) <= room or room < _MIN_LAST:
        return text
    return ("\n" + " " * indent).join(wrapped(text, room))


@contextmanager
def paged() -> Iterator[None]:
    """Show what a block prints page by page, where a terminal has fewer rows than that.

    The variable PAGER names another program; empty, it prints all at once.
    """
    terminal = sys.stdout
    pager = shlex.split(os.environ.get("PAGER", _PAGER))
    if not is_terminal(terminal) or not pager:
        yield
        return
    with redirect_stdout(_OfTerminal(terminal)) as printed:
        yield
    text = printed.getvalue()
    if text.count("\n") >= _size(terminal)[1]:
        with suppress(OSError):  # there is no such program
            content = text.encode(terminal.encoding, terminal.errors or "replace")
            subprocess.run(pager, input=content, check=False)  # noqa: S603  # the user's own
            return
    terminal.write(text)


class _OfTerminal(io.StringIO):
    """What is printed for a terminal, with its colours and its width."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _colour(cell: Cell) -> str:
    return "" if isinstance(cell, str) else cell[1]


class Page:
    """Prints facts about one thing: names on the left, values on the right."""

    def __init__(self) -> None:
        self.style = Style(sys.stdout)
        self.paint = self.style.paint

    def fact(self, name: str, value: str, colour: str = "") -> None:
        """Print one line, or more on a narrow terminal."""
        name = self.paint(f"{name:<{NAME_WIDTH}}", "bold")
        shown = value if "\x1b" in value else folded(value, NAME_WIDTH)
        print(f"{name}{self.paint(shown, colour)}".rstrip())

    def text(self, name: str, text: str) -> None:
        """Print a text of many lines."""
        for line in clean(text).strip("\n").split("\n") if text.strip() else ():
            self.fact(name, line)
            name = ""


def waiting(words: str) -> Progress:
    """Show the words on standard error while a block runs, if that is a terminal."""
    return Progress(words)


class Progress:
    """A live view of jobs: what runs now and for how long, what came of others, how many are left.

    A thread of its own paints it on standard error; it is wiped at the end. Where that is not a
    terminal, nothing is shown.
    """

    def __init__(self, note: str = "", *, stream: TextIO | None = None, delay: float = 0.0) -> None:
        self.note = note  # shown while no job has begun, after `delay` seconds
        self._stream = stream or sys.stderr
        self._jobs: dict[str, tuple[float, str, Cell]] = {}  # its start, its time, its result
        self._shown_from = time.monotonic() + delay
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if is_terminal(self._stream):
            from rich.live import Live

            self._live = Live(
                console=console(self._stream),
                get_renderable=self._view,
                transient=True,
                refresh_per_second=8,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            with suppress(OSError, ValueError):  # the terminal is gone
                self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with suppress(OSError, ValueError):
                self._live.stop()

    def begin(self, job: str) -> None:
        """Show that a job runs."""
        self._jobs[job] = (time.monotonic(), "", "")

    def end(self, job: str, result: Cell, seconds: float) -> None:
        """Show what came of a job, and how long it took."""
        since, *_ = self._jobs.get(job, (time.monotonic(),))
        self._jobs[job] = (since, f"{seconds:.1f} s", result)

    def _view(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        jobs = dict(self._jobs)  # other threads add to it
        now = time.monotonic()
        columns, rows = _size(self._stream)
        if not jobs:
            note = one_line(self.note, columns - 1) if now >= self._shown_from else ""
            return Group(Text(note, "dim"))
        running = {job: known for job, known in jobs.items() if not known[1]}
        done = f"  {len(jobs) - len(running)} of {len(jobs)} done"
        shown = list((jobs if len(jobs) < rows - 1 else running).items())
        if len(shown) > rows - 2:
            done += f", {len(shown) - rows + 2} more running"
            shown = shown[: rows - 2]
        view = Table(box=None, padding=(0, 0, 0, 2), pad_edge=True, show_header=False)
        for _ in range(3):
            view.add_column(no_wrap=True, overflow="ellipsis")
        for job, (since, took, result) in shown:
            view.add_row(
                Text(shorten_middle(job, _MAX_NAME)),
                Text(took or f"{now - since:.0f} s", "dim"),
                Text(_text(result), _colour(result)) if took else Text("running", "dim"),
            )
        return Group(view, Text(done, "dim", no_wrap=True)) if len(jobs) > 1 else Group(view)


_MAX_WAITING = 1000  # lines that wait for their reader
_FLUSH_TIMEOUT = 1.0  # seconds
_MIN_ROOM = 24
_MARGIN = 18  # columns before the text


class Writer:
    """Writes lines to a file descriptor in a thread of its own, so that no caller waits.

    Not with O_NONBLOCK: the descriptor is shared with the shell that started us.
    """

    def __init__(self, stream: TextIO) -> None:
        self._fd = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self._lines: queue.Queue[str] = queue.Queue(_MAX_WAITING)
        self._dropped = 0
        threading.Thread(target=self._work, daemon=True).start()

    def write(self, line: str) -> None:
        """Write a line after the others; drop it if too many wait."""
        if self._dropped and not self._lines.full():
            lines = "line" if self._dropped == 1 else "lines"
            line = f"  ... {self._dropped} {lines} not shown: the reader was too slow\n{line}"
        try:
            self._lines.put_nowait(line)
            self._dropped = 0
        except queue.Full:
            self._dropped += 1

    def flush(self, timeout: float = _FLUSH_TIMEOUT) -> None:
        """Wait until all is written, but not longer than the timeout."""
        written = self._lines.all_tasks_done  # `Queue.join` has no timeout
        with written:
            written.wait_for(lambda: not self._lines.unfinished_tasks, timeout)

    def _work(self) -> None:
        while True:
            content = f"{self._lines.get()}\n".encode(self._encoding, "replace")
            with suppress(OSError):  # the reader is gone
                while content:
                    content = content[os.write(self._fd, content) :]
            self._lines.task_done()


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
        return max(_MIN_ROOM, width(self._stream) - _MARGIN - 1)


class QuietLines(Lines):
    """Lines for a program that must not wait for its reader, nor fail without one."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._writer: Writer | None = None
        with suppress(OSError, ValueError):  # a text in this process has no descriptor
            self._writer = Writer(stream)

    def line(self, text: str = "") -> None:
        """Print a line, if it can be."""
        if self._writer is not None:
            self._writer.write(text)
            return
        with suppress(OSError, ValueError):
            super().line(text)

    def flush(self) -> None:
        """Give a slow reader a moment for the rest."""
        if self._writer is not None:
            self._writer.flush()
