"""The table of `notyet tasks`."""

from __future__ import annotations

import os
import sys
import time

from notyet.cli.lines import in_a_line, readable
from notyet.cli.style import Style
from notyet.cli.supervising import name_of
from notyet.core.record import as_dict
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from notyet.core.task import TaskView

_HEAD = ("ID", "STATE", "OUTCOME", "AGENT", "RUNS", "AGE", "TASK")
_WIDE = 120
_LEAST_NAME = 16
_COLOURS = {"passed": "green", "failed_open": "yellow", "capped": "yellow", "stuck": "yellow"}
_SHORT = 10  # seconds, below which tenths matter
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def show_list(views: Sequence[TaskView], *, as_json: bool) -> int:
    """Print the tasks, the newest first."""
    if as_json:
        import json

        print(json.dumps(readable([plain(view) for view in views]), indent=2))
        return 0
    if not views:
        print('no tasks yet; start one with: notyet with claude "..."')
        return 0
    rows = [_HEAD, *(_row(view) for view in views)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD) - 1)]
    room = max(_LEAST_NAME, _columns() - sum(widths) - 2 * len(widths))
    style = Style(sys.stdout)
    for row, view in zip(rows, (None, *views), strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        line = "  ".join([*cells, in_a_line(row[-1], room)]).rstrip()
        if view is None:
            print(style.paint(line, "bold"))
            continue
        if view.outcome in _COLOURS:
            line = line.replace(view.outcome, style.paint(view.outcome, _COLOURS[view.outcome]), 1)
        print(line)
        for remark in remarks(view):
            print(style.paint(f"{' ' * widths[0]}  {remark}", "yellow"))
    return 0


def plain(view: TaskView) -> dict[str, Any]:
    """Return a task as JSON has it: what it was asked, beside what became of it."""
    known = as_dict(view)
    task = known.pop("task")
    return {**task, **known}


def remarks(view: TaskView) -> list[str]:
    """Say what a person may have to do something about."""
    if view.ended_at is None:
        if view.owner_alive:
            return []
        end = f"notyet tasks kill {view.task.id}"
        return [f"its process is gone; its program goes on with it when it runs again, or: {end}"]
    said = []
    if view.delivery == "suspended":
        error = in_a_line(view.delivery_error, 200)
        said.append(f"undelivered: {error}; try again with: notyet tasks retry {view.task.id}")
    elif view.delivery in {"pending", "leased"} and not view.owner_alive:
        said.append("undelivered: the program that takes its result is not running")
    return said


def age(seconds: float) -> str:
    """Return a time span in one number."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s" if seconds >= _SHORT else f"{max(0.0, seconds):.1f}s"


def _row(view: TaskView) -> tuple[str, ...]:
    return (
        view.task.id,
        state_of(view),
        view.outcome or "-",
        visible(view.agent or view.task.agent_type or "-"),
        str(view.generation),
        age(time.time() - view.created_at),
        name_of(view, 400),
    )


def state_of(view: TaskView) -> str:
    """Return what a task is doing, or how it ended."""
    return view.state if view.ended_at is None else (view.ending or "ended")


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _WIDE
    except (OSError, ValueError):
        return _WIDE
