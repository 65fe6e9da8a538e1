"""Medians, spreads, goals and shapes: what the tables of the benchmark are made of."""

import pytest
from bench.fit import shape_of
from bench.goals import GOALS, UNJUDGED
from bench.measure import (
    Amount,
    Row,
)

# What was promised: no goal becomes easier on the way.
PROMISED = {
    "hook.nothing": 1.1,
    "hook.other": 1.1,
    "hook.one": 2.0,
    "hook.five": 2.5,
    "hook.remembered": 1.0,
    "hook.members": 1.2,
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
    "screens.million": 3.0,
    "screens.memory": 10.0,
    "screens.flat": 10.0,
    "screens.idle": 1.0,
    "growth.gates": "linear",
    "growth.config": "linear",
    "growth.ledger": "flat",
    "growth.transcript": "flat",
    "growth.tasks": "flat",
    "growth.files": "linear",
    "stores.transactions": 12.0,
    "snapshot.status": 2.0,
    "acp.copy": 1.43,  # a throughput of at least 0.7
    "acp.memory": 5.0,
}


def test_the_goals_are_those_that_were_promised():
    found = {key: goal.shape or goal.limit for key, goal in GOALS.items()}
    assert found == PROMISED


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
