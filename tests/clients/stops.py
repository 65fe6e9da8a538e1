"""The stops that a ledger remembers, as simple records."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_REPORT = ("gate", "status", "said", "reason", "exit")


@dataclass
class Report:
    """What one gate said, as the ledger has it."""

    gate: str
    status: str
    said: str
    reason: str
    exit: str


@dataclass
class Stop:
    """One stop, as the ledger has it."""

    outcome: str
    verdict: str
    why: str
    prompt: str
    count: int
    max_blocks: int
    limit_source: str
    warnings: list[str]
    host: str
    scope: str
    session_id: str
    agent_id: str
    agent_type: str
    last_message: str
    turn: int
    reports: list[Report]


def stops_in(path: Path) -> list[Stop]:
    """Return the rows of a ledger, oldest first; none where there is no ledger yet."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        rows = db.execute("SELECT * FROM stops ORDER BY id").fetchall()
        reports = db.execute("SELECT * FROM reports ORDER BY stop, position").fetchall()
    return [_stop(row, [r for r in reports if r["stop"] == row["id"]]) for row in rows]


def _stop(row: sqlite3.Row, reports: list[sqlite3.Row]) -> Stop:
    event = json.loads(row["event"])
    return Stop(
        outcome=row["outcome"],
        verdict=row["verdict"],
        why=row["why"],
        prompt=row["prompt"],
        count=row["count"],
        max_blocks=row["max_blocks"],
        limit_source=row["limit_source"],
        warnings=json.loads(row["warnings"]),
        host=event.get("host", ""),
        scope=event.get("scope", "agent"),
        session_id=event.get("session_id", ""),
        agent_id=event.get("agent_id") or "",
        agent_type=event.get("agent_type") or "",
        last_message=event.get("last_message") or "",
        turn=row["turn"],
        reports=[Report(*(report[name] for name in _REPORT)) for report in reports],
    )
