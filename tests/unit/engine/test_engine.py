"""The line of one stop event, through both drivers."""

import asyncio

import pytest

from notyet import (
    Allow,
    Block,
    Decision,
    Engine,
    Halt,
    History,
    Ledger,
    Limits,
    Observer,
    Problem,
)
from support import EVERY_SCOPE, gate, recorded, rows, stop, substop


@pytest.fixture(params=["sync", "async", "sync inside a loop"])
def check(request):
    """Each way of checking a stop; all must behave alike."""

    def run(engine, event):
        if request.param == "sync":
            return engine.check_sync(event)
        if request.param == "async":
            return asyncio.run(engine.check(event))

        async def inside():
            return engine.check_sync(event)

        return asyncio.run(inside())

    return run


def plain(answer):
    return lambda event: answer


def eventually(answer):
    async def call(event):
        await asyncio.sleep(0)
        return answer

    return call


@pytest.mark.parametrize("style", [plain, eventually])
@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(None, Allow()), (Allow(), Allow()), (Block("x"), Block("x", "x")), (Halt("h"), Halt("h"))],
)
def test_a_gate_is_a_plain_or_async_function_that_returns_a_verdict_or_none(
    check, style, answer, verdict
):
    assert check(Engine([gate("g", style(answer))]), stop()).verdict == verdict


def test_a_plain_function_is_a_gate_named_after_itself(check):
    def never_done(event):
        return Block(f"again, {event.session_id}")

    decision = check(Engine([never_done]), stop())
    assert decision.verdict == Block("again, s1", "again, s1")
    assert decision.reports[0].gate == "never_done"


@pytest.mark.rule("A1")
def test_gates_of_one_stage_are_asked_at_the_same_time(check):
    import threading

    meeting = threading.Barrier(3, timeout=10)
    gates = [gate(name, lambda e: meeting.wait() * 0 or None) for name in "abc"]
    assert check(Engine(gates), stop()).outcome == "passed"


@pytest.mark.rule("A1", "A2")
def test_a_stage_that_blocks_ends_the_questioning(check):
    asked = []

    def asking(name, answer=None):
        return lambda e: asked.append(name) or answer

    engine = Engine(
        [
            gate("last", asking("last"), priority=-1),
            gate("second", asking("second", Block("x"))),
            gate("first", asking("first"), priority=1),
            gate("watch", asking("watch", Block("y")), priority=2, observe=True),
        ]
    )
    decision = check(engine, stop())
    assert asked == ["watch", "first", "second"]
    assert {r.gate: r.status for r in decision.reports} == {
        "last": "not_asked",
        "second": "blocked",
        "first": "allowed",
        "watch": "blocked",
    }


@pytest.mark.rule("A10")
def test_when_no_gate_applies_nothing_is_opened_or_written(check, tmp_path):
    ledger = Ledger(tmp_path / "folder" / "ledger.db")
    engine = Engine([gate("sub", Block("x"), scopes=("subagent",))], ledger=ledger)
    decision = check(engine, stop())
    assert decision == Decision(verdict=Allow(), outcome="skipped", why="no-gate")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rule("A10", "B10")
def test_a_stop_skipped_for_a_cause_leaves_one_record(check, tmp_path):
    from notyet import BackgroundTask

    ledger = Ledger(tmp_path / "ledger.db")
    engine = Engine([gate("g", Block("x"))], ledger=ledger)
    busy = stop(background_tasks=(BackgroundTask(id="x", type="subagent"),))
    assert check(engine, busy).why == "background"
    recorded = ledger.answer(1, 0)
    assert (recorded.outcome, recorded.why) == ("skipped", "background")
    assert ledger.answer(2, 0) is None


@pytest.mark.rule("B9")
@pytest.mark.parametrize("session", ["", "  "])
def test_without_a_session_id_nothing_is_asked_and_that_is_written_down(
    check, tmp_path, session, caplog
):
    ledger = Ledger(tmp_path / "ledger.db")
    decision = check(Engine([gate("g", Block("x"))], ledger=ledger), stop(session_id=session))
    assert (decision.verdict, decision.outcome, decision.why) == (Allow(), "skipped", "no-session")
    assert "no session_id" in caplog.text
    assert recorded(ledger) == [("skipped", "no-session")]
    assert rows(ledger, "SELECT count(*) FROM agents") == [(0,)]  # nothing under an empty key


@pytest.mark.rule("B1", "B3", "B5")
def test_an_agent_is_sent_back_three_times_and_then_let_go(check, tmp_path):
    told = []

    def never(event):
        told.append((event.block_count, event.max_blocks, event.stop_hook_active))
        return Block(f"attempt {len(told) * 'x'}")

    engine = Engine([gate("g", never)], ledger=Ledger(tmp_path / "ledger.db"))
    outcomes = [check(engine, stop()).outcome for _ in range(5)]
    assert outcomes == ["blocked", "blocked", "blocked", "capped", "capped"]
    assert told == [(0, 3, False), (1, 3, True), (2, 3, True), (3, 3, True), (3, 3, True)]


@pytest.mark.rule("B2")
def test_a_gate_can_extend_its_turns_limit_also_while_it_allows(check):
    answers = [Block("1", extend=4), Block("2"), Block("3"), Block("4"), Block("5")]
    engine = Engine([gate("g", lambda e: answers.pop(0))])
    assert [check(engine, stop()).outcome for _ in range(5)] == ["blocked"] * 4 + ["capped"]
    answers = [Allow(extend=1), Block("2"), Block("3")]
    engine = Engine([gate("g", lambda e: answers.pop(0))], limits=Limits(max_blocks=0))
    assert [check(engine, stop()).outcome for _ in range(3)] == ["passed", "blocked", "capped"]


