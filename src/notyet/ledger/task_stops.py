"""What becomes of the stops of supervised runs when their decisions do not stand."""

from __future__ import annotations

import time

from notyet.ledger.task_rows import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from notyet.ledger import Begun

NOT_SENT = "it could not be sent back"  # how the cause begins of a send-back that did not happen
# Whoever was asking about a task that is taken over, and perhaps still is, is not listened to.
LOSE_STOPS = """
    UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'lost'
    WHERE outcome = 'asking' AND agent IN (
      SELECT agents.id FROM tasks JOIN agents ON host = 'notyet'
      AND agents.session_id IN (tasks.session_id, tasks.id) AND agent_id IN ('', tasks.id)
      WHERE tasks.id = ?)
"""


def drop_stop(db: sqlite3.Connection, begun: Begun) -> None:
    """The decision came too late: a person was faster."""
    db.execute(
        "UPDATE stops SET outcome = 'skipped', verdict = 'allow', why = 'overtaken', ended_at = ?"
        " WHERE id = ? AND token = ? AND outcome = 'asking'",
        (time.time(), begun.stop, begun.token),
    )


def give_back(db: sqlite3.Connection, key: str) -> None:
    """Do not count a send-back that did not happen, unless another stop came since."""
    db.execute(
        "UPDATE agents SET blocks = blocks - 1, session_blocks = session_blocks - 1, blocked = 0"
        " WHERE (id, last_stop) = (SELECT stops.agent, stops.id FROM stops JOIN steers"
        " ON stops.id = steers.stop WHERE steers.key = ? AND stops.outcome = 'blocked')"
        " AND blocked AND blocks > 0",
        (key,),
    )


def fail_stop(db: sqlite3.Connection, key: str, why: str) -> None:
    """The agent could not be sent back: that stop has let it go."""
    db.execute(
        "UPDATE stops SET outcome = 'failed_open', verdict = 'allow', why = ?"
        " WHERE id = (SELECT stop FROM steers WHERE key = ?) AND outcome = 'blocked'",
        (storable(why), key),
    )
