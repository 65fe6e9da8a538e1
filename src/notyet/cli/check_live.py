"""What `notyet check` shows on a terminal while gates are asked: a line for each."""

from __future__ import annotations

import os
import sys
import threading
import time

from notyet.cli.check_show import result
from notyet.cli.lines import in_a_line
from notyet.cli.style import Style
from notyet.cli.width import columns_of, cut, padded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self, TextIO

    from notyet.core.verdict import Report

_TICK = 0.1  # seconds between two pictures
_JOINED = 1.0  # seconds for the last one; a terminal that is held with Ctrl-S holds nobody up
_LONG = 1.0  # seconds after which somebody wonders
_LOOKING = "looking at the files ..."
_MOST_NAME = 40  # columns
_LEAST_NAME = 4
_BESIDE = 23  # columns beside a name
_GAP = "  "


class Live:
    """The gates that are being asked, with their seconds; gone when they have answered.

    Whoever asks only says so, in `hear`. A thread of its own paints, so that the seconds go on
    and a slow terminal keeps nobody waiting.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._gates: dict[str, tuple[float, Report | None]] = {}  # since when, and what it said
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._shown: list[str] = []
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._stream.isatty() and os.environ.get("TERM") != "dumb":
            self._thread = threading.Thread(target=self._paint, name="notyet-live", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_JOINED)

    def hear(self, gate: str, report: Report | None) -> None:
        """Take note that a gate is asked, or has answered."""
        since, _ = self._gates.get(gate, (time.monotonic(), None))
        self._gates[gate] = (since, report)

    def _paint(self) -> None:
        try:
            while not self._ended.wait(_TICK):
                self._draw(self._lines())
            self._draw([])
        except (OSError, ValueError):  # nobody looks any more
            return

    def _draw(self, lines: list[str]) -> None:
        """Put these lines in the place of those before."""
        if lines == self._shown:
            return
        back = f"\x1b[{len(self._shown)}A\r\x1b[J" if self._shown else ""
        self._stream.write(back + "".join(f"{line}\n" for line in lines))
        self._stream.flush()
        self._shown = lines

    def _lines(self) -> list[str]:
        gates = dict(self._gates)  # others add to it meanwhile
        columns, rows = _size(self._stream)
        if not gates:  # those that apply are still being found, maybe on another machine
            is_long = time.monotonic() - self._began > _LONG
            return [self._row([(_LOOKING, "dim")], columns)] if is_long else []
        names = list(gates)
        if len(names) > rows:  # what runs matters more than what is over
            names = [name for name, (_, report) in gates.items() if report is None]
        shown = names[:rows]
        most = max(_LEAST_NAME, min(_MOST_NAME, columns - _BESIDE))
        words = [cut(in_a_line(name, _MOST_NAME), most) for name in shown]
        width = max(map(columns_of, words), default=0)
        lines = [
            self._row([(padded(word, width), ""), *_state(*gates[name])], columns)
            for name, word in zip(shown, words, strict=True)
        ]
        more = len(names) - len(shown)
        return [*lines, self._row([(f"and {more} more", "")], columns)] if more else lines

    def _row(self, parts: list[tuple[str, str]], columns: int) -> str:
        """Return words, each in its colour, as one row: a line that is broken is never wiped."""
        paint = Style(self._stream).paint
        row = ""
        for words, colour in parts:
            columns -= len(_GAP)
            shown = cut(words, columns)
            columns -= columns_of(shown)
            row += _GAP + (paint(shown, colour) if colour and shown else shown)
        return row.rstrip()


def _state(since: float, report: Report | None) -> list[tuple[str, str]]:
    """Return how long a gate is being asked, or what it said and how long that took."""
    if report is None:
        return [(f"{time.monotonic() - since:.0f} s", "dim")]
    return [result(report), (f"{report.seconds:.1f} s", "dim")]


def _size(stream: TextIO) -> tuple[int, int]:
    """Return how many columns there are for a line, and how many lines for gates."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns = rows = 0
    return (columns or 80) - 1, max(1, (rows or 24) - 2)
