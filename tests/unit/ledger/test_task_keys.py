"""What is asked twice under one key happens once, and no number is given to two."""

import os

import pytest

from notyet.core.session import Turn
from notyet.errors import Refused
from support import rows


def kill(desk, name):
    desk.runs.end(name, desk.owner, "killed", turn=Turn(text="words"))


def tell(desk, parent, name):
    """Tell a parent of a result, as `tell_parent` does, and acknowledge it."""
    announcement = desk.outbox.lease(name, desk.owner)
    desk.runs.say(parent, "machine", announcement.key, "It has ended.", os.urandom(4).hex())
    desk.outbox.acknowledge(name)


def statuses(desk):
    return dict(rows(desk.ledger, "SELECT task, status FROM outbox"))


@pytest.mark.rule("K18")
def test_the_number_of_an_owner_that_was_taken_for_dead_is_not_given_again(desk):
    desk.enter("t")
    silent = desk.owner
    desk.leases.retire(silent)
    other = desk.leases.enrol(60.0)
    assert desk.tasks.claim(other) == ["t"]
    desk.leases.retire(other)
    assert desk.tasks.claim(desk.leases.enrol(60.0)) == ["t"]
    assert desk.leases.enrol(60.0) not in {silent, other}
    assert not desk.leases.renew(silent, 60.0)


@pytest.mark.rule("K7", "C9")
def test_a_message_is_kept_once_for_each_key_also_after_its_task_has_ended(desk):
    desk.enter("t")
    for _ in range(2):
        desk.runs.say("t", "user", "key 1", "words", "steer")
    kill(desk, "t")
    desk.runs.say("t", "user", "key 1", "words", "steer")
    assert rows(desk.ledger, "SELECT text, state FROM messages") == [("words", "unsent")]
    with pytest.raises(Refused, match="has ended"):
        desk.runs.say("t", "user", "key 2", "words", "steer")


@pytest.mark.rule("K7", "K16")
def test_a_steer_by_hand_is_reserved_once_for_each_key(desk):
    desk.enter("t")
    for _ in range(2):
        desk.runs.steer("t", desk.owner, "key 1", "another way", 0.0)
    assert desk.runs.dispatch("key 1", desk.owner)
    assert desk.runs.accept("key 1", desk.owner)
    desk.runs.steer("t", desk.owner, "key 1", "another way", 0.0)
    assert rows(desk.ledger, "SELECT key, phase FROM steers") == [("key 1", "accepted")]


@pytest.mark.rule("K7", "K8")
def test_a_result_whose_parent_ended_before_it_was_told_is_delivered_to_the_one_above(desk):
    desk.enter("top")
    desk.enter("middle", parent="top")
    desk.enter("child", parent="middle")
    kill(desk, "child")
    tell(desk, "middle", "child")
    assert statuses(desk) == {"child": "delivered"}
    kill(desk, "middle")
    assert statuses(desk) == {"child": "pending", "middle": "pending"}
    tell(desk, "top", "child")
    queued = rows(desk.ledger, "SELECT task, state FROM messages")
    assert queued == [("top", "queued")]
    assert statuses(desk)["child"] == "delivered"


@pytest.mark.rule("K16", "K8")
def test_a_result_that_a_steer_by_hand_cleared_from_the_queue_is_suspended_and_says_why(desk):
    desk.enter("top")
    desk.enter("child", parent="top")
    kill(desk, "child")
    tell(desk, "top", "child")
    desk.runs.steer("top", desk.owner, "steer", "another way", 0.0)
    (row,) = rows(desk.ledger, "SELECT status, error FROM outbox")
    assert row == ("suspended", "a steer by hand cleared it from the queue of its parent")
    desk.outbox.retry("child", desk.owner)
    tell(desk, "top", "child")
    assert rows(desk.ledger, "SELECT state FROM messages") == [("queued",)]
