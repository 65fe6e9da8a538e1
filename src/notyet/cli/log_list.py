"""The table of `notyet log`, and stops as JSON."""

from __future__ import annotations

import os
import sys

from notyet.cli.moments import age, exactly, when
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, one_line, outcome_cell, table
from notyet.core.record import as_dict, plain
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Halt, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from notyet.cli.terminal import Cell
    from notyet.core.verdict import Report
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past import Past, Wish
    from notyet.ledger.stats import GateStats, Stats

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
    place = one_line(wish.place, 200)
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
    return f"odd: {one_line(', '.join(past.odd), 200)}" if past.odd else ""


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
    return _WHY.get(past.why) or one_line(past.why, _LONGEST_WHY)


def _report(report: Report, stream: TextIO) -> str:
    mark = _MARKS[report.status][0 if _takes(stream, "✓✗■") else 1]
    gate = one_line(report.gate, 30)
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


_HEAD = (
    "GATE", "ASKED", "SPARED", "BLOCKED", "HALTED", "BROKEN", "P50", "P95", "IN ALL", "MENDED",
    "WORTH IT?",
)  # fmt: skip
_WATCHING = "WATCHING"  # instead of GATE
_LEFT = (_HEAD[0], _WATCHING, *_HEAD[-2:])
_EACH = (False, True)
_FEW = 10  # answers, below which a share says little
_FEW_BLOCKS = 5
_OFTEN = 0.5  # of the blocks led to a pass
_BROKEN = 0.2  # of the questions could not be answered
_SLOW = 30.0  # seconds


def show_stats(ledger: Ledger, wish: Wish, *, as_json: bool) -> int:
    """Print what the stops that are meant come to."""
    from notyet.ledger.stats import stats

    found = stats(ledger, wish)
    if as_json:
        for gate in found.gates:
            print(json_line({"kind": "gate", **as_dict(gate), "verdict": verdict(gate)}))
        print(json_line({"kind": "stops", **_totals(found)}))
        return 0
    where = f" in {one_line(wish.place, 200)}" if wish.place else ""
    if not found.stops:
        print(f"no stops{where} to count{f'; {elsewhere(ledger)}' if where else ''}")
        return 0
    style = Style(sys.stdout)
    for gates in ([gate for gate in found.gates if gate.watches is watch] for watch in _EACH):
        for line in _table(gates, style):
            print(line)
    if not found.gates:
        print("no gate was asked\n")
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in found.outcomes.items())
    stops = "1 stop" if found.stops == 1 else f"{found.stops:,} stops"
    print(f"{stops}{where}: {outcomes}")
    print(f"from {exactly(found.first_at)} to {exactly(found.last_at)}")
    if not found.is_all:
        print(f"only the newest {found.stops:,} were counted; choose others with --until")
    return 0


def _totals(found: Stats) -> dict[str, object]:
    known = as_dict(found)
    del known["gates"]
    return known


def _table(gates: list[GateStats], style: Style) -> list[str]:
    """Return the table of some gates, and a line to set it off; without what none of them has."""
    if not gates:
        return []
    left_out = set() if any(gate.halted for gate in gates) else {"HALTED"}
    head = {name: name for name in _HEAD}
    if gates[0].watches:
        head |= {"GATE": _WATCHING, "BLOCKED": "WOULD BLOCK", "HALTED": "WOULD HALT"}
        left_out.add("MENDED")
    shown = [at for at, name in enumerate(_HEAD) if name not in left_out]
    names = [head[_HEAD[at]] for at in shown]
    rows = [[_row(gate)[at] for at in shown] for gate in gates]
    right = [name for name in names if name not in _LEFT]
    return [*table(names, rows, style, right=right), ""]


def _row(gate: GateStats) -> tuple[str, ...]:
    return (
        gate.gate,
        str(gate.asked),
        str(gate.spared),
        str(gate.blocked),
        str(gate.halted),
        _broken(gate),
        age(gate.p50) if gate.asked else "-",
        age(gate.p95) if gate.asked else "-",
        age(gate.seconds),
        _led_to_pass(gate),
        verdict(gate),
    )


def _broken(gate: GateStats) -> str:
    if gate.watches or not gate.problems:
        return str(gate.problems)
    parts = ((gate.held, "held"), (gate.failed_open, "let go"))
    return ", ".join(f"{count} {word}" for count, word in parts if count)


def _led_to_pass(gate: GateStats) -> str:
    if not gate.sent_back:
        return "-"
    share = f"{gate.led_to_pass}/{gate.sent_back}"
    if gate.sent_back < _FEW_BLOCKS:  # a percentage would say more than is known
        return share
    return f"{share} ({100 * gate.led_to_pass / gate.sent_back:.0f}%)"


def verdict(gate: GateStats) -> str:
    """Say in plain words whether a gate is worth its seconds, as far as the numbers carry."""
    asked = gate.asked
    if not asked:
        return "never asked: nothing changed" if gate.spared else "never asked"
    if asked < _FEW:
        return f"too early to say: asked {asked} times" if asked > 1 else "too early: asked once"
    if gate.problems / asked >= _BROKEN:
        return f"broken in {100 * gate.problems / asked:.0f}% of its questions: look at it"
    cost = f"costs {age(gate.p50)} each"
    if gate.watches:
        times = f"{gate.stopped} times" if gate.stopped != 1 else "once"
        return f"only watches; would have {_stopped_by(gate)} {times}, {cost}"
    if gate.stopped or gate.held:
        return _worth(gate)
    if gate.p50 >= _SLOW:
        return f"never blocked, and {cost}: is it needed at every stop?"
    return f"never blocked, {cost}"


def _worth(gate: GateStats) -> str:
    """Say what came of it that a gate kept agents from finishing."""
    each = age(gate.seconds / (gate.stopped + gate.held))
    if not gate.sent_back:
        if gate.halted:
            return f"{_stopped_by(gate)}, once per {each} of asking"
        return "blocked, but never sent anybody back: see limits"
    if gate.sent_back < _FEW_BLOCKS:
        return f"few blocks so far; one per {each} of asking"
    if gate.led_to_pass / gate.sent_back >= _OFTEN:
        return f"yes: its blocks are mended, one per {each} of asking"
    return "its blocks are rarely mended in the same turn: is its message clear?"


def _stopped_by(gate: GateStats) -> str:
    if not gate.halted:
        return "blocked"
    return "blocked or ended the turn" if gate.blocked else "ended the turn"
