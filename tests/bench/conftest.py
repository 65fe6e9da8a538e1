import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmark is no part of what is installed


@pytest.fixture
def small_run():
    """Return a run with a result of each kind."""
    from bench.document import Run, Table
    from bench.measure import Amount, Curve, Figure, Missing, Point, Row

    steady = Figure(8_000.0, 7_900.0, 8_100.0, 40)
    results = (
        Row("one gate", "bare", steady, Figure(15_000.0, 14_000.0, 16_000.0, 40), "hook.one"),
        Row("nothing", "bare", steady, Figure(12_000.0, 11_000.0, 13_000.0, 40), "hook.nothing"),
        Row("for scale", "bare", steady, 4_000.0, note="a <strange> thing"),
        Amount("slowest write", 120.0, "ms", "ledger.max"),
        Curve(
            "a stop, by gates",
            "gates",
            (Point(1, steady, 900.0), Point(10, 9_000.0, 1_900.0), Point(100, 18_000.0, 9_000.0)),
            "growth.gates",
            "spawned bare",
        ),
        Missing("hk", "HK_BIN is not set"),
    )
    tables = (Table("hook", "A stop", 1.5, results), Table("log", "Looking back", 0.1, (), "oh no"))
    return Run("full", {"python": "CPython 3.11"}, tables)
