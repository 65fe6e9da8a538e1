"""`notyet log ID`: everything about one stop."""

from __future__ import annotations

import os
import sys

from notyet.cli.log_list import OVERRIDDEN, as_json_object, remark, words_of
from notyet.cli.moments import age, exactly, when
from notyet.cli.streams import json_line
from notyet.cli.terminal import OUTCOME_COLOURS, Style, one_line, table
from notyet.core.text import clean, visible
from notyet.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.verdict import Report
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past import Past

_NAME = 10  # columns
_MOST_READ = 64 << 20  # bytes of a log
_SPARED = {
    "passed": "it had passed on the same files before",
    "unchanged": "no file had changed since the agent began",
}
_ENDINGS = {"done": "the agent was done"}


def show_one(ledger: Ledger, number: int, *, as_json: bool) -> int:
    """Print one stop. Raises Refused where there is none of that number."""
    from notyet.ledger.past import around, stop

    past = stop(ledger, number)
    if past is None:
        if not os.path.exists(ledger.path):
            raise Refused(f"there is no stop {number}: {ledger.path} does not exist yet")
        raise Refused(f"there is no stop {number}; list them with: notyet log --all")
    near = around(ledger, number)
    if as_json:
        known = as_json_object(past, whole=True)
        known["turn_stops"] = [{"id": one.id, "outcome": one.outcome} for one in near]
        for known_report, report in zip(known["reports"], past.reports, strict=True):
            known_report["output"], known_report["log_pruned"] = whole_output(report)
        print(json_line(known))
        return 0
    page = _Page()
    page.head(past)
    page.event(past)
    page.turn(past, near)
    page.gates(past)
    page.text("told", past.prompt)
    for report in past.reports:
        page.output(report)
    return 0


def whole_output(report: Report) -> tuple[str, bool]:
    """Return all that a gate printed, as far as it is kept; and whether its log was pruned."""
    if not report.log:
        return report.output, False
    try:
        # A pipe in its place would make us wait.
        descriptor = os.open(report.log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(_MOST_READ).decode("utf-8", "replace"), False
    except (OSError, ValueError):
        return report.output, True


class _Page:
    """Prints names on the left and what they are on the right."""

    def __init__(self) -> None:
        self._style = Style(sys.stdout)

    def fact(self, name: str, value: str) -> None:
        """Print one line."""
        print(f"{self._style.paint(f'{name:<{_NAME}}', 'bold')}{value}".rstrip())

    def text(self, name: str, text: str) -> None:
        """Print a text of many lines beside its name."""
        for line in clean(text).strip("\n").split("\n") if text.strip() else ():
            self.fact(name, line)
            name = ""

    def head(self, past: Past) -> None:
        """Print what it came to."""
        outcome = self._style.paint(past.outcome, OUTCOME_COLOURS.get(past.outcome, "bold"))
        said = "" if past.outcome == "overridden" else remark(past)
        self.fact("stop", f"{past.id}  {outcome}{f' ({said})' if said else ''}")
        if past.outcome == "overridden":
            self.fact("", f"{OVERRIDDEN} ({past.count}/{past.limit})")
        took = "" if past.ended_at is None else f", took {age(past.ended_at - past.begun_at)}"
        self.fact("when", exactly(past.begun_at) + took)
        if past.why and past.why not in said:
            self.text("held by" if past.verdict == "block" else "why", past.why)
        if past.reason and past.reason not in {past.prompt, *_said(past)}:
            self.text("reason", past.reason)
        if past.limit:
            self.fact("limit", f"{past.limit} send-backs, by {one_line(past.limit_source, 200)}")
        if past.odd:
            columns = one_line(", ".join(past.odd), 2_000)
            self.fact("odd", self._style.paint(columns, "yellow"))
        if past.repeated:
            self.fact("repeated", f"its answer was given {past.repeated} more times")
        for warning in past.warnings:
            self.fact("warning", self._style.paint(one_line(warning, 2_000), "yellow"))

    def event(self, past: Past) -> None:
        """Print who wanted to stop, and where."""
        event = past.event
        version = f" {visible(event.host_version)}" if event.host_version else ""
        self.fact("host", f"{one_line(past.host, 200)}{version}")
        self.fact("session", one_line(past.session_id, 300) or "-")
        kinds = [event.agent_type, event.agent_name, event.label, event.model]
        known = ", ".join(one_line(kind, 100) for kind in kinds if kind)
        who = one_line(past.agent_id, 200) or ("main" if past.scope == "agent" else "a subagent")
        self.fact("agent", f"{who}{f' ({known})' if known else ''}")
        if past.place or event.cwd:
            self.fact("folder", one_line(past.place or event.cwd, 2_000))
        if event.workspace:
            self.fact("workspace", one_line(event.workspace, 2_000))
        if past.task:
            self.fact("task", one_line(past.task, 200))
        self.fact("ending", _ENDINGS.get(event.ending, event.ending))
        for name, text in (("error", event.error), ("said", event.last_message)):
            self.text(name, text or "")

    def turn(self, past: Past, near: list[Past]) -> None:
        """Print what came before and after, in the same turn."""
        if not past.turn:
            return
        self.fact("turn", f"{past.turn}{'' if near else ', with no other stop'}")
        for other in near:
            name = "  before" if other.id < past.id else "  after"
            said = remark(other)
            words = f"{other.outcome}{f' ({said})' if said else ''}"
            self.fact(name, f"stop {other.id}, {when(other.begun_at)}: {words}")

    def gates(self, past: Past) -> None:
        """Print how each gate ended."""
        if not past.reports:
            return
        rows = [
            (f"{'':<{_NAME - 2}}", report.gate, report.status, age(report.seconds), _how(report))
            for report in past.reports
        ]
        lines = table(
            (f"{'gates':<{_NAME - 2}}", "gate", "result", "time", "how"), rows, self._style
        )
        for line in lines:
            print(line)

    def output(self, report: Report) -> None:
        """Print what a gate said and printed."""
        said, _ = words_of(report)
        output, is_pruned = whole_output(report)
        gate = one_line(report.gate, 200)
        if is_pruned:
            lost = f"{one_line(report.log, 500)} was removed to make room; this is what is left"
            self.fact("pruned", self._style.paint(lost, "yellow"))
        shown = output if output.strip() else said
        if not shown.strip():
            return
        what = "printed" if output.strip() else "said"
        hidden = " (and wants it hidden)" if report.hidden else ""
        print(f"\n{self._style.paint(f'{gate} {what}{hidden}:', 'bold')}")
        for line in clean(shown).strip("\n").split("\n"):
            print(f"  {line}".rstrip())


def _said(past: Past) -> list[str]:
    return [text for report in past.reports for text in words_of(report)]


def _how(report: Report) -> str:
    said, reason = words_of(report)
    parts = [
        _SPARED.get(report.spared, ""),
        report.exit,
        reason if reason != said else "",
        said if report.status == "problem" else "",
        "only watches" if report.observed else "",
        "held the agent" if report.held else "",
        f"on {report.workspace}" if report.workspace else "",
        report.matched,
        report.warning,
    ]
    return "; ".join(part for part in parts if part)
