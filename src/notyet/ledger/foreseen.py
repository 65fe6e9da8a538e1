"""What a stop would find in the ledger, for somebody who asks before there is one."""

from __future__ import annotations

from contextlib import closing

from notyet.core.limits import History, open_turn
from notyet.core.record import variant
from notyet.errors import LedgerUnmended
from notyet.ledger import Begun, sql
from notyet.ledger.rows import history_of, key_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from notyet.core.event import StopEvent
    from notyet.ledger.sqlite import Ledger

_WAS_BLOCKED = "SELECT 1 FROM stops WHERE id = ? AND outcome = 'blocked'"
_WRITE_NOTHING = "UPDATE stops SET outcome = outcome WHERE 0"


def foresee(ledger: Ledger, event: StopEvent, patience: float | None = None) -> Begun:
    """Return what `begin` would find out: the history in which this stop would happen.

    Nothing is entered, and no answer of another stop is taken for this one's. Raises LedgerError
    where `begin` would, too: also if the file can be read, and not written. A stop brings up the
    file of an older version with all that it knows, so that is looked at as it is.
    """
    key = (key_text(event.host), key_text(event.session_id), key_text(event.agent_id or ""))
    if event.turn_id:
        event = variant(event, {"turn_id": key_text(event.turn_id)})  # as it is stored

    def look(db: sqlite3.Connection) -> Begun:
        db.execute(_WRITE_NOTHING)
        row = db.execute(sql.FIND_AGENT, key).fetchone()
        history, last_stop = (history_of(row[3:]), row[1]) if row else (History(), 0)
        opened = open_turn(history, event)
        overridden = 0
        if opened.turn != history.turn and history.blocked:
            overridden = last_stop if db.execute(_WAS_BLOCKED, (last_stop,)).fetchone() else 0
        return Begun(stop=0, history=opened, overridden=overridden)

    try:
        begun = ledger.file.write(look, patience)
    except LedgerUnmended:
        older = _in_older(ledger.path, look)
        if older is None:
            raise
        begun = older
    return variant(begun, {"warnings": ledger.file.take_warnings()})


def _in_older(path: str, look: Callable[[sqlite3.Connection], Begun]) -> Begun | None:
    """Look into a file of an older version; None for one that is not, or that is damaged too."""
    from notyet.ledger.driver import sqlite3
    from notyet.ledger.file_seen import open_older

    try:
        db = open_older(path)
        if db is None:
            return None
        with closing(db):
            return look(db)
    except sqlite3.Error:
        return None
