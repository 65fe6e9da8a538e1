"""What a supervisor needs of an engine: to decide, to tell and to record apart from each other."""

import asyncio

import pytest

from notyet import Block, Command, Decision, Engine, Gate, Halt, History, Limits, Usage
from support import gate, stop, substop

RUN = {
    "usage": Usage(input=7, output=3),
    "turns": 4,
    "tool_calls": 9,
    "duration_ms": 1500.0,
}
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


def test_deciding_tells_and_counts_nothing():
    engine, told = telling(gates=[gate("g", Block("go on"))])
    for _ in range(5):
        assert asyncio.run(engine.decide(stop())).count == 1
    assert told == []
    decision = asyncio.run(engine.decide(stop(), History(blocks=2)))
    assert decision.count == 3


def test_deciding_on_an_event_without_gates_skips_it():
    decision = asyncio.run(Engine().decide(stop()))
    assert (decision.outcome, decision.why) == ("skipped", "no-gate")


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


@pytest.mark.rule("K10")
def test_observers_are_told_one_after_another_and_a_broken_one_is_its_own_matter():
    order, said = [], []
    engine = Engine(warn=said.append)

    async def slow(event, ctx):
        await asyncio.sleep(0.03)
        order.append("slow")

    def broken(event, ctx):
        raise ValueError("telemetry")

    for handler in (slow, broken, lambda event, ctx: order.append("plain") or Block("no")):
        engine.on("stop", handler)
    decide_and_tell(engine, stop())
    assert order == ["slow", "plain"]
    assert "crashed: ValueError: telemetry (ignored)" in said[0]


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


@pytest.mark.rule("K15")
def test_a_halt_for_whatever_reason_is_told():
    engine, told = telling(gates=[gate("g", Halt("inside"))])
    decide_and_tell(engine, stop())
    asyncio.run(engine.check(stop()))
    assert names(told) == ["stop", "decision"] * 2


@pytest.mark.rule("K11", "C3", "C4")
@pytest.mark.parametrize("ending", ["error", "timeout", "killed", "reset", "interrupted"])
def test_a_failure_has_empty_usage_and_zero_counts(ending):
    engine, told = telling()
    decide_and_tell(engine, stop(ending=ending, **RUN))
    decide_and_tell(engine, substop(ending=ending, **RUN))
    by_name = {name: event for name, event, _ in told}
    assert by_name["stop"].usage.to_dict() == dict.fromkeys(by_name["stop"].usage.to_dict(), 0)
    assert by_name["stop"].turns_count == by_name["stop"].tool_calls_count == 0
    assert by_name["subagent_stop"].usage.input_tokens == 0
    assert by_name["subagent_stop"].total_tool_calls == 0
    assert by_name["subagent_ended"].outcome == ending


@pytest.mark.rule("C8", "K10")
def test_the_observers_of_main_agents_are_not_told_of_subagents():
    engine, told = telling()
    decide_and_tell(engine, substop())
    assert names(told) == ["subagent_stop", "subagent_ended", "decision"]


@pytest.mark.rule("C7")
def test_nobody_is_asked_or_told_about_an_internal_subagent():
    engine, told = telling(gates=[gate("g", Block("go on"), scopes=("subagent",))])
    decision = decide_and_tell(engine, substop(internal=True))
    assert (decision.outcome, decision.why) == ("skipped", "no-gate")
    assert told == []


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


def test_a_decision_about_a_gates_own_agent_is_told_to_nobody():
    engine, told = telling()
    inside = Decision(verdict=Halt(), outcome="skipped", why="inside")
    asyncio.run(engine.tell(stop(), inside))
    assert told == []


def test_an_engine_can_say_whether_it_would_ask_anybody():
    engine = Engine([gate("g", Block("go on"))])
    assert engine.asks(stop())
    assert not engine.asks(substop())
    assert not engine.asks(stop(ending="killed"))
