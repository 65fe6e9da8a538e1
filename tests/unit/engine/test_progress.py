"""An engine tells of its gates while it decides."""

import asyncio
import sys

import pytest

from notyet import Allow, Block, Command, Engine, Gate, StopEvent
from notyet.core.verdict import Report


def gate(name, code=0, **fields):
    check = Command(argv=(sys.executable, "-I", "-S", "-c", f"raise SystemExit({code})"))
    return Gate(name=name, check=check, **fields)


def sync(engine, event, **options):
    return engine.decide_sync(event, **options)


def on_a_loop(engine, event, **options):
    return asyncio.run(engine.decide(event, **options))


both = pytest.mark.parametrize("decide", [sync, on_a_loop])


@pytest.fixture
def event(tmp_path):
    return StopEvent(session_id="s", cwd=str(tmp_path))


@both
def test_gates_are_told_of_stage_by_stage(decide, event):
    said = []

    def hear(name, report):
        said.append((name, report.status if report else "asked"))

    engine = Engine([gate("first"), gate("second", code=1, step=1), gate("never", step=2)])
    decision = decide(engine, event, progress=hear)
    assert decision.outcome == "blocked"
    assert said == [
        ("first", "asked"),
        ("first", "allowed"),
        ("second", "asked"),
        ("second", "blocked"),
    ]


@both
def test_the_gates_that_will_run_are_told_of_before(decide, event):
    class Hear:
        plans = ()

        def planned(self, names):
            self.plans = (*self.plans, names)

        def __call__(self, name, _report):
            assert name in self.plans[0]

    hear = Hear()
    engine = Engine([gate("first"), gate("second", code=1, step=1), gate("never", step=2)])
    decide(engine, event, progress=hear)
    assert hear.plans == (["first", "second", "never"],)


@both
def test_functions_are_told_of(decide, event):
    said = []
    engine = Engine([lambda _event: Block("no")])
    decide(engine, event, progress=lambda name, report: said.append(report))
    assert said[0] is None
    assert said[1].answer == Block("no")


@both
def test_a_listener_that_raises_changes_no_decision(decide, event):
    def deaf(_name, _report):
        raise RuntimeError

    engine = Engine([gate("a"), gate("b", code=3), lambda _event: None])
    heard, unheard = decide(engine, event, progress=deaf), decide(engine, event)
    assert heard.outcome == unheard.outcome == "blocked"
    assert [report.status for report in heard.reports] == [
        report.status for report in unheard.reports
    ]


def test_a_gate_whose_answer_is_given_is_not_asked(event):
    from notyet.core.limits import History
    from notyet.engine.stop import Stop
    from notyet.engine.stop import decide as decided
    from notyet.ledger.memory import MemoryLedger
    from notyet.run.drive import drive_sync

    gates = (gate("a"), gate("b", code=1), gate("c", step=1))
    said = []
    answers = {"b": Report(gate="b", answer=Allow()), "c": Report(gate="c", answer=Block("so"))}
    stop = Stop(
        event,
        gates,
        MemoryLedger(),
        warn=pytest.fail,
        progress=lambda name, _report: said.append(name),
        answers=answers,
    )
    decision = drive_sync(decided(stop, History(), lambda _report: ""))
    assert said == ["a", "a"]
    assert [report.status for report in decision.reports] == ["allowed", "allowed", "blocked"]
    assert decision.verdict.reason == "so"
