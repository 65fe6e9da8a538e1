"""Intents: written by anybody, answered by the owner."""

import pytest

pytestmark = pytest.mark.rule("K18")


@pytest.fixture
def desk(desk):
    desk.enter("t1")
    desk.enter("t2")
    return desk


def test_an_owner_reads_what_is_asked_of_its_tasks_in_the_order_of_asking(desk):
    desk.intents.add("t2", "say", "first \ud800")
    desk.intents.add("t1", "kill", "")
    desk.intents.add("t9", "kill", "")  # of nobody
    first, second = desk.intents.waiting(desk.owner)
    assert (first.task, first.what, first.text) == ("t2", "say", "first ?")
    assert (second.task, second.what) == ("t1", "kill")
    assert desk.intents.waiting(desk.owner + 1) == []


def test_an_answer_is_given_once_and_read_by_its_requester(desk):
    number = desk.intents.add("t1", "steer", "other way")
    assert desk.intents.read(number) == ("pending", "")
    desk.intents.answer(number, "refused", "too soon")
    desk.intents.answer(number, "done")
    assert desk.intents.read(number) == ("refused", "too soon")
    assert desk.intents.waiting(desk.owner) == []
    assert not desk.intents.withdraw(number)


def test_an_unanswered_intent_can_be_taken_back(desk):
    number = desk.intents.add("t1", "kill", "")
    assert desk.intents.withdraw(number)
    assert desk.intents.waiting(desk.owner) == []
    assert desk.intents.read(number) == ("refused", "it was withdrawn")
    assert desk.intents.add("t1", "kill", "") > number  # no number is given twice


@pytest.mark.parametrize("what", ["kill", "reset", "interrupt"])
def test_intents_for_the_end_that_came_succeed_and_others_are_refused(desk, what):
    numbers = {each: desk.intents.add("t1", each, "") for each in ("kill", "reset", "interrupt")}
    said = desk.intents.add("t1", "say", "hello")
    ending = {"kill": "killed", "reset": "reset", "interrupt": "interrupted"}[what]
    desk.runs.end("t1", desk.owner, ending)
    states = {each: desk.intents.read(number)[0] for each, number in numbers.items()}
    assert states == {each: "done" if each == what else "refused" for each in numbers}
    assert desk.intents.read(said)[0] == "refused"


def test_an_intent_goes_to_the_current_owner_of_the_task(desk):
    desk.intents.add("t1", "kill", "")
    desk.leases.retire(desk.owner)
    heir = desk.leases.enrol(1000.0)
    desk.tasks.claim(heir)
    assert [intent.task for intent in desk.intents.waiting(heir)] == ["t1"]
