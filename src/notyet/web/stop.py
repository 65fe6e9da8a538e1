"""The screen "Stop": what the agent said, what each gate found, and what the agent read of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import htpy as h

from notyet.core.text import visible
from notyet.core.verdict import GONE
from notyet.errors import LedgerError, NotyetError
from notyet.ledger.logs import is_beside, whole_output
from notyet.ledger.past_stops import neighbours, read_stop, same_turn
from notyet.replay import Configs, Finding, replay, turns_of
from notyet.status.stop_words import cause, how, remark, said, whole_json
from notyet.times import exactly
from notyet.web.filters import expect_known
from notyet.web.layout import (
    address,
    ago,
    block,
    chip,
    facts,
    gate_chip,
    long_text,
    one_line,
    section,
    times,
    took,
)
from notyet.web.site import Drawing, NotFoundError, Screen
from notyet.web.stops import agent_link

if TYPE_CHECKING:
    from typing import Any

    from htpy import Element, Node

    from notyet.core.verdict import Report
    from notyet.ledger.past_stops import PastStop
    from notyet.web.site import Query, Site

_MOST_OUTPUT = 1 << 20  # bytes that are read of a log
_MOST_SHOWN = 400_000  # characters of an output in the page; a browser draws more only slowly
_MOST_DIGITS = 18
_LONGEST = 2_000  # characters of a fact
_OPEN = frozenset({"blocked", "halted", "problem"})  # what people look for first
_RESULTS = {
    "same": "Today's gates would decide the same.",
    "differs": "Today's gates would decide otherwise.",
    "unknown": "It is unknown what today's gates would decide: not every answer is recorded.",
    "hypothetical": "The agent might never have come to this stop.",
    "left_out": "It cannot be decided again.",
}


@dataclass(frozen=True)
class Replayed:
    """What a stop would come to with the gates of today."""

    finding: Finding | None  # None: it could not be replayed
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StopShown:
    """A stop, and what stands around it."""

    past: PastStop
    outputs: tuple[tuple[str, bool], ...]  # of each gate; True: its log was pruned
    near: tuple[PastStop, ...]  # the other stops of its turn, the oldest first
    before: int  # the stop before it of the same agent; 0: none
    after: int
    replayed: Replayed | None  # None: that was not asked for


def load(site: Site, query: Query) -> StopShown:
    """Read a stop; decide it again if the address asks for that."""
    expect_known(query, "number", "replay")
    number = query["number"]
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    past = read_stop(site.ledger, int(number)) if is_number else None
    if past is None:
        shown = one_line(number[:_MOST_DIGITS])
        raise NotFoundError(f"There is no stop {shown}. Old ones are pruned; Stops lists the rest.")
    before, after = neighbours(site.ledger, past.id)
    return StopShown(
        past=past,
        outputs=tuple(_output(site, report) for report in past.reports),
        near=tuple(same_turn(site.ledger, past.id)),
        before=before,
        after=after,
        replayed=_replayed(site, past) if query["replay"] and not query.is_shared else None,
    )


def _output(site: Site, report: Report) -> tuple[str, bool]:
    """Return what a gate printed; True: its log is gone, or on another machine."""
    connection = site.ledger.connection
    # A path from a shared ledger is another person's word: it opens no other file here.
    if report.log and not connection.is_file and not is_beside(connection.beside, report.log):
        return report.output, True
    return whole_output(report, _MOST_OUTPUT)


def _replayed(site: Site, past: PastStop) -> Replayed:
    """Decide a stop again with the gates in force now; only files are read, and nothing is run."""
    configs = Configs(site.environ, None, site.ledger)
    try:
        found = replay(turns_of(site.ledger, [past]), configs.of)
    except LedgerError:
        raise
    except NotyetError as error:
        return Replayed(None, (str(error),))
    (finding,) = (one for one in found if one.past.id == past.id)
    return Replayed(finding, tuple(configs.notes))


def plain(data: StopShown) -> dict[str, Any]:
    """Return what `notyet log ID --json` prints, and the stops around it."""
    known = whole_json(data.past, data.near, data.outputs)
    known |= {"before": data.before or None, "after": data.after or None}
    if data.replayed:
        finding = data.replayed.finding
        known["replay"] = finding.plain() if finding else None
        known["replay_notes"] = data.replayed.notes
    return known


def draw(data: StopShown, query: Query) -> Drawing:
    """Draw the outcome, the words of the agent, those of the gates, and what was read of them."""
    past = data.past
    is_asking = past.outcome == "asking"
    body = h.div("#stop")[
        _head(data),
        section("What the agent said", block(past.event.last_message or "")),
        _gates(data),
        None if is_asking else _read(past),
        None if is_asking else _today(data, query),
    ]
    # The next stop of an agent that was sent back is expected.
    is_live = is_asking or (past.outcome == "blocked" and not past.followed)
    return Drawing(f"Stop {past.id}", body, live=("stop",) if is_live else ())


def _head(data: StopShown) -> Element:
    past, event = data.past, data.past.event
    version = f" {event.host_version}" if event.host_version else ""
    place = past.place or event.cwd
    ending = event.error or event.end_reason or ""
    known: list[tuple[str, Node]] = [
        ("agent", [agent_link(past), _kinds(past)]),
        ("task", past.task and h.a(href=f"/tasks/{past.task}")[one_line(past.task)]),
        ("host", one_line(f"{past.host}{version}")),
        ("place", place and h.a(href=address("/stops", {"place": place}))[one_line(place)]),
        ("workspace", one_line(event.workspace)),
        ("when", [exactly(past.begun_at), " (", ago(past.begun_at), " ago)"]),
        ("took", past.ended_at is not None and took(past.ended_at - past.begun_at)),
        ("limit", _limit(past)),
        ("ending", event.ending != "done" and one_line(f"{event.ending} {ending}"[:_LONGEST])),
        ("reason", _reason(past)),
        ("repeated", past.repeated and f"its answer was given again {times(past.repeated)}"),
        ("unknown here", one_line(", ".join(past.odd)[:_LONGEST])),
    ]
    return section(
        f"Stop {past.id}",
        facts(known),
        (h.p(".warn")[one_line(warning[:_LONGEST])] for warning in past.warnings),
        _turn(data),
        _around(data),
        note=[
            chip(past.outcome, past.why),
            " ",
            one_line(cause(past)[:_LONGEST]),
            " · ",
            h.a(href=f"/stops/{past.id}.json")["JSON"],
        ],
    )


def _kinds(past: PastStop) -> str:
    event = past.event
    agent = "main agent" if past.scope == "agent" else "subagent"
    kinds = [agent, event.agent_type, event.model]
    return f" ({', '.join(one_line(kind) for kind in kinds if kind)})"


def _limit(past: PastStop) -> str:
    if not past.limit:
        return ""
    source = f"({one_line(past.limit_source)})" if past.limit_source else ""
    if past.outcome in {"blocked", "overridden"}:
        gone = f": the agent {GONE}" if past.outcome == "overridden" else ""
        return f"send-back {past.count} of {past.limit} {source}{gone}"
    return f"{past.count} of {past.limit} send-backs used {source}"


def _reason(past: PastStop) -> str:
    """Return why, where neither the headline nor a gate says it."""
    if past.outcome == "blocked":  # its reason names the gates
        return ""
    words = [text for report in past.reports for text in said(report)]
    known = {past.prompt, remark(past), *words}
    reasons = [text for text in (past.why, past.reason) if text and text not in known]
    return one_line("; ".join(dict.fromkeys(reasons))[:_LONGEST])


def _turn(data: StopShown) -> Node:
    """Return the stops of the turn as a path, by which one sees whether sending back helped."""
    if not data.near:
        return None
    stops = sorted((*data.near, data.past), key=lambda one: one.id)
    return [
        h.p(".label")[f"turn {data.past.turn}"],
        h.ol(".path")[(_step(one, is_here=one.id == data.past.id) for one in stops)],
    ]


def _step(past: PastStop, *, is_here: bool) -> Element:
    return h.li[
        h.a(href=f"/stops/{past.id}", aria_current="page" if is_here else None)[str(past.id)],
        " ",
        chip(past.outcome, past.why),
        " ",
        (gate_chip(report) for report in past.reports if report.status in _OPEN),
    ]


def _around(data: StopShown) -> Node:
    if not data.before and not data.after:
        return None
    return h.nav(".pages", aria_label="Stops of this agent")[
        bool(data.before) and h.a(href=f"/stops/{data.before}", rel="prev")["previous stop"],
        bool(data.after) and h.a(href=f"/stops/{data.after}", rel="next")["next stop"],
    ]


def _gates(data: StopShown) -> Element:
    if data.past.outcome == "asking":
        words = "The gates run now. This page shows what they say as soon as they are done."
    else:
        words = "No gate ran."
    pairs = zip(data.past.reports, data.outputs, strict=True)
    return section(
        "What the gates said",
        [
            gate_said(report, output, _log(report, is_pruned=is_pruned))
            for report, (output, is_pruned) in pairs
        ]
        or h.p(".empty")[words],
    )


def gate_said(
    report: Report, output: str, note: Node = None, *, most: int = _MOST_SHOWN
) -> Element:
    """Return how a gate ended and, to be opened, what it printed; it is open if that matters."""
    words, _ = said(report)
    explained = one_line(how(report)[:_LONGEST])
    return h.details(".said", open=report.status in _OPEN)[
        h.summary[gate_chip(report), " ", h.span(".why")[explained]],
        long_text(output if output.strip() else words, most, empty="It printed nothing."),
        report.hidden and h.p(".empty")["The gate wants its output hidden."],
        note,
    ]


def _log(report: Report, *, is_pruned: bool) -> Node:
    if not report.log:
        return None
    log = h.code[one_line(report.log)]
    if is_pruned:
        return h.p(".empty")[
            log, " was removed to make room, or is on another machine; this is what is left."
        ]
    return h.p(".empty")["All of it is in ", log]


def _read(past: PastStop) -> Element:
    title = "What the agent read"
    if past.prompt:
        return section(title, block(past.prompt))
    words = "Its turn was ended." if past.verdict == "halt" else "Nothing: it was allowed to stop."
    return section(title, h.p(".empty")[words])


def _today(data: StopShown, query: Query) -> Node:
    """Say what the stop would come to now, or offer to find out."""
    title, number = "With today's gates", data.past.id
    if query.is_shared:  # this machine has not its folder, nor today's gates
        return None
    if data.replayed is None:
        again = address(f"/stops/{number}", {"replay": "1"})
        return section(
            title,
            h.p[
                h.a(href=f"{again}#today")["Decide it again"],
                " with the gates that are in force now. Nothing is run.",
            ],
            id="today",
        )
    found = data.replayed.finding
    return section(
        title,
        None if found is None else _finding(found),
        (h.p(".warn")[one_line(note[:_LONGEST])] for note in data.replayed.notes),
        h.p[h.a(href=query.path)["hide this"]],
        id="today",
    )


def _finding(found: Finding) -> Node:
    shown: list[Node] = [h.p[h.strong[_RESULTS[found.result]]]]
    if found.result in {"same", "differs"}:
        was, now = chip(found.was, found.past.why), chip(found.outcome, found.why)
        shown.append(h.p["then ", was, " now ", now])
    if found.result in {"differs", "unknown"}:
        shown.append(h.p[one_line(visible(found.reasons)[:_LONGEST])])
    if found.missing:
        command = f"notyet replay {found.past.id} --run"
        shown.append(h.p["Run them on today's files with ", h.code[command]])
    if found.result == "hypothetical":
        other = h.a(href=f"/stops/{found.follows}?replay=1#today")[f"stop {found.follows}"]
        shown.append(h.p["With today's gates, ", other, " of this turn would end otherwise."])
    if found.left_out:
        shown.append(h.p[one_line(found.left_out[:_LONGEST])])
    return shown


SCREEN = Screen("/stops/{number}", load, draw, plain=plain)
