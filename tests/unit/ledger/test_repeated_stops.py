"""A host that runs our hook twice for one stop starts both before either has answered (B12)."""

import threading
import time

import pytest

from notyet import Allow, Block, Engine, Ledger
from notyet.run import proc
from support import decide, gate, recorded, stop, wait_for

pytestmark = pytest.mark.rule("B12")


def second(ledger, asked_at):
    """Return the ledger of another process, which was started then."""
    other = Ledger(ledger.path)
    other.called_at = asked_at
    return other


@pytest.mark.parametrize("outcome", ["blocked", "capped", "stuck"])
def test_a_stop_that_was_asked_before_the_same_was_answered_repeats_it(ledger, outcome):
    event = stop(stop_hook_active=True)
    asked_at = time.time()
    first = decide(ledger, event, outcome)
    for _ in range(3):
        assert second(ledger, asked_at).begin(event).repeats == first
    assert recorded(ledger) == [(outcome, "")]
    assert not second(ledger, asked_at).begin(event).repeats  # three times at most


@pytest.mark.parametrize("outcome", ["passed", "failed_open", "observed", "handed_back"])
def test_only_what_sent_an_agent_back_is_repeated(ledger, outcome):
    event = stop(stop_hook_active=True)
    asked_at = time.time()
    decide(ledger, event, outcome)
    assert not second(ledger, asked_at).begin(event).repeats


def test_a_pass_of_an_equal_stop_in_flight_is_not_inherited(ledger):
    """The second stop runs the gates itself after the first has passed."""
    forged = threading.Event()
    asked = []

    def allow_once(event):
        asked.append(event)
        if len(asked) > 1:
            return Block("no")
        forged.wait(30)
        return Allow()

    engine = Engine([gate("g", allow_once)], ledger=ledger)
    begin, begun = ledger.begin, []

    def noted(*args):
        begun.append(begin(*args))
        if begun[-1].repeats:
            forged.set()
        return begun[-1]

    ledger.begin = noted
    first = threading.Thread(target=engine.check_sync, args=(stop(),))
    first.start()
    wait_for(lambda: asked)
    assert engine.check_sync(stop()).outcome == "blocked"
    first.join()
    assert recorded(ledger) == [("passed", ""), ("blocked", "g")]


def test_a_stop_that_waited_in_vain_for_an_equal_one_is_recorded(ledger):
    begun = ledger.begin(stop())
    decision = Engine([gate("g", Block("x"))], ledger=ledger).check_sync(stop(), within=0.2)
    assert (decision.outcome, decision.why) == ("skipped", "duplicate")
    assert recorded(ledger) == [("asking", ""), ("skipped", "duplicate")]
    del begun


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
