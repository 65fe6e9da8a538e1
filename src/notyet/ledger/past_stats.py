"""What many stops come to, gate by gate: is a gate worth its seconds?"""

from __future__ import annotations

import os

from notyet.core.record import Record, replace
from notyet.ledger.past import parts
from notyet.ledger.past_find import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any

    from notyet.ledger.past import Wish
    from notyet.ledger.sqlite import Ledger

MOST_COUNTED = 20_000  # stops; the newest, so that the answer comes at once from any ledger
_ANSWERS = frozenset({"allowed", "blocked", "halted", "problem"})
_SENT_BACK = frozenset({"blocked", "overridden"})


class GateStats(Record, kw_only=True):
    """What became of one gate's questions."""

    gate: str
    asked: int = 0
    remembered: int = 0  # spared: it had passed on the same files
    unchanged: int = 0  # spared: no file changed since its agent began
    not_asked: int = 0  # another gate had ended the questioning
    blocked: int = 0
    observed: int = 0  # would have blocked, had it not only watched
    halted: int = 0
    problems: int = 0  # could not answer
    sent_back: int = 0  # blocks by which an agent really went back to work
    led_to_pass: int = 0  # of these, those after which the gate passed in the same turn
    p50: float = 0.0  # seconds
    p95: float = 0.0
    seconds: float = 0.0  # all in all

    @property
    def spared(self) -> int:
        """How often it was not asked because nothing had changed."""
        return self.remembered + self.unchanged


class Stats(Record, kw_only=True):
    """What the stops of a wish come to."""

    stops: int = 0
    is_all: bool = True  # False: there are more, older ones
    first_at: float = 0.0
    last_at: float = 0.0
    outcomes: Mapping[str, int]
    gates: tuple[GateStats, ...] = ()


def stats(ledger: Ledger, wish: Wish) -> Stats:
    """Count the stops that are meant, at most `wish.most` or as many as are counted at once."""
    if not os.path.exists(ledger.path):
        return Stats(outcomes={})
    most = MOST_COUNTED if wish.most < 0 else min(wish.most, MOST_COUNTED)
    return ledger.file.read(lambda db: _count(db, wish, most))


_STOPS = "SELECT id, agent, turn, outcome, begun_at FROM stops WHERE id IN"
_REPORTS = "SELECT stop, gate, status, seconds, observed FROM reports WHERE stop IN"


def _count(db: sqlite3.Connection, wish: Wish, most: int) -> Stats:
    ids = find(db, replace(wish, most=most + 1))
    is_all = len(ids) <= most
    ids = sorted(ids[:most])
    outcomes: dict[str, int] = {}
    gates: dict[str, _Counting] = {}
    times: list[float] = []
    for some in parts(ids):
        marks = f"({', '.join('?' * len(some))})"
        stops: dict[int, tuple[Any, ...]] = {}
        for number, *rest, at in db.execute(_STOPS + marks, some):
            stops[number] = tuple(rest)
            outcomes[rest[-1]] = outcomes.get(rest[-1], 0) + 1
            times.append(at)
        for number, gate, *said in db.execute(f"{_REPORTS}{marks} ORDER BY stop, position", some):
            if wish.gate and gate != wish.gate:
                continue
            gates.setdefault(gate, _Counting()).add(stops[number], *said)
    counted = [counting.sum(gate) for gate, counting in gates.items()]
    return Stats(
        stops=len(times),
        is_all=is_all,
        first_at=min(times, default=0.0),
        last_at=max(times, default=0.0),
        outcomes=dict(sorted(outcomes.items(), key=lambda item: -item[1])),
        gates=tuple(sorted(counted, key=lambda gate: (-gate.seconds, gate.gate))),
    )


class _Counting:
    """One gate's reports, the oldest first."""

    def __init__(self) -> None:
        self._statuses: dict[str, int] = {}
        self._seconds: list[float] = []
        self._open: dict[tuple[int, int], int] = {}  # blocks, by agent and turn
        self._sent_back = 0
        self._led_to_pass = 0

    def add(self, stop: tuple[Any, ...], status: str, seconds: float, observed: int) -> None:
        agent, turn, outcome = stop
        if status == "blocked" and observed:
            status = "observed"
        self._statuses[status] = self._statuses.get(status, 0) + 1
        if status in _ANSWERS or status == "observed":
            self._seconds.append(seconds)
        if status == "blocked" and outcome in _SENT_BACK:
            self._sent_back += 1
            self._open[agent, turn] = self._open.get((agent, turn), 0) + 1
        elif status in {"allowed", "remembered"}:
            self._led_to_pass += self._open.pop((agent, turn), 0)

    def sum(self, gate: str) -> GateStats:
        counts = {name: self._statuses.get(name, 0) for name in _COUNTED}
        return GateStats(
            gate=gate,
            asked=len(self._seconds),
            problems=self._statuses.get("problem", 0),
            sent_back=self._sent_back,
            led_to_pass=self._led_to_pass,
            p50=percentile(self._seconds, 50),
            p95=percentile(self._seconds, 95),
            seconds=sum(self._seconds),
            **counts,
        )


_COUNTED = ("remembered", "unchanged", "not_asked", "blocked", "observed", "halted")


def percentile(values: list[float], percent: int) -> float:
    """Return the value that so many in a hundred do not exceed; 0 where there is none."""
    if not values:
        return 0.0
    rank = -(-len(values) * percent // 100)  # rounded up
    return sorted(values)[max(rank, 1) - 1]
