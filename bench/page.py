"""docs/performance.md and its charts: the words are the template's, the figures are those of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bench import charts, words
from bench.areas import AREAS
from bench.document import Run, Table
from bench.goals import GOALS, UNJUDGED
from bench.measure import Amount, Curve, Missing, Row, limit_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.measure import Result

ROOT = Path(__file__).parents[1]
TEMPLATE = Path(__file__).with_name("performance.template.md")
PAGE = ROOT / "docs" / "performance.md"
CHARTS = ROOT / "docs" / "performance"
RUN = CHARTS / "run.json"  # what the page shows
_BLANK = re.compile(r"\{\{(\w+)(?: ([\w.]+))?\}\}")
QUICKLY = "**This was a quick run: small sizes and few rounds.** `make bench` measures all of it, and renders this page anew."
_BARRED = ("hook", "peers")  # areas whose ratios are drawn


def write(run: Run) -> list[Path]:
    """Write the page and its charts; return them, as seen from the project."""
    files = rendered(run)
    CHARTS.mkdir(exist_ok=True)
    for old in CHARTS.glob("*.svg"):
        if old not in files:
            old.unlink()
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return [path.relative_to(ROOT) for path in files]


def rendered(run: Run) -> dict[Path, str]:
    """Return the files that a run makes, the page first."""
    tables = {
        area.module: Table(area.module, area.title, 0.0, (), "not in this run") for area in AREAS
    }
    tables |= {table.area: table for table in run.tables}
    blanks: dict[str, Callable[[str], str]] = {
        "machine": lambda _: _machine(run),
        "effort": lambda _: "" if run.effort == "full" else QUICKLY,
        "summary": lambda _: _summary(run),
        "goals": lambda _: _goals(run),
        "missed": lambda _: _missed(run),
        "table": lambda area: _table(tables[area]),
        "curves": lambda area: _curves(tables[area]),
        "chart": lambda area: _chart(tables[area]),
    }
    template = TEMPLATE.read_text(encoding="utf-8")
    text = _BLANK.sub(lambda found: blanks[found[1]](found[2] or ""), template)
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r" +\n", "\n", text))
    return {PAGE: text} | _drawn(run)


def _drawn(run: Run) -> dict[Path, str]:
    """Return the charts of a run: bars of an area's ratios, and each curve."""
    files = {}
    for table in run.tables:
        rows = [result for result in table.results if isinstance(result, Row)]
        if table.area in _BARRED and rows:
            path = CHARTS / f"{table.area}.svg"
            unit = f"in multiples of {rows[0].floor}, measured in turns with it"
            files[path] = charts.bars(
                table.title, unit, [_bar(row) for row in rows if _same(row, rows)]
            )
        for result in table.results:
            if isinstance(result, Curve) and len(result.points) > 1:
                path = CHARTS / f"{_name(table, result)}.svg"
                files[path] = charts.curve(result, words.curve_shape(result).name)
    return files


def _same(row: Row, rows: list[Row]) -> bool:
    """Return True if a row has the floor of the first one: only those fit one chart."""
    return row.floor == rows[0].floor


def _bar(row: Row) -> charts.Bar:
    goal = limit_of(row.goal)
    is_ours = bool(words.key_of(row)) or row.what.startswith("notyet")
    return charts.Bar(
        row.what.strip().replace("`", ""), row.ratio, None if goal == UNJUDGED else goal, is_ours
    )


def _name(table: Table, curve: Curve) -> str:
    key = words.key_of(curve).replace(".", "-")
    return key or f"{table.area}-{'-'.join(re.findall(r'[a-z0-9]+', curve.what.lower()))}"


def _chart(table: Table) -> str:
    is_drawn = any(isinstance(result, Row) for result in table.results)
    return f"![{table.title}](performance/{table.area}.svg)" if is_drawn else ""


def _machine(run: Run) -> str:
    return ", ".join(f"{name} {value}" for name, value in run.machine.items())


def _goals(run: Run) -> str:
    """Return every promise with its figure and verdict."""
    lines = ["| promised | goal | measured | |", "|---|---|---|---|"]
    for key, goal in GOALS.items():
        limit, measured, verdict = _judged(run, key)
        mark = f"**{verdict}**" if verdict == words.MISSED else verdict
        lines.append(f"| {goal.words} | {limit} | {measured} | {mark} |")
    return "\n".join(lines)


