"""What is asked twice under one key happens once, and no number is given to two."""

import os

import pytest

from notyet import Ledger
from notyet.core.session import Turn
from notyet.core.task import Run, Task
from notyet.errors import Refused
from notyet.ledger.leases import Intents, Leases
from notyet.ledger.outbox import Outbox
from notyet.ledger.runs import Runs
from notyet.ledger.tasks import Tasks
from support import rows


class Tables:
    def __init__(self, path):
        self.ledger = Ledger(path)
        self.tasks, self.runs = Tasks(self.ledger), Runs(self.ledger)
        self.outbox = Outbox(self.ledger.connection)
        self.leases = Leases(self.ledger.connection)
        self.owner = self.leases.enrol(60.0)

    def start(self, name, parent=""):
        run = Run(
            id=f"{name}.1",
            task=name,
            generation=1,
            state="running",
            source="start",
            key=f"key of {name}",
            prompt="do it",
        )
        task = Task(id=name, prompt="do it", parent=parent)
        self.tasks.start(task, run, self.owner, {}, name, max_depth=9, max_children=9)

    def end(self, name):
        self.runs.end(name, self.owner, "killed", turn=Turn(text="words"))

    def tell(self, parent, name):
        """Tell a parent of a result, as `tell_parent` does, and acknowledge it."""
        announcement = self.outbox.lease(name, self.owner)
        self.runs.say(parent, "machine", announcement.key, "It has ended.", os.urandom(4).hex())
        self.outbox.acknowledge(name)

    def statuses(self):
        return dict(rows(self.ledger, "SELECT task, status FROM outbox"))


@pytest.fixture
def tables(tmp_path):
    return Tables(tmp_path / "ledger.db")


@pytest.mark.rule("K18")
def test_the_number_of_an_owner_that_was_taken_for_dead_is_not_given_again(tables):
    tables.start("t")
    silent = tables.owner
    tables.leases.retire(silent)
    other = tables.leases.enrol(60.0)
    assert tables.tasks.claim(other) == ["t"]
    tables.leases.retire(other)
    assert tables.tasks.claim(tables.leases.enrol(60.0)) == ["t"]
    assert tables.leases.enrol(60.0) not in {silent, other}
    assert not tables.leases.renew(silent, 60.0)


@pytest.mark.rule("K18")
def test_the_number_of_an_intent_that_was_withdrawn_is_not_given_again(tables):
    intents = Intents(tables.ledger.connection)
    first = intents.wish("t", "say", "words")
    assert intents.withdraw(first)
    assert intents.wish("t", "say", "other words") != first


@pytest.mark.rule("K7", "C9")
def test_a_message_is_kept_once_for_each_key_also_after_its_task_has_ended(tables):
    tables.start("t")
    for _ in range(2):
        tables.runs.say("t", "user", "intent 1", "words", "steer")
    tables.end("t")
    tables.runs.say("t", "user", "intent 1", "words", "steer")
    assert rows(tables.ledger, "SELECT text, state FROM messages") == [("words", "unsent")]
    with pytest.raises(Refused, match="has ended"):
        tables.runs.say("t", "user", "intent 2", "words", "steer")


@pytest.mark.rule("K7", "K16")
def test_a_steer_by_hand_is_reserved_once_for_each_key(tables):
    tables.start("t")
    for _ in range(2):
        tables.runs.steer("t", tables.owner, "intent 1", "another way", 0.0)
    assert tables.runs.dispatch("intent 1", tables.owner)
    assert tables.runs.accept("intent 1", tables.owner)
    tables.runs.steer("t", tables.owner, "intent 1", "another way", 0.0)
    assert rows(tables.ledger, "SELECT key, phase FROM steers") == [("intent 1", "accepted")]


@pytest.mark.rule("K7", "K8")
def test_a_result_whose_parent_ended_before_it_was_told_is_delivered_to_the_one_above(tables):
    tables.start("top")
    tables.start("middle", parent="top")
    tables.start("child", parent="middle")
    tables.end("child")
    tables.tell("middle", "child")
    assert tables.statuses() == {"child": "delivered"}
    tables.end("middle")
    assert tables.statuses() == {"child": "pending", "middle": "pending"}
    tables.tell("top", "child")
    queued = rows(tables.ledger, "SELECT task, state FROM messages")
    assert queued == [("top", "queued")]
    assert tables.statuses()["child"] == "delivered"


@pytest.mark.rule("K7", "K8")
def test_a_result_that_was_told_is_not_told_again_when_the_acknowledgement_was_lost(tables):
    tables.start("top")
    tables.start("child", parent="top")
    tables.end("child")
    tables.tell("top", "child")
    tables.runs.finish("top.1", Turn(text="waiting"), "done", tables.owner)
    tables.runs.settle("top.1", tables.owner, "steer")
    tables.runs.dispatch("steer", tables.owner)
    tables.runs.accept("steer", tables.owner)
    tables.end("top")
    assert tables.statuses()["child"] == "delivered"
    tables.runs.say("top", "machine", "child:1", "It has ended.", "another")
    assert rows(tables.ledger, "SELECT state FROM messages") == [("sent",)]


@pytest.mark.rule("K16", "K8")
def test_a_result_that_a_steer_by_hand_cleared_from_the_queue_is_suspended_and_says_why(tables):
    tables.start("top")
    tables.start("child", parent="top")
    tables.end("child")
    tables.tell("top", "child")
    tables.runs.steer("top", tables.owner, "steer", "another way", 0.0)
    (row,) = rows(tables.ledger, "SELECT status, error FROM outbox")
    assert row == ("suspended", "a steer by hand cleared it from the queue of its parent")
    tables.outbox.retry("child", tables.owner)
    tables.tell("top", "child")
    assert rows(tables.ledger, "SELECT state FROM messages") == [("queued",)]
