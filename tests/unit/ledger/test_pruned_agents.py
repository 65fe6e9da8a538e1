"""Agents of which no stop is left go too, to the last one, and the newest stops stay."""

import time

import pytest

from notyet import Ledger
from notyet.cli.main import main
from notyet.ledger.prune import Retention, prune, tidy, used
from support import decide, rows, stop

DAY = 86_400.0
AGENTS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    " INSERT INTO agents (last_stop, host, session_id, agent_id, seen_at, turn, turn_ids, blocks,"
    " session_blocks, extend, blocked, repeats, repeat_key)"
    " SELECT 0, 'claude', ? || i, '', ?, 1, hex(zeroblob(200)), 0, ?, 0, 0, 0, '' FROM n"
)


@pytest.fixture
def ledger():
    return Ledger()


def enter(ledger, count, name, days, sent_back=0):
    """Enter agents that have no stop any more."""
    given = (count, name, time.time() - days * DAY, sent_back)
    ledger.connection.write(lambda db: db.execute(AGENTS, given))


def agents(ledger):
    return rows(ledger, "SELECT count(*) FROM agents")[0][0]


def test_all_old_agents_without_stops_go_and_are_counted(ledger, capsys):
    decide(ledger, stop())
    enter(ledger, 1_700, "old", 100)
    enter(ledger, 3, "new", 1)
    assert main(["log", "--prune"]) == 0
    assert capsys.readouterr().out.startswith("removed 1700 agents; ")
    assert agents(ledger) == 4
    assert main(["log", "--prune"]) == 0
    assert capsys.readouterr().out.startswith("nothing to remove; ")


def test_what_is_pruned_from_python_has_no_old_agents_left_either(ledger):
    decide(ledger, stop())
    enter(ledger, 1_700, "old", 100)
    assert ledger.prune(older_than=DAY) == 0
    assert agents(ledger) == 1


def test_agents_make_room_as_stops_do(ledger):
    for n in range(120):
        decide(ledger, stop(session_id=f"s{n}"), "passed")
    enter(ledger, 5_000, "gone", 2)
    enter(ledger, 10, "sent back ", 2, sent_back=1)
    assert ledger.connection.read(used) > 1_000_000
    removed = prune(ledger, Retention(max_size=1_000_000))
    assert removed.agents > 1_000
    assert removed.stops == 0  # they need not pay for them
    assert ledger.connection.read(used) <= 1_000_000
    names = {name for (name,) in rows(ledger, "SELECT session_id FROM agents")}
    assert {f"sent back {n}" for n in range(1, 11)} < names  # what they are due is still known
    assert {f"s{n}" for n in range(120)} < names


def test_the_newest_hundred_stay_however_old_they_are(ledger):
    for n in range(130):
        decide(ledger, stop(session_id=f"s{n}"), "passed", at=time.time() - 100 * DAY)
    tidy(ledger, Retention(keep=DAY))
    assert prune(ledger, Retention(keep=DAY)).stops == 0
    assert rows(ledger, "SELECT min(id), count(*) FROM stops") == [(31, 100)]
    assert ledger.begin(stop(session_id="new")).stop == 131
