"""Several stops at the same time: equal ones, and different ones of one agent."""

import asyncio

import pytest

from notyet import Block, Engine, Ledger
from support import both_ways, gate, stop, wait_for


def beginnings(ledger):
    """Note every stop that has begun in a ledger."""
    begin, begun = ledger.begin, []

    def noted(*args):
        done = begin(*args)
        begun.append(done)
        return done

    ledger.begin = noted
    return begun


@pytest.mark.rule("B12")
def test_two_equal_stops_at_once_are_asked_once_and_both_answered(tmp_path):
    asked = []

    async def main(ledger):
        begun = beginnings(ledger) if ledger else [None] * 4  # without one, all begin at once

        async def slow(event):
            asked.append(event)
            while len(begun) < 4:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.02)
            return Block("go on")

        engine = Engine([gate("g", slow)], ledger=ledger)
        return await asyncio.gather(*[engine.check(stop()) for _ in range(4)])

    for ledger in (None, Ledger(tmp_path / "ledger.db")):
        asked.clear()
        decisions = asyncio.run(main(ledger))
        assert [each.outcome for each in decisions] == ["blocked"] * 4
        assert [each.count for each in decisions] == [1] * 4
        assert len(asked) == 1


@pytest.mark.rule("B12")
def test_the_pass_of_an_equal_stop_is_not_inherited(tmp_path):
    async def main(ledger):
        asked = []

        async def allow_once(event):
            asked.append(event)
            await asyncio.sleep(0.05)
            return Block("go on") if len(asked) > 1 else None

        engine = Engine([gate("g", allow_once)], ledger=ledger)
        first = asyncio.create_task(engine.check(stop()))
        while not asked:
            await asyncio.sleep(0.005)
        return await asyncio.gather(first, engine.check(stop()))

    for ledger in (None, Ledger(tmp_path / "ledger.db")):
        decisions = asyncio.run(main(ledger))
        assert [each.outcome for each in decisions] == ["passed", "blocked"]


@pytest.mark.rule("B12")
def test_when_the_first_of_two_equal_stops_is_cancelled_the_second_is_asked(tmp_path):
    async def main(ledger):
        started = asyncio.Event()

        async def slow(event):
            started.set()
            await asyncio.sleep(0.1)
            return Block("go on")

        engine = Engine([gate("g", slow)], ledger=ledger)
        first = asyncio.create_task(engine.check(stop()))
        await started.wait()
        second = asyncio.create_task(engine.check(stop()))
        third = asyncio.create_task(engine.check(stop()))
        await asyncio.sleep(0.02)
        first.cancel()
        return await asyncio.gather(second, third)

    for ledger in (None, Ledger(tmp_path / "ledger.db")):
        decisions = asyncio.run(main(ledger))
        assert [each.outcome for each in decisions] == ["blocked", "blocked"]


@pytest.mark.rule("B12")
def test_many_threads_with_one_stop_ask_its_gates_once(tmp_path):
    import threading

    for round_number in range(10):
        asked, answers = [], []
        ledger = Ledger(tmp_path / f"{round_number}.db")
        begun = beginnings(ledger)

        def block(_event, asked=asked, begun=begun):
            asked.append(1)
            wait_for(lambda: len(begun) >= 6)
            return Block("x")

        engine = Engine([gate("g", block)], ledger=ledger)
        line_up = threading.Barrier(6)

        def check(engine=engine, answers=answers, line_up=line_up):
            line_up.wait(30)
            answers.append(engine.check_sync(stop(stop_hook_active=False)).outcome)

        threads = [threading.Thread(target=check) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert "skipped" not in answers
        assert len(asked) == 1


@both_ways
def test_a_gate_that_checks_a_stop_itself_is_not_gated_again(run, caplog):
    inner = []

    def nested(event):
        inner.append(engine.check_sync(event))
        return Block("outer")

    engine = Engine([gate("g", nested)])
    assert run(engine, stop()).outcome == "blocked"
    assert (inner[0].outcome, inner[0].why) == ("skipped", "inside")
    assert "a gate's own work is not gated" in caplog.text
    assert run(engine, stop()).count == 2


@both_ways
def test_a_gate_may_check_stops_with_another_engine(run):
    other = Engine([gate("inner", Block("x"))])
    engine = Engine([gate("g", lambda e: other.check_sync(e).verdict)])
    assert run(engine, stop()).outcome == "blocked"


def test_a_loop_is_not_frozen_by_waiting_for_itself(caplog):
    async def main():
        started = asyncio.Event()

        async def slow(event):
            started.set()
            await asyncio.sleep(0.05)
            return Block("x")

        engine = Engine([gate("g", slow)])
        first = asyncio.create_task(engine.check(stop()))
        await started.wait()
        second = engine.check_sync(stop())
        return await first, second

    first, second = asyncio.run(main())
    assert (first.outcome, second.outcome, second.why) == ("blocked", "skipped", "duplicate")
    assert "the same stop is still being checked" in caplog.text


@pytest.mark.rule("B1")
def test_stops_at_the_same_time_share_one_budget(tmp_path):
    async def slow(event):
        await asyncio.sleep(0.02)
        return Block("x")

    async def main(ledger):
        engine = Engine([gate("g", slow)], ledger=ledger)
        checks = [engine.check(stop(last_message=f"{n}")) for n in range(8)]
        return await asyncio.gather(*checks)

    for ledger in (None, Ledger(tmp_path / "ledger.db")):
        outcomes = sorted(each.outcome for each in asyncio.run(main(ledger)))
        assert outcomes == ["blocked"] * 3 + ["capped"] * 5
