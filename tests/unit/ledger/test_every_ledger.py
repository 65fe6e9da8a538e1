"""What every ledger promises, in memory or on disk."""

import threading

import pytest

from notyet import Allow, Block, Decision, Ledger, LedgerError, Report, replace
from notyet.ledger.memory import MemoryLedger
from support import stop


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request, tmp_path):
    return MemoryLedger() if request.param == "memory" else Ledger(tmp_path / "ledger.db")


def decided(ledger, event, outcome="blocked", **fields):
    """Begin a stop and record a decision; return what it began with."""
    begun = ledger.begin(event)
    assert not begun.repeats
    verdict = Block("go on", "why") if outcome == "blocked" else Allow()
    decision = Decision(
        **(
            {"verdict": verdict, "outcome": outcome, "turn": begun.history.turn, "limit": 999}
            | fields
        )
    )
    ledger.record(begun, decision)
    return begun


@pytest.mark.rule("B3", "B4")
def test_blocks_are_counted_per_turn_and_a_pass_refills_them(ledger):
    counts = [decided(ledger, stop()).history.blocks for _ in range(3)]
    decided(ledger, stop(), "passed")
    counts.append(decided(ledger, stop()).history.blocks)
    assert counts == [0, 1, 2, 0]
    assert ledger.begin(stop()).history.session_blocks == 4


@pytest.mark.rule("B4")
def test_turns_are_numbered(ledger):
    turns = [decided(ledger, stop(turn_id=name)).history.turn for name in ("a", "a", "b", "c")]
    assert turns == [1, 1, 2, 3]


@pytest.mark.rule("B1")
def test_agents_are_kept_apart_by_host_session_and_id(ledger):
    events = [
        stop(),
        stop(host="other"),
        stop(session_id="s2"),
        stop(agent_id="a"),
    ]
    for event in events:
        decided(ledger, event)
    assert [ledger.begin(event).history.blocks for event in events] == [1, 1, 1, 1]


@pytest.mark.rule("B2")
def test_an_extension_is_kept_until_the_next_turn(ledger):
    decided(ledger, stop(turn_id="a"), extend=9)
    assert decided(ledger, stop(turn_id="a")).history.extend == 9
    assert ledger.begin(stop(turn_id="b")).history.extend == 0


@pytest.mark.rule("B12")
def test_an_equal_stop_waits_for_the_first_answer_and_repeats_it(ledger):
    first = ledger.begin(stop(last_message="same"))
    second = ledger.begin(stop(last_message="same"))
    assert second.repeats == first.stop
    assert ledger.answer(first.stop, 0) is None
    decision = Decision(verdict=Block("x", "y"), outcome="blocked", turn=1, count=1, limit=3)
    timer = threading.Timer(0.05, ledger.record, (first, decision))
    timer.start()
    assert ledger.answer(second.repeats, 30) == decision
    timer.join()
    assert ledger.begin(stop(last_message="same")).history.blocks == 1


@pytest.mark.rule("B12")
def test_different_stops_of_one_agent_at_once_are_each_real(ledger):
    assert not ledger.begin(stop(last_message="one")).repeats
    assert not ledger.begin(stop(last_message="two")).repeats


@pytest.mark.rule("B12")
def test_the_same_stop_again_with_its_flag_still_false_is_the_same_stop(ledger):
    event = stop(stop_hook_active=False, last_message="same")
    begun = decided(ledger, event)
    again = ledger.begin(event)
    assert again.repeats == begun.stop
    assert ledger.answer(again.repeats, 0).verdict == Block("go on", "why")


@pytest.mark.rule("B12")
@pytest.mark.parametrize("flag", [None, True])
def test_identical_later_stops_are_real_stops(ledger, flag):
    event = stop(stop_hook_active=flag, last_message="same")
    decided(ledger, event)
    again = ledger.begin(event)
    assert (again.repeats, again.history.blocks) == (0, 1)


@pytest.mark.rule("B12")
def test_an_equal_stop_after_a_pass_is_a_real_stop_of_a_new_turn(ledger):
    event = stop(stop_hook_active=False)
    decided(ledger, event, "passed")
    again = ledger.begin(event)
    assert (again.repeats, again.history.turn) == (0, 2)


def test_counting_goes_by_what_the_ledger_holds_when_the_decision_falls(ledger):
    one = ledger.begin(stop(last_message="one"))
    two = ledger.begin(stop(last_message="two"))
    decision = Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=3)
    ledger.record(one, decision)
    ledger.record(two, decision)
    assert ledger.begin(stop()).history.blocks == 2


def test_a_block_of_an_older_turn_does_not_spend_the_new_turns_budget(ledger):
    old = ledger.begin(stop(turn_id="a"))
    new = ledger.begin(stop(turn_id="b"))
    decision = Decision(verdict=Block("x"), outcome="blocked", turn=old.history.turn, limit=3)
    ledger.record(old, decision)
    ledger.record(new, replace(decision, turn=new.history.turn))
    history = ledger.begin(stop(turn_id="b", last_message="next")).history
    assert (history.blocks, history.session_blocks) == (1, 2)


def test_threads_can_share_a_ledger_without_losing_a_count(ledger):
    def work(name):
        for n in range(20):
            decided(ledger, stop(last_message=f"{name} {n}"))

    workers = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert ledger.begin(stop()).history.blocks == 80


def test_an_answer_that_never_comes_is_none(ledger):
    begun = ledger.begin(stop())
    assert ledger.answer(begun.stop, 0.05) is None
    assert ledger.answer(begun.stop + 99, 0) is None


def test_recording_a_decision_keeps_its_reports(ledger):
    begun = ledger.begin(stop())
    decision = Decision(
        verdict=Allow(), outcome="passed", turn=1, reports=(Report(gate="g", answer=Allow()),)
    )
    assert ledger.record(begun, decision) == decision
    assert ledger.answer(begun.stop, 0) == decision


