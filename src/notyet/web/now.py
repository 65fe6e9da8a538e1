"""The screen "Now": today in five numbers, the agents at work, stops over time, the last stops."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import htpy as h

from notyet.core.task import SUPERVISED_HOST
from notyet.ledger.at_work import agents_at_work, tasks_at_work
from notyet.ledger.figures import failed
from notyet.ledger.past_stops import below
from notyet.ledger.stop_search import Known, known_names, search
from notyet.ledger.tasks import Tasks
from notyet.times import since
from notyet.web.filters import expect_known, form, is_filtered, link, stop_filter
from notyet.web.layout import address, ago, one_line, section, times
from notyet.web.site import Drawing, NotShownError, Screen
from notyet.web.stops import NONE_YET, agent_link, stop_table
from notyet.web.tasks import state_chip, task_link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from htpy import Element, Node

    from notyet.core.task import TaskView
    from notyet.ledger.at_work import AgentAtWork
    from notyet.ledger.figures import Bucket
    from notyet.ledger.past_stops import PastStop
    from notyet.web.site import Query, Site

_LAST_STOPS = 15
_MOST_AGENTS = 20  # that are shown
_MOST_TASKS = 1_000  # in which those of a host, place or living supervisor are looked for
_MOST_DOTS = 12
_FILTERS = ("host", "place")
_HOUR, _DAY = 3_600.0, 86_400.0
_SPAN = "24h"
# By its name in the address: its words, its seconds and those of a step.
_SPANS = {
    "1h": ("hour", _HOUR, 120.0),
    "24h": ("24 hours", _DAY, _HOUR),
    "7d": ("7 days", 7 * _DAY, 6 * _HOUR),
    "30d": ("30 days", 30 * _DAY, _DAY),
}
# From the bottom of a bar to its top: the words of a kind of stop, and the class of its colour.
_KINDS = {
    "passed": ("passed", "ok"),
    "sent_back": ("sent back", "back"),
    "not_passed": ("NOT PASSED", "bad"),
    "not_checked": ("NOT CHECKED", "warn"),
    "skipped": ("skipped", "mute"),
    "other": ("other", "live"),
}
# What the numbers mean.
_AT_WORK = (
    "Agents that work now: supervised ones, and others that are being checked or were sent back"
    " in the last hour and have not come again."
)
_STOPS = "How often an agent said that it is done, since midnight."
_SENT_BACK = "Stops of today at which a gate failed, so that the agent was sent back to work."
_PASSED_AFTER = "Of the stops of today that were sent back: those whose agent passed in that turn."
_NOT_PASSED = "Stops of today at which the agent ended although gates still failed: look at these."


@dataclass(frozen=True)
class Numbers:
    """Agents that work now, and how the stops of today went."""

    at_work: int
    stops: int
    sent_back: int
    passed_after: int  # of those that were sent back
    not_passed: int


@dataclass(frozen=True)
class NowShown:
    """What happens now; of the agents at work the first ones."""

    numbers: Numbers
    tasks: tuple[TaskView, ...]  # that are supervised and at work
    agents: tuple[AgentAtWork, ...]  # others that are
    span: str
    over_time: tuple[Bucket, ...]
    stops: tuple[PastStop, ...]
    known: Known


def load(site: Site, query: Query) -> NowShown:
    """Read what happens now, of the host and place in the address."""
    expect_known(query, "span", *_FILTERS)
    span = query["span"] or _SPAN
    if span not in _SPANS:
        raise NotShownError(f"span is one of {', '.join(_SPANS)}, not “{one_line(span[:60])}”.")
    _, seconds, step = _SPANS[span]
    ledger = site.ledger
    wanted = stop_filter(query, most=_LAST_STOPS)
    tasks, count = _tasks(site, query)
    others = agents_at_work(ledger, wanted, _MOST_AGENTS)
    today = site.counts.today(ledger, wanted)
    # Counted anew each time: a block of long ago is NOT PASSED when its agent begins another turn.
    ends = failed(ledger, wanted, since("today"))
    numbers = Numbers(
        at_work=count + others.count,
        stops=sum(bucket.stops for bucket in today),
        sent_back=ends.sent_back,
        passed_after=ends.passed_after,
        not_passed=ends.not_passed,
    )
    return NowShown(
        numbers=numbers,
        tasks=tasks,
        agents=others.agents[: _MOST_AGENTS - len(tasks)],
        span=span,
        over_time=tuple(site.counts.last(ledger, wanted, seconds, step)),
        stops=search(ledger, wanted).stops,
        known=known_names(ledger),
    )


def _tasks(site: Site, query: Query) -> tuple[tuple[TaskView, ...], int]:
    """Return the newest tasks at work, and how many there are."""

    def of_living(most: int) -> list[TaskView]:
        page = Tasks(site.ledger).page("begun", most=most)
        return [view for view in (page.tasks if page else ()) if view.owner_alive]

    if not is_filtered(query, _FILTERS):
        count = tasks_at_work(site.ledger)
        found = of_living(_MOST_AGENTS)
        if len(found) < min(count, _MOST_AGENTS):  # the newest were left by a dead supervisor
            found = of_living(_MOST_TASKS)[:_MOST_AGENTS]
        return tuple(found), count
    folders = below(query["place"])

    def matches(view: TaskView) -> bool:
        place = view.task.cwd
        is_below = any(place == own or place.startswith(under) for own, under, _ in folders)
        return (is_below or not folders) and query["host"] in {"", SUPERVISED_HOST, view.agent}

    found = [view for view in of_living(_MOST_TASKS) if matches(view)]
    return tuple(found[:_MOST_AGENTS]), len(found)


def draw(data: NowShown, query: Query) -> Drawing:
    """Draw the numbers first, then the agents, the chart and the last stops."""
    words, _, _ = _SPANS[data.span]
    more = h.a(href=address("/stops", {name: query[name] for name in _FILTERS}))["all stops"]
    as_json = h.a(href=address("/now.json", query.values))["JSON"]
    find = section("Show only", form(query, data.known, _FILTERS), id="find")
    is_all = not is_filtered(query, _FILTERS)
    body = [
        None if is_all else find,
        _numbers(data.numbers, query),
        section(
            "Agents at work",
            *_agents(data, query),
            id="agents",
            note=[h.span(".dot.back"), " sent back by a gate"] if data.numbers.at_work else None,
        ),
        section(
            "Stops",
            _spans(query, data.span),
            _chart(data.over_time, data.span),
            id="over-time",
            note=f"in the last {words}",
        ),
        section(
            "Last stops",
            stop_table(data.stops, query, empty=_nothing(query)),
            id="stops",
            note=[more, " · ", as_json],
        ),
        find if is_all else None,
    ]
    return Drawing("Now", body, live=("numbers", "agents", "over-time", "stops"))


def _nothing(query: Query) -> str:
    return "No stop matches these filters." if is_filtered(query, _FILTERS) else NONE_YET


def _numbers(numbers: Numbers, query: Query) -> Element:
    kept = {name: query[name] for name in _FILTERS}

    def stops(outcome: str = "") -> str:
        return address("/stops", {"outcome": outcome, "since": "today", **kept})

    of_those = f"{numbers.passed_after:,} of {numbers.sent_back:,}"
    cards = (
        ("live", f"{numbers.at_work:,}", "at work", "#agents", _AT_WORK),
        ("", f"{numbers.stops:,}", "stops today", stops(), _STOPS),
        ("back", f"{numbers.sent_back:,}", "sent back", stops("blocked,overridden"), _SENT_BACK),
        ("ok", of_those, "of those passed after it", "", _PASSED_AFTER),
        ("bad", f"{numbers.not_passed:,}", "NOT PASSED", stops("not_passed"), _NOT_PASSED),
    )
    return h.ul("#numbers.tiles")[(_card(*card) for card in cards)]


def _card(colour: str, number: str, words: str, where: str, meaning: str) -> Element:
    shown: list[Node] = [h.strong({"class": colour} if colour else {})[number], words]
    return h.li(title=meaning)[h.a(href=where)[shown] if where else shown]


def _agents(data: NowShown, query: Query) -> list[Node]:
    rows = [_task(view) for view in data.tasks] + [_agent(one) for one in data.agents]
    if not rows:
        return [h.p(".empty")["No agent is at work."]]
    left = data.numbers.at_work - len(rows)
    more = (
        left > 0
        and h.p(".empty")[
            f"and {left:,} more; ",
            h.a(href="/tasks?show=active")["supervised ones"],
            ", ",
            h.a(href=address("/stops", {name: query[name] for name in _FILTERS}))["all stops"],
        ]
    )
    return [h.ul(".agents")[rows], more]


def _task(view: TaskView) -> Element:
    about = [view.agent or view.task.agent_type, os.path.basename(view.task.cwd)]
    row = _Row(f"task-{view.task.id}", state_chip(view), task_link(view), about)
    return row.drawn(view.steers, view.created_at, is_working=True)


def _agent(one: AgentAtWork) -> Element:
    past = one.stop
    words, colour = ("being checked", "live") if one.is_checked else ("sent back", "back")
    chip = h.span(f".chip.{colour}")[words]
    about = [past.host, os.path.basename(past.place)]
    row = _Row(f"agent-{past.id}", chip, agent_link(past), about)
    at = past.begun_at if past.ended_at is None else past.ended_at
    return row.drawn(one.sent_back, at, is_working=not one.is_checked)


@dataclass(frozen=True)
class _Row:
    """An agent at work."""

    id: str
    state: Element
    name: Node
    about: Sequence[str | None]

    def drawn(self, sent_back: int, at: float, *, is_working: bool) -> Element:
        """Return it with a dot for each send-back, and since when it is in this state."""
        about = " · ".join(one_line(words) for words in self.about if words)
        dots = [h.span(".dot.back") for _ in range(min(sent_back, _MOST_DOTS))]
        more = sent_back > _MOST_DOTS and f"+{sent_back - _MOST_DOTS}"
        said = f"sent back {times(sent_back)}"
        return h.li(id=self.id)[
            h.span(".state")[self.state],
            h.span(".who")[h.strong[self.name], h.small[about]],
            h.span(".dots", title=said)[
                dots, more, is_working and h.span(".dot.live"), h.span(".unseen")[said]
            ],
            h.span(".number")[ago(at)],
        ]


def _spans(query: Query, current: str) -> Element:
    return h.p(".spans")[
        "last ",
        (
            h.a(
                href=link(query, span="" if name == _SPAN else name),
                aria_current="true" if name == current else None,
            )[words]
            for name, (words, _, _) in _SPANS.items()
        ),
    ]


def _chart(buckets: tuple[Bucket, ...], span: str) -> Node:
    """Return what chart.js draws, and the same numbers as a table."""
    shown = [kind for kind in _KINDS if any(getattr(bucket, kind) for bucket in buckets)]
    if not shown:
        return h.p(".empty")["No agent stopped in this time."]
    series = [
        {
            "name": _KINDS[kind][0],
            "colour": _KINDS[kind][1],
            "counts": [getattr(bucket, kind) for bucket in buckets],
        }
        for kind in shown
    ]
    starts = [round(bucket.at) for bucket in buckets]
    data = {"starts": starts, "end": round(buckets[-1].until), "series": series}
    how = "%H:%M" if span in {"1h", _SPAN} else "%a %d %b, %H:%M" if span == "7d" else "%a %d %b"
    rows = [
        h.tr[
            h.th(scope="row")[_local(bucket.at, how)],
            [h.td(".number")[f"{getattr(bucket, kind):,}"] for kind in shown],
        ]
        for bucket in reversed(buckets)
        if bucket.stops
    ]
    names = (h.th(".number", scope="col")[_KINDS[kind][0]] for kind in shown)
    return [
        h.div(
            "#chart", data_chart=json.dumps(data), role="img",
            aria_label="Stops by outcome over time; the table below has the numbers",
        ),
        h.details("#chart-table")[
            h.summary["as a table"],
            h.div(".wide")[h.table[h.thead[h.tr[h.th(scope="col")["from"], names]], h.tbody[rows]]],
        ],
    ]  # fmt: skip


def _local(at: float, how: str) -> str:
    return datetime.fromtimestamp(at).strftime(how)  # noqa: DTZ006  # the time of a person here


SCREEN = Screen("/", load, draw, name="Now", json_path="/now.json")
