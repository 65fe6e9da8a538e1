"""Figures about the stops of a span: how many there were, and how they went."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from notyet.core.record import Record
from notyet.core.verdict import NOTHING_TO_CHECK, group_of
from notyet.ledger.ledger import ASKER
from notyet.ledger.past_stops import Conditions, has_lost_asker, host_values

if TYPE_CHECKING:
    import sqlite3

    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import StopFilter

MOST_BUCKETS = 1_000


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
    ledger: Ledger, wanted: StopFilter, since: float, until: float, step: float
) -> list[Bucket]:
    """Count the stops that match in steps of so many seconds, the oldest first.

    The span is the caller's: `wanted.since`, `until` and `most` do not matter. Raises ValueError
    for a step that makes more than MOST_BUCKETS of it.
    """
    count = math.ceil((until - since) / step) if step > 0 else MOST_BUCKETS + 1
    if count > MOST_BUCKETS:
        raise ValueError(f"a span of {until - since:.0f} s has too many steps of {step:.0f} s")
    edges = [since + step * number for number in range(count)] + [until]

    def read(db: sqlite3.Connection) -> list[Bucket]:
        return [count_stops(db, wanted, *span) for span in pairwise(edges)]

    return ledger.connection.read(read)


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
    conditions = _conditions(wanted)
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


def _conditions(wanted: StopFilter) -> Conditions:
    conditions = Conditions(wanted)
    if wanted.host:
        conditions.add(_OF_HOST, *host_values(wanted.host))
    if wanted.gate:
        conditions.add(_OF_GATE, wanted.gate)
    return conditions