def _summary(run: Run) -> str:
    verdicts = [_judged(run, key)[2] for key in GOALS]
    reached, missed = verdicts.count(words.REACHED), verdicts.count(words.MISSED)
    said = f"Of {len(GOALS)} promises this run reached {reached} and missed {missed}"
    left = len(GOALS) - reached - missed
    return f"{said}; {left} were not measured." if left else f"{said}."


def _missed(run: Run) -> str:
    """Say of every promise that was missed what bounds it."""
    lines = []
    for key, goal in GOALS.items():
        limit, measured, verdict = _judged(run, key)
        if verdict == words.MISSED:
            lines.append(
                f"- **Missed: {goal.words}** ({measured}; goal {limit}). {goal.bound}".rstrip()
            )
    return "\n".join(["What bounds those that were missed:", "", *lines]) if lines else ""


def _judged(run: Run, key: str) -> tuple[str, str, str]:
    """Return a promise's goal, figure and verdict in a run; of several results the worst."""
    results = [each for table in run.tables for each in table.results if words.key_of(each) == key]
    wanted = GOALS[key].shape
    wanted = wanted if wanted in {"", "flat"} else f"{wanted} or better"
    if not results:
        return wanted or f"{GOALS[key].limit:,g}", "not measured", ""
    worst = next((each for each in results if words.verdict_of(each) == words.MISSED), results[0])
    return _limit(worst) or wanted, _measured(worst), words.verdict_of(worst)


def _limit(result: Result) -> str:
    return "" if isinstance(result, Curve | Missing) else words.goal_of(result)


def _measured(result: Result) -> str:
    if isinstance(result, Row):
        return words.ratio_of(result.ratio)
    if isinstance(result, Amount):
        return words.figure_of(result)
    return words.shape_words(result) if isinstance(result, Curve) else ""


def _table(table: Table) -> str:
    """Return the rows, amounts and curves of an area as one table, and the remarks below it."""
    if table.failure:
        return f"Not measured: {table.failure}."
    lines: list[str] = []
    rows = [each for each in table.results if isinstance(each, Row | Amount)]
    if rows:
        lines += ["| | floor | figure | ratio | spread | goal | |", "|---|---|--:|--:|--:|---|---|"]
        lines += [_row(each) for each in rows]
    missing = [each for each in table.results if isinstance(each, Missing)]
    lines += (
        ["", *(f"- {each.what}: not measured, {each.why}." for each in missing)] if missing else []
    )
    said = words.remarks(table.results)
    lines += ["", *(f"- {each}." for each in said)] if said else []
    return "\n".join(lines)


def _row(result: Row | Amount) -> str:
    verdict = words.verdict_of(result)
    mark = f"**{verdict}**" if verdict == words.MISSED else verdict
    floor = ratio = ""
    if isinstance(result, Row):
        floor = f"{result.floor}: {words.time_of(result.floor_us)}"
        ratio = words.ratio_of(result.ratio)
    spread = words.spread_words(result.ours_us if isinstance(result, Row) else result.figure)
    figure, goal = words.figure_of(result), words.goal_of(result)
    return f"| {result.what.strip()} | {floor} | {figure} | {ratio} | {spread} | {goal} | {mark} |"


def _curves(table: Table) -> str:
    """Return each curve of an area: its chart, its figures, and its shape in words."""
    lines = []
    for curve in table.results:
        if not isinstance(curve, Curve):
            continue
        lines += [f"![{curve.what}](performance/{_name(table, curve)}.svg)", ""]
        sizes = " | ".join(words.number(point.size) for point in curve.points)
        lines += [f"| {curve.axis} | {sizes} |", f"|---|{'--:|' * len(curve.points)}"]
        ours = " | ".join(words.time_of(point.us) for point in curve.points)
        lines.append(f"| {curve.what} | {ours} |")
        floors = [point.floor_us for point in curve.points]
        if curve.floor:
            cells = " | ".join("" if us is None else words.time_of(us) for us in floors)
            lines.append(f"| {curve.floor} | {cells} |")
        said = words.shape_words(curve)
        lines += ["", f"{said[0].upper()}{said[1:]}: {words.verdict_of(curve)}.", ""]
    return "\n".join(lines).rstrip()
