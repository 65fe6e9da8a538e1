"""Many processes that write into one ledger: how long does one of them wait, and does anybody starve?

A write is one transaction, `begin` or `record`. Writers are long-lived processes, or each stop is a
process of its own, as hooks are: then what is measured is the time inside it, from opening the file on.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple

from notyet import Block, Decision, Ledger, Report, StopEvent

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

WRITERS = 8
DECISION = Decision(
    verdict=Block("go on"),
    outcome="blocked",
    turn=1,
    limit=10**6,
    reports=(Report(gate="tests", answer=Block("go on"), seconds=1.0),),
)
_COLD = """
import sys, time
sys.path[:0] = sys.argv[1:2]
from notyet.core.event import StopEvent
from notyet.core.verdict import Block, Decision, Report
from notyet.ledger.ledger import Ledger
import os
block = Block("go on")
reports = (Report(gate="tests", answer=block, seconds=1.0),)
decision = Decision(verdict=block, outcome="blocked", turn=1, limit=10**6, reports=reports)
ledger = Ledger(sys.argv[2])
event = StopEvent(session_id=sys.argv[3], last_message=str(os.getpid()))
times = [time.perf_counter()]
begun = ledger.begin(event)
times.append(time.perf_counter())
ledger.record(begun, decision)
times.append(time.perf_counter())
os.write(1, f"{times[1] - times[0]} {times[2] - times[1]}\\n".encode())
os._exit(0)
"""


class Crowd(NamedTuple):
    """What each write took, in milliseconds, the quickest first."""

    taken: list[float]
    lost: int  # stops that were written and not counted
    fewest: int  # writes of the writer that made the fewest
    seconds: float

    @property
    def median(self) -> float:
        return statistics.median(self.taken)

    @property
    def p99(self) -> float:
        return self.taken[int(len(self.taken) * 0.99)]

    @property
    def slowest(self) -> float:
        return self.taken[-1]

    @property
    def rate(self) -> float:
        """Return the writes in a second."""
        return len(self.taken) / self.seconds


def saturated(seconds: float, writers: int = WRITERS) -> Crowd:
    """Let processes write as fast as they can."""
    return _crowd(seconds, writers, every=0.0)


def paced(seconds: float, writes: float = 1_000.0, writers: int = WRITERS) -> Crowd:
    """Let processes write so many times a second, all in all."""
    return _crowd(seconds, writers, every=2 * writers / writes)  # a stop is two writes


def cold(seconds: float, writers: int = WRITERS) -> Crowd:
    """Let each stop be a process of its own, so many of them at a time, as fast as they start."""
    return _crowd(seconds, writers, every=None)


def _crowd(seconds: float, writers: int, every: float | None) -> Crowd:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ledger.db")
        ledger = Ledger(path)
        ledger.begin(StopEvent(session_id="create"))
        ledger.close()
        results: Queue[list[float]] = multiprocessing.Queue()
        work = _write_cold if every is None else _write
        crew = [
            multiprocessing.Process(target=work, args=(path, n, seconds, every, results))
            for n in range(writers)
        ]
        started = time.monotonic()
        for each in crew:
            each.start()
        parts = [results.get(timeout=seconds + 60) for _ in crew]
        for each in crew:
            each.join()
        took = time.monotonic() - started
        counted = Ledger(path).begin(StopEvent(session_id="shared")).history.session_blocks
    taken = sorted(figure * 1e3 for part in parts for figure in part)
    return Crowd(taken, len(taken) // 2 - counted, min(map(len, parts)), took)


def _write(path: str, name: int, seconds: float, every: float, results: Queue[list[float]]) -> None:
    ledger = Ledger(path)
    ledger.begin(StopEvent(session_id=f"warm-{name}"))
    taken: list[float] = []
    due = time.monotonic() + every * name / WRITERS  # not all at the same moment
    ends = due + seconds
    while time.monotonic() < ends:
        if every:
            time.sleep(max(0.0, due - time.monotonic()))
            due += every
        event = StopEvent(session_id="shared", last_message=f"{name} {len(taken)}")
        started = time.perf_counter()
        begun = ledger.begin(event)
        middle = time.perf_counter()
        ledger.record(begun, DECISION)
        taken += [middle - started, time.perf_counter() - middle]
    results.put(taken)


def _write_cold(
    path: str, name: int, seconds: float, every: None, results: Queue[list[float]]
) -> None:
    import notyet

    del name, every
    package = os.path.dirname(os.path.dirname(notyet.__file__))
    hook = [sys.executable, "-I", "-S", "-c", _COLD, package, path, "shared"]
    taken: list[float] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        taken += map(float, subprocess.check_output(hook).split())
    results.put(taken)
