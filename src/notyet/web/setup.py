"""The screen "Setup": what `notyet status` says of a folder, with the fix of each fault.

`status` starts programs and takes a second or more, so the screen comes at once and fetches the
rest; all tabs share one look.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import htpy as h

from notyet.config.records import work_tree
from notyet.core.verdict import NOTHING_TO_CHECK, UNCHECKED
from notyet.errors import LedgerError
from notyet.ledger.stop_search import known_names
from notyet.status.overview import near
from notyet.status.report import StatusReport, report_on
from notyet.status.words import (
    faults_shown,
    fix_of,
    gate_columns,
    host_details,
    host_state,
    limits_shown,
)
from notyet.web.filters import expect_known
from notyet.web.layout import address, ago, chip, one_line, section, table
from notyet.web.site import Drawing, NotFoundError, NotShownError, Screen

if TYPE_CHECKING:
    from htpy import Element, Node

    from notyet.status.fault import Fault
    from notyet.web.site import Query, Site

_FRESH = 5.0  # seconds for which a look counts
_MOST_KEPT = 20  # looks
_MOST_NAMED = 4  # hosts that are not here
_ANSWERS = {"yes": "ok", "partly": "warn", "perhaps": "warn", "no": "bad"}
_LEVELS = {"fault": "bad", "warning": "warn", "note": "mute", "": "ok"}


@dataclass(frozen=True)
class Look:
    """What was found in a folder, and when."""

    at: float
    report: StatusReport


class Looks:
    """Looks at folders, one at a time, and remembers each look for some seconds."""

    def __init__(self) -> None:
        self._looking = threading.Lock()
        self._found: dict[tuple[str, str], Look] = {}

    def fresh(self, site: Site, place: str, after: float) -> Look | None:
        """Return the last look, if it is newer than `after` and not old."""
        found = self._found.get((site.path, place))
        if found is None or found.at <= after or time.time() - found.at > _FRESH:
            return None
        return found

    def look(self, site: Site, place: str, after: float) -> Look:
        """Return a fresh look; a second tab waits for that of the first."""
        with self._looking:
            known = self.fresh(site, place, after)
            if known is not None:
                return known
            report = report_on(place, site.environ, site.path)
            found = Look(round(time.time(), 3), report)  # as an address has it
            self._found.pop((site.path, place), None)
            self._found[site.path, place] = found
            for key in [*self._found][:-_MOST_KEPT]:
                del self._found[key]
            return found


_LOOKS = Looks()


@dataclass(frozen=True)
class SetupShown:
    """A folder, those that can be chosen, and what was found; None while it is looked for."""

    place: str
    places: tuple[str, ...]
    found: Look | None


def load(site: Site, query: Query) -> SetupShown:
    """Return what is known already; with `look`, and for JSON, look now."""
    expect_known(query, "place", "look", "after")
    if query.is_shared:  # folders, settings and variables of this machine are not a team's
        raise NotFoundError("Setup is about one machine; run notyet status there.")
    place = query["place"] or site.cwd
    places = _places(site, place)
    if place not in places:
        raise NotFoundError(
            "place is not a folder of this machine in which an agent stopped;"
            " start notyet page in it, or run notyet status there."
        )
    after = _after(query)
    is_whole = bool(query["look"]) or query.path.endswith(".json")
    found = (_LOOKS.look if is_whole else _LOOKS.fresh)(site, place, after)
    return SetupShown(place, places, found)


def _places(site: Site, place: str) -> tuple[str, ...]:
    """Return the folders that can be chosen: the page's own, and those in which agents stopped."""
    try:
        known = known_names(site.ledger).places
    except LedgerError:
        if place != site.cwd:
            raise
        known = ()  # the report says what is wrong with the ledger
    return tuple(dict.fromkeys([site.cwd, *filter(os.path.isdir, known)]))


def _after(query: Query) -> float:
    try:
        return float(query["after"] or 0)
    except ValueError:
        raise NotShownError("after is a time in seconds since 1970.") from None


def draw(data: SetupShown, query: Query) -> Drawing:
    """Draw the answer first, then gates, hosts, faults, limits and the last stops."""
    chosen = {"place": query["place"]}
    if data.found is None:
        body: Node = _looking(address("/setup", {**chosen, "look": "1", "after": query["after"]}))
    else:
        report = data.found.report
        body = [
            _answer(data.found, chosen),
            _faults(report),
            _gates(report),
            _hosts(report),
            _limits(report),
            _last_stops(report),
        ]
    return Drawing("Setup", [_choice(data), h.div("#setup", aria_live="polite")[body]])


def _choice(data: SetupShown) -> Element:
    """Return the form that chooses the folder."""
    if len(data.places) == 1:
        return h.p(".where")[h.code[one_line(data.place)]]
    return h.form(".filters.where", method="get", action="/setup")[
        h.label[
            h.span["folder"],
            h.select(name="place")[
                (
                    h.option(value=one, selected=one == data.place)[one_line(near(one, ""))]
                    for one in data.places
                )
            ],
        ],
        h.button(type="submit")["Show"],
    ]


