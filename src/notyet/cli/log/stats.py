"""`notyet log --stats`: what each gate costs, and what it brings."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.cells import cell_len

from notyet.cli.log.stops import ELSEWHERE
from notyet.cli.streams import json_line
from notyet.cli.terminal import (
    Style,
    is_terminal,
    table,
    table_or_list,
    width,
    wrapped,
)
from notyet.core.record import as_dict
from notyet.core.verdict import UNCHECKED, UNPASSED
from notyet.status.worth import FEW_BLOCKS, verdict
from notyet.times import age, exactly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.ledger.stats import GateStats, Stats
    from notyet.share.team_stats import ProjectStats

_HEAD = (
    "GATE", "RUNS", "SKIPPED", "BLOCKED", "HALTED", "BROKEN", "P50", "P95", "IN ALL", "TOKENS",
    "FIXED", "WORTH IT?",
)  # fmt: skip
_WATCHING = {"GATE": "OBSERVING", "BLOCKED": "WOULD BLOCK", "HALTED": "WOULD HALT"}
_OF_PROJECTS = ("passed", "sent_back", "not_passed", "not_checked")
_MOST_PROJECTS = 30
_FEWEST_STEPS = 2  # a single bar says nothing
_AROUND_LINE = 30  # columns for the name before a line and the number after it
_LEFT = ("GATE", "OBSERVING", "FIXED", "WORTH IT?")  # columns aligned to the left


def show_stats(
    found: Stats,
    where: str = "",
    *,
    projects: Sequence[ProjectStats] = (),
    here: str = "",
    as_json: bool,
) -> int:
    """Print what stops come to, gate by gate, and those of a team project by project.

    `where` are they, in words; `here` is the project of this folder.
    """
    if as_json:
        _print_json(found, projects)
        return 0
    if not found.stops:
        print(f"no stops{where} to count{f'; {ELSEWHERE}' if where else ''}")
        return 0
    for watches in (False, True):
        gates = [gate for gate in found.gates if gate.watches is watches]
        if gates:
            _print_table(gates)
    if not found.gates:
        print("no gate was run\n")
    if projects:
        _print_projects(projects, here)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in found.outcomes.items())
    print(f"{'1 stop' if found.stops == 1 else f'{found.stops:,} stops'}{where}: {outcomes}")
    print(f"from {exactly(found.first_at)} to {exactly(found.last_at)}")
    if is_terminal(sys.stdout):
        _print_lines(found)
    if not found.is_all:
        print(f"only the newest {found.stops:,} were counted; choose others with --until")
    return 0


def _print_json(found: Stats, projects: Sequence[ProjectStats]) -> None:
    for gate in found.gates:
        print(json_line({"kind": "gate", **as_dict(gate), "verdict": verdict(gate)}))
    for project in projects:
        print(json_line({"kind": "project", **asdict(project)}))
    totals = {name: value for name, value in as_dict(found).items() if name != "gates"}
    print(json_line({"kind": "stops", **totals}))


_KINDS = {
    "passed": ("passed", "green"),
    "sent_back": ("sent back", "red"),
    "not_passed": (UNPASSED, "yellow"),
    "not_checked": (UNCHECKED, "yellow"),
    "skipped": ("skipped", "dim"),
    "other": ("other", "cyan"),
}
_REMARK_WIDTH = 40  # columns of a remark beside its gate, so that it can be read
_LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float]) -> str:
    """Return a line with a bar for each value; only 0 has the lowest."""
    highest = max(values, default=0.0)
    tops = len(_LEVELS) - 1
    return "".join(
        _LEVELS[math.ceil(tops * value / highest)] if value > 0 else _LEVELS[0] for value in values
    )


def _print_lines(found: Stats) -> None:
    """Print for people how the stops went over time, and how long each gate took."""
    if len(found.over_time) < _FEWEST_STEPS:
        return
    style = Style(sys.stdout)
    lines: list[tuple[str, Sequence[float], str, str]] = []
    for kind, (words, colour) in _KINDS.items():
        counts = [getattr(bucket, kind) for bucket in found.over_time]
        if any(counts):
            lines.append((words, counts, colour, f"at most {max(counts)}"))
    for gate in found.gates:
        if gate.asked:
            took = gate.seconds_over_time
            lines.append((f"{gate.gate} takes", took, "cyan", f"at most {age(max(took))}"))
    room = max(_FEWEST_STEPS, width() - _AROUND_LINE)  # the newest, where there is less room
    rows = [(name, (sparkline(seen[-room:]), colour), most) for name, seen, colour, most in lines]
    first = found.over_time[0]
    print()
    for line in table(("", f"each {age(first.until - first.at)}", ""), rows, style):
        print(line)


def _print_projects(projects: Sequence[ProjectStats], here: str) -> None:
    """Print how the stops of projects went; most with NOT PASSED stops come first."""
    head = ("PROJECT", "STOPS", "PASSED", "SENT BACK", UNPASSED, UNCHECKED, "LAST")
    rows = [
        (
            (project.name or project.project or "unknown")
            + (" (here)" if here == project.project else ""),
            str(project.stops),
            *(str(project.kinds[kind]) for kind in _OF_PROJECTS),
            exactly(project.last_at),
        )
        for project in projects[:_MOST_PROJECTS]
    ]
    print(*table_or_list(head, rows, Style(sys.stdout), right=head[1:-1]), sep="\n")
    if len(projects) > len(rows):
        print(f"and {len(projects) - len(rows):,} projects more; --json lists all")
    print()


def _print_table(gates: list[GateStats]) -> None:
    """Print gates that all watch or all block, without the columns that none of them needs."""
    watches = gates[0].watches
    left_out = set() if any(gate.halted for gate in gates) else {"HALTED"}
    left_out |= set() if any(gate.tokens for gate in gates) else {"TOKENS"}
    left_out |= {"FIXED"} if watches else set()
    shown = [at for at, name in enumerate(_HEAD) if name not in left_out]
    names = [_WATCHING.get(_HEAD[at], _HEAD[at]) if watches else _HEAD[at] for at in shown]
    rows = [[_row(gate)[at] for at in shown] for gate in gates]
    right = [name for name in names if name not in _LEFT]
    style = Style(sys.stdout)
    head, *numbers = table(names[:-1], [row[:-1] for row in rows], style, right=right)
    widest = max(map(cell_len, numbers))
    if widest <= width() < widest + _REMARK_WIDTH:  # its remark is below each gate
        print(head)
        for line, (*_, remark) in zip(numbers, rows, strict=True):
            print(line, *(f"  {part}" for part in wrapped(remark, width() - 2)), sep="\n")
    else:
        print(*table_or_list(names, rows, style, right=right), sep="\n")
    print()


def _row(gate: GateStats) -> tuple[str, ...]:
    broken = str(gate.problems)
    if gate.problems and not gate.watches:
        parts = ((gate.held, "blocked"), (gate.failed_open, "allowed"))
        broken = ", ".join(f"{count} {word}" for count, word in parts if count)
    share = f"{gate.led_to_pass}/{gate.sent_back}" if gate.sent_back else "-"
    if gate.sent_back >= FEW_BLOCKS:
        share += f" ({100 * gate.led_to_pass / gate.sent_back:.0f}%)"
    return (
        gate.gate,
        str(gate.asked),
        str(gate.spared),
        str(gate.blocked),
        str(gate.halted),
        broken,
        age(gate.p50) if gate.asked else "-",
        age(gate.p95) if gate.asked else "-",
        age(gate.seconds),
        f"{gate.tokens:,}" if gate.tokens else "-",
        share,
        verdict(gate),
    )
