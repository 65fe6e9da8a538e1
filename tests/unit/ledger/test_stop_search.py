"""Pages of stops: what `notyet log` finds, at the same cost in a ledger of any size."""

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import product

import pytest

from notyet import Ledger
from notyet.core.record import replace
from notyet.ledger import stop_search
from notyet.ledger.connection import Connection
from notyet.ledger.past_stops import StopFilter, numbers
from notyet.ledger.stop_search import known_names, search
from stores import opened
from support import decide, stop

OUTCOMES = ("passed", "blocked", "capped", "skipped", "failed_open", "asking")
HOSTS, PLACES, GATES = ("claude", "codex"), ("/p", "/p/a", "/q"), ("lint", "tests")
WISHES = [
    {},
    {"host": "codex"},
    {"host": "goose"},
    {"session": "s1"},
    {"session": "s1", "is_whole_session": True},
    {"session": "s1", "is_whole_session": True, "host": "codex"},
    {"place": "/p"},
    {"place": "/p/a", "outcomes": ("passed", "capped")},
    {"gate": "tests"},
    {"gate": "tests", "outcomes": ("blocked",), "host": "claude"},
    {"outcomes": ("not_passed",)},
    {"outcomes": ("not_checked",)},
    {"outcomes": ("skipped", "asking")},
    {"outcomes": ("asking",)},
    {"since": 1_050.0, "until": 1_200.0},
    {"session": "s2", "place": "/q", "since": 1_020.0},
]


def fill(ledger, count):
    """Record stops of every kind; some are of no counted agent, some of a process that is gone."""
    decide(ledger, stop())
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    chance = random.Random(18)
    with opened(ledger) as db:
        db.execute("DELETE FROM stops")
        db.execute("DELETE FROM agents")
        for number, (host, session) in enumerate(product(HOSTS, ("s1", "s12", "s2")), 1):
            db.execute(
                "INSERT INTO agents (id, host, session_id, agent_id, turn, turn_ids, blocks,"
                " session_blocks, extend, blocked, repeats, repeat_key, last_stop, seen_at)"
                " VALUES (?, ?, ?, '', 1, '[]', 0, 0, 0, 0, 0, '', 0, 0)",
                (number, host, session),
            )
        for number in range(1, count + 1):
            outcome = chance.choice(OUTCOMES)
            why = chance.choice(("unchanged", "untrusted")) if outcome == "skipped" else ""
            agent = chance.randrange(7)
            event = "{}" if agent else '{"host": "codex", "session_id": "s1"}'
            at = 1_000.0 + number + chance.choice((0, 0, 0, -90))  # the clock was set back
            db.execute(
                "INSERT INTO stops (id, agent, turn, begun_at, place, pid, token, digest, event,"
                " outcome, why) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(number, agent, at, chance.choice(PLACES), gone.pid),
                    *(b"", b"", event, outcome, why),
                ),
            )
            for position in range(chance.randrange(3)):
                db.execute(
                    "INSERT INTO reports (stop, position, gate, status, said, reason, extend,"
                    " seconds, output, matched, observed, warning)"
                    " VALUES (?, ?, ?, 'allowed', '', '', 0, 0, '', '', 0, '')",
                    (number, position, chance.choice(GATES)),
                )


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    ledger = Ledger(tmp_path_factory.mktemp("search") / "ledger.db")
    fill(ledger, 400)
    yield ledger
    ledger.close()


@pytest.mark.parametrize("read", [5_000, 40])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_pages_hold_what_the_log_finds_in_both_directions(ledger, monkeypatch, wish, read):
    monkeypatch.setattr(stop_search, "MOST_READ", read)
    monkeypatch.setattr(stop_search, "_PROBED", 20)
    wanted = StopFilter(**wish, most=7)
    expected = numbers(ledger, replace(wanted, most=-1))
    found, page = [], search(ledger, wanted)
    while True:
        found += [past.id for past in page.stops]
        assert page.is_cut == (bool(page.older) and len(page.stops) < 7)
        if not page.older:
            break
        page = search(ledger, replace(wanted, before=page.older))
    assert found == expected
    if not expected:
        return

    found, page = [], search(ledger, replace(wanted, after=expected[-1]))
    while True:
        found[:0] = [past.id for past in page.stops]
        if not page.newer:
            break
        page = search(ledger, replace(wanted, after=page.newer))
    assert found == expected[:-1]


