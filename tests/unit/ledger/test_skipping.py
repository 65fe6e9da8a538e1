"""Stops that are let go unasked, and what people did: written down, and counted nowhere."""

import os
import time

import pytest

from notyet import Allow, Decision
from support import decide, rows, stop


def skipped(why="off", *warnings):
    return Decision(verdict=Allow(), outcome="skipped", why=why, warnings=warnings)


@pytest.mark.rule("A10")
def test_a_skipped_stop_is_one_record_with_its_cause_and_words(ledger):
    ledger.skip(stop(cwd="/p"), skipped("untrusted", "not trusted", "é \udc80"))
    ((outcome, verdict, why, warnings, event, begun, ended, pid),) = rows(
        ledger,
        "SELECT outcome, verdict, why, warnings, event, begun_at, ended_at, pid FROM stops",
    )
    assert (outcome, verdict, why) == ("skipped", "allow", "untrusted")
    assert "not trusted" in warnings
    assert '"cwd": "/p"' in event
    assert abs(time.time() - begun) < 60
    assert (begun, pid) == (ended, os.getpid())


def test_a_stop_is_stored_with_its_place_to_look_it_up_by(ledger):
    decide(ledger, stop(cwd="/p"))
    ledger.skip(stop(cwd="/p/\udc80"), skipped())
    ledger.skip(stop(cwd="/p" * 10_000), skipped())
    places = [place for (place,) in rows(ledger, "SELECT place FROM stops ORDER BY id")]
    assert places == ["/p", "/p/?", "/p" * 2048]


@pytest.mark.rule("B9")
def test_nothing_is_stored_under_an_empty_key(ledger):
    ledger.skip(stop(session_id=""), skipped("no-session"))
    assert rows(ledger, "SELECT count(*) FROM agents") == [(0,)]
    assert rows(ledger, "SELECT agent FROM stops") == [(0,)]


def test_a_skipped_stop_belongs_to_its_agent_and_does_not_touch_its_count(ledger):
    decide(ledger, stop())
    before = rows(ledger, "SELECT * FROM agents")
    ledger.skip(stop(), skipped())
    assert rows(ledger, "SELECT * FROM agents") == before
    assert rows(ledger, "SELECT DISTINCT agent FROM stops") == [(before[0][0],)]
    assert ledger.begin(stop(stop_hook_active=True)).history.blocks == 1


def test_what_people_did_is_kept_in_order(ledger):
    ledger.act("trust", "/p/notyet.toml", "2 gates")
    ledger.act("off", "", "30m")
    done = rows(ledger, "SELECT what, place, detail, at FROM acts ORDER BY id")
    assert [row[:3] for row in done] == [
        ("trust", "/p/notyet.toml", "2 gates"),
        ("off", "", "30m"),
    ]
    assert done[0][3] <= done[1][3] <= time.time()
