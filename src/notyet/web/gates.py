"""The screen "Gates": what each gate costs, what it found, and whether that helped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import htpy as h

from notyet.core.text import listed
from notyet.ledger.stats import MOST_COUNTED, never_blocked, stats
from notyet.status.worth import FEW, verdict
from notyet.times import age
from notyet.web.filters import expect_known, stop_filter
from notyet.web.layout import address, bar, one_line, section, table
from notyet.web.site import Drawing, NotShownError, Screen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from htpy import Element, Node

    from notyet.ledger.figures import Bucket
    from notyet.ledger.stats import GateStats
    from notyet.web.site import Query, Site

_MOST = 2_000  # stops that are counted unless more are asked for
_SPAN = "30d"
_SPANS = {"1d": "day", "7d": "7 days", "30d": "30 days", "365d": "365 days"}
_NUMBERS = ("run", "blocked", "would block", "then passed", "skipped", "broken", "p50", "p95")


@dataclass(frozen=True)
class GateShown:
    """The figures of one gate, and what they come to."""

    figures: GateStats
    worth: str
    never_blocked: bool  # in the whole span, not only at the stops that were counted


@dataclass(frozen=True)
class GatesShown:
    """The gates of a span, the most expensive first; those that only observe last."""

    since: str
    stops: int  # that were counted
    is_all: bool  # False: the span has more, older ones
    outcomes: Mapping[str, int]
    gates: tuple[GateShown, ...]
    over_time: tuple[Bucket, ...]  # how the stops went, in steps of equal length


def load(site: Site, query: Query) -> GatesShown:
    """Count the newest stops of the span."""
    expect_known(query, "since", "host", "place", "most")
    said = query["since"] or _SPAN
    most = {"": _MOST, str(MOST_COUNTED): MOST_COUNTED}.get(query["most"])
    if most is None:
        raise NotShownError(f"`most` is {MOST_COUNTED}; without it, {_MOST} stops are counted.")
    wanted = stop_filter(query, most=most, default_since=_SPAN)
    found = stats(site.ledger, wanted)
    blockless = [one.gate for one in found.gates if not one.watches and not one.stopped]
    quiet = never_blocked(site.ledger, wanted, blockless)
    gates = tuple(_shown(one, said, is_quiet=one.gate in quiet) for one in found.gates)
    return GatesShown(said, found.stops, found.is_all, found.outcomes, gates, found.over_time)


def _shown(gate: GateStats, said: str, *, is_quiet: bool) -> GateShown:
    is_quiet = is_quiet and not gate.watches
    never = f"never blocked {in_words(said)}" if is_quiet else "blocked before these stops"
    is_hint = is_quiet and gate.asked >= FEW and not gate.held
    return GateShown(gate, verdict(gate, never=never), is_hint)


def in_words(said: str) -> str:
    """Return a span as a part of a sentence."""
    return f"in the last {_SPANS[said]}" if said in _SPANS else f"since {one_line(said)}"


def draw(data: GatesShown, query: Query) -> Drawing:
    """Draw links to other spans, and the tables; each gate leads to its stops."""
    kept = {"since": data.since, "host": query["host"], "place": query["place"]}
    drawn = tables(data, query, lambda gate: address("/stops", {"gate": gate, **kept}))
    live = ("gates", "observing")[: len(drawn)]
    return Drawing("Gates", [_spans(query), drawn], live=live)


def tables(data: GatesShown, query: Query, link: Callable[[str], str]) -> list[Element]:
    """Draw a table of the gates that can block, and one of those that only observe, if any do."""
    most = max((one.figures.seconds for one in data.gates), default=0.0)
    blocking = [one for one in data.gates if not one.figures.watches]
    observing = [one for one in data.gates if one.figures.watches]
    span = in_words(data.since)
    empty = f"No gate ran {span}. `notyet check` runs the gates of a project now."
    drawn = [
        section(
            "Gates", _table(blocking, most, link, empty), _hint(blocking, span),
            id="gates", note=_counted(data, span, query),
        ),
    ]  # fmt: skip
    if observing:
        note = "they run and are recorded, and send no agent back"
        table_of = _table(observing, most, link, "")
        drawn.append(section("Gates that only observe", table_of, id="observing", note=note))
    return drawn


def _counted(data: GatesShown, span: str, query: Query) -> Node:
    """Say which stops the figures are of."""
    if data.is_all:
        return f"of {'1 stop' if data.stops == 1 else f'all {data.stops:,} stops'} {span}"
    words = f"of the newest {data.stops:,} stops {span}"
    if query["most"]:
        return words
    more = address("/gates", {**query.values, "most": str(MOST_COUNTED)})
    return [words, " · ", h.a(href=more)[f"count up to {MOST_COUNTED:,}"]]


def _spans(query: Query) -> Element:
    """Return links to other spans; filters stay."""
    current = query["since"] or _SPAN
    return h.p(".spans")[
        "last ",
        (
            h.a(
                href=address("/gates", {**query.values, "since": said}),
                aria_current="true" if said == current else None,
            )[words]
            for said, words in _SPANS.items()
        ),
    ]


def _table(
    gates: Sequence[GateShown], most: float, link: Callable[[str], str], empty: str
) -> Element:
    blocked = "would block" if gates and gates[0].figures.watches else "blocked"
    head = (
        "gate", "time spent", "run", blocked, "then passed", "skipped", "broken", "p50", "p95",
        "worth it?",
    )  # fmt: skip
    rows = [_row(one, most, link) for one in gates]
    return table(head, rows, empty=empty, numbers=_NUMBERS)


def _row(shown: GateShown, most: float, link: Callable[[str], str]) -> tuple[Node, ...]:
    gate = shown.figures
    return (
        h.a(href=link(gate.gate))[one_line(gate.gate)],
        [bar(gate.seconds, most), " ", age(gate.seconds)],
        f"{gate.asked:,}",
        f"{gate.stopped:,}",
        f"{gate.led_to_pass:,} of {gate.sent_back:,}" if gate.sent_back else "-",
        f"{gate.spared:,}",
        f"{gate.problems:,}",
        age(gate.p50) if gate.asked else "-",
        age(gate.p95) if gate.asked else "-",
        h.span(".worth")[shown.worth],
    )


def _hint(gates: Sequence[GateShown], span: str) -> Node:
    """Say which gates found nothing, and what to do about them."""
    names = [one_line(one.figures.gate) for one in gates if one.never_blocked]
    if not names:
        return None
    return h.p[
        f"Never blocked {span}: ",
        h.strong[listed(names)],
        ". Such a gate still costs its seconds at every stop: with ",
        h.code["slow = true"],
        " it runs only after the quick gates passed, with ",
        h.code["paths"],
        " only where its files changed; or delete it.",
    ]


SCREEN = Screen("/gates", load, draw, name="Gates")
