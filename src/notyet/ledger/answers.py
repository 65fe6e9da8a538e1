"""Waiting for the answer to a stop that another process, or another thread, is asking (B12)."""

from __future__ import annotations

import time

from notyet.ledger import sql
from notyet.ledger.lost import is_lost
from notyet.ledger.rows import REPORT_COLUMNS, STOP_COLUMNS
from notyet.ledger.rows_read import decision_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.verdict import Decision
    from notyet.ledger.connection import Connection

_LEAST_PATIENCE = 0.1  # seconds for reading an answer that may be there already
# A stop is given up when its check is cancelled, or its process dies: then nobody was answered.
_GIVEN_UP = ("cancelled", "lost")
_READ_STOP = f"SELECT {sql.ASKER}, {', '.join(STOP_COLUMNS)} FROM stops WHERE id = ?"
_READ_REPORTS = f"SELECT {', '.join(REPORT_COLUMNS)} FROM reports WHERE stop = ? ORDER BY position"


def wait_for_answer(file: Connection, stop: int, patience: float) -> Decision | None:
    """Wait for a stop's decision; None when its process died or took too long."""
    ends = time.monotonic() + patience
    pause = 0.01
    while True:
        row, reports = file.read(
            lambda db: (
                db.execute(_READ_STOP, (stop,)).fetchone(),
                db.execute(_READ_REPORTS, (stop,)).fetchall(),
            ),
            max(_LEAST_PATIENCE, ends - time.monotonic()),
        )
        if row is None:
            return None
        asker, known = row[:4], row[4:]
        if known[0] != "asking":
            decision = decision_of(known, reports)
            is_given_up = decision.outcome == "skipped" and decision.why in _GIVEN_UP
            return None if is_given_up else decision
        if is_lost(*asker) or time.monotonic() >= ends:
            return None
        time.sleep(pause)
        pause = min(0.2, pause * 1.5)
