"""Search stops page by page, at the same cost in a ledger of any size.

SQLite would sort all that match, or read the whole table for a rare match. Here the index that
leaves the fewest candidates yields them in order, and the other conditions are checked on each
until the page is full or enough candidates were read.
"""

from __future__ import annotations

import heapq
from itertools import chain, islice

from notyet.core.record import Record
from notyet.core.verdict import OUTCOMES, group_of
from notyet.ledger.ledger import ASKER
from notyet.ledger.past_stops import (
    END_OF_TIME,
    below,
    bounds,
    event_of,
    has_lost_asker,
    parts,
    read_in,
    session_range,
    session_text,
)
from notyet.ledger.stop_rows import key_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from typing import Any

    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import PastStop, StopFilter

    Lane = tuple[str, tuple[Any, ...]]  # a statement that yields numbers in order, and its values

MOST_READ = 5_000  # candidates for one page
_PROBED = 1_000  # candidates by which indexes are compared
_FIRST_PART = 16  # a quarter of the candidates in the first part of a lane
_MOST_LANES = 200  # statements that are merged
_MOST_KNOWN = 100  # names in a list to choose from

_ALL_STOPS = "SELECT id FROM stops WHERE id > ? AND id < ? ORDER BY id DESC"
_WITH_OUTCOME = "SELECT id FROM stops WHERE outcome = ? AND id > ? AND id < ? ORDER BY id DESC"
_WITH_GATE = "SELECT stop FROM reports WHERE gate = ? AND stop > ? AND stop < ? ORDER BY stop DESC"
_OF_AGENT = "SELECT id FROM stops WHERE agent = ? AND id > ? AND id < ? ORDER BY id DESC"
_IN_PLACE = (
    "SELECT id FROM stops WHERE place = ? AND outcome = ? AND id > ? AND id < ? ORDER BY id DESC"
)
_AGENTS_OF_SESSION = "SELECT id FROM agents WHERE session_id >= ? AND session_id < ? LIMIT ?"
_AGENTS_OF_HOST = "SELECT id FROM agents WHERE host = ? LIMIT ?"
_CANDIDATES = (
    "SELECT s.id, s.begun_at, s.why, s.place, a.host, a.session_id,"
    " CASE WHEN a.id IS NULL THEN s.event ELSE '' END,"
    " EXISTS (SELECT 1 FROM reports r WHERE r.gate = ? AND r.stop = s.id), s.outcome,"
    f" {', '.join(f's.{name}' for name in ASKER.split(', '))}"
    " FROM stops s LEFT JOIN agents a ON a.id = s.agent WHERE s.id IN"
)
# SQLite reads all rows of a value for DISTINCT, and for a comparison of two columns at once.
_NEXT_HOST = "SELECT min(host) FROM agents WHERE host > ?"
_NEXT_GATE = "SELECT min(gate) FROM reports WHERE gate > ?"
_NEXT_PLACE = "SELECT min(place) FROM stops WHERE place > ?"
_NEXT_PLACE_BELOW = f"{_NEXT_PLACE} AND place < ?"
_NEXT_OUTCOME = "SELECT min(outcome) FROM stops WHERE outcome > ? AND place = ?"


class StopPage(Record, kw_only=True):
    """One page of stops, the newest first; a number of 0: there is no such page."""

    stops: tuple[PastStop, ...]
    older: int = 0  # the page before this stop goes on
    newer: int = 0  # the page after this stop goes back
    is_cut: bool = False  # enough candidates were read before the page was full


class Known(Record, kw_only=True):
    """What people can choose from; the first ones of very many."""

    hosts: tuple[str, ...]
    gates: tuple[str, ...]
    places: tuple[str, ...]


def search(ledger: Ledger, wanted: StopFilter) -> StopPage:
    """Return the page of `most` stops that match, before or after a stop."""
    return ledger.connection.read(lambda db: _search(db, wanted))


