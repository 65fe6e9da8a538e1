"""`notyet tasks show`: all that is known of one task."""

from __future__ import annotations

import os
import sys
import time

from notyet.cli.moments import age
from notyet.cli.streams import readable
from notyet.cli.supervising import resume_command
from notyet.cli.tasks import plain, remarks, state_of
from notyet.cli.terminal import Style, one_line
from notyet.core.record import as_dict
from notyet.core.remote import is_remote
from notyet.core.text import bounded, clean, visible
from notyet.ledger.outbox import Outbox
from notyet.ledger.tasks import Tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.task import Result, Run, Task, TaskView
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.tasks import Course

_SOURCES = {
    "start": "task",
    "gate": "sent back",
    "manual": "steered",
    "user": "message",
    "children": "report",
}
_STEER = ("source", "prompt", "phase", "error")
_MESSAGE = ("kind", "text", "state")
_LONGEST = 100
_LONGEST_ANSWER = 20_000


def show_one(ledger: Ledger, task: str, *, as_json: bool) -> int:
    """Print one task with its runs, its messages, its result and how to go on."""
    tasks = Tasks(ledger)
    (view,) = tasks.views(task)
    seen = tasks.look(task)
    course = tasks.course(task)
    children = [child.task.id for child in tasks.below(task)]
    known = Outbox(ledger.file).read(task)
    result = known[0] if known is not None else None
    ref = seen.ref if seen else {}
    again = resume_command(ref, view.session_id, view.task.cwd, workspace=_to_say(view.task))
    if as_json:
        import json

        print(json.dumps(readable(_plain(view, course, children, result, again)), indent=2))
        return 0
    page = _Page()
    page.facts(view, children)
    page.runs(course)
    page.rest(course)
    page.result(view, result)
    if again and view.ended_at is not None and _has_begun(course, seen.ref if seen else {}):
        page.fact("go on", again)
    return 0


def _to_say(task: Task) -> str:
    """Return the workspace that must be named again; what a file names goes without saying."""
    if not is_remote(task.workspace):
        return task.workspace
    from notyet.config.load import NO_LOOK, load

    named = load(task.cwd, "notyet", os.environ, patience=NO_LOOK).workspace
    return "" if named == task.workspace else task.workspace


def _has_begun(course: Course, ref: Mapping[str, Any]) -> bool:
    """Tell whether there is a conversation: a prompt that was refused began none."""
    arrived = any(run.turn is None or run.turn.turns for run in course.runs)
    return arrived and ref.get("begun") is not False


def _plain(
    view: TaskView, course: Course, children: list[str], result: Result | None, again: str
) -> dict[str, Any]:
    return plain(view) | {
        "runs": [as_dict(run) | {"ended_at": course.ended_at[run.id]} for run in course.runs],
        "other_steers": [dict(zip(_STEER, steer, strict=True)) for steer in course.steers],
        "messages": [dict(zip(_MESSAGE, said, strict=True)) for said in course.messages],
        "children": children,
        "result": as_dict(result) if result is not None else None,
        "resume": again,
    }


class _Page:
    """Prints names on the left and what they are on the right."""

    def __init__(self) -> None:
        self._paint = Style(sys.stdout).paint

    def fact(self, name: str, value: str) -> None:
        """Print one line."""
        print(f"{self._paint(f'{name:<10}', 'bold')}{value}")

    def facts(self, view: TaskView, children: list[str]) -> None:
        """Print what the task is, and how it is."""
        task = view.task
        self.fact("task", f"{task.id}{f'  {visible(task.label)}' if task.label else ''}")
        outcome = f", {view.outcome}" if view.outcome else ""
        since = f"begun {age(time.time() - view.created_at)} ago"
        if view.ended_at is not None:
            since += f", took {age(view.ended_at - view.created_at)}"
        self.fact("state", f"{state_of(view)}{outcome} ({since})")
        for remark in remarks(view):
            self.fact("", self._paint(remark, "yellow"))
        agent = visible(view.agent or "-") + (f", a {task.agent_type}" if task.agent_type else "")
        self.fact("agent", f"{agent} in {visible(task.cwd)}")
        if is_remote(task.workspace):
            self.fact("workspace", visible(task.workspace))
        self.fact("session", visible(view.session_id) or "-")
        if view.ended_at is None:
            alive = "alive" if view.owner_alive else "gone"
            self.fact("process", f"{view.owner_pid} ({alive})")
        if task.parent or task.parent_session:
            self.fact("parent", task.parent or f"session {visible(task.parent_session)}")
        if children:
            self.fact("children", ", ".join(children))
        self.fact("steers", f"{view.steers} by gates")
        self._text("prompt", task.prompt)

    def runs(self, course: Course) -> None:
        """Print each prompt that the agent had, and how its run ended."""
        for run in course.runs:
            self.fact(f"run {run.generation}", self._run(run, course.ended_at[run.id]))

    def _run(self, run: Run, ended_at: float | None) -> str:
        at = time.strftime("%H:%M:%S", time.localtime(run.started_at))
        took = "" if ended_at is None else f", {age(ended_at - run.started_at)}"
        how = run.ending or run.state
        said = "" if run.source == "start" else f": {one_line(run.prompt, _LONGEST)}"
        return f"{at}{took}  {how:<11}  {_SOURCES[run.source]}{said}"

    def rest(self, course: Course) -> None:
        """Print the steers and messages that no run came of."""
        for source, prompt, phase, error in course.steers:
            why = f" ({error})" if error else ""
            self.fact("steer", f"{phase}{why}, {source}: {one_line(prompt, _LONGEST)}")
        for kind, text, state in course.messages:
            self.fact("message", f"{state}, of a {kind}: {one_line(text, _LONGEST)}")

    def result(self, view: TaskView, result: Result | None) -> None:
        """Print what came of it."""
        if result is None:
            return
        delivery = view.delivery + (f" after {view.attempts} tries" if view.attempts > 1 else "")
        self.fact("result", delivery or "-")
        if result.error:
            self.fact("error", self._paint(one_line(result.error, 1000), "red"))
        if result.stop_reason:
            self.fact("why", one_line(result.stop_reason, 1000))
        for text in result.unsent:
            self._text("unsent", text)
        if result.rejected:
            self._text("rejected", result.rejected)
        if result.text.strip():
            self._text("answer", result.text)

    def _text(self, name: str, text: str) -> None:
        for line in bounded(clean(text), _LONGEST_ANSWER).strip().splitlines():
            self.fact(name, line)
            name = ""
