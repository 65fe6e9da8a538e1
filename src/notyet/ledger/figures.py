"""Figures about the stops of a span: how many there were, and how they went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.core.record import Record
from notyet.core.verdict import NOTHING_TO_CHECK, OUTCOMES, group_of
from notyet.ledger.ledger import ASKER
from notyet.ledger.past_stops import Conditions, has_lost_asker, host_values

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import StopFilter


class Bucket(Record, kw_only=True):
    """How the stops went that began from `at` on, before `until`."""

    at: float
    until: float
    passed: int = 0
    sent_back: int = 0
    not_passed: int = 0
    not_checked: int = 0
    skipped: int = 0  # there was nothing to check
    other: int = 0  # being checked, observed or halted

    @property
    def stops(self) -> int:
        """How many stops there were."""
        return sum(getattr(self, name) for name in KINDS)


KINDS = ("passed", "sent_back", "not_passed", "not_checked", "skipped", "other")
_KIND = {"passed": "passed", "blocked": "sent_back", "skipped": "skipped"}


def kind_of(outcome: str, why: str) -> str:
    """Return which of the KINDS a stop is of."""
    return group_of(outcome, why) or _KIND.get(outcome, "other")


def over_time(
    ledger: Ledger, wanted: StopFilter, starts: Sequence[float], step: float
) -> list[Bucket]:
    """Count the stops that match in steps of so many seconds from each start on.

    The span is the caller's: `wanted.since`, `until` and `most` do not matter.
    """
    return ledger.connection.read(
        lambda db: [count_stops(db, wanted, at, at + step) for at in starts]
    )


_QUIET = ", ".join(f"'{cause}'" for cause in NOTHING_TO_CHECK)
# Its first two conditions bound every statement; SQLite would rather use the folder's index.
_IN_SPAN = "FROM stops s INDEXED BY stops_by_time WHERE s.begun_at >= ? AND s.begun_at < ?"
_IS_LOUD = f"CASE WHEN s.outcome = 'skipped' AND s.why NOT IN ({_QUIET}) THEN 1 ELSE 0 END"
_ASKERS = f"SELECT {ASKER} {_IN_SPAN} AND s.outcome = 'asking'"
# Unlike in `find`, the stops are known by their time, and each has one agent and few reports.
_OF_HOST = (
    "((SELECT host FROM agents WHERE id = s.agent) = ?"
    " OR (s.agent = 0 AND replace(s.event, ?, '') != s.event))"
)
_OF_GATE = "EXISTS (SELECT 1 FROM reports WHERE gate = ? AND stop = s.id)"


def count_stops(db: sqlite3.Connection, wanted: StopFilter, since: float, until: float) -> Bucket:
    """Count the stops that match and began from `since` on, before `until`."""
    conditions = conditions_on(wanted)
    values = (since, until, *conditions.values)
    counts = dict.fromkeys(KINDS, 0)
    counted = f"SELECT s.outcome, {_IS_LOUD}, count(*) {_IN_SPAN} AND {conditions} GROUP BY 1, 2"
    for outcome, is_loud, count in db.execute(counted, values):
        counts[kind_of(outcome, "" if is_loud else NOTHING_TO_CHECK[0])] += count
        if outcome == "asking":
            askers = db.execute(f"{_ASKERS} AND {conditions}", values).fetchall()
            lost = sum(has_lost_asker(outcome, *asker) for asker in askers)
            counts["other"] -= lost
            counts["not_checked"] += lost
    return Bucket(at=since, until=until, **counts)


def conditions_on(wanted: StopFilter) -> Conditions:
    """Return the conditions on a stop `s` that is found by other means than these."""
    conditions = Conditions(wanted)
    if wanted.host:
        conditions.add(_OF_HOST, *host_values(wanted.host))
    if wanted.gate:
        conditions.add(_OF_GATE, wanted.gate)
    return conditions


_NEAR_THE_START = 1_000  # stops among which the clock may have been set back
_FIRST_SINCE = (
    "SELECT min(id) FROM (SELECT id FROM stops WHERE begun_at >= ? ORDER BY begun_at LIMIT ?)"
    " AS first_ones"
)
_NEXT_ONES = 50  # stops of an agent; a turn has fewer
# A gate that only observes changes no verdict: "observed" is a pass of the others.
_PASSED_AFTER = (
    "EXISTS (SELECT 1 FROM (SELECT n.turn, n.outcome FROM stops n WHERE n.agent = s.agent"
    " AND n.id > s.id ORDER BY n.id LIMIT ?) AS next_ones WHERE turn = s.turn"
    " AND outcome IN ('passed', 'observed'))"
)
_UNPASSED = tuple(name for name in OUTCOMES if group_of(name, "") == "not_passed")
_FAILED = (
    "SELECT count(CASE WHEN s.outcome IN ('blocked', 'overridden') THEN 1 END),"
    f" count(CASE WHEN s.outcome = 'blocked' AND {_PASSED_AFTER} THEN 1 END),"
    " count(CASE WHEN s.outcome != 'blocked' THEN 1 END) FROM stops s"
    f" WHERE s.outcome IN {('blocked', *_UNPASSED)} AND s.id >= ? AND s.begun_at >= ?"
)


class Failed(Record, kw_only=True):
    """What came of the stops at which gates failed."""

    sent_back: int  # also those whose agent did not come again
    passed_after: int  # of those that were sent back, later in the same turn
    not_passed: int


def failed(ledger: Ledger, wanted: StopFilter, since: float) -> Failed:
    """Count the stops since then at which gates failed."""
    conditions = conditions_on(wanted)

    def read(db: sqlite3.Connection) -> Failed:
        (first,) = db.execute(_FIRST_SINCE, (since, _NEAR_THE_START)).fetchone()
        if first is None:  # all failed stops of the past would be read
            return Failed(sent_back=0, passed_after=0, not_passed=0)
        values = (_NEXT_ONES, first, since, *conditions.values)
        back, passed, not_passed = db.execute(f"{_FAILED} AND {conditions}", values).fetchone()
        return Failed(sent_back=back, passed_after=passed, not_passed=not_passed)

    return ledger.connection.read(read)
