"""One table for each area, aligned, for a terminal or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import words
from bench.measure import Amount, Curve, Missing, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.document import Run, Table
    from bench.measure import Result
    from notyet.cli.terminal import Style

HEADER = ("", "floor", "", "figure", "ratio", "spread", "goal", "")
_RIGHT = (2, 3, 4, 5)  # columns of numbers


def shown(table: Table, style: Style) -> str:
    """Return one table."""
    lines = [style.paint(table.title, "bold")]
    if table.failure:
        return "\n".join([*lines, f"  not measured: {table.failure}", ""])
    rows = [_cells(result) for result in table.results if isinstance(result, Row | Amount)]
    if rows:
        lines += _aligned([HEADER, *rows], style)
    for result in table.results:
        if isinstance(result, Curve):
            lines += _curve(result, style)
        if isinstance(result, Missing):
            lines.append(f"  {result.what}: not measured, {result.why}")
    lines += [style.paint(f"  ({each})", "dim") for each in words.remarks(table.results)]
    return "\n".join([*lines, ""])


def summary(run: Run, style: Style) -> str:
    """Say how many of the promises were reached, and which were not."""
    judged = [(words.key_of(each), words.verdict_of(each)) for each in results_of(run)]
    promised = [(key, verdict) for key, verdict in judged if key]
    missed = sorted({key for key, verdict in promised if verdict == words.MISSED})
    failed = [table.title for table in run.tables if table.failure]
    kept = len({key for key, _ in promised} - set(missed))
    lines = [f"{kept} of {kept + len(missed)} promised goals reached"]
    if missed:
        lines.append(style.paint(f"missed: {', '.join(missed)}", "red"))
    if failed:
        lines.append(style.paint(f"not measured: {', '.join(failed)}", "red"))
    return "\n".join(lines)


def results_of(run: Run) -> list[Result]:
    """Return all results of a run."""
    return [result for table in run.tables for result in table.results]


def _cells(result: Row | Amount) -> tuple[str, ...]:
    goal, verdict = words.goal_of(result), words.verdict_of(result)
    if isinstance(result, Amount):
        spread = words.spread_words(result.figure)
        return (result.what, "", "", words.figure_of(result), "", spread, goal, verdict)
    return (
        result.what,
        result.floor,
        words.time_of(result.floor_us),
        words.figure_of(result),
        words.ratio_of(result.ratio),
        words.spread_words(result.ours_us),
        goal,
        verdict,
    )


def _curve(curve: Curve, style: Style) -> list[str]:
    rows = [
        (curve.axis, *(words.number(point.size) for point in curve.points)),
        ("ours", *(words.time_of(point.us) for point in curve.points)),
    ]
    if curve.floor:
        floors = (point.floor_us for point in curve.points)
        rows.append((curve.floor, *("" if us is None else words.time_of(us) for us in floors)))
    verdict = _painted(words.verdict_of(curve), style)
    wanted = words.wanted_shape(curve)
    wanted = "flat" if wanted == "flat" else f"{wanted} or better"
    return [
        f"  {curve.what}",
        *(f"  {line}" for line in _columns(rows, right=range(1, len(rows[0])))),
        f"    {words.shape_words(curve)}; goal: {wanted}; {verdict}",
    ]


def _aligned(rows: Sequence[Sequence[str]], style: Style) -> list[str]:
    header, *lines = _columns(rows, right=_RIGHT)
    painted = [
        line[: -len(row[-1])] + _painted(row[-1], style) if row[-1] else line
        for line, row in zip(lines, rows[1:], strict=True)
    ]
    return [style.paint(header, "dim"), *painted]


def _columns(rows: Sequence[Sequence[str]], right: Iterable[int]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    is_right = set(right)
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if number in is_right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _painted(verdict: str, style: Style) -> str:
    return style.paint(verdict, "red", "bold") if verdict == words.MISSED else verdict
