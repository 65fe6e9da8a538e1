"""What happened in a ledger since one looked. Each look is one transaction.

So nothing comes between what is read and the number up to which it was: no stop is told twice, and
none is lost, however long nobody looked.
"""

from __future__ import annotations

from notyet.core.record import Record, replace
from notyet.ledger.past_find import find
from notyet.ledger.past_read import Past, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from notyet.ledger.past import Wish
    from notyet.ledger.sqlite import Ledger

_AT_ONCE = 1_000  # numbers


class News(Record, kw_only=True):
    """Stops, the oldest first; `fresh` up to the number `newest`, which is the last if `is_all`."""

    newest: int
    is_all: bool
    watched: tuple[Past, ...]
    fresh: tuple[Past, ...]


def first_look(ledger: Ledger, wish: Wish) -> News:
    """Return the stops that are meant, and all that are being asked: they may be meant later."""

    def look(db: sqlite3.Connection) -> News:
        asking = find(db, replace(wish, outcomes=("asking",), gate="", most=-1))
        fresh = read(db, find(db, wish)[::-1])
        watched = read(db, asking[::-1])
        return News(newest=_newest(db), is_all=True, watched=tuple(watched), fresh=tuple(fresh))

    return ledger.file.read(look)


def next_look(ledger: Ledger, wish: Wish, watched: Sequence[int], after: int) -> News:
    """Return how the watched stops are now, and the next ones after a number.

    Whatever their outcome and their gates: a stop gets these only when it is decided.
    """

    def look(db: sqlite3.Connection) -> News:
        last = _newest(db)
        newest = min(last, after + _AT_ONCE)
        wanted = replace(wish, after=after, before=newest + 1, outcomes=(), gate="", most=-1)
        fresh = find(db, wanted) if newest > after else []
        return News(
            newest=newest,
            is_all=newest == last,
            watched=tuple(read(db, sorted(watched))),
            fresh=tuple(read(db, fresh[::-1])),
        )

    return ledger.file.read(look)


def _newest(db: sqlite3.Connection) -> int:
    (newest,) = db.execute("SELECT max(id) FROM stops").fetchone()
    return int(newest or 0)