def _looking(where: str) -> Element:
    return h.section(_fetch(where), hx_trigger="load")[
        h.h2["Looking…"],
        h.p(".empty")[
            "The gates, the hosts and their settings: this takes a second or two. ",
            h.a(href=where)["Without scripts, go on here"],
        ],
    ]


def _fetch(where: str) -> dict[str, str]:
    """Return what fetches this part anew, or else the section that says why it cannot be shown."""
    return {
        "hx-get": where,
        "hx-target": "#setup",
        "hx-select": "#setup, main:not(:has(#setup)) > section",
        "hx-swap": "outerHTML",
    }


def _answer(found: Look, chosen: dict[str, str]) -> Element:
    report, answer = found.report, found.report.answer
    _, _, says = answer.says.partition(": ")
    # A tab that asks again gets a later look than the one that it shows.
    again = address("/setup", {**chosen, "look": "1", "after": f"{found.at:.3f}"})
    return h.section(".answer")[
        h.h2[
            h.span(f".verdict.{_ANSWERS[answer.state]}")[answer.state.upper()],
            " ",
            one_line(says),
        ],
        (h.p[h.span(".warn")["but "], one_line(words)] for words in answer.but),
        None if report.is_well else h.p["Fix: ", _fix(fix_of(report))],
        h.p(".empty")[
            "looked ", ago(found.at), " ago · ", h.a(_fetch(again), href=again)["look again"]
        ],
    ]


def _fix(text: str) -> Node:
    """Return a fix; a command in it can be selected with one click."""
    words, run, command = one_line(text).partition("run: ")
    if not run:
        is_command = words.startswith(("notyet ", "git "))
        return h.code(".copy")[words] if is_command else words
    return [words, "run ", h.code(".copy")[command]]


def _faults(report: StatusReport) -> Node:
    faults = faults_shown(report)
    if not faults:
        return None
    return section("What is wrong", h.ul(".faults")[(_fault(one) for one in faults)])


def _fault(found: Fault) -> Element:
    return h.li[
        h.p[
            h.span(f".chip.{_LEVELS[found.level]}")[found.level],
            " ",
            one_line(found.what),
            " ",
            h.small(".mute")[f"[{found.code}]"],
        ],
        found.where and h.p(".mute")["at ", h.code[one_line(found.where)]],
        found.fix and h.p["Fix: ", _fix(found.fix)],
    ]


def _gates(report: StatusReport) -> Element:
    columns = gate_columns(report)
    cells = {
        name: [
            h.code[one_line(cell)] if name == "runs" and cell else one_line(cell) for cell in all_
        ]
        for name, all_ in columns.items()
    }
    linked = [path for setup in report.setups.values() for path in setup.linked]
    return section(
        "Gates",
        table(
            tuple(cells),
            list(zip(*cells.values(), strict=True)),
            empty="No gate is in force here. `notyet init` finds what your project has.",
        ),
        linked
        and h.p(".empty")[f"A work tree of {one_line(work_tree(linked[0])[1])}, with its trust."],
    )


def _hosts(report: StatusReport) -> Element:
    here = [status for status in report.hosts if status.is_here]
    absent = [status.title for status in report.hosts if not status.is_here]
    rows: list[tuple[Node, ...]] = []
    for status in here:
        state, level = host_state(status, report.cwd)
        details = " · ".join(map(one_line, host_details(status)))
        words = [h.span(f".{_LEVELS[level]}")[state], details and h.p(".mute")[details]]
        rows.append((status.title, words))
    names = ", ".join(absent)
    if len(absent) > _MOST_NAMED:
        names = f"{len(absent)} {'other hosts' if here else 'hosts'}"
    return section(
        "Hosts",
        table(("host", "state"), rows, empty="No host is installed here."),
        absent
        and h.p(".empty")["not found: ", names, " (", h.code["notyet hosts"], " lists them)"],
    )


def _limits(report: StatusReport) -> Node:
    said = [one_line(words) for words in limits_shown(report)] if report.gates else []
    if report.recent.problem:
        wrong = f"{near(report.recent.path, '')} cannot be read: {report.recent.problem}"
        said.append(one_line(wrong))
    if report.variables:
        said.append(one_line(f"set in the environment: {', '.join(report.variables)}"))
    return said and section("Limits", h.ul[(h.li[words] for words in said)])


def _last_stops(report: StatusReport) -> Element:
    rows = [
        (
            h.a(href=f"/stops/{one['id']}")[str(one["id"])],
            ago(one["at"]),
            # Its words say whether there was nothing to check; the cause is not known here.
            chip(one["outcome"], "" if words == UNCHECKED else NOTHING_TO_CHECK[0]),
            one_line(one["host"]),
            h.span(".why")[one_line(one["why"])],
        )
        for one, words in zip(report.recent.decisions, report.recent.words, strict=True)
    ]
    head = ("stop", "ago", "outcome", "host", "why")
    return section(
        "Last stops here",
        table(head, rows, empty="No agent has stopped here yet.", numbers=("stop", "ago")),
        note=h.a(href=address("/stops", {"place": report.cwd}))["all of them"],
    )


SCREEN = Screen("/setup", load, draw, name="Setup", is_listed=lambda site: site.proxy is None)
