"""Colour on a terminal, plain text everywhere else."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO, TypeAlias

    Cell: TypeAlias = "str | tuple[str, str]"  # a text, or one with its colour

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Style:
    """Paints words for one stream, if that stream shows colours and nobody minds."""

    def __init__(self, stream: TextIO) -> None:
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        self._colours = stream.isatty() and not plain

    def paint(self, text: str, *names: str) -> str:
        """Return the text in these colours."""
        if not self._colours:
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"


def columns_of(text: str) -> int:
    """Return how many columns a text takes; it is on one line, and has no escapes."""
    return len(text) if text.isascii() else sum(_column(letter) for letter in text)


def padded(text: str, columns: int) -> str:
    """Return a text with blanks behind it, so that it takes so many columns."""
    return text + " " * (columns - columns_of(text))


def cut(text: str, most: int) -> str:
    """Return what of a text fits into so many columns."""
    if text.isascii():
        return text[: max(0, most)]
    for at, letter in enumerate(text):
        most -= _column(letter)
        if most < 0:
            return text[:at]
    return text


def _column(letter: str) -> int:
    # Not at the top: a stop needs none of this, and nor does who has only plain letters.
    from unicodedata import category, east_asian_width

    if category(letter) in {"Mn", "Me", "Cf"}:  # it stands on, or joins, the one before
        return 0
    return 2 if east_asian_width(letter) in {"W", "F"} else 1


_WIPED = "\r\x1b[K"


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show the words on standard error while the block runs, if somebody looks at it."""
    is_seen = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    if is_seen:
        words = cut(words, width(sys.stderr) - 1)  # of two rows only one would go
        print(Style(sys.stderr).paint(words, "dim"), end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if is_seen:
            print(_WIPED, end="", file=sys.stderr, flush=True)


_WIDE = 120  # columns where no terminal tells
_LEAST_LAST = 16
_MOST_OTHERS = 40  # columns of a cell that is not the last
_GAP = "  "
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


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    style: Style | None = None,
    *,
    columns: int = 0,
    right: Sequence[str] = (),
    least: Sequence[int] = (),
) -> list[str]:
    """Return the lines of a table, the head first; `right` names what is aligned to the right.

    `least` is how wide the columns are at least, for a table that goes on later.
    Cells may hold anything: escapes, newlines and what is too long never reach the terminal.
    """
    from notyet.cli.lines import in_a_line

    style = style or Style(sys.stdout)
    last = len(head) - 1
    flat = [[in_a_line(_text(cell), _MOST_OTHERS) for cell in row[:last]] for row in rows]
    widths = [max(columns_of(row[at]) for row in (list(head), *flat)) for at in range(last)]
    widths = [max(pair) for pair in zip(widths, [*least, *([0] * last)], strict=False)]
    room = max(_LEAST_LAST, (columns or width()) - sum(widths) - len(_GAP) * last)

    def line(cells: Sequence[str], colours: Sequence[str]) -> str:
        shown = []
        for at, (cell, colour) in enumerate(zip(cells, colours, strict=True)):
            blank = "" if at == last else " " * (widths[at] - columns_of(cell))
            painted = style.paint(cell, colour) if colour and cell else cell
            shown.append(blank + painted if head[at] in right else painted + blank)
        return _GAP.join(shown).rstrip()

    lines = [line(head, ["bold"] * len(head))]
    for row, cells in zip(rows, flat, strict=True):
        whole = [*cells, in_a_line(_text(row[last]), room)]
        lines.append(line(whole, [_colour(cell) for cell in row]))
    return lines


def outcome_cell(outcome: str) -> Cell:
    """Return an outcome in its colour."""
    return outcome or "-", OUTCOME_COLOURS.get(outcome, "")


def width(stream: TextIO | None = None) -> int:
    """Return how many columns a stream shows, standard output if none is given."""
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or _WIDE
    except (OSError, ValueError):
        return _WIDE


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _colour(cell: Cell) -> str:
    return "" if isinstance(cell, str) else cell[1]
