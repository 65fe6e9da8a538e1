"""Prints one table per area and writes bench/results/latest.json."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench import commands, engine, hook, imports, ledger, log, remote, supervisor, workspace

if TYPE_CHECKING:
    from bench.measure import Row

AREAS = {
    "notyet hook": hook,
    "commands": commands,
    "gates over SSH": remote,
    "decisions in process": engine,
    "a look at the files": workspace,
    "ledger": ledger,
    "looking back at 100,000 stops": log,
    "supervised agents": supervisor,
    "imports": imports,
}


MOST_MEMORY = 64  # MB


def main() -> int:
    """Measure, print, write."""
    print(f"Python {platform.python_version()}; ratios of medians, measured in turns\n")
    results: dict[str, object] = {"python": platform.python_version()}
    for area, module in AREAS.items():
        rows = module.measure()
        show(area, rows)
        results[area] = [
            row._asdict() | {"ratio": row.ratio, "reached": row.reached} for row in rows
        ]
    memory = hook.peak_memory()
    results["peak memory with a gate that prints 1 GB"] = memory
    mark = "reached" if memory < MOST_MEMORY else "MISSED"
    print(f"peak memory with a gate that prints 1 GB: {memory:.0f} MB (< {MOST_MEMORY}) {mark}\n")
    crowd = ledger.saturate()
    results["8 writers, saturated"] = crowd
    print("8 writer processes, saturated")
    for name, figure in crowd.items():
        print(f"  {name:<22} {figure:>10,.2f}".rstrip("0").rstrip("."))
    rates = supervisor.cycles()
    results["supervised cycles in a second"] = rates
    print("\nsupervised cycles in a second")
    for name, figure in rates.items():
        print(f"  {name:<22} {figure:>10,.0f}")
    print(f"  bounded by {supervisor.bound(rates)}")
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "latest.json").write_text(json.dumps(results, indent=2, default=str))
    return 0


def show(area: str, rows: list[Row]) -> None:
    """Print one table."""
    print(area)
    for row in rows:
        sign = ">=" if row.at_least else "<="
        goal = "" if row.goal == float("inf") else f"{sign} {row.goal:g}"
        mark = "" if not goal else "reached" if row.reached else "MISSED"
        print(
            f"  {row.what:<32} {row.ours_us:>10,.1f} us   {row.floor:<32} {row.floor_us:>10,.1f} us"
            f"   {row.ratio:>8.2f}x  {goal:<7} {mark}"
        )
    print()


if __name__ == "__main__":
    sys.exit(main())
