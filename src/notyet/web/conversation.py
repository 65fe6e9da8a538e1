"""Pieces of a conversation: what was asked, answered, checked and sent back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import htpy as h

from notyet.core.text import first_line
from notyet.status.stop_words import remark
from notyet.web.layout import chip, gate_chip, long_text, one_line

if TYPE_CHECKING:
    from htpy import Element, Node

    from notyet.ledger.past_stops import PastStop

_MOST_TEXT = 6_000  # characters of one text; the screen of the stop has all of it


def entry(label: Node, text: str, kind: str = "", *, empty: str = "no words") -> Element:
    """Return what one side said; `kind` is "agent", "returned" or "" for a person."""
    return h.div({"class": f"entry {kind}".strip()})[
        h.p(".label")[label], long_text(text, _MOST_TEXT, empty=empty)
    ]


def checked(past: PastStop) -> Element:
    """Return the gates of a stop and its outcome, in a line."""
    words = "" if past.outcome == "blocked" else remark(past)
    return h.p(".checked")[
        (gate_chip(report) for report in past.reports),
        " ",
        h.a(href=f"/stops/{past.id}")[f"stop {past.id}"],
        " ",
        chip(past.outcome, past.why),
        " ",
        words and h.span(".why")[one_line(first_line(words))],
    ]


def sent_back(past: PastStop) -> Node:
    """Return what the agent read when it was sent back."""
    if not past.prompt:
        return None
    count = f" ({past.count} of {past.limit})" if past.limit else ""
    return entry(f"sent back{count}", past.prompt, "returned")
