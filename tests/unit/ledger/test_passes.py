"""How many passes and starts a ledger of a file keeps, and for how long (N1)."""

import time

import pytest

from notyet import Allow, Block, Decision, Report
from notyet.core.event import StartEvent
from notyet.core.plan import Wanted
from notyet.ledger import passes
from notyet.ledger.memory import MemoryLedger
from support import rows, stop

pytestmark = pytest.mark.rule("N1")
DAY = 86_400


def passed(tree, definition="d"):
    return Report(gate="g", answer=Allow(), definition=definition, passed_on=tree)


def start(session="s1"):
    return StartEvent(session_id=session)


def spares(ledger, tree):
    wanted = [Wanted(gate="g", definition="d", scope="s", tree=tree)]
    return dict(ledger.recall(stop(), wanted))


def age(ledger, table, days):
    older = f"UPDATE {table} SET at = at - ?"  # noqa: S608  # a table of ours
    ledger.connection.write(lambda db: db.execute(older, (days * DAY,)))


def test_what_is_older_than_a_month_is_forgotten(ledger):
    ledger.remember([passed("old")])
    ledger.remember_start(start("old"), {"s": "t"})
    for table in ("passes", "starts"):
        age(ledger, table, 31)
    ledger.remember([passed("new")])
    ledger.remember_start(start("new"), {"s": "t"})
    assert rows(ledger, "SELECT tree FROM passes") == [(passes.here("new"),)]
    assert rows(ledger, "SELECT session_id FROM starts") == [("new",)]


def test_the_start_of_an_agent_that_is_known_is_kept_however_old(ledger, monkeypatch):
    ledger.remember_start(start("s1"), {"s": "t"})
    ledger.remember_start(start("gone"), {"s": "t"})
    ledger.begin(stop())
    age(ledger, "starts", 99)
    ledger.connection.write(lambda db: passes.forget(db, time.time() - DAY))
    assert rows(ledger, "SELECT session_id FROM starts") == [("s1",)]
    monkeypatch.setattr(passes, "_MOST", 1)
    for n in range(3):
        ledger.remember_start(start(f"new {n}"), {"s": "t"})
        age(ledger, "starts", 0.01)
    sessions = rows(ledger, "SELECT session_id FROM starts ORDER BY session_id")
    assert sessions == [("new 2",), ("s1",)]


def test_a_subagent_that_goes_on_after_pruning_has_not_begun_with_what_it_broke(ledger):
    from notyet.ledger.prune import Retention, prune

    about = {"agent_id": "a", "scope": "subagent"}
    ledger.remember_start(StartEvent(session_id="s1", **about), {"s": "good"})
    begun = ledger.begin(stop(**about))
    blocked = Decision(verdict=Block("no"), outcome="blocked", limit=9, count=1, turn=1)
    ledger.record(begun, blocked)
    age(ledger, "starts", 1)
    older = "UPDATE stops SET begun_at = begun_at - 86400, ended_at = ended_at - 86400"
    ledger.connection.write(lambda db: db.execute(older))
    ledger.connection.write(lambda db: db.execute("UPDATE agents SET seen_at = seen_at - 86400"))
    prune(ledger, Retention(keep=3600.0))
    ledger.remember_start(StartEvent(session_id="s1", **about), {"s": "broken"})
    asked = [Wanted(gate="g", definition="d", scope="s", tree=tree) for tree in ("good", "broken")]
    spared = [dict(ledger.recall(stop(**about), [one])) for one in asked]
    assert spared == [{"g": "unchanged"}, {}]


def test_a_pass_says_at_which_stop_it_was_found_out(ledger):
    begun = ledger.begin(stop())
    reports = (passed("t"), Report(gate="h", answer=Block("no"), definition="h"))
    decision = Decision(verdict=Block("no"), outcome="blocked", reports=reports, limit=9, turn=1)
    ledger.record(begun, decision)
    ((definition, tree, at, found),) = rows(ledger, "SELECT * FROM passes")
    assert (definition, tree, found) == ("d", passes.here("t"), begun.stop)
    assert abs(time.time() - at) < 60
    assert [report.passed_on for report in ledger.answer(begun.stop, 0).reports] == ["", ""]


def test_a_report_of_a_spared_gate_comes_back_as_it_was(ledger):
    reports = tuple(
        Report(gate=why, answer=Allow(), spared=why, definition="d")
        for why in ("passed", "unchanged")
    )
    begun = ledger.begin(stop())
    ledger.record(begun, Decision(verdict=Allow(), outcome="passed", reports=reports, turn=1))
    assert ledger.answer(begun.stop, 0).reports == reports
    assert rows(ledger, "SELECT status FROM reports") == [("remembered",), ("unchanged",)]


def test_a_ledger_in_memory_is_bounded_too(monkeypatch):
    monkeypatch.setattr("notyet.ledger.memory._MOST_PASSES", 2)
    monkeypatch.setattr("notyet.ledger.memory._MOST_AGENTS", 2)
    ledger = MemoryLedger()
    for n in range(4):
        ledger.remember([passed(f"{n}")])
        ledger.remember_start(start(f"s{n}"), {"s": "t"})
    assert [spares(ledger, f"{n}") for n in range(4)] == [{}, {}] + [{"g": "passed"}] * 2
    assert spares(ledger, "t") == {}
    ledger.remember_start(start("s1"), {})
    assert spares(ledger, "t") == {}
