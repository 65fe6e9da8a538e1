"""Figures about many stops, gate by gate: is a gate worth its time?"""

from __future__ import annotations

from notyet.core.record import Record, replace
from notyet.ledger.figures import KINDS, Bucket, kind_of
from notyet.ledger.ledger import ASKER
from notyet.ledger.past_stops import below, find, has_lost_asker, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from notyet.ledger.ledger import Ledger
    from notyet.ledger.past_stops import StopFilter

    Number = Any  # of a stop; of one agent, they can be compared
    Turn = tuple[Any, int]  # its agent, and its number
    Said = Sequence[Any]  # a report's columns `_SAID`; those of a team are without tokens

MOST_COUNTED = 20_000  # the newest stops, so that the answer is fast for any ledger
_ANSWERS = frozenset({"allowed", "blocked", "halted", "problem"})
_PASSES = frozenset({"allowed", "remembered"})
_SENT_BACK = frozenset({"blocked", "overridden"})


class GateStats(Record, kw_only=True):
    """The results of one gate; with `watches`, those while it only observed."""

    gate: str
    watches: bool = False
    asked: int = 0
    remembered: int = 0  # skipped: it had passed on the same files
    unchanged: int = 0  # skipped: no file changed since its agent started
    not_asked: int = 0  # another gate had ended the run
    blocked: int = 0  # or would have, while it observed
    halted: int = 0  # likewise
    held: int = 0  # a problem that sent the agent back
    failed_open: int = 0  # a problem that allowed the stop
    sent_back: int = 0  # blocks and problems after which an agent went back to work
    led_to_pass: int = 0  # of these, those followed by a pass in the same turn
    p50: float = 0.0  # seconds
    p95: float = 0.0
    seconds: float = 0.0  # in total
    tokens: int = 0  # in total, of a judge's model
    # Of a run, the mean in each step of `Stats.over_time`; 0 if it did not run then.
    seconds_over_time: tuple[float, ...] = ()

    @property
    def spared(self) -> int:
        """How often it was skipped because nothing had changed."""
        return self.remembered + self.unchanged

    @property
    def problems(self) -> int:
        """How often it had a problem."""
        return self.held + self.failed_open

    @property
    def stopped(self) -> int:
        """How often it blocked or halted, or would have."""
        return self.blocked + self.halted


class Stats(Record, kw_only=True):
    """The figures of the stops that match a wish."""

    stops: int = 0
    is_all: bool = True  # False: there are more, older ones
    first_at: float = 0.0
    last_at: float = 0.0
    outcomes: Mapping[str, int]
    gates: tuple[GateStats, ...] = ()
    over_time: tuple[Bucket, ...] = ()  # how the stops went, in steps of equal length


_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
STEPS = (
    _MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 4 * _HOUR, _DAY, 7 * _DAY, 28 * _DAY, 364 * _DAY,
)  # fmt: skip
MOST_STEPS = 40


