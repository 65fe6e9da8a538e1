"""The table of `notyet log`, and stops as JSON."""

from __future__ import annotations

import os
import sys

from notyet.cli.lines import in_a_line, json_line
from notyet.cli.moments import age, when
from notyet.cli.style import Style
from notyet.cli.table import outcome_cell, table
from notyet.core.record import plain
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Halt, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from notyet.cli.table import Cell
    from notyet.core.verdict import Report
    from notyet.ledger.past import Past, Wish
    from notyet.ledger.sqlite import Ledger

HEAD = ("ID", "WHEN", "HOST", "SESSION", "AGENT", "OUTCOME", "GATES")
_WIDTHS = (6, 12, 8, 8, 8, 11)  # of all but the last, in a table that grows
_SESSION = 8  # characters, by which people know one
_LONGEST_WHY = 300
_MOST_WORDS = 2_000  # of a text in a line of JSON about one stop of many
# For each way a report can end: a mark, and what stands for it where there is no such letter.
_MARKS = {
    "allowed": ("✓", "ok"),
    "remembered": ("✓", "ok"),
    "blocked": ("✗", "x"),
    "halted": ("■", "halt"),
    "problem": ("!", "!"),
    "unchanged": ("-", "-"),
    "not_asked": ("-", "-"),
}
_WITHOUT_TIME = {"remembered": "remembered", "unchanged": "unchanged", "not_asked": "not asked"}
_HOLDING = frozenset({"blocked", "halted", "problem"})  # if the gate did not only watch
OVERRIDDEN = "the host let the agent go although it had been sent back"
_WHY = {"lost": "lost: the process that asked its gates is gone"}
_NONE_LIKE_THAT = "no stop is like that"
_NO_STOP_SINCE = "no stop since"


def show_list(ledger: Ledger, wish: Wish, *, is_narrowed: bool, as_json: bool) -> int:
    """Print the stops that are meant, the newest last: there the next ones will be."""
    from notyet.ledger.past import numbers, parts, these

    found = numbers(ledger, wish)[::-1]
    if not found and not as_json:
        print(_nothing(ledger, wish, is_narrowed=is_narrowed))
    # All of a large ledger would not fit into memory: it is shown as it is read.
    some = list(parts(found))
    for number, ids in enumerate(some):
        pasts = these(ledger, ids)[::-1]
        if as_json:
            lines = [json_line(as_json_object(past)) for past in pasts]
        else:
            lines = lines_of(pasts, is_growing=len(some) > 1)[1 if number else 0 :]
        for line in lines:
            print(line)
    return 0


def _nothing(ledger: Ledger, wish: Wish, *, is_narrowed: bool) -> str:
    from notyet.ledger.past import Wish, stops

    if not os.path.exists(ledger.path) or not stops(ledger, Wish(most=1)):
        connect = "connect an agent with: notyet install claude (or codex)"
        return f"no stops yet; {connect}, or try: notyet demo"
    place = in_a_line(wish.place, 200)
    if is_narrowed:
        return f"no stop in {place} is like that; {elsewhere(ledger)}" if place else _NONE_LIKE_THAT
    return f"no stops in {place} are known; {elsewhere(ledger)}"


def elsewhere(ledger: Ledger) -> str:
    """Say where else there may be stops that somebody misses in a folder."""
    from notyet.ledger.past import has_unplaced

    if has_unplaced(ledger):
        return "those of other folders, and of an older notyet, which did not note them: add --all"
    return "those of other folders: add --all"


def lines_of(
    found: Sequence[Past], stream: TextIO | None = None, *, is_growing: bool = False
) -> list[str]:
    """Return the table of some stops; one that does not grow has no column of main agents only."""
    stream = stream or sys.stdout
    rows = [row_of(past, stream) for past in found]
    head: tuple[str, ...] = HEAD
    if not is_growing and not any(past.agent_id for past in found):
        at = HEAD.index("AGENT")
        head = HEAD[:at] + HEAD[at + 1 :]
        rows = [row[:at] + row[at + 1 :] for row in rows]
    # Later rows must stand below earlier ones, whatever they are.
    least = _WIDTHS if is_growing else ()
    return table(head, rows, Style(stream), right=("ID",), least=least)


