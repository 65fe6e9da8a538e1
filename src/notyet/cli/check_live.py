"""What `notyet check` shows on a terminal while gates are asked: a line for each."""

from __future__ import annotations

import os
import sys
import threading
import time

from notyet.cli.check_show import result
from notyet.cli.lines import in_a_line
from notyet.cli.style import Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self, TextIO

    from notyet.core.verdict import Report

_TICK = 0.1  # seconds between two pictures
_JOINED = 1.0  # seconds for the last one; a terminal that is held with Ctrl-S holds nobody up
_LONG = 1.0  # seconds after which somebody wonders
_LOOKING = "looking at the files ..."
_MOST_NAME = 40
_BESIDE = 24  # columns beside a name


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
        if not gates:  # those that apply are still being found, maybe on another machine
            is_long = time.monotonic() - self._began > _LONG
            return [f"  {Style(self._stream).paint(_LOOKING, 'dim')}"] if is_long else []
        columns, rows = _size(self._stream)
        names = list(gates)
        if len(names) > rows:  # what runs matters more than what is over
            names = [name for name, (_, report) in gates.items() if report is None]
        shown = names[:rows]
        width = min(max((len(in_a_line(name, _MOST_NAME)) for name in shown), default=0), columns)
        lines = [self._line(name, *gates[name], width) for name in shown]
        more = len(names) - len(shown)
        return [*lines, f"  and {more} more"] if more else lines

    def _line(self, name: str, since: float, report: Report | None, width: int) -> str:
        paint = Style(self._stream).paint
        shown = in_a_line(name, _MOST_NAME)[:width].ljust(width)
        if report is None:
            return f"  {shown}  {paint(f'{time.monotonic() - since:.0f} s', 'dim')}"
        word, colour = result(report)
        return f"  {shown}  {paint(word, colour)}  {paint(f'{report.seconds:.1f} s', 'dim')}"


def _size(stream: TextIO) -> tuple[int, int]:
    """Return how many columns there are for a name, and how many lines for gates."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns = rows = 0
    return max(8, (columns or 80) - _BESIDE), max(1, (rows or 24) - 2)
