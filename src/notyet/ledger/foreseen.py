"""What a stop would find in the ledger, for somebody who asks before there is one."""

from __future__ import annotations

from notyet.core.limits import History, open_turn
from notyet.core.record import variant
from notyet.ledger import Begun, sql
from notyet.ledger.rows import history_of, key_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from notyet.core.event import StopEvent
    from notyet.ledger.sqlite import Ledger

_WAS_BLOCKED = "SELECT 1 FROM stops WHERE id = ? AND outcome = 'blocked'"
_WRITE_NOTHING = "UPDATE stops SET outcome = outcome WHERE 0"


def foresee(ledger: Ledger, event: StopEvent, patience: float | None = None) -> Begun:
    """Return what `begin` would find out: the history in which this stop would happen.

    Nothing is entered, and no answer of another stop is taken for this one's. Raises LedgerError
    where `begin` would, too: also if the file can be read, and not written.
    """
    key = (key_text(event.host), key_text(event.session_id), key_text(event.agent_id or ""))
    if event.turn_id:
        event = variant(event, {"turn_id": key_text(event.turn_id)})  # as it is stored

    def look(db: sqlite3.Connection) -> Begun:
        db.execute(_WRITE_NOTHING)
        row = db.execute(sql.FIND_AGENT, key).fetchone()
        history, last_stop = (history_of(row[2:]), row[1]) if row else (History(), 0)
        opened = open_turn(history, event)
        overridden = 0
        if opened.turn != history.turn and history.blocked:
            overridden = last_stop if db.execute(_WAS_BLOCKED, (last_stop,)).fetchone() else 0
        return Begun(stop=0, history=opened, overridden=overridden)

    begun = ledger.file.write(look, patience)
    return variant(begun, {"warnings": ledger.file.take_warnings()})
