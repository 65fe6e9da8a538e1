"""A host that runs our hook twice for one stop starts both before either has answered (B12)."""

import time

import pytest

from notyet import Ledger
from notyet.run import proc
from support import decide, recorded, stop

pytestmark = pytest.mark.rule("B12")


def second(ledger, asked_at):
    """Return the ledger of another process, which was started then."""
    other = Ledger(ledger.path)
    other.called_at = asked_at
    return other


@pytest.mark.parametrize("outcome", ["blocked", "passed"])
def test_a_stop_that_was_asked_before_the_same_was_answered_repeats_it(ledger, outcome):
    event = stop(stop_hook_active=True)
    asked_at = time.time()
    first = decide(ledger, event, outcome)
    assert second(ledger, asked_at).begin(event).repeats == first
    assert recorded(ledger) == [(outcome, "")]


def test_a_stop_that_was_asked_after_the_answer_stands_for_itself(ledger):
    event = stop(stop_hook_active=True)
    decide(ledger, event)
    assert not second(ledger, time.time()).begin(event).repeats


def test_a_stop_that_differs_stands_for_itself_though_it_was_asked_before(ledger):
    asked_at = time.time()
    decide(ledger, stop(stop_hook_active=True, last_message="a"))
    other = stop(stop_hook_active=True, last_message="b")
    assert not second(ledger, asked_at).begin(other).repeats


def test_a_process_knows_when_it_was_started(monkeypatch):
    now = time.time()
    assert now - 5.1 <= proc.own_birth() <= time.time()
    monkeypatch.setattr(proc, "own_start", lambda: "")
    assert proc.own_birth() >= now
    monkeypatch.setattr(proc, "own_start", lambda: "0")  # no process is that old
    assert proc.own_birth() >= now - 5.0
