"""Laws of the lifecycle table."""

import pytest

from notyet.core.task import ACTIVE, FINAL, TRANSITIONS


def reachable(start):
    seen, left = set(), [start]
    while left:
        state = left.pop()
        if state not in seen:
            seen.add(state)
            left += TRANSITIONS[state].values()
    return seen


def test_every_state_can_be_reached():
    assert reachable("queued") == set(TRANSITIONS)


@pytest.mark.parametrize("state", sorted(ACTIVE))
def test_there_is_no_dead_end(state):
    assert reachable(state) & FINAL


@pytest.mark.parametrize("state", sorted(FINAL))
def test_there_is_no_way_out_of_a_final_state(state):
    assert TRANSITIONS[state] == {}


@pytest.mark.rule("C3", "C4")
@pytest.mark.parametrize("state", sorted(ACTIVE))
@pytest.mark.parametrize("signal", ["kill", "reset", "interrupt"])
def test_people_can_end_a_run_in_every_active_state(state, signal):
    assert TRANSITIONS[state][signal] == "ended"
