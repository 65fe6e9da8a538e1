"""What a task comes to, and what a session may say of a turn."""

import pytest

from notyet import Allow, Block, Decision, Halt, Usage
from notyet.core.session import Turn
from notyet.core.task import MOST_TEXT, Order, Run, Task, conclude, ending_of

TASK = Task(id="t1", prompt="do it", label="mender", agent_type="coder")
TURN = Turn(
    text="done",
    usage=Usage(input=3),
    tools=["bash"],
    tool_calls=2,
    turns=4,
    model="acme/large",
    duration_ms=9,
)


def run(**fields):
    known = {"id": "t1.2", "task": "t1", "generation": 2, "state": "gating", "source": "gate"}
    return Run(**(known | {"key": "k", "prompt": "more"} | fields))


def concluded(turn=TURN, ending="done", **fields):
    known = {"session_id": "s1", "steers": 1}
    return conclude(TASK, run(turn=turn), ending=ending, **(known | fields))


@pytest.mark.rule("K1", "K11")
def test_a_result_has_the_figures_of_all_runs_and_those_of_the_last_beside_them():
    before = Turn(text="x", usage=Usage(input=40, total=2), tools=["edit"], duration_ms=1)
    result = concluded(earlier=(before,))
    assert (result.usage, result.tools) == (Usage(input=43, total=2), ("edit", "bash"))
    assert (result.tool_calls, result.turns, result.duration_ms) == (2, 5, 10)
    last = result.last_run
    assert (last.usage, last.tools, last.tool_calls) == (Usage(input=3), ("bash",), 2)
    assert (last.turns, last.duration_ms) == (4, 9)


@pytest.mark.rule("K1")
def test_a_result_says_how_its_task_ended_and_whose_it_is():
    decision = Decision(verdict=Allow(), outcome="passed", warnings=("look",))
    result = concluded(decision=decision, unsent=("wait",))
    assert (result.task_id, result.run_id, result.generation) == ("t1", "t1.2", 2)
    assert (result.session_id, result.label, result.agent_type) == ("s1", "mender", "coder")
    assert (result.ending, result.outcome, result.text) == ("done", "passed", "done")
    assert (result.usage, result.tools, result.tool_calls) == (Usage(input=3), ("bash",), 2)
    assert (result.turns, result.model, result.duration_ms) == (4, "acme/large", 9)
    assert (result.steers, result.unsent, result.warnings) == (1, ("wait",), ("look",))
    assert (result.error, result.stop_reason, result.rejected) == (None, None, "")


@pytest.mark.rule("C3")
def test_a_task_that_ended_before_its_agent_said_anything_has_an_empty_result():
    result = concluded(None, "killed")
    assert (result.ending, result.outcome, result.text) == ("killed", "skipped", "")
    assert (result.usage, result.turns, result.stop_reason) == (Usage(), 0, None)


@pytest.mark.rule("K15")
@pytest.mark.parametrize(
    ("verdict", "why", "stop_reason"),
    [
        (Halt("budget spent"), "budget spent", "budget spent"),
        (Halt(), "", "halted by a gate"),
        (Allow(), "no-gate", "no-gate"),
        (Allow(), "", None),
    ],
)
def test_why_an_agent_was_let_go_is_in_its_result(verdict, why, stop_reason):
    decision = Decision(verdict=verdict, outcome="skipped", why=why)
    assert concluded(decision=decision).stop_reason == stop_reason


@pytest.mark.rule("K19")
def test_a_rejected_answer_never_stands_beside_a_later_one():
    assert concluded(rejected="earlier").rejected == ""
    assert concluded(Turn(text=" \n"), rejected="earlier").rejected == "earlier"


def test_an_answer_is_kept_in_bounds():
    result = concluded(Turn(text="x" * (2 * MOST_TEXT)), rejected="")
    assert len(result.text) <= MOST_TEXT
    result = concluded(Turn(text=""), rejected="x" * (2 * MOST_TEXT))
    assert len(result.rejected) <= MOST_TEXT


def test_the_error_of_the_ender_comes_before_the_agents():
    failed = Turn(text="", stop_reason="error", error="boom")
    assert concluded(failed).error == "boom"
    assert concluded(failed, error="its supervisor died").error == "its supervisor died"


@pytest.mark.rule("C1", "C2", "C4")
@pytest.mark.parametrize(
    ("stop_reason", "ending"),
    [
        ("end_turn", "done"),
        ("max_tokens", "done"),
        ("max_turns", "done"),
        ("refusal", "done"),
        ("error", "error"),
        ("cancelled", "interrupted"),
    ],
)
def test_how_a_turn_ended_says_how_its_run_did(stop_reason, ending):
    assert ending_of(Turn(text="", stop_reason=stop_reason)) == ending


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": None}, "text is text, not NoneType"),
        ({"stop_reason": 1}, "stop_reason is text, not int"),
        ({"model": 1}, "model is text or None, not int"),
        ({"tool_calls": None}, "tool_calls is a whole number, not NoneType"),
        ({"duration_ms": "1"}, "duration_ms is a number, not str"),
        ({"tools": "bash"}, "tools is a tuple, not str"),
        ({"tools": (1,)}, "tools must contain only names"),
        ({"usage": {}}, "usage is a Usage, not dict"),
    ],
)
def test_a_turn_says_what_is_wrong_with_it(fields, words):
    with pytest.raises(TypeError, match=words):
        Turn(**({"text": ""} | fields))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_the_duration_of_a_turn_is_a_number_that_can_be_kept(number):
    with pytest.raises(ValueError, match="duration_ms is a number of milliseconds"):
        Turn(text="", duration_ms=number)


def test_blocks_have_no_part_in_a_stop_reason():
    decision = Decision(verdict=Block("more"), outcome="capped", why="tests still failing")
    assert concluded(decision=decision).stop_reason == "tests still failing"


def test_an_order_takes_values_of_the_right_types_only():
    assert Order(queue="agents", retries=2).retries == 2
    with pytest.raises(TypeError, match="retries"):
        Order(queue="agents", retries="2")
