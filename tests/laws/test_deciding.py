"""Laws of plan and settle: true for every gate, answer, history and limit."""

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notyet import Allow, Block, Halt, History, Limits, Problem, Report
from notyet.core.limits import after, limit_in_force, open_turn
from notyet.core.plan import plan
from notyet.core.settle import settle
from notyet.core.verdict import OUTCOMES
from support import gate, stop

words = st.text(alphabet=string.ascii_letters + " ", min_size=1).filter(str.strip)
extensions = st.integers(0, 60)
verdicts = st.one_of(
    st.builds(Allow, extensions, st.text(max_size=5)),
    st.builds(Block, words, st.text(max_size=9), extensions),
    st.builds(Halt, st.text(max_size=9)),
)
answers = st.one_of(
    verdicts,
    st.builds(Problem, st.sampled_from(["crashed", "timeout", "deadline"]), st.text(max_size=9)),
    st.none(),
)
gates = st.lists(
    st.builds(
        lambda priority, step, speaks, observe, broken: {
            "priority": priority,
            "step": step,
            "speaks": speaks,
            "observe": observe,
            "if_broken": broken,
        },
        st.integers(-2, 2),
        st.integers(0, 3),
        st.sampled_from(["notyet", "openclaw"]),
        st.booleans(),
        st.sampled_from(["allow", "block"]),
    ),
    min_size=1,
    max_size=6,
).map(lambda rows: tuple(gate(f"g{place}", **row) for place, row in enumerate(rows)))
histories = st.builds(
    History,
    turn=st.just(1),
    blocks=st.integers(0, 6),
    session_blocks=st.integers(0, 60),
    extend=st.integers(0, 60),
    repeats=st.integers(0, 4),
    repeat_key=st.sampled_from(["", "k"]),
)
limits = st.builds(
    Limits,
    max_blocks=st.integers(0, 6),
    session_ceiling=st.integers(0, 60),
    stuck_after=st.sampled_from([0, 2, 3, 5]),
)
events = st.builds(
    lambda cap, message: stop(host_cap=cap, last_message=message),
    st.integers(0, 9),
    st.sampled_from([None, "done", "BLOCKED: help"]),
)


@st.composite
def stops(draw):
    planned = plan(draw(events), draw(gates), draw(histories), draw(limits))
    asked = [each.name for stage in planned.stages for each in stage]
    reports = [Report(gate=name, answer=draw(answers)) for name in asked]
    return planned, reports, draw(st.sampled_from(["", "tree"]))


@pytest.mark.rule("A3")
@given(stops(), st.randoms(use_true_random=False))
def test_the_decision_does_not_depend_on_the_order_of_reports(stopping, shuffler: random.Random):
    planned, reports, tree = stopping
    shuffled = list(reports)
    shuffler.shuffle(shuffled)
    assert settle(planned, shuffled, tree) == settle(planned, reports, tree)


@pytest.mark.rule("A3", "A7")
@given(stops())
def test_halt_beats_block_beats_allow_and_observers_do_not_count(stopping):
    planned, reports, tree = stopping
    by_name = {each.name: each for each in planned.gates}
    counting = [r.answer for r in reports if not by_name[r.gate].observe]
    verdict = settle(planned, reports, tree).verdict
    if any(isinstance(answer, Halt) for answer in counting):
        assert isinstance(verdict, Halt)
    else:
        assert not isinstance(verdict, Halt)
    if isinstance(verdict, Block):
        broken = any(
            isinstance(r.answer, Problem) and by_name[r.gate].if_broken == "block" for r in reports
        )
        assert broken or any(isinstance(answer, Block) for answer in counting)


@pytest.mark.rule("A5")
@given(stops())
def test_a_block_always_has_words(stopping):
    verdict = settle(*stopping).verdict
    if isinstance(verdict, Block):
        assert verdict.prompt.strip()
        assert verdict.reason.strip()


@pytest.mark.rule("A8")
@given(stops())
def test_there_is_exactly_one_outcome_and_it_fits_the_verdict(stopping):
    decision = settle(*stopping)
    assert decision.outcome in OUTCOMES
    assert decision.outcome != "overridden"
    assert (decision.outcome == "blocked") == isinstance(decision.verdict, Block)
    assert (decision.outcome == "halted") == isinstance(decision.verdict, Halt)


@pytest.mark.rule("A8")
@given(stops())
def test_passed_means_that_every_gate_that_counts_was_asked_and_allowed(stopping):
    planned, reports, tree = stopping
    if settle(planned, reports, tree).outcome == "passed":
        said = {r.gate: r.answer for r in reports}
        is_watched = all(each.observe for each in planned.gates)  # by nobody else
        for each in planned.gates:
            if is_watched or not each.observe:
                assert isinstance(said.get(each.name), Allow)


@pytest.mark.rule("A1")
@given(events, gates, histories, limits)
def test_planning_is_deterministic_and_asks_no_gate_twice(event, some, history, limit):
    planned = plan(event, some, history, limit)
    assert planned == plan(event, some, history, limit)
    asked = [each.name for stage in planned.stages for each in stage]
    assert len(asked) == len(set(asked))
    keys = [(-stage[0].priority, stage[0].step) for stage in planned.stages]
    assert keys == sorted(set(keys))


@pytest.mark.rule("B1", "B13")
@given(limits, st.lists(st.tuples(answers, st.sampled_from(["same", "new", "user"])), max_size=40))
def test_blocks_along_any_history_never_exceed_the_limit(limit, steps):
    history = History()
    turn = 1
    for answer, move in steps:
        turn += move == "user"
        history = open_turn(history, stop(turn_id=f"t{turn}"))
        before = history
        planned = plan(stop(), (gate("a"),), history, limit)
        reports = [Report(gate="a", answer=answer)] if planned.stages else []
        history = after(history, settle(planned, reports, "tree" if move == "same" else ""))
        assert history.blocks <= max(before.blocks, limit_in_force(limit, before, 0).number)
        if limit.session_ceiling:
            assert history.session_blocks <= limit.session_ceiling


@pytest.mark.rule("B2")
@given(limits, histories, st.integers(0, 99), st.integers(0, 9))
def test_an_extension_only_raises(limit, history, extend, cap):
    raised = history.__replace__(extend=max(history.extend, extend))
    assert limit_in_force(limit, raised, cap).number >= limit_in_force(limit, history, cap).number


@pytest.mark.rule("B6")
@given(words, st.integers(2, 6))
def test_stuck_is_reached_when_nothing_changes(reason, stuck_after):
    limit = Limits(max_blocks=99, session_ceiling=0, stuck_after=stuck_after)
    history, outcomes = History(turn=1), []
    for _ in range(stuck_after):
        planned = plan(stop(), (gate("a"),), history, limit)
        decision = settle(planned, [Report(gate="a", answer=Block(reason))], "tree")
        history = after(history, decision)
        outcomes.append(decision.outcome)
    assert outcomes == ["blocked"] * (stuck_after - 1) + ["stuck"]


@pytest.mark.rule("B6")
@given(st.lists(st.sampled_from(["t1", "t2", "t3"]), min_size=2, max_size=12))
def test_stuck_is_never_reached_while_something_changes(trees):
    moving = [tree for tree, before in zip(trees, [None, *trees], strict=False) if tree != before]
    limit = Limits(max_blocks=99, session_ceiling=0, stuck_after=2)
    history = History(turn=1)
    for tree in moving:
        planned = plan(stop(), (gate("a"),), history, limit)
        decision = settle(planned, [Report(gate="a", answer=Block("same"))], tree)
        assert decision.outcome == "blocked"
        history = after(history, decision)
