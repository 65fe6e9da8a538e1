"""The table of `notyet tasks`."""

from __future__ import annotations

import sys
import time

from notyet.cli.lines import in_a_line, readable
from notyet.cli.moments import age
from notyet.cli.style import Style
from notyet.cli.supervising import name_of
from notyet.cli.table import outcome_cell, table
from notyet.core.record import as_dict
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from notyet.cli.table import Cell
    from notyet.core.task import TaskView

_HEAD = ("ID", "STATE", "OUTCOME", "AGENT", "RUNS", "AGE", "TASK")


def show_list(views: Sequence[TaskView], *, as_json: bool) -> int:
    """Print the tasks, the newest first."""
    if as_json:
        import json

        print(json.dumps(readable([plain(view) for view in views]), indent=2))
        return 0
    if not views:
        print('no tasks yet; start one with: notyet with claude "..."')
        return 0
    style = Style(sys.stdout)
    head, *lines = table(_HEAD, [_row(view) for view in views], style)
    margin = " " * max(len(view.task.id) for view in views)
    print(head)
    for line, view in zip(lines, views, strict=True):
        print(line)
        for remark in remarks(view):
            print(style.paint(f"{margin}  {remark}", "yellow"))
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


def _row(view: TaskView) -> tuple[Cell, ...]:
    return (
        view.task.id,
        state_of(view),
        outcome_cell(view.outcome or ""),
        visible(view.agent or view.task.agent_type or "-"),
        str(view.generation),
        age(time.time() - view.created_at),
        name_of(view, 400),
    )


def state_of(view: TaskView) -> str:
    """Return what a task is doing, or how it ended."""
    return view.state if view.ended_at is None else (view.ending or "ended")
