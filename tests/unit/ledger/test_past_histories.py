"""What had been counted when a stop began, read off the rows of now."""

import random
import sqlite3
from contextlib import closing

import pytest

from notyet import Allow, Block, Decision, Engine, Ledger, Limits, StopEvent
from notyet.core.limits import History
from notyet.ledger.past_histories import counted_stops, original_outcome, preview_begin
from notyet.ledger.transitions import NOT_SENT


def check(ledger, answer, *, active, session="s", **limits):
    engine = Engine([lambda _event: answer], ledger=ledger, limits=Limits(**limits))
    event = StopEvent(session_id=session, stop_hook_active=active, last_message=str(answer))
    return engine.check_sync(event)


def test_every_stop_knows_what_was_counted_before_it(ledger):
    wishes = [
        (Block("a"), False),
        (Block("b"), True),
        (Allow(), True),
        (Block("c"), False),
    ]
    before = []
    for answer, active in wishes:
        begun = check(ledger, answer, active=active)
        before.append(begun)

    found = counted_stops(ledger, [4])

    assert [one.history for one in found.values()] == [
        History(turn=1),
        History(turn=1, blocks=1, session_blocks=1),
        History(turn=1, blocks=2, session_blocks=2),
        History(turn=2, session_blocks=2),
    ]
    assert [one.outcome for one in found.values()] == [one.outcome for one in before]
    assert [one.is_first for one in found.values()] == [True, False, False, True]


def test_a_higher_limit_that_a_gate_asked_for_counts_for_the_rest_of_the_turn(ledger):
    check(ledger, Block("a", extend=7), active=False)
    check(ledger, Block("b"), active=True)
    check(ledger, Block("c"), active=False)

    assert [one.history.extend for one in counted_stops(ledger, [1]).values()] == [0, 7, 0]


def test_what_older_stops_counted_is_known_when_they_are_gone(ledger):
    check(ledger, Block("a", extend=9), active=False)
    check(ledger, Block("b"), active=True)
    ledger.connection.write(lambda db: db.execute("DELETE FROM stops WHERE id = 1"))

    known = counted_stops(ledger, [2])[2]

    assert known.history == History(turn=1, blocks=1, session_blocks=1, extend=9)
    assert not known.is_first


def test_a_stop_that_was_let_go_before_it_was_counted_is_in_no_turn(ledger):
    check(ledger, Block("a"), active=False)
    skipped = Decision(verdict=Allow(), outcome="skipped", why="off")
    ledger.skip(StopEvent(session_id="s"), skipped)
    ledger.skip(StopEvent(session_id="never seen"), skipped)
    check(ledger, Block("b"), active=True)

    found = counted_stops(ledger, [1, 3])

    assert found[2].turn == 0
    assert found[4].history.blocks == 1
    assert 3 not in found


def test_what_was_decided_is_told_whatever_became_of_it():
    assert original_outcome("overridden", "lint") == "blocked"
    assert original_outcome("failed_open", f"{NOT_SENT}: it is gone") == "blocked"
    assert original_outcome("failed_open", "lint gave no answer") == "failed_open"
    assert original_outcome("passed", "") == "passed"


def test_nothing_is_known_of_nothing(tmp_path):
    ledger = Ledger(tmp_path / "none.db", repair=False)
    assert counted_stops(ledger, [1]) == {}
    assert not (tmp_path / "none.db").exists()


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


def test_a_preview_does_not_take_the_answer_of_an_equal_stop(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    event = StopEvent(host="claude", session_id="s", stop_hook_active=False)
    begun = ledger.begin(event)
    ledger.record(begun, Decision(verdict=Block("no"), outcome="blocked", turn=1, limit=3))
    assert ledger.begin(event).repeats
    assert preview_begin(ledger, event).history.turn == 2
    ledger.close()
