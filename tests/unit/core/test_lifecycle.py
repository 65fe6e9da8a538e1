import pytest

from notyet.core.task import ACTIVE, FINAL, START, TRANSITIONS, advance
from notyet.errors import LifecycleError


def walk(*signals):
    state = START
    for signal in signals:
        state = advance(state, signal)
    return state


@pytest.mark.parametrize(
    ("signals", "state"),
    [
        (("finish", "settle", "allow"), "ended"),
        (("finish", "finish", "settle", "allow"), "ended"),
        (("finish", "settle", "block"), "steering"),
        (("finish", "settle", "block", "accept"), "superseded"),
        (("finish", "settle", "block", "fail"), "ended"),
        (("steer", "accept"), "superseded"),
        (("finish", "settle", "steer"), "steering"),
        (("finish", "settle", "kill"), "ended"),
        (("finish", "settle", "block", "interrupt"), "ended"),
        (("reset",), "ended"),
    ],
)
def test_a_run_moves_as_the_table_says(signals, state):
    assert walk(*signals) == state


@pytest.mark.parametrize(
    ("state", "signal"),
    [("ended", "kill"), ("superseded", "finish"), ("running", "allow"), ("x", "kill")],
)
def test_a_move_the_table_does_not_know_is_refused(state, signal):
    with pytest.raises(LifecycleError, match=f"a run that is {state} cannot {signal}"):
        advance(state, signal)


def test_every_state_is_either_active_or_final():
    assert set(TRANSITIONS) == ACTIVE | FINAL
    assert not ACTIVE & FINAL


@pytest.mark.rule("C6")
def test_a_run_that_is_being_steered_meets_no_gate():
    for signal in ("finish", "settle", "allow", "block"):
        with pytest.raises(LifecycleError):
            advance("steering", signal)


@pytest.mark.rule("C9")
def test_a_person_can_redirect_or_end_a_run_while_its_gates_are_asked():
    assert advance("gating", "steer") == "steering"
    assert {advance("gating", signal) for signal in ("kill", "reset", "interrupt")} == {"ended"}
