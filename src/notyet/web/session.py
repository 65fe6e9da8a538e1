"""The screen "Session": the conversation of a session, its main agent and subagents as lanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import htpy as h

from notyet.core.record import replace
from notyet.ledger.past_stops import read_stop, session_agents, session_totals
from notyet.ledger.stop_search import search
from notyet.ledger.tasks import Tasks
from notyet.supervise.actions import name_of
from notyet.web.conversation import checked, entry, sent_back
from notyet.web.filters import PAGING, expect_known, link, stop_filter
from notyet.web.layout import address, ago, chip, facts, one_line, section, times
from notyet.web.site import Drawing, NotFoundError, NotShownError, Screen

if TYPE_CHECKING:
    from typing import Any

    from htpy import Element, Node

    from notyet.ledger.past_stops import PastAgent, PastStop, StopFilter
    from notyet.web.site import Query, Site

_MOST_STOPS = 30  # of a page
_MOST_AGENTS = 200
_MOST_LANES = 4  # side by side; more subagents share the last one
_NAME_LENGTH = 40


@dataclass(frozen=True)
class SessionShown:
    """A page of a session's stops, the oldest first, and the first of its agents."""

    host: str
    id: str
    agents: tuple[PastAgent, ...]  # the main one first
    sent_back: int  # how often all of its agents were
    last: PastStop | None
    tasks: tuple[tuple[str, str], ...]  # that it works on, if it is supervised: id and name
    stops: tuple[PastStop, ...]
    older: int  # for `before`; 0: there are none
    newer: int  # for `after`; 0: there are none
    is_cut: bool  # the search stopped before the page was full


def load(site: Site, query: Query) -> SessionShown:
    """Read the newest stops of a session, or those that the address asks for."""
    expect_known(query, "host", "id", *PAGING)
    host, session = query["host"], query["id"]
    if not host or not session:
        raise NotShownError("A session is named by its host and its id: /session?host=…&id=…")
    wanted = replace(stop_filter(query, most=_MOST_STOPS), session=session, is_whole_session=True)
    agents = session_agents(site.ledger, host, session, _MOST_AGENTS)
    newest, sent_back = session_totals(site.ledger, host, session)
    is_newest = not wanted.before and not wanted.after
    found = search(site.ledger, from_newest(wanted, newest) if is_newest else wanted)
    if not agents and not found.stops and not found.is_cut:
        raise NotFoundError(
            f"No stop of session {one_line(session)} of {one_line(host)} is recorded. Old ones are "
            "pruned; Stops lists the rest."
        )
    tasks = Tasks(site.ledger).of_session(session)
    return SessionShown(
        host=host,
        id=session,
        agents=tuple(agents),
        sent_back=sent_back,
        last=read_stop(site.ledger, newest) if newest else None,
        tasks=tuple((view.task.id, name_of(view)) for view in tasks),
        stops=found.stops[::-1],
        older=found.older,
        newer=0 if is_newest else found.newer,
        is_cut=found.is_cut,
    )


def from_newest(wanted: StopFilter, newest: int) -> StopFilter:
    """Return a search that begins at the newest stop of a session.

    Without a look at those of others since, which may be very many.
    """
    return replace(wanted, before=newest + 1) if newest else wanted


def plain(data: SessionShown) -> dict[str, Any]:
    """Return the data with the ids of the tasks only."""
    return {**data.__dict__, "tasks": [task for task, _ in data.tasks]}


def draw(data: SessionShown, query: Query) -> Drawing:
    """Draw what is known of the session, and its conversation."""
    is_newest = not query["before"] and not query["after"]
    body = [
        section("Session", _facts(data), _subagents(data), id="session", note=_note(data)),
        section(
            "Conversation",
            _older(data, query),
            _lanes(data),
            _newer(data, query, is_newest=is_newest),
            id="conversation",
            note="the oldest first",
        ),
    ]
    return Drawing("Session", body, live=("session", "conversation") if is_newest else ())


def _note(data: SessionShown) -> Node:
    where = address("/session.json", {"host": data.host, "id": data.id})
    return [one_line(data.id), " · ", h.a(href=where)["JSON"]]


def _facts(data: SessionShown) -> Element:
    newest = data.last
    place = newest.place if newest else ""
    last: Node = None
    if newest:
        number = h.a(href=f"/stops/{newest.id}")[f"stop {newest.id}"]
        last = [chip(newest.outcome, newest.why), " ", number, " ", ago(newest.begun_at), " ago"]
    return facts([
        ("host", one_line(data.host)),
        ("place", place and h.a(href=address("/stops", {"place": place}))[one_line(place)]),
        ("task", [_task(task, name) for task, name in data.tasks]),
        ("sent back", times(data.sent_back)),
        ("last stop", last),
    ])  # fmt: skip


def _task(task: str, name: str) -> Node:
    return h.a(".item", href=f"/tasks/{task}")[one_line(name) or task]


def _subagents(data: SessionShown) -> Node:
    """List the subagents: how each of them ended, and how often it was sent back."""
    subagents = [agent for agent in data.agents if agent.agent_id]
    if not subagents:
        return None
    more = f" (the first {len(subagents)})" if len(data.agents) == _MOST_AGENTS else ""
    return [
        h.p(".label")[f"subagents{more}"],
        h.ul(".path")[
            (
                h.li[
                    h.a(href=f"/stops/{agent.stop}")[one_line(agent.agent_id[:_NAME_LENGTH])],
                    " ",
                    chip(agent.outcome, agent.why),
                    f" sent back {times(agent.history.session_blocks)}",
                ]
                for agent in subagents
                if agent.stop
            )
        ],
    ]


def _lanes(data: SessionShown) -> Node:
    """Return the stops in the order of time, those of each agent in a lane of their own."""
    if not data.stops:
        return h.p(".empty")["None of the stops that were looked at is of this session; look on."]
    ids = dict.fromkeys(past.agent_id for past in data.stops)
    order = sorted(ids, key=bool)  # the main agent first, the others as they come
    lanes = {agent: min(at, _MOST_LANES) for at, agent in enumerate(order, start=1)}
    asked: dict[str, str] = {}
    rows = []
    for past in data.stops:
        task = past.event.task or ""
        is_new = bool(task) and asked.get(past.agent_id) != task
        asked[past.agent_id] = task
        rows.append(_moment(past, lanes[past.agent_id], task if is_new else ""))
    return h.ol(".lanes")[rows]


def _moment(past: PastStop, lane: int, task: str) -> Element:
    event = past.event
    name = event.label or event.agent_name or event.agent_type or past.agent_id
    who = one_line(name[:_NAME_LENGTH]) or "main agent"
    label: Node = [h.strong[who], " ", ago(past.begun_at), " ago"]
    return h.li(f".lane-{lane}")[
        task and entry("task", task),
        entry(label, event.last_message or "", "agent", empty="It said nothing."),
        checked(past),
        sent_back(past),
    ]


def _older(data: SessionShown, query: Query) -> Node:
    # Without a filter in between, the stops before the first one shown are the older ones.
    if not data.older:
        return None
    older = h.a(href=link(query, before=str(data.older)), rel="prev")["older stops"]
    return h.nav(".pages", aria_label="Older")[older]


def _newer(data: SessionShown, query: Query, *, is_newest: bool) -> Node:
    if is_newest:
        return None
    newer = h.a(href=link(query, after=str(data.newer)), rel="next")["newer stops"]
    newest = h.a(href=link(query))["newest stops"]
    return h.nav(".pages", aria_label="Newer")[newer if data.newer else None, newest]


SCREEN = Screen("/session", load, draw, plain=plain)
