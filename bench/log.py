"""`notyet log` on a million stops: is it as quick as on a thousand?

Run it alone with `python -m bench.log [STOPS]`; the ledger is built in a temporary folder, in bulk,
with two or three reports for each stop, and is removed in the end.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Effort, Row
from notyet import Ledger, StopEvent
from notyet.cli.main import main as notyet
from notyet.ledger.rows import event_row

STOPS = 1_000_000
MANY = 100_000  # for `python -m bench`, which has more to do
FEW = 1_000
GOAL = 1_000.0  # milliseconds
_PER_AGENT = 20
_ROUNDS = 5
_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
_AGENTS = """
INSERT INTO agents (id, host, session_id, agent_id, turn, turn_ids, blocks, session_blocks, extend,
  blocked, repeats, repeat_key, last_stop, seen_at)
SELECT i, CASE i % 3 WHEN 0 THEN 'codex' ELSE 'claude' END,
  printf('%08x-0000-4000-8000-%012x', (i * 2654435761) % 4294967296, i), '', 5, '[]', 0, 1, 0, 0, 0,
  '', i * :per, :now - (:agents - i) * :step * :per FROM n
"""
_STOPS = """
INSERT INTO stops (id, agent, turn, begun_at, ended_at, pid, token, digest, event, place, outcome,
  verdict, prompt, why, count, max_blocks, limit_source)
SELECT i, (i - 1) / :per + 1, (i - 1) % :per / 4 + 1, :now - (:stops - i) * :step,
  :now - (:stops - i) * :step + 4.0, 1, x'00', x'00', :event,
  CASE WHEN i % 2 THEN :place ELSE '/home/somebody/project-' || (i / :per % 200) END,
  CASE WHEN i % 997 = 0 THEN 'blocked' WHEN i % 10007 = 0 THEN 'overridden' ELSE 'passed' END,
  CASE WHEN i % 997 = 0 THEN 'block' ELSE 'allow' END,
  CASE WHEN i % 997 = 0 THEN :words ELSE '' END, 'tests', 0, 3, 'max_blocks' FROM n
"""
_REPORTS = """
INSERT INTO reports (stop, position, gate, status, said, reason, extend, seconds, output, matched,
  observed, warning)
SELECT i, :position, :gate,
  CASE WHEN :gate = 'tests' AND i % 997 = 0 THEN 'blocked' WHEN i % 5 = 0 THEN 'remembered'
    ELSE 'allowed' END,
  CASE WHEN :gate = 'tests' AND i % 997 = 0 THEN :words ELSE '' END, '', 0,
  (i * 7919 % 1000) / 250.0, CASE WHEN i % 4 THEN 'ok' ELSE :words END, '', 0, ''
FROM n WHERE :gate != 'slow' OR i % 2
"""


def filled(path: str, place: str, stops: int) -> Ledger:
    """Return a ledger with so many stops, half of them of one folder."""
    ledger = Ledger(path)
    event = StopEvent(session_id="s" * 36, host="claude", cwd=place, last_message="Done. " * 60)
    values = {
        "stops": stops,
        "agents": stops // _PER_AGENT,
        "per": _PER_AGENT,
        "step": 30.0,  # seconds from stop to stop: a million of them are a year
        "now": time.time(),
        "place": place,
        "event": event_row(event)[1],
        "words": "FAILED tests/test_one.py::test_it - assert 1 == 2\n" * 8,
    }

    def fill(db):
        for table, count in ((_AGENTS, stops // _PER_AGENT), (_STOPS, stops)):
            db.execute((_NUMBERS + table).replace("?", str(count)), values)
        for position, gate in enumerate(("lint", "tests", "slow")):
            more = values | {"gate": gate, "position": position}
            db.execute((_NUMBERS + _REPORTS).replace("?", str(stops)), more)

    ledger.file.write(fill)
    return ledger


def questions(ledger: Ledger, stops: int) -> dict[str, list[str]]:
    """Return what is asked of it."""
    last = ledger.file.read(
        lambda db: db.execute("SELECT session_id FROM agents ORDER BY id DESC").fetchone()[0]
    )
    return {
        "log": [],
        "log -n 20 --all": ["-n", "20", "--all"],
        "log --outcome blocked": ["--outcome", "blocked"],
        "log --outcome overridden": ["--outcome", "overridden"],
        "log --outcome stuck (never)": ["--outcome", "stuck", "--all"],
        "log --session S": ["--session", last],
        "log --host codex": ["--host", "codex"],
        "log --gate slow": ["--gate", "slow"],
        "log --gate unheard-of": ["--gate", "unheard-of"],
        "log --since 2d": ["--since", "2d"],
        "log --until (oldest)": ["--until", f"{stops * 30 // 60 - 10}m", "--all"],
        "log ID": [str(stops // 2)],
        "log --stats": ["--stats"],
        "log --stats --all": ["--stats", "--all"],
        "log --stats --since 30d": ["--stats", "--since", "30d"],
        "log --json -n 1000": ["--json", "-n", "1000"],
    }


def _milliseconds(ledger: Ledger, words: list[str]) -> float:
    os.environ["NOTYET_LEDGER"] = ledger.path
    taken = []
    for _ in range(_ROUNDS):
        said = io.StringIO()
        started = time.perf_counter()
        with contextlib.redirect_stdout(said):
            code = notyet(["log", *words])
        taken.append((time.perf_counter() - started) * 1e3)
        if code:
            raise SystemExit(f"notyet log {' '.join(words)} failed: {code}")
    return statistics.median(taken)


def measure(effort: Effort) -> list[Row]:
    """Compare a ledger that is large for a person with one that is small."""
    return [
        Row(
            name, f"at {FEW:,} stops", few * 1e3, many * 1e3, float("inf") if "stats" in name else 5
        )
        for name, (few, many) in figures(MANY).items()
    ]


def figures(stops: int = STOPS) -> dict[str, tuple[float, float]]:
    """Return for each question the milliseconds on a thousand stops, and on many."""
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.realpath(folder)
        (Path(place) / "notyet.toml").touch()
        small = filled(os.path.join(folder, "small.db"), place, FEW)
        large = filled(os.path.join(folder, "large.db"), place, stops)
        here = os.getcwd()
        os.chdir(place)
        try:
            few, many = questions(small, FEW), questions(large, stops)
            return {
                name: (_milliseconds(small, few[name]), _milliseconds(large, many[name]))
                for name in many
            }
        finally:
            os.chdir(here)
            small.close()
            large.close()


def main() -> int:
    """Print the table; 1 where something took longer than a second."""
    stops = int(sys.argv[1]) if len(sys.argv) > 1 else STOPS
    print(f"notyet log on {stops:,} stops, in milliseconds, beside {FEW:,} stops")
    missed = 0
    for name, (few, many) in figures(stops).items():
        mark = "" if many < GOAL else f"  MISSED: over {GOAL:,.0f} ms"
        missed += bool(mark)
        print(f"  {name:<30} {many:>9,.1f}  {few:>8,.1f}  {many / few:>7.1f}x{mark}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
