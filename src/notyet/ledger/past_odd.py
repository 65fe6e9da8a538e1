"""Rows that are not as we write them: another version's, or somebody wrote into the file.

One odd row hides no other: what can be understood of it is shown, and the rest is named.
"""

from __future__ import annotations

from notyet.core.json_text import loads
from notyet.core.verdict import HIGHEST_EXTEND, Problem, Report
from notyet.ledger.rows import REPORT_COLUMNS
from notyet.ledger.rows_read import report_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_LARGEST = 1e15  # seconds; beyond, nothing can be reckoned with
_NO_WORDS = "(no words)"
_WHOLE = frozenset({"stop", "position", "extend", "observed", "hidden", "held"})
_STATUSES = frozenset(
    {"allowed", "blocked", "halted", "problem", "not_asked", "remembered", "unchanged"}
)


class Columns:
    """Columns of one row by their names, each as it is meant to be; `odd` names the others."""

    def __init__(self, names: Iterable[str], row: Iterable[Any]) -> None:
        self._known = dict(zip(names, row, strict=True))
        self.odd: list[str] = []

    def text(self, name: str) -> str:
        """Return a text, or whatever it is as text."""
        value = self._known[name]
        if isinstance(value, str):
            return value
        self.odd.append(name)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return "" if value is None else str(value)

    def whole(self, name: str) -> int:
        """Return a whole number, 0 where there is none."""
        value = self._known[name]
        if isinstance(value, int):
            return value
        self.odd.append(name)
        return 0

    def number(self, name: str) -> float:
        """Return a number, 0 where there is none."""
        value = self._known[name]
        if not is_number(value):
            self.odd.append(name)
            return 0.0
        return float(value)

    def moment(self, name: str) -> float | None:
        """Return a moment, or None where there is none yet."""
        return None if self._known[name] is None else self.number(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return texts that are stored as JSON."""
        try:
            value = loads(self._known[name])
        except (TypeError, ValueError, AttributeError):
            value = None
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        self.odd.append(name)
        return ()


def is_number(value: object) -> bool:
    """Tell whether a column holds a number that can be reckoned with."""
    return isinstance(value, int | float) and -_LARGEST < value < _LARGEST


def readable_report(row: tuple[Any, ...]) -> tuple[Report, tuple[str, ...]]:
    """Read the columns `REPORT_COLUMNS`; return a report, and which of them are odd."""
    columns = Columns(REPORT_COLUMNS, row)
    known: dict[str, Any] = {name: _column(columns, name) for name in REPORT_COLUMNS}
    if not 0 <= known["extend"] <= HIGHEST_EXTEND:
        columns.odd.append("extend")
        known["extend"] = 0
    if known["status"] == "blocked" and not known["said"].strip():
        columns.odd.append("said")
        known["said"] = _NO_WORDS
    status = known["status"]
    if status not in _STATUSES:
        columns.odd.append("status")
        known["status"] = "problem"
    report = report_of(tuple(known.values()))
    if status not in _STATUSES:
        kind: Any = "unreadable"
        words = f"the ledger says {status!r}, which this notyet does not know"
        report = report.__replace__(answer=Problem(kind, words))
    return report, tuple(columns.odd)


def _column(columns: Columns, name: str) -> Any:
    if name == "seconds":
        return columns.number(name)
    return columns.whole(name) if name in _WHOLE else columns.text(name)
