"""What a stop would find in the ledger is what it finds."""

import random
import sqlite3
from contextlib import closing

import pytest

from notyet.core.event import StopEvent
from notyet.core.verdict import Allow, Block, Decision
from notyet.ledger.counts import preview_begin
from notyet.ledger.stops import Ledger


def content(path):
    with closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())


@pytest.mark.rule("B4")
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_a_stop_finds_and_nothing_is_entered(tmp_path, seed):
    chance = random.Random(seed)
    path = tmp_path / "ledger.db"
    ledger = Ledger(path)
    for number in range(12):
        event = StopEvent(
            host="claude",
            session_id=chance.choice("ab"),
            turn_id=chance.choice([None, "t1", "t2", "t" * 500]),
            stop_hook_active=chance.choice([True, False, None]),
            last_message=str(number),  # so that none repeats another
        )
        foreseen = preview_begin(ledger, event)
        before = content(path)
        assert preview_begin(ledger, event) == foreseen
        assert content(path) == before
        begun = ledger.begin(event)
        assert (foreseen.history, foreseen.overridden) == (begun.history, begun.overridden)
        verdict = chance.choice([Allow(), Block("no")])
        outcome = "passed" if isinstance(verdict, Allow) else "blocked"
        decided = Decision(verdict=verdict, outcome=outcome, turn=begun.history.turn, limit=99)
        ledger.record(begun, decided)
    ledger.close()


def test_the_answer_of_an_equal_stop_is_nobody_elses(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    event = StopEvent(host="claude", session_id="s", stop_hook_active=False)
    begun = ledger.begin(event)
    ledger.record(begun, Decision(verdict=Block("no"), outcome="blocked", turn=1, limit=3))
    assert ledger.begin(event).repeats
    assert preview_begin(ledger, event).history.turn == 2
    ledger.close()
