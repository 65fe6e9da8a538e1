"""`notyet log` on a million stops: is it as quick as on a thousand?

Each question is a process, as people ask it. The ledger is built in a temporary folder, in bulk, with
two or three reports for each stop.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import FULL, Amount, Curve, Effort, Figure, Point, Result, interleaved
from bench.processes import starting
from bench.progress import say
from notyet import Ledger, StopEvent
from notyet.ledger.stop_rows import event_row

SIZES = (1_000, 10_000, 100_000, 1_000_000)  # stops
GOAL = 1_000.0  # milliseconds, whatever is asked
PROMISED = {"log": "log.list", "log --stats": "log.stats", "log ID": "log.show"}
_PER_AGENT = 20
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

    ledger.connection.write(fill)
    return ledger


def questions(ledger: Ledger, stops: int) -> dict[str, list[str]]:
    """Return what is asked of it."""
    _, last = last_session(ledger)
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


def last_session(ledger: Ledger) -> tuple[str, str]:
    """Return the host and the id of the newest session."""
    newest = "SELECT host, session_id FROM agents ORDER BY id DESC LIMIT 1"
    host, session = ledger.connection.read(lambda db: db.execute(newest).fetchone())
    return host, session


def measure(effort: Effort) -> list[Result]:
    """Ask ledgers of different sizes the same questions."""
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.realpath(folder)
        (Path(place) / "notyet.toml").touch()
        ledgers = {}
        for stops in effort.sizes(SIZES):
            say(f"looking back: {stops:,} stops")
            ledgers[stops] = filled(os.path.join(place, f"{stops}.db"), place, stops)
        asked = {stops: questions(ledger, stops) for stops, ledger in ledgers.items()}
        for ledger in ledgers.values():
            ledger.close()
        return _answers(place, asked, effort)


def _answers(place: str, asked: dict[int, dict[str, list[str]]], effort: Effort) -> list[Result]:
    largest = max(asked)
    amounts: list[Result] = []
    curves: list[Result] = []
    for name in asked[largest] if effort is FULL else PROMISED:
        say(f"looking back: notyet {name}")
        sizes = list(asked) if name in PROMISED else [largest]
        subjects = {
            str(stops): starting(
                [sys.executable, "-m", "notyet", "log", *asked[stops][name]],
                cwd=place,
                environ=_environ(place, stops),
            )
            for stops in sizes
        }
        taken = interleaved(effort.rounds(5), 1, **subjects)
        what = f"notyet {name}, {largest:,} stops"
        goal = PROMISED.get(name, GOAL)
        amounts.append(Amount(what, _milliseconds(taken[str(largest)]), "ms", goal))
        if name in PROMISED:
            points = tuple(Point(stops, taken[str(stops)]) for stops in sizes)
            curves.append(Curve(f"notyet {name}, by stops", "stops", points, "linear"))
    return [*amounts, *curves]


def _environ(place: str, stops: int) -> dict[str, str]:
    ledger = os.path.join(place, f"{stops}.db")
    return {"HOME": place, "PATH": os.environ["PATH"], "NOTYET_LEDGER": ledger}


def _milliseconds(figure: Figure) -> Figure:
    return figure.over(1e3)
