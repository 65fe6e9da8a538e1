"""Tables for people: aligned columns, the last one cut to what the terminal shows."""

from __future__ import annotations

import os
import sys

from notyet.cli.lines import in_a_line
from notyet.cli.style import Style
from notyet.cli.width import columns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO, TypeAlias

    Cell: TypeAlias = "str | tuple[str, str]"  # a text, or one with its colour

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