def test_a_page_knows_its_neighbours(ledger):
    first = search(ledger, StopFilter(most=10))
    assert [past.id for past in first.stops] == list(range(400, 390, -1))
    assert (first.newer, first.older, first.is_cut) == (0, 391, False)
    second = search(ledger, StopFilter(most=10, before=391))
    assert (second.newer, second.older) == (390, 381)
    again = search(ledger, StopFilter(most=10, after=390))
    assert again.stops == first.stops
    assert (again.newer, again.older) == (0, 391)


def test_names_to_choose_from(ledger, monkeypatch):
    known = known_names(ledger)
    assert (known.hosts, known.gates, known.places) == (HOSTS, GATES, PLACES)
    monkeypatch.setattr(stop_search, "_MOST_KNOWN", 1)
    assert known_names(ledger).gates == ("lint",)


@pytest.mark.file_only("SQLite's plans")
def test_a_folder_with_many_stops_costs_no_more_than_one_with_few(tmp_path):
    def steps_of_sqlite(stops):
        ledger = Ledger(tmp_path / f"{stops}.db")
        fill(ledger, stops)
        steps = []

        def read(db):
            db.set_progress_handler(lambda: steps.append(1), 1)
            try:
                stop_search._search(db, StopFilter(place="/p", most=5))
            finally:
                db.set_progress_handler(None, 0)

        ledger.connection.read(read)
        ledger.close()
        return len(steps)

    assert steps_of_sqlite(3_000) < 1.5 * steps_of_sqlite(300)


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_a_page_asks_for_few_stops_where_each_statement_returns_all_that_it_finds(tmp_path, wish):
    asked = []

    class Whole:
        """Returns all rows at once, as PostgreSQL does."""

        def __init__(self, db):
            self._db = db

        def execute(self, *statement):
            found = self._db.execute(*statement).fetchall()
            asked.append(len(found))
            return Answer(found)

    class Answer(list):
        def fetchall(self):
            return self

        def fetchone(self):
            return self[0] if self else None

    ledger = Ledger(tmp_path / "ledger.db")
    fill(ledger, 3_000)
    wanted = StopFilter(**wish, most=5)
    found = ledger.connection.read(lambda db: stop_search._search(Whole(db), wanted))
    assert found == search(ledger, wanted)
    assert max(asked) <= 1_024
    ledger.close()


@pytest.mark.file_only("SQLite's plans")
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_no_statement_reads_or_sorts_a_whole_table(tmp_path, monkeypatch, wish):
    said = set()
    opened = Connection._opened

    def listened_to(self, begin):
        db = opened(self, begin)
        db.set_trace_callback(said.add)
        return db

    fill(Ledger(tmp_path / "ledger.db"), 30)
    monkeypatch.setattr(Connection, "_opened", listened_to)
    ledger = Ledger(tmp_path / "ledger.db", repair=False)
    search(ledger, StopFilter(**wish, most=5))
    search(ledger, StopFilter(**wish, most=5, after=3))
    known_names(ledger)
    ledger.close()

    with closing(sqlite3.connect(ledger.path)) as db:
        plans = {
            sql: [step for *_, step in db.execute(f"EXPLAIN QUERY PLAN {sql}")]
            for sql in said
            if sql.startswith("SELECT")
        }
    assert len(plans) > 5
    for sql, steps in plans.items():
        for step in steps:
            assert "TEMP B-TREE" not in step, (sql, steps)
            assert not step.startswith("SCAN s"), (sql, steps)
            if step.startswith("SCAN"):
                assert "first_ones" in step or "last_ones" in step, (sql, steps)
