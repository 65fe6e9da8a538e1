"""Filters in the address: query values to a `StopFilter`, the form that sets them, and links."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import htpy as h

from notyet.core.text import bounded, visible
from notyet.core.verdict import GROUPS, LOUD, OUTCOMES
from notyet.ledger.past_stops import StopFilter
from notyet.times import since, until
from notyet.web.layout import address, words_of
from notyet.web.site import NotShownError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from htpy import Element

    from notyet.ledger.stop_search import Known
    from notyet.web.site import Query

FIELDS = ("outcome", "host", "gate", "place", "session", "since", "until")
PAGING = ("before", "after")
_OUTCOMES = (*OUTCOMES, *GROUPS, "asking")
# In the order in which people look for them; the others have the same words as a group.
_FIRST = ("blocked", "passed", "not_passed", "not_checked", "skipped", "halted", "observed")
_GROUP_WORDS = {"not_passed": "NOT PASSED", "not_checked": "NOT CHECKED"}
_SPANS = ("1h", "today", "2d", "7d", "30d")
_MOST_DIGITS = 18
_LONGEST = 4_096  # of a value, as that of a folder
_SHOWN = 60


def stop_filter(query: Query, *, most: int = 50, default_since: str = "") -> StopFilter:
    """Return the stops that an address asks for. Raises NotShownError."""
    for name in FIELDS:
        if len(query[name]) > _LONGEST or "\0" in query[name]:
            raise NotShownError(f"{name} is too long, or has a character that no name has.")
    first, last = _time(query, "since", default_since), _time(query, "until")
    if first and last and last <= first:
        raise NotShownError("until is before since: exchange them, or clear one.")
    return StopFilter(
        session=query["session"],
        outcomes=_outcomes(query["outcome"]),
        host=query["host"],
        place=_place(query["place"]),
        gate=query["gate"],
        since=first,
        until=last,
        before=_number(query, "before"),
        after=_number(query, "after"),
        most=most,
    )


def expect_known(query: Query, *names: str) -> None:
    """Refuse an address with a misspelt name, which would show more than was asked for."""
    for name in query.values:
        if name not in names:
            known = ", ".join(names)
            raise NotShownError(f"There is no filter {_shown(name)}; there are {known}.")


def _outcomes(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in _OUTCOMES:
            known = ", ".join(_OUTCOMES)
            raise NotShownError(f"There is no outcome {_shown(name)}; there are {known}.")
    return names


def _place(text: str) -> str:
    place = os.path.expanduser(text.strip())
    if place and not os.path.isabs(place):
        raise NotShownError(f"place is the whole path of a folder, not {_shown(text)}.")
    return place


def _time(query: Query, name: str, default: str = "") -> float:
    text = query[name] or default
    try:
        return (since if name == "since" else until)(text) if text else 0.0
    except ValueError as error:
        raise NotShownError(f"{name}: {error}") from None


def _number(query: Query, name: str) -> int:
    text = query[name]
    if text and not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise NotShownError(f"{name} is the number of a stop, not {_shown(text)}.")
    return int(text or 0)


def _shown(text: str) -> str:
    return f"“{visible(bounded(text, _SHOWN))}”"


def link(query: Query, **changes: str) -> str:
    """Return the address of the same screen with some filters changed, from its first page on."""
    kept = {name: value for name, value in query.values.items() if name not in PAGING}
    return address(query.path, kept | changes)


def is_filtered(query: Query, names: Iterable[str] = FIELDS) -> bool:
    """Return True if the address leaves something out."""
    return any(query[name] for name in names)


def form(query: Query, known: Known, names: Sequence[str] = FIELDS) -> Element:
    """Return the form that sets filters; it works without scripts."""
    others = [name for name in query.values if name not in (*names, *PAGING)]
    return h.form("#filters.filters", method="get", action=query.path, role="search")[
        (h.input(type="hidden", name=name, value=query[name]) for name in others),
        (_field(name, query[name], known) for name in names),
        h.button(type="submit")["Show"],
        is_filtered(query, names) and h.a(href=link(query, **dict.fromkeys(names, "")))["clear"],
    ]


def _field(name: str, value: str, known: Known) -> Element:
    if name == "outcome":
        choices = dict.fromkeys([*_choices(), value] if value else _choices())
        return _select(name, value, [(one, _words(one)) for one in choices])
    if name in {"host", "gate"}:
        names = known.hosts if name == "host" else known.gates
        return _select(name, value, [(one, visible(one)) for one in names])
    offered: Sequence[str] = ()
    if name == "place":
        offered = known.places
    elif name == "since":
        offered = _SPANS
    examples = {"place": "a folder", "since": "2d or 2026-11-01", "until": "today"}
    return h.label[
        h.span[name],
        h.input(
            name=name,
            value=value,
            list=f"{name}-list" if offered else None,
            placeholder=examples.get(name),
            autocomplete="off",
            maxlength=_LONGEST,
        ),
        offered and h.datalist(f"#{name}-list")[(h.option(value=one) for one in offered)],
    ]


def _select(name: str, value: str, offered: Sequence[tuple[str, str]]) -> Element:
    if value and value not in dict(offered):
        offered = [*offered, (value, visible(value))]
    return h.label[
        h.span[name],
        h.select(name=name)[
            h.option(value="")["any"],
            (h.option(value=one, selected=one == value)[words] for one, words in offered),
        ],
    ]


def _choices() -> list[str]:
    return [*_FIRST, *(name for name in _OUTCOMES if name not in _FIRST)]


def _words(outcome: str) -> str:
    """Return what people read for an outcome that they choose, or for several in an address."""
    if "," in outcome:
        return " or ".join(map(_words, _outcomes(outcome)))
    if outcome in _GROUP_WORDS:
        return _GROUP_WORDS[outcome]
    if outcome in LOUD:
        return f"{LOUD[outcome]}: {outcome.replace('_', ' ')}"
    return words_of(outcome, "unchanged")[0]
