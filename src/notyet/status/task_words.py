"""What people and programs read about a supervised task, in `notyet tasks` and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.core.record import as_dict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from notyet.core.task import Result, TaskView
    from notyet.ledger.tasks import Course

_STEER = ("source", "prompt", "phase", "error")
_MESSAGE = ("kind", "text", "state")


def state_of(view: TaskView) -> str:
    """Return the state of an active task, and how another one ended."""
    return view.state if view.ended_at is None else (view.ending or "ended")


def json_of(view: TaskView) -> dict[str, Any]:
    """Return a task as plain types: the fields of the task, and its state beside them."""
    known = as_dict(view)
    return {**known.pop("task"), **known}


def whole_json(
    view: TaskView, course: Course, children: Sequence[str], result: Result | None
) -> dict[str, Any]:
    """Return a task with its runs, steers, messages, children and result."""
    return json_of(view) | {
        "runs": [as_dict(run) | {"ended_at": course.ended_at[run.id]} for run in course.runs],
        "other_steers": [dict(zip(_STEER, steer, strict=True)) for steer in course.steers],
        "messages": [dict(zip(_MESSAGE, said, strict=True)) for said in course.messages],
        "children": list(children),
        "result": as_dict(result) if result is not None else None,
    }
