"""Tasks as `notyet tasks` shows them: a list, and a page about one."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

from notyet.cli.moments import age
from notyet.cli.streams import readable
from notyet.cli.supervising import name_of, resume_command
from notyet.cli.terminal import Style, one_line, outcome_cell, table
from notyet.config.load import NO_LOOK, load
from notyet.core.record import as_dict
from notyet.core.remote import is_remote
from notyet.core.text import bounded, clean, visible
from notyet.ledger.outbox import Outbox
from notyet.ledger.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from notyet.core.task import Result, Run, Task, TaskView
    from notyet.ledger.stops import Ledger
    from notyet.ledger.tasks import Course

_HEAD = ("ID", "STATE", "OUTCOME", "AGENT", "RUNS", "AGE", "TASK")
_SOURCES = {
    "start": "task",
    "gate": "sent back",
    "manual": "steered",
    "user": "message",
    "children": "report",
}
_STEER = ("source", "prompt", "phase", "error")
_MESSAGE = ("kind", "text", "state")
_PROMPT = 100  # columns of a prompt
_MAX_TEXT = 20_000


def show_list(views: Sequence[TaskView], *, as_json: bool) -> int:
    """Print the tasks, the newest first."""
    if as_json:
        print(json.dumps(readable([_plain(view) for view in views]), indent=2))
        return 0
    if not views:
        print('no tasks yet; start one with: notyet with claude "..."')
        return 0
    rows = [
        (
            view.task.id,
            _state(view),
            outcome_cell(view.outcome or ""),
            visible(view.agent or view.task.agent_type or "-"),
            str(view.generation),
            age(time.time() - view.created_at),
            name_of(view, 400),
        )
        for view in views
    ]
    style = Style(sys.stdout)
    head, *lines = table(_HEAD, rows, style)
    margin = " " * max(len(view.task.id) for view in views)
    print(head)
    for line, view in zip(lines, views, strict=True):
        print(line)
        for remark in _remarks(view):
            print(style.paint(f"{margin}  {remark}", "yellow"))
    return 0


def _plain(view: TaskView) -> dict[str, Any]:
    """Return a task as plain types: the fields of the task, and its state beside them."""
    known = as_dict(view)
    return {**known.pop("task"), **known}


def _state(view: TaskView) -> str:
    return view.state if view.ended_at is None else (view.ending or "ended")


def _remarks(view: TaskView) -> list[str]:
    """Return what a person may have to do something about."""
    task = view.task.id
    if view.ended_at is None:
        if view.owner_alive:
            return []
        end = f"notyet tasks kill {task}"
        return [f"its process is gone; its program goes on with it when it runs again, or: {end}"]
    if view.delivery == "suspended":
        error = one_line(view.delivery_error, 200)
        return [f"undelivered: {error}; try again with: notyet tasks retry {task}"]
    if view.delivery in {"pending", "leased"} and not view.owner_alive:
        return ["undelivered: the program that takes its result is not running"]
    return []


def show_task(ledger: Ledger, task: str, *, as_json: bool) -> int:
    """Print one task with its runs, its messages, its result and the command that resumes it."""
    tasks = Tasks(ledger)
    (view,) = tasks.views(task)
    seen = tasks.look(task)
    course = tasks.course(task)
    children = [child.task.id for child in tasks.below(task)]
    known = Outbox(ledger.file).read(task)
    result = known[0] if known is not None else None
    ref = seen.ref if seen else {}
    again = resume_command(ref, view.session_id, view.task.cwd, workspace=_workspace(view.task))
    if as_json:
        whole = _plain(view) | {
            "runs": [as_dict(run) | {"ended_at": course.ended_at[run.id]} for run in course.runs],
            "other_steers": [dict(zip(_STEER, steer, strict=True)) for steer in course.steers],
            "messages": [dict(zip(_MESSAGE, said, strict=True)) for said in course.messages],
            "children": children,
            "result": as_dict(result) if result is not None else None,
            "resume": again,
        }
        print(json.dumps(readable(whole), indent=2))
        return 0
    page = _Page()
    page.facts(view, children)
    page.course(course)
    if result is not None:
        page.result(view, result)
    # A prompt that was refused began no conversation.
    arrived = any(run.turn is None or run.turn.turns for run in course.runs)
    if again and view.ended_at is not None and arrived and ref.get("begun") is not False:
        page.fact("go on", again)
    return 0


def _workspace(task: Task) -> str:
    """Return the workspace that has to be named again: one that no file names."""
    if not is_remote(task.workspace):
        return task.workspace
    named = load(task.cwd, "notyet", os.environ, patience=NO_LOOK).workspace
    return "" if named == task.workspace else task.workspace


class _Page:
    """Prints one task: names on the left, values on the right."""

    def __init__(self) -> None:
        self._paint = Style(sys.stdout).paint

    def fact(self, name: str, value: str) -> None:
        """Print one line."""
        print(f"{self._paint(f'{name:<10}', 'bold')}{value}")

    def text(self, name: str, text: str) -> None:
        """Print a text of many lines."""
        for line in bounded(clean(text), _MAX_TEXT).strip().splitlines():
            self.fact(name, line)
            name = ""

    def facts(self, view: TaskView, children: list[str]) -> None:
        """Print what the task is, and its state."""
        task = view.task
        self.fact("task", f"{task.id}{f'  {visible(task.label)}' if task.label else ''}")
        outcome = f", {view.outcome}" if view.outcome else ""
        since = f"begun {age(time.time() - view.created_at)} ago"
        if view.ended_at is not None:
            since += f", took {age(view.ended_at - view.created_at)}"
        self.fact("state", f"{_state(view)}{outcome} ({since})")
        for remark in _remarks(view):
            self.fact("", self._paint(remark, "yellow"))
        agent = visible(view.agent or "-") + (f", a {task.agent_type}" if task.agent_type else "")
        self.fact("agent", f"{agent} in {visible(task.cwd)}")
        if is_remote(task.workspace):
            self.fact("workspace", visible(task.workspace))
        self.fact("session", visible(view.session_id) or "-")
        if view.ended_at is None:
            self.fact("process", f"{view.owner_pid} ({'alive' if view.owner_alive else 'gone'})")
        if task.parent or task.parent_session:
            self.fact("parent", task.parent or f"session {visible(task.parent_session)}")
        if children:
            self.fact("children", ", ".join(children))
        self.fact("steers", f"{view.steers} by gates")
        self.text("prompt", task.prompt)

    def course(self, course: Course) -> None:
        """Print each run, then the steers and messages that led to none."""
        for run in course.runs:
            self.fact(f"run {run.generation}", _run(run, course.ended_at[run.id]))
        for source, prompt, phase, error in course.steers:
            why = f" ({error})" if error else ""
            self.fact("steer", f"{phase}{why}, {source}: {one_line(prompt, _PROMPT)}")
        for kind, text, state in course.messages:
            self.fact("message", f"{state}, of a {kind}: {one_line(text, _PROMPT)}")

    def result(self, view: TaskView, result: Result) -> None:
        """Print the result, and whether it was delivered."""
        delivery = view.delivery + (f" after {view.attempts} tries" if view.attempts > 1 else "")
        self.fact("result", delivery or "-")
        if result.error:
            self.fact("error", self._paint(one_line(result.error, 1000), "red"))
        if result.stop_reason:
            self.fact("why", one_line(result.stop_reason, 1000))
        for text in result.unsent:
            self.text("unsent", text)
        self.text("rejected", result.rejected or "")
        self.text("answer", result.text)


def _run(run: Run, ended_at: float | None) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(run.started_at))
    took = "" if ended_at is None else f", {age(ended_at - run.started_at)}"
    said = "" if run.source == "start" else f": {one_line(run.prompt, _PROMPT)}"
    return f"{at}{took}  {run.ending or run.state:<11}  {_SOURCES[run.source]}{said}"
