"""The screen "Now": what happens, and the last stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import htpy as h

from notyet.core.text import first_line
from notyet.ledger.past_stops import PastStop, StopFilter, stops
from notyet.web.layout import ago, chip, gate_chip, one_line, section, table
from notyet.web.site import Drawing, Screen

if TYPE_CHECKING:
    from notyet.web.site import Query, Site

_LAST_STOPS = 14


def load(site: Site, query: Query) -> list[PastStop]:
    """Return the last stops."""
    return stops(site.ledger, StopFilter(host=query["host"], most=_LAST_STOPS))


def draw(data: list[PastStop], _query: Query) -> Drawing:
    """Draw them."""
    rows = [
        (
            h.a(href=f"/stops/{past.id}")[str(past.id)],
            ago(past.begun_at),
            chip(past.outcome, past.why),
            one_line(past.session_id),
            [gate_chip(report) for report in past.reports],
            one_line(first_line(past.prompt or past.why)),
        )
        for past in data
    ]
    head = ("stop", "ago", "outcome", "session", "gates", "why")
    last = table(head, rows, empty="No agent has stopped yet.")
    return Drawing("Now", section("Last stops", last, id="stops"), live=("stops",))


SCREEN = Screen("/", load, draw, name="Now", json_path="/now.json")