@pytest.mark.rule("B12")
def test_an_agent_that_says_the_same_thing_over_and_over_is_counted_in_the_end(ledger):
    event = stop(stop_hook_active=False, last_message="Done.")
    decided(ledger, event)
    repeats = [ledger.begin(event).repeats for _ in range(10)]
    assert repeats[:3] == [repeats[0]] * 3
    assert repeats[3] == 0


@pytest.mark.rule("B12")
def test_a_stop_that_was_given_up_answers_nobody(ledger):
    first = ledger.begin(stop())
    assert ledger.begin(stop()).repeats == first.stop
    ledger.give_up(first)
    assert ledger.answer(first.stop, 0) is None
    assert not ledger.begin(stop()).repeats


def test_a_stop_that_was_answered_cannot_be_given_up(ledger):
    begun = decided(ledger, stop())
    ledger.give_up(begun)
    assert ledger.answer(begun.stop, 0).outcome == "blocked"
    assert ledger.begin(stop()).history.blocks == 1


@pytest.mark.rule("B6")
def test_a_check_that_was_given_up_changes_nothing_that_is_remembered(ledger):
    decided(ledger, stop(), repeat_key="k")
    ledger.give_up(ledger.begin(stop()))
    history = ledger.begin(stop(last_message="x")).history
    assert (history.blocks, history.repeats, history.repeat_key) == (1, 1, "k")


@pytest.mark.rule("B12")
def test_only_the_last_answer_is_repeated_and_only_if_it_was_a_block(ledger):
    passing = stop(stop_hook_active=False, last_message="E")
    decided(ledger, passing, "passed")
    decided(ledger, stop(stop_hook_active=False, last_message="F"))
    assert not ledger.begin(passing).repeats


@pytest.mark.rule("B12")
def test_a_late_decision_of_an_older_turn_is_not_the_last_one(ledger):
    old = ledger.begin(stop(turn_id="t1", stop_hook_active=False))
    event = stop(turn_id="t2", stop_hook_active=False)
    new = decided(ledger, event)
    ledger.record(old, Decision(verdict=Allow(), outcome="passed", turn=old.history.turn))
    assert ledger.begin(event).repeats == new.stop


@pytest.mark.rule("B1")
def test_stops_at_the_same_time_cannot_use_more_than_the_limit_together(ledger):
    begun = [ledger.begin(stop(last_message=f"{n}")) for n in range(6)]
    decision = Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=3, why="tests")
    recorded = [ledger.record(each, decision) for each in begun]
    assert [each.outcome for each in recorded] == ["blocked"] * 3 + ["capped"] * 3
    assert [each.count for each in recorded] == [1, 2, 3, 3, 3, 3]
    assert recorded[-1].verdict == Allow()
    assert recorded[-1].why == (
        "tests still holds; other stops at the same time used the last send-back"
    )
    assert ledger.begin(stop()).history.blocks == 3


@pytest.mark.rule("B4")
@pytest.mark.parametrize("turn_id", ["t" * 5000, "lone \ud800", "t"])
def test_any_turn_id_stays_the_same_turn(ledger, turn_id):
    turns = [decided(ledger, stop(turn_id=turn_id)).history.turn for _ in range(3)]
    assert turns == [1, 1, 1]
    assert ledger.begin(stop(turn_id=turn_id + "x")).history.turn == 2


@pytest.mark.parametrize("odd", ["lone \ud800", "x" * 100_000, "nul \x00", "'; DROP TABLE stops"])
def test_any_text_can_name_a_session_an_agent_or_a_gate(ledger, odd):
    event = stop(session_id=odd, agent_id=odd, host=odd, agent_type=odd)
    begun = ledger.begin(event)
    report = Report(gate=odd, answer=Block(odd), matched=odd, warning=odd, output=odd)
    ledger.record(
        begun,
        Decision(verdict=Block(odd), outcome="blocked", turn=1, limit=3, reports=(report,)),
    )
    assert ledger.begin(event).history.blocks == 1
    assert ledger.begin(stop(session_id=odd + "x")).history.blocks == 0


@pytest.mark.rule("B13")
def test_stops_of_different_turns_at_the_same_time_stay_below_the_ceiling(ledger):
    begun = [ledger.begin(stop(turn_id=f"t{n}")) for n in range(4)]
    outcomes = []
    for each in begun:
        decision = Decision(
            verdict=Block("x"), outcome="blocked", turn=each.history.turn, limit=3, why="tests"
        )
        outcomes.append(ledger.record(each, decision, ceiling=2).outcome)
    assert outcomes == ["blocked", "blocked", "capped", "capped"]
    assert ledger.begin(stop()).history.session_blocks == 2


@pytest.mark.rule("B3")
@pytest.mark.parametrize("before", ["given up", "recorded"])
def test_a_stop_that_is_over_cannot_be_counted_again(ledger, before):
    begun = ledger.begin(stop())
    decision = Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=3)
    if before == "given up":
        ledger.give_up(begun)
    else:
        ledger.record(begun, decision)
    with pytest.raises(LedgerError, match=f"stop {begun.stop} is"):
        ledger.record(begun, decision)
    assert ledger.begin(stop()).history.blocks == (before == "recorded")


@pytest.mark.rule("B12")
def test_stops_that_differ_in_their_result_alone_are_different_stops(ledger):
    first = ledger.begin(stop(result={"tests": "failed"}))
    second = ledger.begin(stop(result={"tests": "passed"}))
    assert (first.repeats, second.repeats) == (0, 0)
    assert ledger.begin(stop(result={"tests": "passed"})).repeats == second.stop
