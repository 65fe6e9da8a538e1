"""No question of `notyet log` looks at all stops: a million of them cost no more."""

import sqlite3
from contextlib import closing

import pytest

from notyet import Allow, Block, Engine, Ledger
from notyet.ledger.at_work import agents_at_work, tasks_at_work
from notyet.ledger.connection import Connection
from notyet.ledger.figures import failed, over_time
from notyet.ledger.past_stops import (
    StopFilter,
    agents,
    read_stop,
    same_turn,
    stops,
)
from notyet.ledger.prune import Retention, prune, tidy
from notyet.ledger.stats import never_blocked, stats
from support import gate
from support import stop as an_event

pytestmark = pytest.mark.file_only("SQLite's plans")

GROWING = ("stops", "s", "reports", "r", "agents", "a", "n", "passes", "starts", "tasks")
WISHES = {
    "session": "s1",
    "outcomes": ("blocked", "passed"),
    "host": "embedded",
    "place": "/p",
    "gate": "lint",
    "since": 5.0,
    "until": 1e12,
}


@pytest.fixture
def said(monkeypatch):
    """The statements that are run."""
    heard = set()
    opened = Connection._opened

    def listened_to(self, begin):
        db = opened(self, begin)
        db.set_trace_callback(heard.add)
        return db

    monkeypatch.setattr(Connection, "_opened", listened_to)
    return heard


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    for n, answer in enumerate((Allow(), Block("x"), Allow())):
        engine = Engine([gate("lint", answer)], ledger=ledger, warn=lambda _: None)
        engine.check_sync(an_event(cwd="/p", last_message=str(n)))
    return ledger


def scans(ledger, statements):
    """Return the statements that look at every row of a table that grows."""
    found = {}
    with closing(sqlite3.connect(ledger.path)) as db:
        for sql in statements:
            if sql.split()[0] not in {"SELECT", "UPDATE", "DELETE"}:
                continue
            for *_, step in db.execute(f"EXPLAIN QUERY PLAN {sql}"):
                is_scan = step.startswith("SCAN") and step.split()[1] in GROWING
                if is_scan and "USING" not in step:
                    found[sql] = step
    return found


@pytest.mark.parametrize("name", WISHES)
def test_the_stops_of_a_span_are_counted_by_their_time(ledger, said, name):
    over_time(ledger, StopFilter(**{name: WISHES[name]}), [0.0, 5.0], 5.0)
    assert scans(ledger, said) == {}
    assert all("INDEXED BY stops_by_time" in sql for sql in said if " stops s " in sql)


@pytest.mark.parametrize("name", ["host", "place"])
def test_agents_at_work_and_what_came_of_send_backs_are_found_by_an_index(ledger, said, name):
    wanted = StopFilter(**{name: WISHES[name]})
    assert agents_at_work(ledger, wanted, 20).count == 0
    assert tasks_at_work(ledger) == 0
    assert failed(ledger, wanted, 5.0).passed_after == 1
    assert scans(ledger, said) == {}


@pytest.mark.parametrize("name", WISHES)
def test_every_filter_finds_its_stops_by_an_index(ledger, said, name):
    stops(ledger, StopFilter(**{name: WISHES[name]}))
    assert said
    assert scans(ledger, said) == {}


def test_one_stop_its_turn_the_agents_and_the_statistics_come_by_an_index(ledger, said):
    assert read_stop(ledger, 2).outcome == "blocked"
    same_turn(ledger, 2)
    assert agents(ledger, 5.0, "/p")
    assert stats(ledger, StopFilter(most=-1)).stops == 3
    (gate,) = stats(ledger, StopFilter(outcomes=("blocked",), most=-1)).gates
    assert gate.led_to_pass == 1  # which is looked for in the rest of the turn
    assert scans(ledger, said) == {}


def test_whether_a_gate_ever_blocked_comes_from_an_index_of_blocks_alone(ledger, said):
    assert never_blocked(ledger, StopFilter(), ["lint"]) == frozenset()
    (asked,) = (sql for sql in said if "r.gate" in sql)
    with closing(sqlite3.connect(ledger.path)) as db:
        plan = [step for *_, step in db.execute(f"EXPLAIN QUERY PLAN {asked}")]
    assert "USING INDEX reports_blocked" in plan[0]
    assert not [step for step in plan if step.startswith("SCAN") or "TEMP" in step]


def test_tidying_up_finds_what_is_old_by_an_index(ledger, said):
    tidy(ledger, Retention(max_size=1))
    prune(ledger, Retention(max_size=1))
    deleted = {sql for sql in said if "stops" in sql or "agents" in sql}
    assert deleted
    assert scans(ledger, deleted) == {}
