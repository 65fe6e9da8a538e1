"""The screen "Stops": all recorded stops, page by page, as the filters in the address choose."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import htpy as h

from notyet.ledger.stop_search import MOST_READ, Known, known_names, search
from notyet.status.stop_words import cause
from notyet.web.filters import FIELDS, PAGING, expect_known, form, is_filtered, link, stop_filter
from notyet.web.layout import address, ago, chip, gate_chip, one_line, section, table
from notyet.web.site import Drawing, Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from htpy import Element, Node

    from notyet.ledger.past_stops import PastStop
    from notyet.web.site import Query, Site

_ID_LENGTH = 8  # characters of a session
_LONGEST = 200  # characters of why
_HEAD = ("stop", "ago", "outcome", "agent", "host", "place", "gates", "why")
NONE_YET = (
    "No agent has stopped yet. Connect one with `notyet install claude` (or another host), or try "
    "`notyet demo`."
)


@dataclass(frozen=True)
class StopsShown:
    """A page of stops, the newest first; `older` and `newer` are where the others go on."""

    stops: tuple[PastStop, ...]
    older: int  # for `before`; 0: there are none
    newer: int  # for `after`; 0: there are none
    is_cut: bool  # the search stopped before the page was full
    known: Known


def load(site: Site, query: Query) -> StopsShown:
    """Search the stops that the address asks for."""
    expect_known(query, *FIELDS, *PAGING)
    found = search(site.ledger, stop_filter(query))
    known = known_names(site.ledger)
    return StopsShown(found.stops, found.older, found.newer, found.is_cut, known)


def draw(data: StopsShown, query: Query) -> Drawing:
    """Draw the filters, and the stops."""
    is_first = not query["before"] and not query["after"]
    nothing = _nothing(data, query, is_first=is_first)
    body = [
        section("Find", form(query, data.known)),
        section(
            "Stops",
            stop_table(data.stops, query, empty=nothing),
            _pages(data, query, is_first=is_first),
            id="stops",
            note=[
                "newest first · ",
                h.a(href=link(query).replace("/stops", "/stops.json", 1))["JSON"],
            ],
        ),
    ]
    return Drawing("Stops", body, live=("stops",) if is_first else ())


def stop_table(stops: Sequence[PastStop], query: Query, *, empty: str) -> Element:
    """Return stops as a table; hosts and places in it lead to this screen with only those."""
    rows = [_row(past, query) for past in stops]
    ids = [f"stop-{past.id}" for past in stops]
    return table(_HEAD, rows, empty=empty, numbers=("stop", "ago"), ids=ids, lines=("gates", "why"))


def _row(past: PastStop, query: Query) -> tuple[Node, ...]:
    return (
        h.a(href=f"/stops/{past.id}")[str(past.id)],
        ago(past.begun_at),
        chip(past.outcome, past.why),
        agent_link(past),
        h.a(href=link(query, host=past.host))[one_line(past.host)],
        past.place
        and h.a(href=link(query, place=past.place), title=one_line(past.place))[
            one_line(os.path.basename(past.place) or past.place)
        ],
        h.div(".gates")[(gate_chip(report) for report in past.reports)],
        h.span(".why")[one_line(cause(past)[:_LONGEST])],
    )


def agent_link(past: PastStop) -> Node:
    """Return an agent's name and session, as a link to the session."""
    if not past.session_id:
        return agent_words(past)
    where = address("/session", {"host": past.host, "id": past.session_id})
    return h.a(href=where)[agent_words(past)]


def agent_words(past: PastStop) -> str:
    """Return an agent's name, and the beginning of its session."""
    event = past.event
    name = event.label or event.agent_name or event.agent_type or past.agent_id[:_ID_LENGTH]
    words = [one_line(word) for word in (name, past.session_id[:_ID_LENGTH]) if word]
    return " · ".join(words) or "unknown"


def _nothing(data: StopsShown, query: Query, *, is_first: bool) -> str:
    if data.is_cut:
        return "None of these stops matches."
    if is_filtered(query):
        return "No stop matches these filters."
    return NONE_YET if is_first else "There are no stops beyond this one."


def _pages(data: StopsShown, query: Query, *, is_first: bool) -> Node:
    """Return links to the pages around this one."""
    older, newer = str(data.older or ""), str(data.newer or "")
    links: list[Element] = []
    if not is_first:
        links.append(h.a(href=link(query))["newest"])
    if newer:
        links.append(h.a(href=link(query, after=newer), rel="prev")["newer"])
    if older:
        links.append(h.a(href=link(query, before=older), rel="next")["older"])
    said = None
    if data.is_cut:
        up_to = older if not query["after"] or query["before"] else newer
        said = (
            f"{MOST_READ:,} stops were looked at, as far as stop {up_to}; the link looks further."
        )
    return [
        said and h.p(".empty")[said],
        links and h.nav(".pages", aria_label="Pages")[links],
    ]


SCREEN = Screen("/stops", load, draw, name="Stops")
