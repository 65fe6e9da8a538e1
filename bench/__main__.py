"""Measures, prints one table per area, writes JSON, and renders docs/performance.md from it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from bench import page
from bench.areas import AREAS
from bench.document import Run, from_json, machine, to_json
from bench.measure import FULL, QUICK, TINY, Effort
from bench.progress import say
from bench.running import run_apart, run_within
from bench.tables import results_of, shown, summary
from bench.words import MISSED, key_of, verdict_of
from notyet.cli.terminal import Style

EFFORTS = {effort.name: effort for effort in (FULL, QUICK, TINY)}
RESULTS = Path(__file__).parent / "results"


def main(words: list[str]) -> int:
    """Do what the words say; 1 where an area could not be measured."""
    args = _parser().parse_args(words)
    if args.within:
        module, effort, path = args.within
        return run_within(module, EFFORTS[effort], path)
    if args.render:
        return _render()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no area is left at work
    effort = QUICK if args.quick else FULL
    run = _measured(EFFORTS[effort.name], set(args.area))
    _keep(run, args.json, is_whole=effort is FULL and not args.area)
    results = results_of(run)
    missed = [each for each in results if key_of(each) and verdict_of(each) == MISSED]
    if any(table.failure for table in run.tables):
        return 1
    return 1 if args.strict and missed else 0


def _render() -> int:
    """Write the page of the run that is kept beside it."""
    if not page.RUN.exists():
        print(f"there is no {page.RUN.relative_to(page.ROOT)} to render: run make bench first")
        return 1
    for path in page.write(from_json(json.loads(page.RUN.read_text()))):
        print(f"rendered: {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds: a minute")
    names = [area.module for area in AREAS]
    parser.add_argument(
        "--area", action="append", default=[], choices=names, help="only this area; may be repeated"
    )
    where = "where the run is written (default: bench/results/latest.json)"
    parser.add_argument("--json", type=Path, default=RESULTS / "latest.json", help=where)
    parser.add_argument("--strict", action="store_true", help="1 where a promised goal was missed")
    parser.add_argument(
        "--render", action="store_true", help="only render the page of the last run"
    )
    parser.add_argument("--within", nargs=3, help=argparse.SUPPRESS)
    return parser


def _measured(effort: Effort, only: set[str]) -> Run:
    """Measure all areas, or some, and print each table as soon as it is there."""
    started, where = time.monotonic(), machine()
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    print(
        "medians, measured in turns; spread: how far the quartiles of a figure are apart\n",
        flush=True,
    )
    if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        say("this machine is busy: ratios will be less steady than they could be")
    style, tables = Style(sys.stdout), []
    for area in AREAS:
        if not only or area.module in only:
            tables.append(run_apart(area, effort))
            print(shown(tables[-1], style), flush=True)
    run = Run(effort.name, where, tuple(tables))
    print(summary(run, style))
    say(f"{effort.name} run done in {time.monotonic() - started:.0f} s")
    return run


def _keep(run: Run, path: Path, *, is_whole: bool) -> None:
    """Write the run as JSON; a whole one is what the page shows from now on."""
    text = json.dumps(to_json(run), indent=1) + "\n"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    print(f"written: {path}")
    if is_whole:
        page.RUN.parent.mkdir(exist_ok=True)
        page.RUN.write_text(text)
        _render()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
