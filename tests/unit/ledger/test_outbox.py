"""The outbox: a result stays until somebody has it."""

import time

import pytest

from notyet import Allow, Decision
from notyet.errors import Refused
from notyet.ledger.task_rows import TELLING, TOLD, UNKNOWN
from support import rows

PASS = Decision(verdict=Allow(), outcome="passed")


@pytest.fixture
def desk(desk):
    desk.enter("t1", "s1")
    return desk


def told(desk, owner):
    """Mark the notification of observers as begun; return what is known of it."""
    return desk.outbox.take("t1", owner, TELLING, is_leased=False).outgoing.told


@pytest.fixture
def ended(desk):
    desk.end("t1")
    return desk


def status(desk):
    return rows(desk.ledger, "SELECT status, attempts, error FROM outbox ORDER BY key")


@pytest.mark.rule("K8", "K7")
def test_each_attempt_has_the_same_key_and_a_number_and_only_refusals_count(ended):
    first = ended.outbox.lease("t1", ended.owner)
    assert ended.outbox.lease("t1", ended.owner).attempt == 1  # its process crashed meanwhile
    ended.outbox.postpone("t1:1", ended.owner, "busy", 0.0)
    again = ended.outbox.lease("t1", ended.owner)
    assert (first.key, first.attempt, first.result.text) == ("t1:1", 1, "done")
    assert (again.key, again.attempt, again.result) == ("t1:1", 2, first.result)
    assert ended.outbox.lease("t1", 99) is None


@pytest.mark.rule("K8")
def test_a_postponed_result_is_due_when_its_time_has_come(ended):
    assert ended.outbox.due(ended.owner) == []  # the observers come first
    ended.outbox.told("t1", ended.owner)
    assert ended.outbox.due(ended.owner) == ["t1"]
    ended.outbox.lease("t1", ended.owner)
    # On its way, or forgotten by whoever leased it: its process knows which.
    assert ended.outbox.due(ended.owner) == ["t1"]
    ended.outbox.postpone("t1:1", ended.owner, "busy \ud800", 60.0)
    assert ended.outbox.due(ended.owner) == []
    assert status(ended) == [("pending", 1, "busy ?")]
    rows(ended.ledger, "UPDATE outbox SET next_at = ?", time.time() - 1)
    assert ended.outbox.due(ended.owner) == ["t1"]
    assert ended.outbox.due(99) == []


@pytest.mark.rule("K8")
def test_an_acknowledged_result_is_delivered_for_good(ended):
    ended.outbox.lease("t1", ended.owner)
    ended.outbox.acknowledge("t1")
    ended.outbox.postpone("t1:1", ended.owner, "late", 0.0)
    ended.outbox.suspend("t1:1", ended.owner, "late")
    assert status(ended) == [("delivered", 1, "")]
    assert ended.outbox.lease("t1", ended.owner) is None


@pytest.mark.rule("K8")
def test_a_suspended_result_waits_for_a_person(ended):
    ended.outbox.told("t1", ended.owner)
    ended.outbox.lease("t1", ended.owner)
    ended.outbox.suspend("t1:1", ended.owner, "hopeless")
    assert ended.outbox.due(ended.owner) == []
    assert ended.outbox.lease("t1", ended.owner) is None
    other = ended.leases.enrol(1000.0)
    ended.outbox.retry("t1", other)
    assert ended.outbox.due(ended.owner) == ["t1"]  # it lives, and has the consumer
    assert ended.outbox.lease("t1", ended.owner).attempt == 1
    ended.outbox.suspend("t1:1", ended.owner, "hopeless")
    ended.leases.retire(ended.owner)
    ended.outbox.retry("t1", other)
    assert ended.outbox.due(other) == ["t1"]


@pytest.mark.rule("K8", "K7")
def test_a_result_that_was_delivered_is_delivered_again_under_another_key(ended):
    ended.outbox.told("t1", ended.owner)
    ended.outbox.acknowledge("t1")
    ended.outbox.retry("t1", ended.owner)
    again = ended.outbox.lease("t1", ended.owner)
    assert (again.key, again.attempt, again.result.text) == ("t1:2", 1, "done")
    assert told(ended, ended.owner) == TOLD  # nobody is told a second time
    ended.outbox.acknowledge("t1")
    assert [row[0] for row in status(ended)] == ["delivered", "delivered"]


@pytest.mark.rule("K10", "K7")
def test_observers_are_marked_before_they_are_notified_and_after_a_crash_it_is_unknown(ended):
    assert told(ended, 99) == TOLD  # by its new owner, not by an old one
    assert told(ended, ended.owner) == TELLING
    assert ended.tasks.left(ended.owner) == ["t1"]
    assert not ended.tasks.views("t1")[0].maybe_unnotified
    assert told(ended, ended.owner) == UNKNOWN
    assert told(ended, ended.owner) == UNKNOWN
    ended.outbox.acknowledge("t1")
    (view,) = ended.tasks.undelivered()
    assert (view.maybe_unnotified, view.delivery) == (True, "delivered")
    ended.outbox.dismiss("t1")
    assert ended.tasks.undelivered() == []


@pytest.mark.rule("K8")
def test_a_dismissed_result_is_not_delivered(ended):
    ended.outbox.lease("t1", ended.owner)
    ended.outbox.dismiss("t1")
    ended.outbox.acknowledge("t1")
    assert status(ended)[0][0] == "dismissed"
    assert ended.outbox.due(ended.owner) == []


@pytest.mark.rule("K8")
def test_there_is_nothing_to_retry_or_dismiss_before_the_end(desk):
    for verb in (lambda: desk.outbox.retry("t1", desk.owner), lambda: desk.outbox.dismiss("t1")):
        with pytest.raises(Refused, match="task t1 has no result yet; list tasks with: notyet"):
            verb()
