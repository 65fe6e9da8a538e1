"""Finding stops by an index: a ledger may hold a million of them.

Every index ends with the stop's number, so that its rows come in order, the newest first. A wish
for several folders or outcomes is several walks along an index, whose results are merged.
"""

from __future__ import annotations

from notyet.core.record import Record, replace
from notyet.core.verdict import OUTCOMES
from notyet.ledger.past import Past, below, lost_among, read
from notyet.ledger.rows import ALL, key_text
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import Any

    from notyet.ledger.past import Wish
    from notyet.ledger.stops import Ledger

_HIGHEST = (1 << 63) - 1
_FEW = 1_000  # agents, or stops of a gate, to look up one by one
_FEW_PLACES = 500
_ALL_OUTCOMES = (*OUTCOMES, "asking")


class _Walk(Record, kw_only=True):
    """One walk along an index."""

    index: str
    where: tuple[str, ...]
    values: tuple[Any, ...]


def find(db: sqlite3.Connection, wish: Wish) -> list[int]:
    """Return the numbers of the stops that match, the newest first."""
    if ("asking" in wish.outcomes) == ("skipped" in wish.outcomes):
        return _find(db, wish)
    # A stop whose process is gone counts as skipped, though the row may never say so.
    asking = _find(db, replace(wish, outcomes=("asking",), most=-1))
    lost = lost_among(db, asking)
    others = tuple(outcome for outcome in wish.outcomes if outcome != "asking")
    found = _find(db, replace(wish, outcomes=others)) if others else []
    found += [number for number in asking if (number in lost) == ("skipped" in others)]
    found.sort(reverse=True)
    return found if wish.most < 0 else found[: wish.most]


def _find(db: sqlite3.Connection, wish: Wish) -> list[int]:
    first, beyond = _span(db, wish)
    if first >= beyond:
        return []
    found: set[int] = set()
    walks, checks, values = _walks(db, wish)
    for walk in walks:
        where = " AND ".join((*walk.where, "s.id >= ?", "s.id < ?", *checks))
        source = f"stops s {walk.index}"
        statement = f"SELECT s.id FROM {source} WHERE {where} ORDER BY s.id DESC LIMIT ?"
        if walk.index == _BY_GATE:
            statement = statement.replace(source, _BY_GATE).replace("BY s.id", "BY r.stop")
            statement = statement.replace("s.id >= ?", "r.stop >= ?")
            statement = statement.replace("s.id < ?", "r.stop < ?")
        bound = (*walk.values, first, beyond, *values, ALL if wish.most < 0 else wish.most)
        found.update(number for (number,) in db.execute(statement, bound))
    newest = sorted(found, reverse=True)
    return newest if wish.most < 0 else newest[: wish.most]


def _span(db: sqlite3.Connection, wish: Wish) -> tuple[int, int]:
    """Return the first number that can match, and the one after the last.

    The clock may have been set back: times need not be in the order of numbers.
    """
    first, beyond = wish.after + 1, wish.before or _HIGHEST
    if (wish.since or wish.until) and not wish.after:  # the stops after another are few
        span = wish.since or -_EVER, wish.until or _EVER
        lowest, highest = db.execute(_IN_SPAN, span).fetchone()
        if lowest is None:
            return 0, 0
        first, beyond = max(first, lowest), min(beyond, highest + 1)
    return first, beyond


_EVER = 1e300
_IN_SPAN = (
    "SELECT min(id), max(id) FROM stops INDEXED BY stops_by_time"
    " WHERE begun_at >= ? AND begun_at <= ?"
)
_BY_GATE = "reports r INDEXED BY reports_by_gate JOIN stops s ON s.id = r.stop"
_BY_AGENT = "INDEXED BY stops_by_agent"


def _walks(
    db: sqlite3.Connection, wish: Wish
) -> tuple[list[_Walk], tuple[str, ...], tuple[Any, ...]]:
    """Return the walks, and the conditions to check for each stop on them."""
    checks = _Checks(wish)
    if wish.session:
        walks = [_of_agent(agent) for agent in _agents_of_session(db, wish)]
        start = '"session_id": ' + dumps(key_text(wish.session))[:-1]
        unknown = _Walk(
            index=_BY_AGENT,
            where=("s.agent = 0", "replace(s.event, ?, '') != s.event"),
            values=(start,),
        )
        return [*walks, unknown], *checks.all("outcome", "place", "host", "gate")
    if wish.gate and len(db.execute(_SOME_OF_GATE, (wish.gate, _FEW)).fetchall()) < _FEW:
        walk = _Walk(index=_BY_GATE, where=("r.gate = ?",), values=(wish.gate,))
        return [walk], *checks.all("outcome", "place", "host")
    if wish.host:
        agents = db.execute(_AGENTS_OF_HOST, (key_text(wish.host), _FEW)).fetchall()
        if len(agents) < _FEW:
            walks = [_of_agent(agent) for (agent,) in (*agents, (0,))]
            return walks, *checks.all("outcome", "place", "host", "gate")
    places = _places(db, wish)
    if places is not None:
        walks = [
            _Walk(
                index="INDEXED BY stops_by_place",
                where=("s.place = ?", "s.outcome = ?"),
                values=(place, outcome),
            )
            for place in places
            for outcome in wish.outcomes or _ALL_OUTCOMES
        ]
        return walks, *checks.all("host", "gate")
    if wish.outcomes:
        index = "INDEXED BY stops_by_outcome"
        walks = [_Walk(index=index, where=("s.outcome = ?",), values=(o,)) for o in wish.outcomes]
        return walks, *checks.all("place", "host", "gate")
    return [_Walk(index="", where=(), values=())], *checks.all("place", "host", "gate")