def known_names(ledger: Ledger) -> Known:
    """Return the hosts, gates and folders that the ledger knows."""
    statements = (_NEXT_HOST, _NEXT_GATE, _NEXT_PLACE)
    hosts, gates, places = ledger.connection.read(
        lambda db: [tuple(islice(_distinct(db, each, ""), _MOST_KNOWN)) for each in statements]
    )
    return Known(hosts=hosts, gates=gates, places=places)


def _distinct(db: sqlite3.Connection, following: str, value: str, *others: str) -> Iterator[str]:
    """Yield each value above this one, in order, by a statement that returns the next one."""
    while (found := db.execute(following, (value, *others)).fetchone()[0]) is not None:
        value = found
        yield value


def _search(db: sqlite3.Connection, wanted: StopFilter) -> StopPage:
    is_upward = bool(wanted.after and not wanted.before)
    matches = _Matches(wanted)
    found: list[int] = []
    read = last = 0
    size = wanted.most + 1  # one more shows that there is another page
    candidates = _candidates(db, wanted, is_upward=is_upward)
    while len(found) <= wanted.most and read < MOST_READ:
        some = list(islice(candidates, size))
        found += matches.among(db, some)
        read += len(some)
        last = some[-1] if some else last
        if len(some) < size:
            last = 0  # all were read
            break
        size = min(4 * size, MOST_READ - read)
    is_full = len(found) > wanted.most
    found = found[: wanted.most]
    following = found[-1] if is_full else last
    if is_upward:
        older, newer = (found[0] if found else wanted.after + 1), following
    else:
        older, newer = following, (found[0] if found else wanted.before - 1)
        newer = newer if wanted.before else 0
    return StopPage(
        stops=tuple(read_in(db, sorted(found, reverse=True))),
        older=older,
        newer=newer,
        is_cut=bool(last) and len(found) < wanted.most,
    )


# Candidates: numbers of stops in order, from the index that leaves the fewest.


def _candidates(db: sqlite3.Connection, wanted: StopFilter, *, is_upward: bool) -> Iterator[int]:
    low, high = bounds(db, wanted)

    def merged(lanes: Iterable[Lane]) -> Iterator[int]:
        numbers = [_numbers(db, lane, low, high, is_upward=is_upward) for lane in lanes]
        last = 0
        for number in heapq.merge(*numbers, reverse=not is_upward):
            if number != last:  # two gates of a stop may have one name
                yield number
            last = number

    choices = [lanes for lanes in _choices(db, wanted) if len(lanes) <= _MOST_LANES]
    if len(choices) <= 1:
        return merged(choices[0] if choices else [(_ALL_STOPS, ())])
    best: tuple[tuple[bool, int], list[int], Iterator[int]] | None = None
    for lanes in choices:
        rest = merged(lanes)
        first = list(islice(rest, _PROBED))
        # The better index has come to its end, or else further.
        end = (len(first) < _PROBED, first[-1] if is_upward else -first[-1]) if first else (True, 0)
        if best is None or end > best[0]:
            best = end, first, rest
    assert best is not None
    return chain(best[1], best[2])


def _numbers(
    db: sqlite3.Connection, lane: Lane, low: int, high: int, *, is_upward: bool
) -> Iterator[int]:
    """Yield the numbers of a lane in order.

    In parts: PostgreSQL returns all that a statement finds at once, SQLite one row after another.
    """
    sql, values = lane
    sql = f"{sql.removesuffix(' DESC') if is_upward else sql} LIMIT ?"
    size = found = _FIRST_PART
    while found == size:
        size, found, number = min(4 * size, MOST_READ), 0, 0
        rows = db.execute(sql, (*values, low, high, size))
        for found, (number,) in enumerate(rows, start=1):  # noqa: B007  # read after the loop
            yield number
        low, high = (number, high) if is_upward else (low, number)


