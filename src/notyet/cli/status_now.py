"""Lines of `notyet status` about gates, limits, sessions and decisions, as tables for people."""

from __future__ import annotations

import os
import time

from notyet.cli.moments import age, when
from notyet.cli.table import outcome_cell, table, width
from notyet.core.remote import remote_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from notyet.cli.style import Style
    from notyet.cli.table import Cell
    from notyet.report.gated import GateHere, LimitHere
    from notyet.report.lately import DecisionHere, Lately, SessionHere

INDENT = 2  # columns before every line of a table
_MINUTE, _HOUR = 60, 3_600
_UNITS = ("bytes", "kB", "MB", "GB")
_THOUSAND = 1_000.0


def gate_lines(gates: Sequence[GateHere], hosts: int, cwd: str, style: Style) -> list[str]:
    """Return a table of gates, in the order in which they are asked."""
    if not gates:
        return []
    columns = {
        "gate": [one.name for one in gates],
        "stage": [_stage(one) for one in gates],
        "for": [one.whom for one in gates],
        "asked": [_when(one) for one in gates],
        "timeout": [span(one.timeout) for one in gates],
        "runs": [f"on {remote_from(one.place).destination}" if one.place else "" for one in gates],
        "hosts": ["" if len(one.hosts) == hosts else ", ".join(one.hosts) for one in gates],
        "from": [_from(one, cwd) for one in gates],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    rows: list[tuple[Cell, ...]] = list(zip(*shown.values(), strict=True))
    return table(tuple(shown), rows, style, columns=width() - INDENT)


def _stage(one: GateHere) -> str:
    if not one.trusted:
        return "not trusted"
    return f"{one.stage}, observes" if one.observe else str(one.stage)


def _when(one: GateHere) -> str:
    if one.when == "always":
        return "always"
    return f"when {', '.join(one.paths)} changed" if one.paths else "when files changed"


def _from(one: GateHere, cwd: str) -> str:
    place = near(one.file, cwd)
    return f"{place}:{one.line}" if one.line else place


def limit_lines(limits: Iterable[LimitHere], cwd: str, style: Style) -> list[str]:
    """Return a table of the limits, and where each comes from."""
    rows = [(one.name, _value(one.value), near(one.source, cwd)) for one in limits]
    return table(("limit", "value", "from"), rows, style, columns=width() - INDENT)


def _value(value: int | bool) -> str:  # noqa: FBT001  # a setting, whatever it is
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def session_lines(sessions: Sequence[SessionHere], style: Style) -> list[str]:
    """Return a table of what sessions used of their budgets."""
    if not sessions:
        return []
    now = time.time()
    rows = [
        (
            one.session_id,
            one.agent_id or "main",
            one.host,
            str(one.turn),
            f"{one.used} of {one.limit}",
            outcome_cell(one.outcome),
            f"{age(now - one.seen_at)} ago",
        )
        for one in sessions
    ]
    head = ("session", "agent", "host", "turn", "sent back", "last", "seen")
    return table(head, rows, style, columns=width() - INDENT)


def decision_lines(decisions: Sequence[DecisionHere], style: Style) -> list[str]:
    """Return a table of the last decisions."""
    if not decisions:
        return []
    rows = [
        (str(one.id), when(one.at), outcome_cell(one.outcome), one.host, one.why)
        for one in decisions
    ]
    head = ("stop", "when", "outcome", "host", "why")
    return table(head, rows, style, columns=width() - INDENT)


def ledger_line(lately: Lately) -> str:
    """Say where the ledger is, and how much it holds."""
    size = f"{_size(lately.size)}" if lately.size else "none yet"
    wrong = f"; it cannot be read: {lately.problem}" if lately.problem else ""
    return f"{near(lately.path, '')} ({size}{wrong})"


def _size(number: int) -> str:
    amount = float(number)
    for unit in _UNITS:
        if amount < _THOUSAND or unit == _UNITS[-1]:
            break
        amount /= _THOUSAND
    return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"  # noqa: PLR2004  # one digit is enough


def near(path: str, cwd: str) -> str:
    """Return a path as short as somebody who is in a folder writes it."""
    if cwd and path.startswith(cwd.rstrip("/") + "/"):
        return path.removeprefix(cwd.rstrip("/") + "/")
    home = os.path.expanduser("~")
    return f"~{path.removeprefix(home)}" if len(home) > 1 and path.startswith(f"{home}/") else path


def span(seconds: float | None) -> str:
    """Return a timeout as people write it in a file."""
    if seconds is None:
        return "none"
    for size, unit in ((_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
