"""The public names: few, sorted, lazy, and each where it says."""

import subprocess
import sys

import pytest

import notyet

HEAVY = ("asyncio", "sqlite3", "dataclasses", "typing", "re", "json", "subprocess", "logging")


def loaded_by(code):
    script = f"{code}\nimport sys; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import notyet",
        "from notyet import Allow, Block, Gate, Halt, Limits, StopEvent, History, Match",
        "import notyet.core.plan, notyet.core.settle, notyet.core.task, notyet.core.session",
        "import notyet.engine.engine",
    ],
)
def test_importing_notyet_pulls_in_nothing_heavy(code):
    assert loaded_by(code).isdisjoint(HEAVY)


def test_a_whole_decision_of_the_pure_core_pulls_in_nothing_heavy():
    code = (
        "from notyet import Block, Function, Gate, History, Limits, Report, StopEvent\n"
        "from notyet.core.plan import plan\n"
        "from notyet.core.settle import settle\n"
        "gate = Gate(name='g', check=Function(print))\n"
        "planned = plan(StopEvent(session_id='s'), (gate,), History(turn=1), Limits())\n"
        "settle(planned, [Report(gate='g', answer=Block('x 1.2s'))], 'tree')\n"
    )
    assert loaded_by(code).isdisjoint(HEAVY)


def test_all_names_are_there_sorted_and_nothing_else():
    assert notyet.__all__ == sorted(notyet.__all__)
    assert set(notyet.__all__) == set(notyet._HOME_OF)
    for name in notyet.__all__:
        value = getattr(notyet, name)
        assert getattr(value, "__module__", notyet._HOME_OF[name]) == notyet._HOME_OF[name]
    assert set(notyet.__all__) <= set(dir(notyet))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Gatee'"):
        _ = notyet.Gatee


def test_every_public_class_and_function_says_what_it_is_for():
    for name in notyet.__all__:
        assert getattr(notyet, name).__doc__, name
