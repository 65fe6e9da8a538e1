"""The screen "Tasks": supervised agents, page by page."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import htpy as h

from notyet.core.text import bounded
from notyet.ledger.tasks import LISTS, Tasks
from notyet.status.task_words import json_of, state_of
from notyet.supervise.actions import name_of, remarks
from notyet.web.filters import expect_known
from notyet.web.layout import address, ago, chip, one_line, section, table, took
from notyet.web.site import Drawing, NotFoundError, NotShownError, Screen

if TYPE_CHECKING:
    from typing import Any

    from htpy import Element, Node

    from notyet.core.task import TaskView
    from notyet.ledger.tasks import TaskPage
    from notyet.web.site import Query, Site

_HEAD = ("task", "state", "outcome", "agent", "place", "begun", "took", "runs", "sent back")
_MOST_TEXT = 2_000  # characters of a text in JSON about many tasks
_NAMES = {"all": "all", "active": "at work", "undelivered": "undelivered"}
_EMPTY = {
    "all": 'No agent is supervised yet. Start one with: notyet with claude "..."',
    "active": "No supervised agent is at work.",
    "undelivered": "Every result was delivered.",
}
# What people read for a state, and the class of its colour.
_STATES = {
    "queued": ("queued", "mute"),
    "running": ("running", "live"),
    "settling": ("settling", "live"),
    "gating": ("being checked", "live"),
    "steering": ("continuing", "live"),
    "done": ("done", "mute"),
    "error": ("error", "bad"),
    "timeout": ("timeout", "bad"),
    "killed": ("killed", "bad"),
}


@dataclass(frozen=True)
class TasksShown:
    """A page of one of the lists."""

    show: str
    page: TaskPage


def load(site: Site, query: Query) -> TasksShown:
    """Read a page of the list that the address asks for."""
    expect_known(query, "show", "before")
    show = query["show"] or "all"
    if show not in LISTS:
        raise NotShownError(f"show is one of {', '.join(LISTS)}, not “{one_line(show[:60])}”.")
    page = Tasks(site.ledger).page(show, query["before"])
    if page is None:
        raise NotFoundError("The list went on before a task that is gone; begin at its newest one.")
    return TasksShown(show, page)


def plain(data: TasksShown) -> dict[str, Any]:
    """Return the tasks as `notyet tasks --json` has them, with long texts shortened."""
    tasks = [brief_json(view) for view in data.page.tasks]
    return {"show": data.show, "tasks": tasks, "older": data.page.older}


def brief_json(view: TaskView) -> dict[str, Any]:
    """Return a task as `notyet tasks --json` has it, with long texts shortened."""
    known = json_of(view)
    return known | {name: bounded(known[name], _MOST_TEXT) for name in ("prompt", "text")}


def draw(data: TasksShown, query: Query) -> Drawing:
    """Draw the lists to choose from, and a page of one."""
    is_first = not query["before"]
    rows = [_row(view) for view in data.page.tasks]
    show = {} if data.show == "all" else {"show": data.show}
    older = address("/tasks", show | {"before": data.page.older})
    links = [
        not is_first and h.a(href=address("/tasks", show))["newest"],
        data.page.older and h.a(href=older, rel="next")["older"],
    ]
    body = [
        _choice(data.show),
        section(
            "Tasks",
            table(
                _HEAD, rows, empty=_EMPTY[data.show], numbers=("begun", "took", "runs", "sent back")
            ),
            any(links) and h.nav(".pages", aria_label="Pages")[links],
            id="tasks",
            note=[
                "newest first · ",
                h.a(href=address("/tasks.json", {**query.values}))["JSON"],
            ],
        ),
    ]
    return Drawing("Tasks", body, live=("tasks",) if is_first else ())


def _choice(show: str) -> Element:
    return h.p(".spans")[
        (
            h.a(
                href=address("/tasks", {"show": "" if name == "all" else name}),
                aria_current="true" if name == show else None,
            )[words]
            for name, words in _NAMES.items()
        )
    ]


def _row(view: TaskView) -> tuple[Node, ...]:
    task = view.task
    ended = time.time() if view.ended_at is None else view.ended_at
    return (
        [task_link(view), (h.p(".warn")[one_line(words)] for words in remarks(view))],
        state_chip(view),
        view.outcome and chip(view.outcome, view.stop_reason or ""),
        one_line(view.agent or task.agent_type or "-"),
        h.span(title=one_line(task.cwd))[one_line(os.path.basename(task.cwd) or task.cwd)],
        [ago(view.created_at), " ago"],
        took(ended - view.created_at),
        str(view.generation),
        str(view.steers),
    )


def task_link(view: TaskView) -> Element:
    """Return a task's name, as a link to it."""
    return h.a(href=f"/tasks/{view.task.id}")[one_line(name_of(view)) or view.task.id]


def state_chip(view: TaskView) -> Element:
    """Return the state of a task as people read it."""
    state = state_of(view)
    words, colour = _STATES.get(state, (state, "warn"))
    return h.span(f".chip.{colour}")[words]


SCREEN = Screen("/tasks", load, draw, name="Tasks", plain=plain)