_SOME_OF_GATE = "SELECT 1 FROM reports INDEXED BY reports_by_gate WHERE gate = ? LIMIT ?"
_AGENTS_OF_HOST = "SELECT id FROM agents WHERE host = ? LIMIT ?"
_AGENTS_OF_SESSION = (
    "SELECT id FROM agents INDEXED BY agents_by_session WHERE session_id >= ? AND session_id < ?"
)


def _of_agent(agent: int) -> _Walk:
    return _Walk(index=_BY_AGENT, where=("s.agent = ?",), values=(agent,))


def _agents_of_session(db: sqlite3.Connection, wish: Wish) -> list[int]:
    start = key_text(wish.session)
    return [agent for (agent,) in db.execute(_AGENTS_OF_SESSION, (start, start + "\U0010ffff"))]


def _places(db: sqlite3.Connection, wish: Wish) -> list[str] | None:
    """Return the folders of stops below a place; None if there are too many."""
    folders = below(wish.place)
    if not folders:
        return None
    found = [name for own, under, _ in folders for name in (own, under)]  # with a slash, too
    for _, under, beyond in folders:
        place = under
        while True:
            (following,) = db.execute(_NEXT_PLACE, (place, beyond)).fetchone()
            if following is None:
                break
            if len(found) == _FEW_PLACES:
                return None
            found.append(following)
            place = following
    return found


_NEXT_PLACE = "SELECT min(place) FROM stops WHERE place > ? AND place < ?"


class _Checks:
    """Conditions of a wish that a walk does not imply."""

    def __init__(self, wish: Wish) -> None:
        self._known: dict[str, tuple[str, tuple[Any, ...]]] = {}
        if wish.outcomes:
            marks = ", ".join("?" * len(wish.outcomes))
            self._known["outcome"] = f"s.outcome IN ({marks})", wish.outcomes
        if wish.place:
            folders = below(wish.place)
            words = " OR ".join("s.place = ? OR (s.place >= ? AND s.place < ?)" for _ in folders)
            self._known["place"] = f"({words})", tuple(name for row in folders for name in row)
        if wish.host:
            host = key_text(wish.host)
            self._known["host"] = _OF_HOST, (host, f'"host": {dumps(host)}')
        if wish.gate:
            self._known["gate"] = _WITH_GATE, (wish.gate,)
        self._time = tuple(
            (f"s.begun_at {sign} ?", (moment,))
            for sign, moment in ((">=", wish.since), ("<=", wish.until))
            if moment
        )

    def all(self, *names: str) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Return the conditions of these names and those of time, with their values."""
        wanted = (*(self._known[name] for name in names if name in self._known), *self._time)
        words = tuple(condition for condition, _ in wanted)
        return words, tuple(value for _, values in wanted for value in values)


_OF_HOST = (
    "(EXISTS (SELECT 1 FROM agents a WHERE a.id = s.agent AND a.host = ?)"
    " OR (s.agent = 0 AND replace(s.event, ?, '') != s.event))"
)
_WITH_GATE = "EXISTS (SELECT 1 FROM reports r WHERE r.stop = s.id AND r.gate = ?)"


_AT_ONCE = 1_000  # stops in one look


class News(Record, kw_only=True):
    """What happened since the last look, the oldest stop first.

    `fresh` has the stops up to the number `newest`, which is the last one if `is_all`. Each look is
    one transaction, so that no stop is returned twice or missed.
    """

    newest: int
    is_all: bool
    watched: tuple[Past, ...]
    fresh: tuple[Past, ...]


def first_look(ledger: Ledger, wish: Wish) -> News:
    """Return the stops that match, and all that are being decided: they may match later."""

    def look(db: sqlite3.Connection) -> News:
        asking = find(db, replace(wish, outcomes=("asking",), gate="", most=-1))
        fresh = read(db, find(db, wish)[::-1])
        watched = read(db, asking[::-1])
        return News(newest=_newest(db), is_all=True, watched=tuple(watched), fresh=tuple(fresh))

    return ledger.file.read(look)


def next_look(ledger: Ledger, wish: Wish, watched: Sequence[int], after: int) -> News:
    """Return the watched stops as they are now, and the next ones after a number.

    Of any outcome and gate: a stop has these only when it is decided.
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
