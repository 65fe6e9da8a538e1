"""What is written down without asking and without counting: stops let go, and acts of people."""

from __future__ import annotations

import time

from notyet import system
from notyet.ledger.place import real
from notyet.ledger.rows import STOP_COLUMNS, event_row, key_text, place_text, stop_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision
    from notyet.ledger import Begun
    from notyet.ledger.connection import Connection
    from notyet.ledger.rows import Key

_GIVE_UP = (
    "UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'cancelled', ended_at = ?"
    " WHERE id = ? AND token = ? AND outcome = 'asking'"
)
_SKIP = (
    "INSERT INTO stops (agent, turn, begun_at, ended_at, pid, token, digest, event, place, why,"
    " warnings, outcome, verdict) VALUES (ifnull((SELECT id FROM agents WHERE host = ?"
    " AND session_id = ? AND agent_id = ?), 0), 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'skipped', 'allow')"
)
_ACT = "INSERT INTO acts (at, what, place, detail) VALUES (?, ?, ?, ?)"


def give_up(file: Connection, begun: Begun, patience: float | None) -> None:
    """Say that a stop which is still asking will not be answered."""
    given_up = (time.time(), begun.stop, begun.token)
    file.write(lambda db: db.execute(_GIVE_UP, given_up), patience)


def skip(
    file: Connection, key: Key, event: StopEvent, decision: Decision, patience: float | None
) -> int:
    """Write down a stop that was let go for a cause; return its number."""
    digest, stored = event_row(event)
    now = time.time()
    row = stop_row(decision)
    why, warnings = row[STOP_COLUMNS.index("why")], row[STOP_COLUMNS.index("warnings")]
    place = place_text(real(event.cwd))
    new = (now, now, system.getpid(), system.urandom(8), digest, stored, place, why, warnings)
    return file.write(lambda db: db.execute(_SKIP, (*key, *new)), patience).lastrowid or 0


def act(file: Connection, what: str, place: str, detail: str) -> None:
    """Write down what a person did: trust, revoke, off, on."""
    done = (time.time(), what, key_text(place), key_text(detail))
    file.write(lambda db: db.execute(_ACT, done))
