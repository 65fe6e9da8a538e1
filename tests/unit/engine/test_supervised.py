"""What a supervisor needs of an engine: to decide, to tell and to record apart from each other."""

import asyncio

import pytest

from notyet import Block, Command, Decision, Engine, Gate, Halt, History, Limits
from support import gate, stop, substop

NAMES = ("stop", "subagent_stop", "subagent_ended", "decision")


def telling(**fields):
    engine, told = Engine(**fields), []
    for name in NAMES:
        engine.on(name, lambda event, ctx, name=name: told.append((name, event, ctx)))
    return engine, told


def decide_and_tell(engine, event):
    async def both():
        decision = await engine.decide(event)
        await engine.tell(event, decision)
        return decision

    return asyncio.run(both())


def names(told):
    return [name for name, _, _ in told]


def test_the_supervisor_keeps_the_output_that_is_too_long_for_the_agent():
    kept = []

    def keep(report):
        kept.append(report.output)
        return "/logs/1.txt"

    noisy = Gate(name="tests", check=Command(script="seq 2000; exit 1"))
    decision = asyncio.run(Engine([noisy]).decide(stop(), keep=keep))
    assert "Full output: /logs/1.txt" in decision.verdict.prompt
    assert decision.reports[0].log == "/logs/1.txt"
    assert len(kept) == 1
    assert "\n2000" in kept[0]
    alone = asyncio.run(Engine([noisy]).decide(stop()))
    assert "Full output" not in alone.verdict.prompt


def test_limits_and_warnings_of_an_engine_can_be_used_by_its_supervisor(caplog):
    said = []
    engine = Engine(limits=Limits(session_ceiling=7), warn=said.append)
    assert engine.limits.session_ceiling == 7
    engine.warn("look")
    assert said == ["look"]

    def broken(_message):
        raise OSError("full")

    Engine(warn=broken).warn("look again")
    assert "look again" in caplog.text


@pytest.mark.rule("K15")
@pytest.mark.parametrize("result", [None, {"of": "the host"}])
def test_the_reason_of_a_halt_is_in_every_payload(result):
    halting = gate("g", Halt("budget spent"), scopes=("agent", "subagent"))
    engine, told = telling(gates=[halting])
    decide_and_tell(engine, stop(result=result))
    decide_and_tell(engine, substop(result=result))
    by_name = {name: (event, ctx) for name, event, ctx in told}
    assert set(by_name) == set(NAMES)
    for name in ("stop", "subagent_stop"):
        assert by_name[name][1].stop_reason == "budget spent"
        if result is None:
            assert by_name[name][0].result.stop_reason == "budget spent"
    assert by_name["subagent_ended"][0].stop_reason == "budget spent"
    assert by_name["decision"][1].why == "budget spent"


@pytest.mark.rule("C5")
def test_a_send_back_is_told_to_those_only_who_want_every_decision():
    engine, told = telling(gates=[gate("g", Block("go on"))])
    decide_and_tell(engine, stop())
    assert names(told) == ["decision"]


@pytest.mark.rule("B5")
def test_gates_are_told_how_often_the_supervisor_sent_the_agent_back():
    seen = []
    asked = gate("g", seen.append)
    engine = Engine([asked], limits=Limits(max_blocks=4))
    asyncio.run(engine.decide(stop(stop_hook_active=False)))
    asyncio.run(engine.decide(stop(), History(blocks=2)))
    asyncio.run(engine.decide(stop(stop_hook_active=True)))
    told = [(e.block_count, e.max_blocks, e.stop_hook_active) for e in seen]
    assert told == [(0, 4, False), (2, 4, True), (0, 4, True)]


def test_a_decision_about_a_gates_own_agent_notifies_no_observer():
    engine, told = telling()
    inside = Decision(verdict=Halt(), outcome="skipped", why="inside")
    asyncio.run(engine.tell(stop(), inside))
    assert told == []
