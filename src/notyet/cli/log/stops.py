"""Stops as `notyet log` shows them: rows of a table, JSON, and a page about one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from notyet.cli.streams import json_line
from notyet.cli.terminal import (
    NAME_WIDTH,
    OUTCOME_COLOURS,
    Page,
    Style,
    one_line,
    outcome_cell,
    paged,
    shorten_middle,
    table,
)
from notyet.core.text import clean, visible
from notyet.core.verdict import GONE, Problem
from notyet.errors import Refused
from notyet.ledger.logs import whole_output
from notyet.ledger.past_stops import read_stop, same_turn
from notyet.status.stop_words import how, remark, said, whole_json
from notyet.times import age, exactly, when

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from notyet.cli.terminal import Cell
    from notyet.core.verdict import Report
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import PastStop

ELSEWHERE = "for stops of other folders, add --all"
HEAD = ("ID", "WHEN", "HOST", "SESSION", "AGENT", "OUTCOME", "GATES")
_WIDTHS = (6, 12, 8, 8, 8, 11)  # of all but the last column, in a table that grows
_ID_LENGTH = 8  # characters of a session or an agent
_MARKS = {"allowed": "✓", "blocked": "✗", "halted": "■", "problem": "!"}
_NOT_RUN = {"remembered": "✓ remembered", "unchanged": "- unchanged", "not_asked": "- not run"}


def stop_table(
    found: Sequence[PastStop], stream: TextIO | None = None, *, is_growing: bool = False
) -> list[str]:
    """Return the lines of a table of stops.

    One that grows has fixed columns; another has no column for agents if all are main agents.
    """
    head: tuple[str, ...] = HEAD
    rows = [_row(past) for past in found]
    if not is_growing and not any(past.agent_id for past in found):
        at = HEAD.index("AGENT")
        head = HEAD[:at] + HEAD[at + 1 :]
        rows = [row[:at] + row[at + 1 :] for row in rows]
    least = _WIDTHS if is_growing else ()
    return table(head, rows, Style(stream or sys.stdout), right=("ID",), least=least)


def _row(past: PastStop) -> tuple[Cell, ...]:
    odd = f"odd: {one_line(', '.join(past.odd), 200)}" if past.odd else ""
    gates = ", ".join(map(_brief, past.reports))
    return (
        str(past.id),
        when(past.begun_at),
        past.host,
        past.session_id[:_ID_LENGTH] or "-",
        past.agent_id[:_ID_LENGTH] or "main",
        outcome_cell(past.outcome),
        "; ".join(part for part in (odd, gates, _remark(past)) if part),
    )


def _brief(report: Report) -> str:
    """Return the result of one gate, in a few words."""
    gate = shorten_middle(report.gate, 30)
    if report.status in _NOT_RUN:
        return f"{gate} {_NOT_RUN[report.status]}"
    kind = f" {report.answer.kind}" if isinstance(report.answer, Problem) else ""
    watched = " (observed)" if report.observed and report.status != "allowed" else ""
    return f"{gate} {_MARKS[report.status]}{kind} {age(report.seconds)}{watched}"


def _remark(past: PastStop) -> str:
    return one_line(remark(past), 300)


def show_stop(ledger: Ledger, number: int, *, as_json: bool) -> int:
    """Print everything about one stop. Raises Refused if there is no such stop."""
    past = read_stop(ledger, number)
    if past is None:
        if not os.path.exists(ledger.path):
            raise Refused(f"there is no stop {number}: {ledger.path} does not exist yet")
        raise Refused(f"there is no stop {number}; list them with: notyet log --all")
    near = same_turn(ledger, number)
    if as_json:
        print(json_line(whole_json(past, near, [whole_output(one) for one in past.reports])))
        return 0
    with paged():
        page = _Page(past)
        page.head()
        page.event()
        page.turn(near)
        page.gates()
        page.text("prompt", past.prompt)
        for report in past.reports:
            page.output(report)
    return 0


class _Page(Page):
    """Prints one stop."""

    def __init__(self, past: PastStop) -> None:
        super().__init__()
        self._past = past

    def head(self) -> None:
        """Print the outcome, and what explains it."""
        past = self._past
        outcome = self.paint(past.outcome, OUTCOME_COLOURS.get(past.outcome, "bold"))
        remark = "" if past.outcome == "overridden" else _remark(past)
        self.fact("stop", f"{past.id}  {outcome}{f' ({remark})' if remark else ''}")
        if past.outcome == "overridden":
            self.fact("", f"send-back {past.count} of {past.limit}: the agent {GONE}")
        took = "" if past.ended_at is None else f", took {age(past.ended_at - past.begun_at)}"
        self.fact("when", exactly(past.begun_at) + took)
        if past.why and past.why not in remark:
            self.text("blocker" if past.verdict == "block" else "why", past.why)
        words = [text for report in past.reports for text in said(report)]
        if past.reason and past.reason not in {past.prompt, *words}:
            self.text("reason", past.reason)
        if past.limit:
            self.fact("limit", f"{past.limit} send-backs, by {one_line(past.limit_source, 200)}")
        if past.odd:
            self.fact("odd", one_line(", ".join(past.odd), 2_000), "yellow")
        if past.repeated:
            self.fact("repeated", f"its answer was given {past.repeated} more times")
        for warning in past.warnings:
            self.fact("warning", one_line(warning, 2_000), "yellow")

    def event(self) -> None:
        """Print which agent wanted to stop, and where."""
        past, event = self._past, self._past.event
        version = f" {visible(event.host_version)}" if event.host_version else ""
        self.fact("host", f"{one_line(past.host, 200)}{version}")
        self.fact("session", one_line(past.session_id, 300) or "-")
        kinds = [event.agent_type, event.agent_name, event.label, event.model]
        known = ", ".join(one_line(kind, 100) for kind in kinds if kind)
        agent = one_line(past.agent_id, 200) or ("main" if past.scope == "agent" else "a subagent")
        self.fact("agent", f"{agent}{f' ({known})' if known else ''}")
        for name, value in (
            ("folder", past.place or event.cwd),
            ("workspace", event.workspace),
            ("task", past.task),
        ):
            if value:
                self.fact(name, one_line(value, 2_000))
        self.fact("ending", "the agent was done" if event.ending == "done" else event.ending)
        self.text("error", event.error or "")
        self.text("said", event.last_message or "")

    def turn(self, near: list[PastStop]) -> None:
        """Print the other stops of the same turn."""
        past = self._past
        if not past.turn:
            return
        self.fact("turn", f"{past.turn}{'' if near else ', with no other stop'}")
        for other in near:
            name = "  before" if other.id < past.id else "  after"
            remark = _remark(other)
            words = f"{other.outcome}{f' ({remark})' if remark else ''}"
            self.fact(name, f"stop {other.id}, {when(other.begun_at)}: {words}")

    def gates(self) -> None:
        """Print the result of each gate."""
        if not self._past.reports:
            return
        blank = " " * (NAME_WIDTH - 2)
        rows = [
            (blank, report.gate, report.status, age(report.seconds), how(report))
            for report in self._past.reports
        ]
        head = (f"{'gates':<{NAME_WIDTH - 2}}", "gate", "result", "time", "how")
        for line in table(head, rows, self.style, wrap=self.style.stream.isatty()):
            print(line)

    def output(self, report: Report) -> None:
        """Print what a gate printed, or else said."""
        words, _ = said(report)
        output, is_pruned = whole_output(report)
        if is_pruned:
            log = one_line(report.log, 500)
            self.fact("pruned", f"{log} was removed to make room; this is what is left", "yellow")
        shown = output if output.strip() else words
        if not shown.strip():
            return
        what = "printed" if output.strip() else "said"
        hidden = " (and wants it hidden)" if report.hidden else ""
        title = f"{one_line(report.gate, 200)} {what}{hidden}:"
        print(f"\n{self.paint(title, 'bold')}")
        for line in clean(shown).strip("\n").split("\n"):
            print(f"  {line}".rstrip())
