"""A run as JSON: everything that the tables and the page show comes from it."""

from __future__ import annotations

import os
import platform
from typing import Any, NamedTuple

from bench.measure import Amount, Curve, Figure, Missing, Point, Result, Row

_KINDS: dict[str, type[Row | Amount | Curve | Missing]] = {
    "row": Row,
    "amount": Amount,
    "curve": Curve,
    "missing": Missing,
}


class Table(NamedTuple):
    """The results of one area."""

    area: str
    title: str
    seconds: float
    results: tuple[Result, ...]
    failure: str = ""  # why the area could not be measured


class Run(NamedTuple):
    """All tables of a run, and where it ran. Without a date: the same run makes the same page."""

    effort: str
    machine: dict[str, str]
    tables: tuple[Table, ...]


def machine() -> dict[str, str]:
    """Return what ratios may depend on."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or 1),
        "load at the start": f"{os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return " ".join(line.split(":", 1)[1].split())
    except OSError:
        pass
    return platform.processor() or "unknown"


def to_json(run: Run) -> dict[str, Any]:
    """Return what `json.dump` takes."""
    tables = [
        table._asdict() | {"results": [result_to_json(each) for each in table.results]}
        for table in run.tables
    ]
    return {"effort": run.effort, "machine": run.machine, "tables": tables}


def from_json(data: dict[str, Any]) -> Run:
    """Return the run that was written."""
    tables = tuple(
        Table(**(table | {"results": tuple(result_from_json(each) for each in table["results"])}))
        for table in data["tables"]
    )
    return Run(data["effort"], data["machine"], tables)


def result_to_json(result: Result) -> dict[str, Any]:
    """Return one result with its kind; a goal of "inf" is no goal."""
    kind = next(name for name, known in _KINDS.items() if isinstance(result, known))
    return {"kind": kind} | {name: _plain(value) for name, value in result._asdict().items()}


def result_from_json(data: dict[str, Any]) -> Result:
    """Return the result that was written."""
    fields = {name: _figure(value) for name, value in data.items() if name != "kind"}
    if data["kind"] == "curve":
        fields["points"] = tuple(
            Point(**{name: _figure(value) for name, value in point.items()})
            for point in data["points"]
        )
    return _KINDS[data["kind"]](**fields)


def _plain(value: Any) -> Any:
    if isinstance(value, Figure):
        figures = (float(value), value.low, value.high)
        return {"median": [_short(each) for each in figures], "rounds": value.rounds}
    if isinstance(value, tuple):
        return [{name: _plain(field) for name, field in point._asdict().items()} for point in value]
    if isinstance(value, float):
        return "inf" if value == float("inf") else _short(value)
    return value


def _figure(value: Any) -> Any:
    if isinstance(value, dict):
        median, low, high = value["median"]
        return Figure(median, low, high, value["rounds"])
    return float("inf") if value == "inf" else value


def _short(value: float) -> float:
    """Return a number with the digits that mean something."""
    return float(f"{value:.6g}")