def buckets(stops: Sequence[tuple[float, str]]) -> list[Bucket]:
    """Count stops, given by their time and kind, in at most MOST_STEPS steps, the oldest first."""
    if not stops:
        return []
    first, last = min(stops)[0], max(stops)[0]
    step = next((one for one in STEPS if last // one - first // one < MOST_STEPS), 0.0)
    step = step or (last - first) / (MOST_STEPS - 1)  # a clock that was never set
    start = first // step
    counts = [dict.fromkeys(KINDS, 0) for _ in range(int(last // step - start) + 1)]
    for at, kind in stops:
        counts[int(at // step - start)][kind] += 1
    return [
        Bucket(at=(start + number) * step, until=(start + number + 1) * step, **counted)
        for number, counted in enumerate(counts)
    ]


def stats(ledger: Ledger, wish: StopFilter) -> Stats:
    """Count the stops that match, at most `wish.most` and MOST_COUNTED."""
    most = MOST_COUNTED if wish.most < 0 else min(wish.most, MOST_COUNTED)
    return ledger.connection.read(lambda db: _count(db, wish, most))


_MOST_BLOCKS = 500  # of a gate that are looked at, the newest
_BLOCKS = (
    "SELECT s.begun_at, s.place, a.host FROM reports r JOIN stops s ON s.id = r.stop"
    " LEFT JOIN agents a ON a.id = s.agent"
    " WHERE r.gate = ? AND r.status IN ('blocked', 'halted') AND r.observed = 0"
    " ORDER BY r.stop DESC LIMIT ?"
)


def never_blocked(ledger: Ledger, wish: StopFilter, gates: Iterable[str]) -> frozenset[str]:
    """Return the gates that blocked no stop since `wish.since` in its place and host.

    That is true of all stops, not only of those that `stats` counts. A gate that blocked so often
    elsewhere that it cannot be said quickly is left out.
    """
    folders = below(wish.place)

    def matches(place: str, host: str | None) -> bool:
        is_below = any(place == name or low <= place < high for name, low, high in folders)
        return (is_below or not folders) and (not wish.host or wish.host == host)

    def is_quiet(db: sqlite3.Connection, gate: str) -> bool:
        seen = is_recent = 0
        for begun_at, place, host in db.execute(_BLOCKS, (gate, _MOST_BLOCKS)):
            seen += 1
            is_recent = begun_at >= wish.since
            if is_recent and matches(place, host):
                return False
        return seen < _MOST_BLOCKS or not is_recent

    return ledger.connection.read(
        lambda db: frozenset(gate for gate in gates if is_quiet(db, gate))
    )


_STOPS = f"SELECT id, agent, turn, outcome, why, {ASKER} FROM stops WHERE id IN"
_SAID = ("gate", "status", "seconds", "observed", "held", "tokens")
_REPORTS = f"SELECT stop, {', '.join(_SAID)} FROM reports WHERE stop IN"


def _count(db: sqlite3.Connection, wish: StopFilter, most: int) -> Stats:
    ids = find(db, replace(wish, most=most + 1))
    is_all = len(ids) <= most
    tally = Tally(wish.gate)
    for some in parts(sorted(ids[:most])):
        marks = f"({', '.join('?' * len(some))})"
        for number, agent, turn, said, why, *asker in db.execute(_STOPS + marks, some):
            is_gone = has_lost_asker(said, *asker)
            outcome = "skipped" if is_gone else said
            tally.add_stop(number, (agent, turn), asker[-1], outcome, "" if is_gone else why)
        for number, *row in db.execute(f"{_REPORTS}{marks} ORDER BY stop, position", some):
            tally.add_report(number, row)
    _look_further(db, tally.gates)
    return tally.sum(is_all=is_all)


class Tally:
    """Counts stops, and then their reports, both from the oldest on."""

    def __init__(self, gate: str = "") -> None:
        self._gate = gate  # the only one that counts; empty for all
        self.gates: dict[tuple[str, bool], _Counting] = {}
        self._outcomes: dict[str, int] = {}
        self._turns: dict[Number, Turn] = {}
        self._sent_back: set[Number] = set()
        self._times: dict[Number, float] = {}
        self._kinds: dict[Number, str] = {}

    def add_stop(self, number: Number, turn: Turn, at: float, outcome: str, why: str) -> None:
        """Count a stop. Of one agent, the numbers of stops grow."""
        self._turns[number] = turn
        self._times[number] = at
        self._kinds[number] = kind_of(outcome, why)
        self._outcomes[outcome] = self._outcomes.get(outcome, 0) + 1
        if outcome in _SENT_BACK:
            self._sent_back.add(number)

    def add_report(self, number: Number, said: Said) -> None:
        """Count a report of a stop that was counted before."""
        key = said[0], bool(said[3])
        if self._gate and self._gate != key[0]:
            return
        if key not in self.gates:
            self.gates[key] = _Counting()
        is_sent_back = number in self._sent_back
        self.gates[key].add(number, self._turns[number], said, is_sent_back=is_sent_back)

    def sum(self, *, is_all: bool) -> Stats:
        """Return the figures."""
        times = self._times
        over_time = tuple(buckets([(times[number], self._kinds[number]) for number in times]))
        counted = [
            counting.sum(gate, watches=watches, times=times, over_time=over_time)
            for (gate, watches), counting in self.gates.items()
        ]
        return Stats(
            stops=len(times),
            is_all=is_all,
            first_at=min(times.values(), default=0.0),
            last_at=max(times.values(), default=0.0),
            over_time=over_time,
            outcomes=dict(sorted(self._outcomes.items(), key=lambda item: -item[1])),
            gates=tuple(sorted(counted, key=lambda gate: (gate.watches, -gate.seconds, gate.gate))),
        )


_LATER = "SELECT id, turn FROM stops WHERE agent = ? AND id > ? ORDER BY id"
_PASSED = (
    "SELECT gate FROM reports WHERE stop = ? AND status IN ('allowed', 'remembered')"
    " AND observed = 0"
)


def _look_further(db: sqlite3.Connection, gates: Mapping[tuple[str, bool], _Counting]) -> None:
    """Count passes in stops of the same turns that do not match the wish."""
    turns: dict[Turn, int] = {}  # and its first send-back without a pass
    for counting in gates.values():
        for key, numbers in counting.unfixed.items():
            turns[key] = min(numbers[0], turns.get(key, numbers[0]))
    for key, first in turns.items():
        agent, turn = key
        for number, its_turn in db.execute(_LATER, (agent, first)):
            if its_turn == turn:
                for (gate,) in db.execute(_PASSED, (number,)):
                    if (gate, False) in gates:
                        gates[gate, False].passed(key, number)
            elif its_turn:  # a skipped stop has no turn, and ends none
                break


class _Counting:
    """One gate's reports, the oldest first."""

    def __init__(self) -> None:
        self.unfixed: dict[Turn, list[Number]] = {}  # send-backs, by agent and turn
        self._statuses: dict[str, int] = {}
        self._seconds: list[float] = []
        self._stops: list[Number] = []  # those of the seconds
        self._sent_back = 0
        self._led_to_pass = 0
        self._tokens = 0

    def add(self, stop: Number, turn: Turn, said: Said, *, is_sent_back: bool) -> None:
        """Count a report of a stop."""
        _gate, status, seconds, is_watching, is_held, *tokens = said
        self._tokens += sum(tokens)
        if status in _ANSWERS:
            self._seconds.append(seconds)
            self._stops.append(stop)
        if status in _PASSES:
            self.passed(turn, stop)
        elif is_sent_back and not is_watching and (status == "blocked" or is_held):
            self._sent_back += 1
            self.unfixed.setdefault(turn, []).append(stop)
        if status == "problem":
            # At the limit, the stop was allowed whatever the policy of the gate.
            status = "held" if is_held and is_sent_back else "failed_open"
        self._statuses[status] = self._statuses.get(status, 0) + 1

    def passed(self, turn: Turn, number: Number) -> None:
        """Count the send-backs before a pass in this turn."""
        if turn not in self.unfixed:
            return
        before = self.unfixed.pop(turn)
        after = [one for one in before if one >= number]
        self._led_to_pass += len(before) - len(after)
        if after:
            self.unfixed[turn] = after

    def sum(
        self,
        gate: str,
        *,
        watches: bool,
        times: Mapping[Number, float],
        over_time: Sequence[Bucket],
    ) -> GateStats:
        """Return the figures."""
        spent: list[list[float]] = [[] for _ in over_time]
        for stop, seconds in zip(self._stops, self._seconds, strict=True):
            start, length = over_time[0].at, over_time[0].until - over_time[0].at
            spent[min(int((times[stop] - start) // length), len(spent) - 1)].append(seconds)
        return GateStats(
            gate=gate,
            watches=watches,
            asked=len(self._seconds),
            sent_back=self._sent_back,
            led_to_pass=self._led_to_pass,
            p50=percentile(self._seconds, 50),
            p95=percentile(self._seconds, 95),
            seconds=sum(self._seconds),
            tokens=self._tokens,
            seconds_over_time=tuple(sum(some) / len(some) if some else 0.0 for some in spent),
            **{name: self._statuses.get(name, 0) for name in _COUNTED},
        )


_COUNTED = ("remembered", "unchanged", "not_asked", "blocked", "halted", "held", "failed_open")


def percentile(values: list[float], percent: int) -> float:
    """Return a percentile of the values; 0 if there are none."""
    if not values:
        return 0.0
    rank = -(-len(values) * percent // 100)  # rounded up
    return sorted(values)[max(rank, 1) - 1]
