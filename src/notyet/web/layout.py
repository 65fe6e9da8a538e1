"""The frame around every screen, and the pieces that they share."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import htpy as h

from notyet.core.text import bounded, clean, visible
from notyet.core.verdict import group_of, outcome_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from htpy import Element, Node

    from notyet.core.verdict import Report
    from notyet.web.site import Drawing, Query, Screen

VENDOR = "/static/vendor/"
_TENTHS = 10.0  # seconds
_SCRIPTS = (
    f"{VENDOR}htmx.min.js",
    f"{VENDOR}sse.min.js",
    f"{VENDOR}uPlot.iife.min.js",
    "/static/chart.js",
    "/static/page.js",
)
_STYLES = (f"{VENDOR}uPlot.min.css", "/static/page.css")
# htmx adds no style of its own and runs no text: the policy forbids both. What `main` does with an
# answer is not for the forms in it.
_HTMX = (
    '{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,'
    '"selfRequestsOnly":true,"historyCacheSize":0,"disableInheritance":true}'
)
# The class of the colour of an outcome, or of its group; others are mute.
_COLOURS = {
    "passed": "ok",
    "blocked": "back",
    "halted": "bad",
    "asking": "live",
    "not_passed": "bad",
    "not_checked": "warn",
}
_REPORT_WORDS = {
    "allowed": ("passed", "ok"),
    "blocked": ("failed", "back"),
    "halted": ("halted", "bad"),
    "problem": ("gave no answer", "warn"),
    "not_asked": ("did not run", "mute"),
    "remembered": ("passed before on these files", "mute"),
    "unchanged": ("no file changed", "mute"),
}


def document(
    screens: Iterable[Screen], drawing: Drawing, query: Query, trouble: str = ""
) -> Element:
    """Return the whole page of a screen; an open page shows the trouble above its own."""
    live = {"hx-ext": "sse", "sse-connect": "/events", "data-site": query.site}
    return h.html(lang="en")[
        h.head[
            h.meta(charset="utf-8"),
            h.meta(name="viewport", content="width=device-width, initial-scale=1"),
            h.meta(name="htmx-config", content=_HTMX),
            h.title[f"{drawing.title} · notyet"],
            h.link(rel="icon", href="/static/icon.svg"),
            (h.link(rel="stylesheet", href=path) for path in _STYLES),
            (h.script(src=path, defer=True) for path in _SCRIPTS),
        ],
        h.body(live if query.site else {})[
            h.a(".skip", href="#main")["to the content"],
            h.header[
                h.a(".name", href="/")["notyet"],
                h.nav(aria_label="Screens")[
                    (_link(screen, query) for screen in screens if screen.name)
                ],
                query.user and h.span(".mute", title="signed in at the proxy")[query.user],
                h.span("#connection", role="status"),
            ],
            h.div("#offline.trouble", role="status"),
            h.div("#trouble.trouble", role="status")[trouble and h.p[one_line(trouble)]],
            main(drawing, query),
        ],
    ]


def main(drawing: Drawing, query: Query) -> Element:
    """Return a screen's own part; it asks for its live parts again when something happens."""
    again: dict[str, str] = {}
    if drawing.live and query.site:
        parts = [f"#{name}" for name in drawing.live]
        if drawing.live != ("main",):
            parts.append("#trouble:innerHTML")  # which says why it cannot be drawn anew
        again = {
            "hx-get": address(query.path, query.values),
            "hx-trigger": "sse:changed",
            "hx-swap": "none",
            "hx-select-oob": ",".join(parts),
        }
    return h.main("#main", again, tabindex="-1")[h.h1(".unseen")[drawing.title], drawing.body]


def _link(screen: Screen, query: Query) -> Element:
    current = "page" if screen.path == query.path else None
    if query.path.startswith(f"{screen.path}/"):  # one of those that it lists
        current = "true"
    return h.a(href=screen.path, aria_current=current)[screen.name]


def address(path: str, values: Mapping[str, str]) -> str:
    """Return an address of ours; empty values are left out."""
    kept = {name: value for name, value in values.items() if value}
    # The name of a folder need not be UTF-8; the ledger has it with the same marks.
    return f"{path}?{urlencode(kept, errors='replace')}" if kept else path


