"""The ledger: does its cost grow, what does it save, and does anybody starve?"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench import crowd
from bench.crowd import DECISION
from bench.log import filled
from bench.measure import Amount, Curve, Effort, Figure, Point, Result, Row, interleaved
from bench.progress import say
from notyet import StopEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet import Ledger

SIZES = (1_000, 10_000, 100_000, 1_000_000)  # stops
REGISTRY = (1_000, 100_000)  # records of a JSON file
_SATURATED = 4.0  # seconds


def one_stop(ledger: Ledger, session: str, number: list[int]) -> None:
    """Begin and record one stop, which is like no other."""
    number[0] += 1
    event = StopEvent(session_id=session, last_message=f"done {number[0]}")
    begun = ledger.begin(event)
    ledger.record(begun, DECISION)


def measure(effort: Effort) -> list[Result]:
    """Compare ledgers of different sizes, a JSON file that is written anew each time, and crowds."""
    with tempfile.TemporaryDirectory() as folder:
        results = _growth(folder, effort)
    return [*results, *_crowds(effort)]


def _growth(folder: str, effort: Effort) -> list[Result]:
    ledgers = {}
    for size in effort.sizes(SIZES):
        say(f"ledger: {size:,} stops")
        ledgers[size] = filled(os.path.join(folder, f"{size}.db"), folder, size)
    number = [0]

    def stopping(ledger: Ledger) -> Callable[[], None]:
        return lambda: one_stop(ledger, "s", number)

    subjects = {str(size): stopping(ledger) for size, ledger in ledgers.items()}
    taken = interleaved(effort.rounds(40), 20, **subjects)
    sizes = sorted(ledgers)
    few, many = taken[str(sizes[0])], taken[str(sizes[-1])]
    at = "begin + record at"
    points = tuple(Point(size, taken[str(size)]) for size in sizes)
    curve = Curve("begin + record, by stops recorded", "stops", points, "flat")
    results: list[Result] = [
        curve,
        Row(f"{at} {sizes[-1]:,} stops", f"at {sizes[0]:,} stops", few, many, "ledger.million"),
    ]
    registry = effort.largest(REGISTRY)
    ours = taken[str(min(registry, sizes[-1]))]
    for how, indent, goal in (("indented, ", 2, "ledger.json"), ("", None, float("inf"))):
        say(f"ledger: a JSON file of {registry:,} decisions")
        rewritten = _rewriting(folder, registry, indent, effort)
        floor = f"JSON of {registry:,} decisions, {how}written anew"
        results.append(Row(f"{at} {registry:,} stops", floor, rewritten, ours, goal, at_least=True))
    for ledger in ledgers.values():
        ledger.close()
    return results


def _rewriting(folder: str, records: int, indent: int | None, effort: Effort) -> Figure:
    """Return what a registry in one JSON file takes for each change."""
    registry = Path(folder) / "registry.json"
    record = {"session": "s", "event": "x" * 300, "reports": ["y" * 100], "outcome": "blocked"}
    decisions = [record] * records

    def rewrite() -> None:
        fresh = registry.with_suffix(".new")
        fresh.write_text(json.dumps(decisions, indent=indent))
        fresh.replace(registry)

    return interleaved(effort.rounds(4), 1, rewrite=rewrite)["rewrite"]


def _crowds(effort: Effort) -> list[Result]:
    seconds = max(0.3, _SATURATED * effort.share)
    who = f"{crowd.WRITERS} processes"
    say(f"ledger: {who} write")
    paced, full, cold = crowd.paced(seconds), crowd.saturated(seconds), crowd.cold(seconds)
    rate = f"{paced.rate:,.0f} writes/s in all"
    return [
        Amount(f"{who}, 1,000 writes/s: p99", paced.p99, "ms", "ledger.p99", note=rate),
        Amount(f"{who}, 1,000 writes/s: median", paced.median, "ms"),
        Amount(f"{who}, all they can: slowest", full.slowest, "ms", "ledger.max"),
        Amount(f"{who}, all they can: p99", full.p99, "ms"),
        Amount(f"{who}, all they can", full.rate, "writes/s"),
        Amount(f"{who}, all they can: updates lost", full.lost, "", 0.0),
        Amount(f"{who}, each stop a process of its own: slowest", cold.slowest, "ms", 300.0),
        Amount(f"{who}, each stop a process of its own: median", cold.median, "ms"),
        Amount(f"{who}, each stop a process of its own: updates lost", cold.lost, "", 0.0),
    ]
