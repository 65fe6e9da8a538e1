"""Medians, spreads, goals and shapes: what the tables of the benchmark are made of."""

import asyncio

import pytest
from bench.fit import is_within, shape_of
from bench.goals import GOALS, UNJUDGED
from bench.measure import (
    FULL,
    QUICK,
    TINY,
    Amount,
    Figure,
    Row,
    interleaved,
    interleaved_async,
    spread_of,
)

# What was promised: nobody makes a goal easier on the way.
PROMISED = {
    "hook.nothing": 1.1,
    "hook.other": 1.1,
    "hook.one": 2.0,
    "hook.five": 2.5,
    "hook.remembered": 1.0,
    "engine.loop": 5.0,
    "engine.pluggy": 1.0,
    "commands.hundred": 1.2,
    "commands.end": 100.0,
    "commands.background": 100.0,
    "commands.memory": 64.0,
    "commands.survivors": 0.0,
    "ledger.json": 1_000.0,
    "ledger.p99": 5.0,
    "ledger.max": 300.0,
    "ledger.million": 1.5,
    "log.list": 1_000.0,
    "log.stats": 1_000.0,
    "log.show": 1_000.0,
    "growth.gates": "linear",
    "growth.config": "linear",
    "growth.ledger": "flat",
    "growth.transcript": "flat",
    "growth.tasks": "flat",
    "growth.files": "linear",
}


def test_the_goals_are_those_that_were_promised():
    found = {key: goal.shape or goal.limit for key, goal in GOALS.items()}
    assert found == PROMISED


def test_a_figure_is_a_median_that_knows_its_quartiles():
    figure = Figure.of([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (figure, figure.low, figure.high, figure.rounds) == (3.0, 2.0, 4.0, 5)
    assert spread_of(figure) == pytest.approx(2 / 3)
    part = figure.over(2)
    assert (part, part.low, part.high) == (1.5, 1.0, 2.0)


def test_a_number_that_was_calculated_has_no_spread():
    figure = Figure.of([1.0, 2.0, 3.0])
    assert spread_of(figure * 2) is None
    assert spread_of(Figure.of([7.0])) == 0


def test_subjects_take_turns():
    seen = []
    figures = interleaved(3, 2, a=lambda: seen.append("a"), b=lambda: seen.append("b"))
    assert seen == ["a", "a", "b", "b"] * 3
    assert {figure.rounds for figure in figures.values()} == {3}


def test_coroutines_take_turns_too():
    seen = []

    async def measured(name):
        seen.append(name)

    figures = asyncio.run(interleaved_async(2, 1, a=lambda: measured("a"), b=lambda: measured("b")))
    assert seen == ["a", "b", "a", "b"]
    assert set(figures) == {"a", "b"}


def test_a_small_effort_means_few_rounds_and_small_sizes():
    sizes = (1_000, 10, 100, 1)
    assert FULL.sizes(sizes) == [1, 10, 100, 1_000]
    assert (QUICK.largest(sizes), TINY.largest(sizes)) == (100, 10)
    assert FULL.rounds(60) == 60
    assert 2 == TINY.rounds(60) < QUICK.rounds(60) < 60


@pytest.mark.parametrize(
    ("row", "reached"),
    [
        (Row("", "", 10.0, 19.0, "hook.one"), True),
        (Row("", "", 10.0, 21.0, "hook.one"), False),
        (Row("", "", 10.0, 12.0, 1.5), True),
        (Row("", "", 100.0, 1.0, 50.0, at_least=True), True),
        (Row("", "", 100.0, 4.0, 50.0, at_least=True), False),
        (Row("", "", 10.0, 900.0), None),
        (Amount("", 301.0, "ms", "ledger.max"), False),
        (Amount("", 0, "", "commands.survivors"), True),
        (Amount("", 5.0, "1/s", 4.0, at_least=True), True),
        (Amount("", 5.0, "MB", UNJUDGED), None),
    ],
)
def test_a_goal_is_reached_missed_or_not_there(row, reached):
    assert row.reached is reached


@pytest.mark.parametrize(
    ("grow", "shape", "exponent"),
    [
        (lambda _: 20.0, "flat", None),
        (lambda n: 50 + 0.02 * n, "flat", None),
        (lambda n: 2.0 * n, "linear", 1.0),
        (lambda n: 20 + 2.0 * n, "linear", None),
        (lambda n: max(20, 2.0 * n), "linear", None),  # done while something else goes on
        (lambda n: n**0.5, "linear", 0.5),
        (lambda n: 20 + 0.001 * n * n, "worse", None),
        (lambda n: n**3.0, "worse", 3.0),
    ],
)
def test_a_curve_has_the_shape_that_made_it(grow, shape, exponent):
    sizes = [1, 10, 100, 1_000]
    found = shape_of(sizes, [grow(size) for size in sizes])
    assert found.name == shape
    if exponent:
        assert found.exponent == pytest.approx(exponent)


def test_the_slope_is_what_one_more_costs():
    sizes = [100, 1_000, 10_000]
    found = shape_of(sizes, [30 + 1.7 * size for size in sizes])
    assert (found.start, found.slope) == (pytest.approx(30), pytest.approx(1.7))


def test_a_better_shape_than_wanted_is_all_right():
    flat, steep = shape_of([1, 9, 81], [5.0, 5.0, 5.0]), shape_of([1, 9, 81], [1.0, 81.0, 6561.0])
    assert is_within(flat, "linear")
    assert not is_within(steep, "linear")
    assert not is_within(shape_of([1, 9, 81], [1.0, 9.0, 81.0]), "flat")
