"""The ledger: does its cost grow, what does it save, and does anybody starve?"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.measure import Effort, Row, interleaved
from notyet import Block, Decision, Ledger, Report, StopEvent

DECISION = Decision(
    verdict=Block("go on"),
    outcome="blocked",
    turn=1,
    limit=10**6,
    reports=(Report(gate="tests", answer=Block("go on"), seconds=1.0),),
)


def one_stop(ledger: Ledger, session: str, place: list[int]) -> None:
    """Begin and record one stop."""
    place[0] += 1
    event = StopEvent(session_id=session, last_message=f"done {place[0]}")
    begun = ledger.begin(event)
    ledger.record(begun, DECISION)


def filled(folder: str, rows: int) -> Ledger:
    """Return a ledger with so many stops of a hundred sessions."""
    ledger = Ledger(os.path.join(folder, f"{rows}.db"))
    place = [0]
    one_stop(ledger, "s0", place)

    def fill(db):
        event = db.execute("SELECT event FROM stops").fetchone()[0]
        db.executemany(
            "INSERT INTO stops (agent, turn, begun_at, pid, token, digest, event, outcome)"
            " VALUES (?, 1, ?, 0, x'00', x'00', ?, 'blocked')",
            ((n % 100, time.time() - n, event) for n in range(rows - 1)),
        )
        db.executemany(
            "INSERT INTO reports (stop, position, gate, status, said, reason, extend, seconds, output,"
            " matched, observed, warning)"
            " VALUES (?, 0, 'tests', 'blocked', 'go on', '', 0, 1.0, '', '', 0, '')",
            ((n + 2,) for n in range(rows - 1)),
        )

    ledger.file.write(fill)
    return ledger


def measure(effort: Effort) -> list[Row]:
    """Compare ledgers of different sizes, and a JSON file that is written anew each time."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = filled(folder, 1_000), filled(folder, 100_000)
        place = [0]
        registry = Path(folder) / "registry.json"
        record = {"session": "s", "event": "x" * 300, "reports": ["y" * 100], "outcome": "blocked"}
        records = [record for _ in range(1_000)]

        def rewrite() -> None:
            fresh = registry.with_suffix(".new")
            fresh.write_text(json.dumps(records, indent=2))
            fresh.replace(registry)

        figures = interleaved(
            30,
            20,
            small=lambda: one_stop(small, "s1", place),
            large=lambda: one_stop(large, "s1", place),
        )
        json_figures = interleaved(
            15, 4, rewrite=rewrite, small=lambda: one_stop(small, "s2", place)
        )
        small.close()
        large.close()
        return [
            Row(
                "begin + record at 100,000 rows",
                "at 1,000 rows",
                figures["small"],
                figures["large"],
                1.5,
            ),
            Row(
                "begin + record, times cheaper",
                "JSON of 1,000 records rewritten",
                json_figures["rewrite"],
                json_figures["small"],
                20.0,
                at_least=True,
            ),
        ]


def _write(path: str, name: int, seconds: float, results) -> None:
    ledger = Ledger(path)
    ledger.begin(StopEvent(session_id=f"warm-{name}"))
    taken = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        event = StopEvent(session_id="shared", last_message=f"{name} {len(taken)}")
        started = time.perf_counter()
        begun = ledger.begin(event)
        middle = time.perf_counter()
        ledger.record(begun, DECISION)
        taken += [middle - started, time.perf_counter() - middle]
    results.put(taken)


def saturate(writers: int = 8, seconds: float = 4.0) -> dict[str, float]:
    """Let processes write as fast as they can into one file; return what each transaction took."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ledger.db")
        Ledger(path).begin(StopEvent(session_id="create"))
        results = multiprocessing.Queue()
        crew = [
            multiprocessing.Process(target=_write, args=(path, n, seconds, results))
            for n in range(writers)
        ]
        for each in crew:
            each.start()
        parts = [results.get(timeout=60) for _ in crew]
        for each in crew:
            each.join()
        counted = Ledger(path).begin(StopEvent(session_id="shared")).history.session_blocks
    figures = sorted(figure for part in parts for figure in part)
    return {
        "transactions": len(figures),
        "lost": len(figures) // 2 - counted,
        "fewest by one writer": min(len(part) for part in parts),
        "p50 ms": statistics.median(figures) * 1e3,
        "p99 ms": figures[int(len(figures) * 0.99)] * 1e3,
        "max ms": figures[-1] * 1e3,
    }
