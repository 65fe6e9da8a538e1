"""Gates that need not be asked because nothing changed: what a stop then comes to (N1)."""

import pytest

from notyet import Allow, Block, Command, Gate, History, Limits, Problem, Report
from notyet.core.message import note
from notyet.core.plan import plan
from notyet.core.settle import settle
from support import gate, stop

pytestmark = pytest.mark.rule("N1")
LIMITS = Limits(max_blocks=3)


def command(name, **fields):
    return Gate(name=name, check=Command(script="true"), when="changed", **fields)


def decided(gates, spared, *reports, history=History(), event=None):
    planned = plan(event or stop(), tuple(gates), history, LIMITS, unchanged=spared)
    return settle(planned, reports)


def said(decision):
    return {report.gate: report.status for report in decision.reports}


def test_a_gate_that_is_spared_is_in_no_stage():
    a, b = command("a"), command("b", priority=-1)
    planned = plan(stop(), (a, b), History(), LIMITS, unchanged={"a": "passed"})
    assert planned.stages == ((b,),)
    assert planned.gates == (a, b)


def test_a_stop_at_which_nothing_changed_is_skipped_and_not_passed():
    decision = decided([command("a"), command("b")], {"a": "unchanged", "b": "unchanged"})
    assert (decision.outcome, decision.why, decision.verdict) == ("skipped", "unchanged", Allow())
    assert said(decision) == {"a": "unchanged", "b": "unchanged"}
    assert note(decision) == ""


def test_a_stop_with_one_pass_that_is_remembered_has_passed():
    decision = decided([command("a"), command("b")], {"a": "unchanged", "b": "passed"})
    assert (decision.outcome, decision.why) == ("passed", "")
    assert said(decision) == {"a": "unchanged", "b": "remembered"}


def test_a_stop_with_one_gate_that_was_asked_is_what_that_gate_says():
    gates, spared = [command("a"), command("b")], {"a": "unchanged"}
    passed = decided(gates, spared, Report(gate="b", answer=Allow()))
    assert passed.outcome == "passed"
    blocked = decided(gates, spared, Report(gate="b", answer=Block("no")))
    assert (blocked.outcome, said(blocked)) == ("blocked", {"a": "unchanged", "b": "blocked"})


def test_a_gate_that_only_observes_can_be_spared_too():
    watching = command("a", observe=True)
    decision = decided([watching], {"a": "passed"})
    assert (decision.outcome, decision.reports[0].observed) == ("passed", True)
    assert decided([watching], {"a": "unchanged"}).why == "unchanged"


def test_at_the_limit_a_remembered_pass_is_a_pass():
    full = History(turn=1, blocks=3, session_blocks=3)
    assert decided([command("a")], {"a": "passed"}, history=full).outcome == "passed"
    assert decided([command("a")], {"a": "unchanged"}, history=full).outcome == "skipped"
    other = gate("o", speaks="openclaw")  # which is not asked at its limit
    assert decided([command("a"), other], {"a": "passed"}, history=full).outcome == "capped"


def test_an_agent_that_needs_its_user_has_handed_back_whatever_changed():
    held = History(turn=1, blocks=1, session_blocks=1, blocked=True)
    event = stop(last_message="BLOCKED: help")
    decision = decided([command("a")], {"a": "unchanged"}, history=held, event=event)
    assert (decision.outcome, said(decision)) == ("handed_back", {"a": "not_asked"})


def test_the_agent_reads_of_remembered_passes_and_not_of_gates_with_nothing_to_look_at():
    gates = [command("a"), command("b"), command("c")]
    spared = {"a": "passed", "b": "unchanged"}
    decision = decided(gates, spared, Report(gate="c", answer=Block("no"), exit="exit 1"))
    assert "1 of 2 checks failed" in decision.verdict.prompt
    assert "Passed: a." in decision.verdict.prompt
    assert "Not run" not in decision.verdict.prompt
    assert "b" not in decision.verdict.prompt.split("Passed: ")[1].split("\n")[0]


def test_the_user_reads_of_a_remembered_pass_after_send_backs():
    held = History(turn=1, blocks=2, session_blocks=2, blocked=True)
    assert note(decided([command("a")], {"a": "passed"}, history=held)).startswith(
        "notyet: passed after 2 send-backs"
    )


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("answer", "unchanged", "outcome", "why"),
    [
        (Allow(), {}, "failed_open", "x.toml cannot be read"),
        (None, {"a": "unchanged"}, "failed_open", "x.toml cannot be read"),
        (Problem("crashed", "x"), {}, "failed_open", "a gave no answer; x.toml cannot be read"),
        (Block("x"), {}, "blocked", "a"),
    ],
)
def test_no_stop_passes_while_something_trusted_could_not_be_loaded(
    answer, unchanged, outcome, why
):
    planned = plan(
        stop(),
        (gate("a"),),
        History(turn=1),
        LIMITS,
        unchanged=unchanged,
        unchecked=("x.toml cannot be read",),
    )
    decision = settle(planned, [Report(gate="a", answer=answer)] if answer else [])
    assert (decision.outcome, decision.why) == (outcome, why)
    if outcome == "failed_open" and answer == Allow():
        assert note(decision) == "notyet: NOT CHECKED: x.toml cannot be read"