def _choices(db: sqlite3.Connection, wanted: StopFilter) -> Iterator[list[Lane]]:
    """Yield for each condition the statements that find all that meet it."""
    outcomes = _outcomes(wanted.outcomes)
    if wanted.outcomes:
        yield [(_WITH_OUTCOME, (outcome,)) for outcome in outcomes]
    if wanted.gate:
        yield [(_WITH_GATE, (wanted.gate,))]
    if wanted.session:
        found = db.execute(_AGENTS_OF_SESSION, (*session_range(wanted), _MOST_LANES))
        yield [(_OF_AGENT, row) for row in [(0,), *found]]
    if wanted.host:
        found = db.execute(_AGENTS_OF_HOST, (key_text(wanted.host), _MOST_LANES))
        yield [(_OF_AGENT, row) for row in [(0,), *found]]
    if wanted.place:
        pairs = list(islice(_places(db, wanted.place), _MOST_LANES + 1))
        if len(pairs) <= _MOST_LANES:
            yield [(_IN_PLACE, pair) for pair in pairs if not outcomes or pair[1] in outcomes]


def _places(db: sqlite3.Connection, place: str) -> Iterator[tuple[str, str]]:
    """Yield the folders at and below a place, each with the outcomes of its stops."""
    for own, under, end in below(place):
        for folder in chain([own], _distinct(db, _NEXT_PLACE_BELOW, under, end)):
            for outcome in _distinct(db, _NEXT_OUTCOME, "", folder):
                yield folder, outcome


def _outcomes(wanted: tuple[str, ...]) -> list[str]:
    """Return the stored outcomes among which stops match; lost ones are stored as "asking"."""
    names = [name for name in OUTCOMES if name in wanted or group_of(name, "") in wanted]
    is_asking = "asking" in wanted or "skipped" in names
    return [*names, "asking"] if is_asking else names


class _Matches:
    """Checks every condition on candidates."""

    def __init__(self, wanted: StopFilter) -> None:
        self._wanted = wanted
        self._folders = below(wanted.place)
        self._host, self._session = key_text(wanted.host), key_text(wanted.session)
        is_plain = bool(wanted.session) and self._session == wanted.session
        self._in_event = session_text(wanted) if is_plain else ""

    def among(self, db: sqlite3.Connection, numbers: list[int]) -> list[int]:
        """Return the numbers of those that match, in the same order."""
        found = set()
        for some in parts(numbers):
            marks = f"({', '.join('?' * len(some))})"
            for row in db.execute(f"{_CANDIDATES} {marks}", (self._wanted.gate, *some)):
                if self._is_match(*row):
                    found.add(row[0])
        return [number for number in numbers if number in found]

    def _is_match(  # noqa: PLR0917  # the columns of _CANDIDATES
        self,
        _number: int,
        begun_at: float,
        why: str,
        place: str,
        host: str | None,
        session: str | None,
        event: str,
        has_gate: int,
        outcome: str,
        *asker: Any,
    ) -> bool:
        wanted = self._wanted
        if begun_at < wanted.since or begun_at > (wanted.until or END_OF_TIME):
            return False
        if wanted.gate and not has_gate:
            return False
        if wanted.outcomes:
            if has_lost_asker(outcome, *asker):
                outcome, why = "skipped", "lost"
            if {outcome, group_of(outcome, why)}.isdisjoint(wanted.outcomes):
                return False
        if (wanted.host or wanted.session) and host is None:
            if self._in_event not in event:  # to read it takes longer
                return False
            known = event_of(event)
            host, session = key_text(known.host), key_text(known.session_id)
        if (wanted.host and host != self._host) or not self._is_of_session(session or ""):
            return False
        return not self._folders or any(
            place == own or place.startswith(under) for own, under, _ in self._folders
        )

    def _is_of_session(self, session: str) -> bool:
        if self._wanted.is_whole_session:
            return session == self._session
        return session.startswith(self._session)