@pytest.mark.rule("B6")
def test_an_agent_that_changes_nothing_is_let_go_as_stuck(check, git_project):
    engine = Engine([gate("g", Block("2 failed in 0.3s"))])
    outcomes = [check(engine, stop(cwd=git_project)).outcome for _ in range(3)]
    assert outcomes == ["blocked", "blocked", "stuck"]


@pytest.mark.rule("B6")
def test_an_agent_that_changes_a_file_is_not_stuck(check, git_project):
    from pathlib import Path

    engine = Engine([gate("g", Block("2 failed in 0.3s"))])
    outcomes = []
    for n in range(4):
        (Path(git_project) / "file.txt").write_text(f"try {n}")
        outcomes.append(check(engine, stop(cwd=git_project)).outcome)
    assert outcomes == ["blocked", "blocked", "blocked", "capped"]


@pytest.mark.rule("B14")
def test_an_agent_that_needs_its_user_may_stop_after_a_block(check):
    engine = Engine([gate("g", Block("x"))])
    assert check(engine, stop(last_message="BLOCKED: too early")).outcome == "blocked"
    assert check(engine, stop(last_message="BLOCKED: no password")).outcome == "handed_back"


@pytest.mark.rule("C7")
def test_internal_agents_meet_no_gate_and_no_observer(check):
    told = []
    engine = Engine([gate("g", Block("x"), scopes=EVERY_SCOPE)])
    for name in ("stop", "subagent_stop", "subagent_ended"):
        engine.on(name, lambda event, ctx: told.append(event))
    for event in (stop(internal=True), substop(internal=True)):
        assert check(engine, event).verdict == Allow()
    assert told == []


def test_two_gates_cannot_share_a_name():
    with pytest.raises(ValueError, match="two gates are called 'g'"):
        Engine([gate("g"), gate("g")])


@pytest.mark.parametrize("nonsense", ["a string", 7, None])
def test_a_gate_must_be_a_gate_or_a_function(nonsense):
    with pytest.raises(TypeError, match="a gate is a Gate or a function"):
        Engine([nonsense])


def test_a_gate_function_with_the_wrong_arguments_is_refused_at_once():
    with pytest.raises(TypeError, match=r"is called with \(event\), which it does not take"):
        Engine([lambda event, ctx: None])
    with pytest.raises(TypeError, match=r"called with \(event, ctx\)"):
        Engine([gate("g", lambda event: None, speaks="openclaw")])
    with pytest.raises(TypeError, match=r"an observer of 'stop' is called with \(event, ctx\)"):
        Engine(observers=[Observer("stop", lambda event: None)])


@pytest.mark.parametrize(
    ("options", "words"),
    [({"ledger": "stops.db"}, "ledger is a Ledger"), ({"limits": 3}, "limits are Limits")],
)
def test_an_engine_of_the_wrong_parts_is_refused(options, words):
    with pytest.raises(TypeError, match=words):
        Engine([], **options)


def test_a_stop_must_be_a_stop_event(check):
    with pytest.raises(TypeError, match="a stop is a StopEvent, not dict"):
        check(Engine([gate("g")]), {"session_id": "s"})


def test_decide_asks_and_settles_but_counts_and_tells_nothing():
    told = []
    engine = Engine([gate("g", Block("x"))])
    engine.on("stop", lambda event, ctx: told.append(event))
    history = History(turn=4, blocks=2)

    async def twice():
        return [await engine.decide(stop(), history) for _ in range(2)]

    first, second = asyncio.run(twice())
    assert first.outcome == second.outcome == "blocked"
    assert (first.turn, first.count, second.count) == (4, 3, 3)
    assert told == []


def test_decide_is_as_honest_as_check_where_nothing_is_asked():
    async def decide(engine, event):
        return await engine.decide(event)

    nothing = asyncio.run(decide(Engine([gate("g", scopes=("subagent",))]), stop()))
    assert (nothing.outcome, nothing.why) == ("skipped", "no-gate")

    async def nested(event):
        inner.append(await engine.decide(event))

    inner = []
    engine = Engine([gate("g", nested)])
    asyncio.run(engine.check(stop()))
    assert [each.why for each in inner] == ["inside"]


@pytest.mark.rule("A6")
def test_problems_are_logged_once_and_the_other_gates_still_count(check, caplog):
    def broken(event):
        raise ValueError("boom")

    decision = check(Engine([gate("bad", broken), gate("good", Block("x"))]), stop())
    assert decision.outcome == "blocked"
    assert decision.reports[0].answer == Problem("crashed", "ValueError: boom")
    assert caplog.messages == ["gate bad crashed: ValueError: boom (if_broken = allow)"]


def test_an_observer_must_be_an_observer():
    with pytest.raises(TypeError, match=r"an observer is an Observer, not function"):
        Engine(observers=[lambda event, ctx: None])


def test_a_gate_that_is_added_between_two_stops_is_asked_at_the_second(check):
    engine = Engine([gate("first")])
    assert check(engine, stop()).outcome == "passed"
    engine.on("stopping", lambda event, ctx: {"allow": False, "prompt": "go on"})
    assert check(engine, stop(turn_id="2")).outcome == "blocked"
