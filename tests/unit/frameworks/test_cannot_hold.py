"""Where a framework cannot send an agent back, gates observe, and that is said once."""

import asyncio

import pytest

from notyet import Block, Engine
from notyet.frameworks.gated_run import Framework, GatedRun, Gates
from support import run_async, stop

TOY = Framework("toy", "no-such-package", "1.0", "1.0")


class World:
    def __init__(self):
        self.warnings, self.decisions = [], []
        self.engine = Engine([lambda event: Block("Again.")], warn=self.warnings.append)
        self.engine.on("decision", lambda event, decision: self.decisions.append(decision))
        self.gates = Gates(self.engine, TOY)

    def stop(self, drive, **fields):
        run = GatedRun(self.gates)
        if drive == "async":
            return asyncio.run(run.stopping(lambda: fields))
        return run.stopping_sync(lambda: fields)


@pytest.mark.parametrize("drive", ["sync", "async"])
def test_a_stop_that_cannot_be_held_is_capped_and_the_reason_is_said_once(drive):
    world = World()
    for _ in range(2):
        assert world.stop(drive, cannot_hold="the answer is out") == ""
    assert [(made.outcome, made.count) for made in world.decisions] == [("capped", 0)] * 2
    said = [line for line in world.warnings if "limit reached" not in line]
    assert said == ["gates only observe here: the answer is out"]
    assert world.stop(drive, cannot_hold="") == "Again."


def test_an_engine_allows_a_stop_that_it_may_not_block():
    engine = Engine([lambda event: Block("Again.")], warn=lambda message: None)
    event = stop()
    assert engine.check_sync(event, may_block=False).outcome == "capped"
    assert asyncio.run(engine.check(event, may_block=False)).outcome == "capped"
    assert run_async(engine, event).outcome == "blocked"


def test_nothing_is_said_where_no_gate_applies():
    warnings = []
    run = GatedRun(Gates(Engine(warn=warnings.append), TOY))
    assert run.stopping_sync(lambda: {"cannot_hold": "the answer is out"}) == ""
    assert warnings == []
