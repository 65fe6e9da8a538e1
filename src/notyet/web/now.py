"""The screen "Now": what happens, and the last stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.ledger.past_stops import PastStop, StopFilter, stops
from notyet.web.layout import section
from notyet.web.site import Drawing, Screen
from notyet.web.stops import NONE_YET, stop_table

if TYPE_CHECKING:
    from notyet.web.site import Query, Site

_LAST_STOPS = 14


def load(site: Site, query: Query) -> list[PastStop]:
    """Return the last stops."""
    return stops(site.ledger, StopFilter(host=query["host"], most=_LAST_STOPS))


def draw(data: list[PastStop], query: Query) -> Drawing:
    """Draw them."""
    last = stop_table(data, query, empty=NONE_YET)
    return Drawing("Now", section("Last stops", last, id="stops"), live=("stops",))


SCREEN = Screen("/", load, draw, name="Now", json_path="/now.json")