def row_of(past: Past, stream: TextIO | None = None) -> tuple[Cell, ...]:
    """Return one stop as cells for `HEAD`."""
    return (
        str(past.id),
        when(past.begun_at),
        past.host,
        past.session_id[:_SESSION] or "-",
        past.agent_id[:_SESSION] or "main",
        outcome_cell(past.outcome),
        in_brief(past, stream or sys.stdout),
    )


def in_brief(past: Past, stream: TextIO) -> str:
    """Say what the gates said and what came of it, in one line."""
    gates = ", ".join(_report(report, stream) for report in past.reports)
    return "; ".join(part for part in (_odd(past), gates, remark(past)) if part)


def _odd(past: Past) -> str:
    """Say what of a stop could not be read as it should be."""
    return f"odd: {in_a_line(', '.join(past.odd), 200)}" if past.odd else ""


def remark(past: Past) -> str:
    """Say what the outcome alone does not tell."""
    if past.outcome == "asking":
        return "still being asked"
    if past.outcome == "overridden":
        return "then let go by the host"
    if past.outcome == "blocked":
        count = f"sent back {past.count}/{past.limit}"
        return count if past.followed else f"{count}, {_NO_STOP_SINCE}"
    if past.outcome == "passed":
        times = "send-back" if past.count == 1 else "send-backs"
        return f"after {past.count} {times}" if past.count else ""
    return _WHY.get(past.why) or in_a_line(past.why, _LONGEST_WHY)


def _report(report: Report, stream: TextIO) -> str:
    mark = _MARKS[report.status][0 if _takes(stream, "✓✗■") else 1]
    gate = in_a_line(report.gate, 30)
    if report.status in _WITHOUT_TIME:
        return f"{gate} {mark} {_WITHOUT_TIME[report.status]}"
    kind = f" {report.answer.kind}" if isinstance(report.answer, Problem) else ""
    watched = " (watches)" if report.observed and report.status in _HOLDING else ""
    return f"{gate} {mark}{kind} {age(report.seconds)}{watched}"


def _takes(stream: TextIO, letters: str) -> bool:
    try:
        letters.encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def as_json_object(past: Past, *, whole: bool = False) -> dict[str, Any]:
    """Return a stop as JSON has it: times in seconds since 1970."""
    known = {name: plain(past.__dict__[name]) for name in past._fields}
    known["event"] = {
        name: known["event"][name]
        for name, value in past.event.__dict__.items()
        if value != past.event._defaults[name]  # noqa: SLF001  # our own record
    }
    known["reports"] = [_json_report(report, whole=whole) for report in past.reports]
    return known if whole else {name: _cut(value) for name, value in known.items()}


def _cut(value: Any) -> Any:
    """Return a plain value in which no text is long."""
    if isinstance(value, str):
        return bounded(value, _MOST_WORDS)
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value


def _json_report(report: Report, *, whole: bool) -> dict[str, Any]:
    said, reason = words_of(report)
    known = {name: plain(value) for name, value in report.__dict__.items()}
    for name in ("answer", "passed_on", "failed_on", *(() if whole else ("output",))):
        del known[name]
    return {"gate": report.gate, "status": report.status, "said": said, "reason": reason, **known}


def words_of(report: Report) -> tuple[str, str]:
    """Return what a gate said, and a word for why."""
    answer = report.answer
    if isinstance(answer, Block):
        return answer.prompt, answer.reason
    if isinstance(answer, Halt):
        return answer.reason, ""
    if isinstance(answer, Problem):
        return answer.detail, answer.kind
    return (answer.note if isinstance(answer, Allow) else ""), ""
