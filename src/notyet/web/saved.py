"""`notyet page --save`: the stops of a span in one HTML file that needs no server and no network.

Its styles and its script are part of the file, and the policy in its head allows only them.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import htpy as h
from markupsafe import Markup

from notyet import __version__
from notyet.ledger.figures import KINDS
from notyet.ledger.past_stops import numbers, read_stop
from notyet.ledger.stats import MOST_COUNTED
from notyet.status.stop_words import cause, remark
from notyet.web import gates
from notyet.web.filters import stop_filter
from notyet.web.layout import chip, gate_chip, long_text, one_line, section, words_of
from notyet.web.site import Query
from notyet.web.stop import gate_said
from notyet.web.stops import agent_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from htpy import Element, Node

    from notyet.core.verdict import Report
    from notyet.ledger.figures import Bucket
    from notyet.ledger.past_stops import PastStop
    from notyet.web.gates import GatesShown
    from notyet.web.site import Site

SPAN = "30d"
MOST_SAVED = 500  # stops
_MOST_OUTPUT = 4_000  # characters of what a gate printed; `notyet log ID` has all of it
_MOST_SAID = 8_000  # characters of what the agent said, and of what it read
_STATIC = os.path.join(os.path.dirname(__file__), "static")
# How many stops of each kind: its words and the class of its colour.
_COUNTED = {
    "passed": ("passed", "ok"),
    "sent_back": ("sent back", "back"),
    "not_passed": ("NOT PASSED", "bad"),
    "not_checked": ("NOT CHECKED", "warn"),
}
_DRAWN = {**{kind: colour for kind, (_, colour) in _COUNTED.items()}, "other": "mute"}
_HEIGHT = 100  # of the chart; its width is one for each step


@dataclass(frozen=True)
class SavedPage:
    """The file, and how many stops are in it."""

    html: str
    stops: int
    is_all: bool  # False: the span has more, older ones


def save(site: Site, *, since: str = "", place: str = "") -> SavedPage:
    """Return the file. Raises NotShownError, and LedgerError."""
    query = Query("/stops", {"since": since or SPAN, "place": place})
    wanted = stop_filter(query, most=MOST_SAVED + 1)
    counted = {**query.values, "most": str(MOST_COUNTED)}
    figures = gates.load(site, Query("/gates", counted))
    found = numbers(site.ledger, wanted)
    # One at a time: their outputs may be long.
    drawn = [
        _stop(past)
        for number in found[:MOST_SAVED]
        if (past := read_stop(site.ledger, number)) is not None
    ]
    is_all = len(found) <= MOST_SAVED
    body = [_summary(figures, counted), _stops(figures, drawn, is_all=is_all)]
    html = str(_document(body, figures, place))
    return SavedPage(html.encode("utf-8", "replace").decode(), len(drawn), is_all)


def _document(body: Node, figures: GatesShown, place: str) -> Element:
    style, script, icon = (_text(name) for name in ("page.css", "saved.js", "icon.svg"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    where = one_line(place) if place else "all folders"
    return h.html(lang="en")[
        h.head[
            h.meta(charset="utf-8"),
            h.meta(http_equiv="Content-Security-Policy", content=policy),
            h.meta(name="viewport", content="width=device-width, initial-scale=1"),
            h.meta(name="referrer", content="no-referrer"),
            h.title[f"{where} · notyet"],
            h.link(rel="icon", href=f"data:image/svg+xml,{quote(icon)}"),
            h.style[Markup(style)],  # noqa: S704  # our own file
        ],
        h.body[
            h.header[
                h.span(".name")["notyet"],
                h.span[f"{where}, {gates.in_words(figures.since)}"],
                h.span(".mute")["saved ", _time(time.time()), f" by notyet {__version__}"],
            ],
            h.main("#main")[h.h1(".unseen")["Stops of agents"], body],
            h.script[Markup(script)],  # noqa: S704  # our own file
        ],
    ]


def _text(name: str) -> str:
    with open(os.path.join(_STATIC, name), encoding="utf-8") as file:
        return file.read()


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _summary(figures: GatesShown, counted: dict[str, str]) -> Node:
    """Draw how the stops went, over time, and what each gate did."""
    sums = {kind: sum(getattr(one, kind) for one in figures.over_time) for kind in KINDS}
    tiles = [("stops", figures.stops, "")]
    tiles += [(words, sums[kind], colour) for kind, (words, colour) in _COUNTED.items()]
    return [
        h.ul(".tiles")[
            (
                h.li[h.strong({"class": colour} if colour else {})[f"{count:,}"], " ", words]
                for words, count, colour in tiles
            )
        ],
        len(figures.over_time) > 1
        and section("Stops over time", _chart(figures.over_time), note=_legend()),
        gates.tables(
            figures,
            Query("/gates", counted),
            lambda gate: f"#{urlencode({'gate': one_line(gate)})}",
        ),
    ]


def _legend() -> Node:
    shown = [*_COUNTED.values(), ("others", "mute")]
    return [h.span(f".{colour}")[f"■ {words} "] for words, colour in shown]


def _chart(steps: Sequence[Bucket]) -> Node:
    """Draw a bar for each step; the numbers beside it say the same without a picture."""
    most = max(1, *(sum(getattr(one, kind) for kind in _DRAWN) for one in steps))
    bars: list[Element] = []
    for place, step in enumerate(steps):
        top = float(_HEIGHT)
        for kind, colour in _DRAWN.items():
            height = _HEIGHT * getattr(step, kind) / most
            top -= height
            if height:
                size = {"y": f"{top:.2f}", "height": f"{height:.2f}", "width": "0.8"}
                bars.append(h.rect(f".{colour}", size, x=f"{place + 0.1:.1f}"))
    words = f"At most {most:,} stops in one of {len(steps)} steps."
    box = {"viewBox": f"0 0 {len(steps)} {_HEIGHT}", "preserveAspectRatio": "none"}
    return [
        h.svg(".steps", box, role="img", aria_label=words)[bars],
        h.p(".ends.mute")[h.span[_time(steps[0].at)], h.span[_time(steps[-1].until)]],
    ]


def _stops(figures: GatesShown, drawn: Sequence[Element], *, is_all: bool) -> Element:
    number = "1 stop" if len(drawn) == 1 else f"{len(drawn):,} stops"
    note = f"{number}, newest first"
    if not is_all:
        note = f"the newest {number}; there are more, which notyet page and notyet log show"
    empty = f"No agent stopped {gates.in_words(figures.since)}."
    names = sorted({one_line(one.figures.gate) for one in figures.gates})
    return section(
        "Stops",
        # Without scripts nothing could be filtered.
        h.form("#filters.filters", hidden=True, role="search")[
            h.label[h.span["outcome"], h.select(name="outcome")[h.option(value="")["any"]]],
            h.label[
                h.span["gate"],
                h.select(name="gate")[
                    h.option(value="")["any"],
                    (h.option(value=name)[name] for name in names),
                ],
            ],
            h.label[h.span["text"], h.input(name="text", type="search", autocomplete="off")],
            h.span("#shown.mute", role="status"),
        ],
        drawn or h.p(".empty")[empty],
        id="stops",
        note=note,
    )


def _stop(past: PastStop) -> Element:
    """Draw a stop: one line, which opens to what was said, printed and read."""
    event = past.event
    why, more = cause(past), remark(past)
    facts = [agent_words(past), past.host, past.place, more if more != why else ""]
    names = "\n".join(one_line(report.gate) for report in past.reports)
    outcome = words_of(past.outcome, past.why)[0]
    return h.details(f"#stop-{past.id}.stop", data_outcome=outcome, data_gates=names)[
        h.summary[
            h.span(".number")[str(past.id)],
            " ",
            _time(past.begun_at),
            " ",
            chip(past.outcome, past.why),
            " ",
            [gate_chip(report) for report in past.reports],
            h.span(".why")[one_line(why)],
        ],
        h.p(".mute")[" · ".join(one_line(fact) for fact in facts if fact)],
        event.last_message and [h.h3["The agent said"], long_text(event.last_message, _MOST_SAID)],
        bool(past.reports) and h.h3["The gates said"],
        (_gate(report) for report in past.reports),
        past.prompt and [h.h3["The agent read"], long_text(past.prompt, _MOST_SAID)],
        (h.p(".warn")[one_line(words)] for words in past.warnings),
    ]


def _gate(report: Report) -> Element:
    if report.hidden:
        words = "It wants its output hidden: it is not in this file."
        return h.p(".said")[gate_chip(report), " ", h.span(".why")[words]]
    return gate_said(report, report.output, most=_MOST_OUTPUT)


def _time(at: float) -> Element:
    """Return a time that stays true: a file may be read much later, and elsewhere."""
    try:
        then = time.gmtime(at)
        exact = time.strftime("%Y-%m-%dT%H:%M:%SZ", then)
    except (ValueError, OverflowError, OSError):  # a clock that was never set
        return h.span["?"]
    return h.time(datetime=exact)[time.strftime("%Y-%m-%d %H:%M UTC", then)]
