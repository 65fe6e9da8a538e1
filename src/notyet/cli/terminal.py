"""Tables, pages and colours for people; plain text where the output is not a terminal.

Colour: only on a terminal, never with NO_COLOR or TERM=dumb, always with FORCE_COLOR.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import cell_len, chop_cells

from notyet.core.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

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
    return terminal_size(stream or sys.stdout)[0]


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Return the columns and rows of a stream."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns = rows = 0
    return columns or _PIPE_WIDTH, rows or _PIPE_ROWS


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
    from rich.console import Console  # only where it is used: it doubles the start of a command
    from rich.text import Text

    flat = Text(" ".join(clean(text).split()))
    return [part.plain.rstrip() for part in flat.wrap(Console(), columns)]


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
    if text.count("\n") >= terminal_size(terminal)[1]:
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


def counted(number: int, word: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
