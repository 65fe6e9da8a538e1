"""The screen "Task": a supervised agent, its conversation, and what people can do with it."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import htpy as h

from notyet.core.task import SUPERVISED_HOST, Figures, total_of
from notyet.core.text import shortened
from notyet.errors import Refused
from notyet.ledger.ledger import Ledger
from notyet.ledger.outbox import Outbox
from notyet.ledger.past_stops import StopFilter, session_totals
from notyet.ledger.stop_search import search
from notyet.ledger.tasks import Tasks
from notyet.status.task_words import whole_json
from notyet.supervise import actions
from notyet.times import exactly
from notyet.web.conversation import checked, entry
from notyet.web.filters import expect_known
from notyet.web.forms import MOST_TEXT, form
from notyet.web.layout import (
    address,
    ago,
    chip,
    facts,
    long_text,
    one_line,
    section,
    table,
    times,
    took,
)
from notyet.web.session import from_newest
from notyet.web.site import Drawing, NotFoundError, Notice, NotSentError, Screen
from notyet.web.tasks import state_chip, task_link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from htpy import Element, Node

    from notyet.core.task import Result, Run, TaskView
    from notyet.ledger.past_stops import PastStop
    from notyet.ledger.tasks import Act, Course
    from notyet.web.site import Query, Site

_MOST_RUNS = 50  # with their answers; `notyet tasks show` prints all
_MOST_CHILDREN = 100
_MOST_STOPS = 100
_MOST_ACTS = 10
_LONGEST = 2_000
_MOST_ERROR = 4_000
_ASKED = {
    "start": "task",
    "gate": "a gate sent it back",
    "manual": "steered by hand",
    "user": "message of its user",
    "children": "results of its subagents",
}
_ARRIVED = frozenset({"sent"})  # in the prompt of a run
_OPEN = frozenset({"pending", "leased", "suspended"})
# What each action does, for people who are about to take it.
_SAY = "The agent gets your message when its turn ends; it goes before what gates say."
_STEER = "The agent's turn ends now, and it continues with your prompt."
_INTERRUPT = (
    "The agent and its subagents are stopped as by Escape, and the task ends. No gate runs."
)
_KILL = "The agent and its subagents are ended, and the task counts as killed. No gate runs."
_RETRY = "The result is delivered again, to the program or the agent that waits for it."
_DISMISS = "The result stays here to be read, and is not delivered any more."


@dataclass(frozen=True)
class TaskShown:
    """A task with its runs, the stops between them, its subagents and its result."""

    view: TaskView
    course: Course  # the newest runs
    stops: Mapping[str, PastStop]  # by the run that they ended
    children: tuple[TaskView, ...]
    result: Result | None
    figures: Figures  # of the result, or of the runs so far
    acts: tuple[Act, ...]  # of people whom a proxy signed in


def load(site: Site, query: Query) -> TaskShown:
    """Read a task and its conversation."""
    expect_known(query, "id")
    tasks = Tasks(site.ledger)
    view = _view(tasks, query["id"])
    course = tasks.course(view.task.id, _MOST_RUNS)
    session = _session(view)
    newest, _ = session_totals(site.ledger, SUPERVISED_HOST, session)
    wanted = StopFilter(session=session, is_whole_session=True, most=_MOST_STOPS)
    found = search(site.ledger, from_newest(wanted, newest)).stops
    result = Outbox(site.ledger.connection).read(view.task.id)
    turns = tuple(run.turn for run in course.runs if run.turn)
    return TaskShown(
        view=view,
        course=course,
        stops={past.event.run_id or "": past for past in found if past.task == view.task.id},
        children=tuple(tasks.below(view.task.id, _MOST_CHILDREN)),
        result=result,
        figures=_figures(result) if result else total_of(turns),
        acts=tuple(tasks.acts(view.task.id)),
    )


def _view(tasks: Tasks, task: str) -> TaskView:
    views = tasks.views(task) if "\0" not in task else []
    if not views:
        raise NotFoundError(f"There is no task {one_line(task[:60])}. Tasks lists those there are.")
    return views[0]


def _session(view: TaskView) -> str:
    """Return the session under which its stops are recorded."""
    return view.session_id or view.task.id


def _figures(result: Result) -> Figures:
    return Figures(**{name: getattr(result, name) for name in Figures._fields})


def plain(data: TaskShown) -> dict[str, Any]:
    """Return what `notyet tasks show ID --json` prints, with the numbers of its stops."""
    children = [child.task.id for child in data.children]
    known = whole_json(data.view, data.course, children, data.result)
    return known | {
        "figures": data.figures,
        "stops": {run: past.id for run, past in data.stops.items()},
        "acts": data.acts,
    }


def act(site: Site, query: Query, fields: Mapping[str, str]) -> Notice:
    """Carry out what a form asks for."""
    task, action = _view(Tasks(site.ledger), query["id"]).task.id, fields.get("action", "")
    if action not in actions.ACTIONS:
        known = ", ".join(actions.ACTIONS)
        raise NotSentError(f"There is no action “{one_line(action[:60])}”; there are {known}.")
    text = fields.get("text", "").replace("\r\n", "\n").replace("\0", "")
    if len(text) > MOST_TEXT:
        raise NotSentError(f"It is too long: at most {MOST_TEXT:,} characters can be sent.")
    if action in actions.NEED_TEXT and not text.strip():
        return Notice("Nothing was sent: write something first.", is_done=False, fields=fields)
    # Of the text, too: a form to which a browser went back may be sent again with another one.
    words = "\n".join((fields.get("key") or secrets.token_hex(8), task, action, text))
    key = f"page-{hashlib.sha256(words.encode('utf-8', 'replace')).hexdigest()[:32]}"
    warnings: list[str] = []
    # One of its own: it may wait for long, and screens go on.
    ledger = Ledger(site.path, repair=False)
    try:
        if query.user:
            Tasks(ledger).note_act(task, action, query.user)
        done = actions.act(ledger, action, task, warnings.append, text=text, key=key)
    except Refused as error:
        return Notice(str(error), is_done=False, warnings=tuple(warnings), fields=fields)
    finally:
        ledger.close()
    return Notice(done.text, is_done=done.is_done, warnings=tuple(warnings))


def draw(data: TaskShown, query: Query) -> Drawing:
    """Draw the task, what can be done with it, and its conversation."""
    view = data.view
    name = shortened(actions.name_of(view), 200)
    body = [
        _head(data, name, query),
        _actions(view, query),
        section("Conversation", _talk(data), id="talk"),
        _result(data),
    ]
    return Drawing(f"Task {name or view.task.id}", body, live=("task", "talk", "result"))


def _head(data: TaskShown, name: str, query: Query) -> Element:
    view, task = data.view, data.view.task
    session = address("/session", {"host": SUPERVISED_HOST, "id": _session(view)})
    shown = one_line(_session(view) if data.stops else view.session_id)
    ended = "" if view.ended_at is None else f", took {took(view.ended_at - view.created_at)}"
    process = ""
    if view.ended_at is None and view.owner_pid:
        process = f"{view.owner_pid} ({'alive' if view.owner_alive else 'gone'})"
    known: list[tuple[str, Node]] = [
        ("agent", one_line(", a ".join(filter(None, (view.agent or "-", task.agent_type))))),
        (
            "place",
            task.cwd and h.a(href=address("/stops", {"place": task.cwd}))[one_line(task.cwd)],
        ),
        ("workspace", one_line(task.workspace)),
        ("session", h.a(href=session)[shown] if data.stops else shown),
        ("queue", one_line(", for ".join(filter(None, (view.queue, view.model))))),
        ("worker", one_line(view.worker)),
        ("process", process),
        ("parent", task.parent and h.a(href=f"/tasks/{task.parent}")[one_line(task.parent)]),
        ("begun", [exactly(view.created_at), " (", ago(view.created_at), " ago)", ended]),
        ("sent back", f"{times(view.steers)} by gates"),
        ("figures", _cost(data.figures)),
        ("done here", _acts(data.acts)),
        ("delivery", _delivery(data, query)),
    ]
    is_active = view.ended_at is None
    return h.section("#task", class_="active" if is_active else "ended")[
        h.h2[
            one_line(name) or task.id,
            " ",
            state_chip(view),
            view.outcome and [" ", chip(view.outcome, view.stop_reason or "")],
            " ",
            h.small[task.id, " · ", h.a(href=f"/tasks/{task.id}.json")["JSON"]],
        ],
        (h.p(".warn")[one_line(words)] for words in actions.remarks(view)),
        facts(known),
        _subagents(data.children),
    ]


def _acts(acts: Sequence[Act]) -> Node:
    return [
        [", " if number else "", f"{act.what} by {one_line(act.who)} ", ago(act.at), " ago"]
        for number, act in enumerate(acts[-_MOST_ACTS:])
    ]


def _cost(figures: Figures) -> str:
    usage = figures.usage
    tokens = usage.total or usage.input + usage.output
    tools = f" ({', '.join(one_line(tool) for tool in figures.tools[:8])})" if figures.tools else ""
    parts = (
        f"{tokens:,} tokens ({usage.input:,} in, {usage.output:,} out)" if tokens else "",
        f"tools called {times(figures.tool_calls)}{tools}" if figures.tool_calls else "",
        f"at work {took(figures.duration_ms / 1000)}" if figures.duration_ms else "",
    )
    return " · ".join(part for part in parts if part)


def _delivery(data: TaskShown, query: Query) -> Node:
    """Say how far the result came; offer to deliver it again, or to drop it."""
    view = data.view
    if not view.delivery:
        return None
    tries = f" after {view.attempts} tries" if view.attempts > 1 else ""
    error = f": {view.delivery_error}" if view.delivery_error else ""
    words = one_line(f"{view.delivery}{tries}{error}"[:_LONGEST])
    is_open = view.delivery in _OPEN
    may_miss = view.maybe_unnotified and view.delivery != "dismissed"
    if not query.form_token or not (is_open or may_miss):
        return words
    return [
        words,
        h.div(".acts")[
            is_open and _confirmed(query, "retry", "Retry", _RETRY),
            _confirmed(query, "dismiss", "Dismiss", _DISMISS),
        ],
    ]


def _subagents(children: Sequence[TaskView]) -> Node:
    if not children:
        return None
    more = f" (the newest {_MOST_CHILDREN})" if len(children) == _MOST_CHILDREN else ""
    rows: list[tuple[Node, ...]] = [
        (
            task_link(child),
            state_chip(child),
            child.outcome and chip(child.outcome, child.stop_reason or ""),
            str(child.steers),
            [ago(child.created_at), " ago"],
        )
        for child in children
    ]
    head = ("task", "state", "outcome", "sent back", "begun")
    return [h.p(".label")[f"subagents{more}"], table(head, rows, empty="", numbers=("sent back",))]


# What can be done. This part is not live: it would change under the hands of a person.


def _actions(view: TaskView, query: Query) -> Node:
    if view.ended_at is not None or not query.form_token:
        return None
    return h.section("#actions", aria_label="What you can do")[
        h.div(".acts")[
            _written(query, "say", "Say…", _SAY, "Send the message"),
            _written(query, "steer", "Steer…", _STEER, "Steer it now"),
            _confirmed(query, "interrupt", "Interrupt", _INTERRUPT),
            _confirmed(query, "kill", "Kill", _KILL),
        ]
    ]


def _written(query: Query, action: str, name: str, words: str, button: str) -> Element:
    sent = query.notice.fields if query.notice else {}
    is_again = sent.get("action") == action  # it was refused: what was written is not lost
    return h.details(name="act", open=is_again)[
        h.summary[name],
        form(
            query,
            action,
            h.label[
                h.span[words],
                h.textarea(name="text", rows="4", required=True, maxlength=MOST_TEXT)[
                    sent.get("text", "") if is_again else ""
                ],
            ],
            h.button(type="submit")[button],
            key=secrets.token_hex(8),
        ),
    ]


def _confirmed(query: Query, action: str, name: str, words: str) -> Element:
    return h.details(name="act")[
        h.summary[name],
        form(query, action, h.p[words], h.button(type="submit")[f"{name} it now"]),
    ]


# The conversation.


def _talk(data: TaskShown) -> Node:
    runs = data.course.runs
    left_out = runs[0].generation - 1 if runs else 0
    command = h.code[f"notyet tasks show {data.view.task.id}"]
    return [
        bool(left_out) and h.p(".empty")[f"The first {left_out} runs are left out; see ", command],
        h.ol(".talk")[(_run(run, data) for run in runs), _waiting(data.course)],
    ]


def _run(run: Run, data: TaskShown) -> Element:
    past = data.stops.get(run.id)
    kind = "returned" if run.source == "gate" else ""
    agent = one_line(data.view.agent) or "agent"
    return h.li[
        entry([_ASKED[run.source], " ", ago(run.started_at), " ago"], run.prompt, kind),
        _answer(run, agent, data.course.ended_at[run.id]),
        None if past is None else checked(past),
        run.ending not in {None, "done"} and h.p[h.span(".chip.warn")[run.ending]],
    ]


def _answer(run: Run, agent: str, ended_at: float | None) -> Node:
    turn = run.turn
    if turn is None:
        if run.state in {"ended", "superseded"}:
            return None
        return h.p[h.span(".chip.live")["at work…" if run.state == "running" else run.state]]
    cost = _cost(total_of((turn,)))
    if ended_at is not None:
        cost = " · ".join(filter(None, (f"after {took(ended_at - run.started_at)}", cost)))
    return [
        entry([agent, " ", h.small[cost]], turn.text, "agent", empty="It said nothing."),
        turn.error and long_text(turn.error, _MOST_ERROR, kind="bad"),
    ]


def _waiting(course: Course) -> Node:
    """Return prompts and messages that did not arrive, or not yet."""
    steers = [
        (f"{_ASKED[source]}, {phase}{f': {error}' if error else ''}", prompt)
        for source, prompt, phase, error in course.steers
    ]
    messages = [
        (f"message of {'its user' if kind == 'user' else 'a program'}, {state}", text)
        for kind, text, state in course.messages
        if state not in _ARRIVED
    ]
    return [h.li[entry(one_line(label[:_LONGEST]), text)] for label, text in (*steers, *messages)]


def _result(data: TaskShown) -> Element:
    """Return what the result says beyond the conversation."""
    result = data.result
    said: list[Node] = []
    if result is not None:
        why = result.stop_reason or ""
        said = [
            h.p(".warn")[one_line(words[:_LONGEST])] for words in (why, *result.warnings) if words
        ]
        if result.error:
            said.append(long_text(result.error, _MOST_ERROR, kind="bad"))
        if result.rejected:
            label = "an earlier answer, which a gate may have rejected"
            said.append(entry(label, result.rejected, "agent"))
        said += [entry("a message that came too late", text) for text in result.unsent]
    return h.div("#result")[section("Result", said) if said else None]


SCREEN = Screen("/tasks/{id}", load, draw, act=act, plain=plain)
