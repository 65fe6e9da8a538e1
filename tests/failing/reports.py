"""Projects whose tools write reports for machines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from failing import javascript, native, python

if TYPE_CHECKING:
    from failing.projects import Case


def _with(case: Case, tool: str, *more: str, report: str = "", code: int | None = None) -> Case:
    """Return a project of another module with options that make its tool write a report."""
    return replace(
        case,
        tool=tool,
        run=(*case.run, *more),
        report=report,
        exit_code=case.exit_code if code is None else code,
    )


def _named(cases: list[Case], *names: str) -> list[Case]:
    return [case for case in cases if case.name in names]


CASES = [
    *(
        _with(case, "junit_pytest", "--junitxml=r.xml", report="r.xml")
        for case in _named(python.PYTEST, "two", "twice", "load", "hostile")
    ),
    *(
        _with(case, "junit_vitest", "--reporter=junit", "--outputFile=r.xml", report="r.xml")
        for case in _named(javascript.VITEST, "two", "load", "hostile")
    ),
    *(
        _with(case, "junit_jest", "--reporters=jest-junit", report="junit.xml")
        for case in _named(javascript.JEST, "two", "load", "hostile")
    ),
    *(
        _with(case, "json_jest", "--json", "--outputFile=r.json", report="r.json")
        for case in _named(javascript.JEST, "two", "load", "hostile")
    ),
    *(
        _with(case, "json_ruff", "--output-format", "json", "-o", "r.json", report="r.json")
        for case in _named(python.RUFF, "hostile", "two", "clean")
    ),
    *(
        _with(case, "sarif_ruff", "--output-format", "sarif", "-o", "r.json", report="r.json")
        for case in _named(python.RUFF, "hostile")
    ),
    *(
        _with(case, "json_eslint", "-f", "json", "-o", "r.json", report="r.json")
        for case in _named(javascript.ESLINT, "two", "load")
    ),
    *(
        replace(
            case,
            tool="json_go",
            run=("sh", "-c", "go test -json ./... > r.json"),  # compilers print beside it
            report="r.json",
        )
        for case in _named(native.GO, "two", "load", "panic", "exits", "hostile")
    ),
    *(
        _with(case, "json_mypy", "--output", "json")
        for case in _named(python.MYPY, "one", "load", "hostile")
    ),
]