def section(title: str, *body: Node, id: str = "", note: Node = None) -> Element:  # noqa: A002
    """Return a titled part of a screen."""
    return h.section({"id": id} if id else {})[h.h2[title, " ", note and h.small[note]], body]


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Node]],
    *,
    empty: str,
    numbers: Collection[str] = (),
    ids: Sequence[str] = (),
    lines: Collection[str] = (),
    has_links: bool = True,
) -> Element:
    """Return a table; `empty` says what it means that there are no rows.

    The columns named in `numbers` are aligned to the right. By their `ids`, rows stay the same when
    others come and go on an open page. On a narrow window, the cells of the columns `lines` have
    lines of their own below the others. A table without links can have the focus itself, so that
    keys scroll it.
    """
    names = dict.fromkeys(numbers, "number") | dict.fromkeys(lines, "line")
    kinds = [{"class": names[name]} if name in names else {} for name in head]
    drawn = [
        h.tr({"id": name} if name else {})[
            (h.td(kind)[cell] for kind, cell in zip(kinds, row, strict=True))
        ]
        for row, name in zip_longest(rows, ids)
    ]
    if not drawn:
        return h.p(".empty")[empty]
    heads = (h.th(kind, scope="col")[name] for kind, name in zip(kinds, head, strict=True))
    kind = {"class": "folds"} if lines else {}
    focus = {} if has_links else {"tabindex": "0"}
    return h.div(".wide", focus)[h.table(kind)[h.thead[h.tr[heads]], h.tbody[drawn]]]


def bar(value: float, most: float) -> Element:
    """Return a value as the length of a bar, beside the largest one."""
    width = f"{100 * value / most:.1f}" if most else "0"
    return h.svg(".bar", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")[
        h.rect(width=width, height="8")
    ]


def words_of(outcome: str, why: str = "") -> tuple[str, str]:
    """Return what people read for an outcome, and the class of its colour."""
    colour = _COLOURS.get(group_of(outcome, why) or outcome, "mute")
    return outcome_words(outcome, why), colour


def chip(outcome: str, why: str = "") -> Element:
    """Return an outcome as people read it."""
    words, colour = words_of(outcome, why)
    return h.span(f".chip.{colour}", title=outcome.replace("_", " "))[words]


def gate_chip(report: Report) -> Element:
    """Return a gate's name, what it said by its colour and words, and its seconds."""
    words, colour = _REPORT_WORDS.get(report.status, (report.status, "mute"))
    if report.observed and report.status in {"blocked", "halted"}:
        words, colour = "would fail", "mute"
    took = h.small[f" {report.seconds:.1f} s"] if report.seconds else None
    label = h.span(".unseen")[f" {words}"]
    return h.span(f".gate.{colour}", title=f"{one_line(report.gate)}: {words}")[
        one_line(report.gate), label, took
    ]


def ago(at: float, now: float | None = None) -> Element:
    """Return a time; the browser shows how long ago that was, and keeps it true."""
    seconds = max(0.0, (time.time() if now is None else now) - at)
    try:
        exact = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # a clock that was never set
        return h.span["?"]
    return h.time(datetime=exact, data_at=f"{at:.3f}")[span(seconds)]


def span(seconds: float) -> str:
    """Return a duration in one number."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def took(seconds: float) -> str:
    """Return how long something took; below ten seconds, tenths matter."""
    return f"{max(0.0, seconds):.1f} s" if seconds < _TENTHS else span(seconds)


def times(count: int) -> str:
    """Return how often."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count:,} times")


def block(text: str, kind: str = "", *, empty: str = "nothing") -> Element:
    """Return a text of many lines as it was written, without control characters."""
    if not text.strip():
        return h.p(".empty")[empty]
    # `dir`: marks of right-to-left text turn no other line around.
    return h.pre({"class": kind} if kind else {}, dir="auto", tabindex="0")[clean(text)]


def one_line(text: str) -> str:
    """Return a name or a sentence that anybody may have chosen, on one line."""
    return visible(text)


def facts(known: Iterable[tuple[str, Node]]) -> Element:
    """Return names with their values; what has no value is left out."""
    return h.dl(".facts")[(h.div[h.dt[name], h.dd[value]] for name, value in known if value)]


def long_text(text: str, most: int, *, kind: str = "", empty: str = "nothing") -> Element:
    """Return a text of many lines; of a very long one the beginning and the end."""
    return block(bounded(text, most), kind, empty=empty)
