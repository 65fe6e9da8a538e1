"""Charts as SVG: bars of ratios, and curves with both axes logarithmic.

Each has a ground of its own, light or dark as the reader's system is, so that it can be read on any page.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from bench.measure import Figure
from bench.words import number, time_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.measure import Curve

WIDTH = 720
_STYLE = """
  svg { color-scheme: light dark; font: 13px system-ui, sans-serif; }
  .ground { fill: #ffffff; stroke: #d0d7de; } text { fill: #1f2328; } .dim { fill: #59636e; }
  .title { font-weight: 600; font-size: 15px; } .grid { stroke: #d1d9e0; }
  .ours { fill: #0969da; stroke: #0969da; } .other { fill: #8c959f; stroke: #8c959f; }
  .goal { stroke: #bc4c00; stroke-width: 2; } .goalword { fill: #bc4c00; }
  .line { stroke-width: 2; } .dashed { stroke-dasharray: 5 4; }
  .spread { stroke-width: 1; opacity: 0.6; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #3d444d; } text { fill: #f0f6fc; } .dim { fill: #9198a1; }
    .grid { stroke: #3d444d; } .ours { fill: #4493f8; stroke: #4493f8; }
    .other { fill: #818b98; stroke: #818b98; } .goal { stroke: #f0883e; } .goalword { fill: #f0883e; }
  }
"""


class Bar(NamedTuple):
    """One bar: its words, its ratio, the goal (if there is one), and whether it is about us."""

    words: str
    ratio: float
    goal: float | None
    is_ours: bool


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """Return a chart of ratios, one bar below the other."""
    left, right, top, step = 300, 76, 62, 30
    height = top + step * len(rows) + 40
    most = max([*(row.ratio for row in rows), *(row.goal or 0 for row in rows), 1.0]) * 1.05

    def across(ratio: float) -> float:
        return left + (WIDTH - left - right) * ratio / most

    parts = [_text(18, 28, title, "title"), _text(18, 47, unit, "dim")]
    every = _step(most)
    for count in range(int(most / every) + 1):
        x = across(count * every)
        parts.append(_line((x, top - 4), (x, height - 34), "grid"))
        parts.append(_text(x, height - 16, f"{count * every:g}x", "dim", "middle"))
    for place, row in enumerate(rows):
        y = top + place * step
        kind = "ours" if row.is_ours else "other"
        parts.append(_text(left - 10, y + 17, row.words, "", "end"))
        size = f'width="{across(row.ratio) - left:.1f}" height="18"'
        parts.append(f'<rect class="{kind}" x="{left}" y="{y + 3}" {size} rx="2"/>')
        edge = across(row.ratio)
        if row.goal is not None:
            x = across(row.goal)
            parts.append(_line((x, y), (x, y + 24), "goal"))
            edge = max(edge, x)
        parts.append(_text(edge + 6, y + 17, f"{row.ratio:.2f}x"))
    if any(row.goal is not None for row in rows):
        parts.append(_line((WIDTH - 140, 38), (WIDTH - 140, 52), "goal"))
        parts.append(_text(WIDTH - 132, 49, "goal: at most", "goalword"))
    return _svg(height, title, parts)


def curve(chart: Curve, verdict: str) -> str:
    """Return a chart of how a figure grows: a straight line of slope one is linear growth."""
    left, right, top, bottom, height = 84, 40, 66, 52, 340
    sizes = [point.size for point in chart.points]
    floors = [point.floor_us for point in chart.points if point.floor_us is not None]
    low, high = _decades([*(point.us for point in chart.points), *floors])
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def place(size: float, us: float) -> tuple[float, float]:
        x = left + (WIDTH - left - right) * (math.log10(size) - first) / (last - first)
        y = height - bottom - (height - top - bottom) * (math.log10(us) - low) / (high - low)
        return x, y

    parts = [_text(18, 28, chart.what, "title"), _text(18, 47, verdict, "dim")]
    for decade in range(low, high + 1):
        y = place(sizes[0], 10.0**decade)[1]
        parts.append(_line((left, y), (WIDTH - right, y), "grid"))
        parts.append(_text(left - 8, y + 4, time_of(10.0**decade), "dim", "end"))
    for size in sizes:
        x = place(size, 10.0**low)[0]
        parts.append(_text(x, height - bottom + 20, number(size), "dim", "middle"))
    parts.append(_text(WIDTH / 2, height - 14, chart.axis, "dim", "middle"))
    if floors:
        measured = [point for point in chart.points if point.floor_us is not None]
        dots = [place(point.size, point.floor_us or 0) for point in measured]
        parts += _path(dots, "other", "dashed")
        parts.append(_line((WIDTH - right - 30, 42), (WIDTH - right, 42), "other dashed"))
        parts.append(_text(WIDTH - right - 38, 47, chart.floor, "dim", "end"))
    dots = [place(point.size, point.us) for point in chart.points]
    for point in chart.points:
        if isinstance(point.us, Figure) and point.us.low > 0:
            ends = place(point.size, point.us.low), place(point.size, point.us.high)
            parts.append(_line(*ends, "ours spread"))
    parts += _path(dots, "ours", "")
    for point, (x, y) in zip(chart.points, dots, strict=True):
        anchor = "start" if x < left + 30 else "end" if x > WIDTH - right - 30 else "middle"
        parts.append(_text(x, y - 10, time_of(point.us), "", anchor))
    return _svg(height, chart.what, parts)


def _decades(figures: Iterable[float]) -> tuple[int, int]:
    """Return the powers of ten around these, at least two apart: what is flat should look flat."""
    known = list(figures)
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known) * 1.3))
    return low, max(high, low + 2)


def _step(most: float) -> float:
    """Return a round number of which about six fit."""
    return next(each for each in (0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 10**6) if most / each <= 8)


def _path(dots: Sequence[tuple[float, float]], kind: str, style: str) -> list[str]:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
    line = f'<polyline class="{kind} line {style}" style="fill:none" points="{points}"/>'
    return [line, *(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in dots)]


def _line(start: tuple[float, float], end: tuple[float, float], kind: str) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


def _svg(height: int, title: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n"
        f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>\n'
        f"{body}\n</svg>\n"
    )
