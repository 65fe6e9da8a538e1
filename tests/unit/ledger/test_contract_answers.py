"""Every ledger answers equal stops alike, and many threads and processes at once."""

import os
import time
from contextlib import suppress
from functools import partial

import pytest

from ledger_contract import (
    ODD_TEXTS,
    at_once,
    decide,
    decision,
    later,
    look,
    passed,
    refuses,
    start,
    stop,
    wanted,
)
from notyet import Allow, Block, Halt, Ledger, LedgerError, Problem, Report, replace
from notyet.ledger import REPEATED_AT_MOST, Begun
from notyet.ledger.memory import MemoryLedger

_LONG = 5.0  # seconds of patience that no call should use up


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else MemoryLedger()


def unnumbered(decision):
    """Return a decision without its number, which only a ledger in a file gives."""
    return replace(decision, stop=0)


def _in_time(what, call, wanted):
    started = time.monotonic()
    assert call() == wanted
    if time.monotonic() - started >= _LONG:
        raise AssertionError(f"{what}: it came only when all patience was used up")


@pytest.mark.rule("B12")
def test_a_stop_equal_to_one_that_is_being_asked_repeats_it_and_counts_nothing(ledger):
    for flag in (None, True, False):
        event = stop("same", session_id=f"{flag}", stop_hook_active=flag, result={"tests": "bad"})
        first = ledger.begin(event)
        assert ledger.begin(event).repeats == first.stop
        assert ledger.begin(event).repeats == first.stop
        ledger.record(first, decision(first))
        seen = look(ledger, session_id=f"{flag}")
        assert seen.blocks == 1


@pytest.mark.rule("B12")
def test_stops_that_differ_in_anything_are_each_real(ledger):
    bound = "x" * 50_000
    events = (
        stop("same", result={"tests": "failed"}),
        stop("same", result={"tests": "passed"}),
        stop("other", result={"tests": "failed"}),
        stop("same", result={"tests": "failed"}, agent_id="a"),
        stop(bound + "a" + bound),
        stop(bound + "b" + bound),
    )
    asked = [ledger.begin(event) for event in events]
    assert [each.repeats for each in asked] == [0] * len(asked)


@pytest.mark.rule("B12")
def test_a_blocked_stop_that_comes_again_with_its_flag_false_repeats_its_answer(ledger):
    event = stop("same", stop_hook_active=False)
    first = ledger.begin(event)
    ledger.record(first, decision(first))
    again = [ledger.begin(event).repeats for _ in range(REPEATED_AT_MOST)]
    assert again == [first.stop] * REPEATED_AT_MOST
    assert unnumbered(ledger.answer(first.stop, 0)) == decision(first)
    assert look(ledger).blocks == 1
    assert ledger.begin(event).repeats == 0


@pytest.mark.rule("B12")
def test_an_equal_stop_later_is_a_real_one_if_its_flag_is_not_false(ledger):
    for flag in (None, True):
        event = stop("same", session_id=f"{flag}", stop_hook_active=flag)
        counts = [decide(ledger, event).history.blocks for _ in range(3)]
        assert counts == [0, 1, 2]


@pytest.mark.rule("B12")
def test_only_the_last_answer_of_the_turn_is_repeated_and_only_a_block(ledger):
    passing = stop("passing", stop_hook_active=False)
    decide(ledger, passing, "passed")
    assert decide(ledger, passing, "passed").history.turn == 2
    old = ledger.begin(stop("old", turn_id="a", stop_hook_active=False))
    event = stop("new", turn_id="b", stop_hook_active=False)
    decide(ledger, event)
    assert ledger.begin(passing).repeats == 0
    event = replace(event, last_message="newest", turn_id="c")
    new = decide(ledger, event)
    ledger.record(old, decision(old, "passed"))  # too late to be the last
    assert ledger.begin(event).repeats == new.stop


@pytest.mark.rule("B12")
def test_an_answer_is_waited_for_and_is_the_decision_with_all_that_belongs_to_it(ledger):
    first = ledger.begin(stop())
    assert ledger.answer(first.stop, 0.0) is None
    reports = (
        Report(gate="a", answer=Block("p", "r", 9), seconds=1.5, output="out", matched="m"),
        Report(gate="b", answer=Problem("timeout", "slow"), warning="w", exit="exit 1", held=True),
        Report(gate="c", answer=Halt("h"), observed=True, tell_user="u", hidden=True, log="/l"),
        Report(gate="d", answer=Allow(4, "note")),
        Report(gate="e"),
    )
    wanted = decision(first, reports=reports, warnings=("careful", "naïve ✓"), repeat_key="k")
    extended = Block("go on", "why", 9)
    wanted = replace(wanted, verdict=extended, extend=9, limit_source="max_blocks")
    jobs = [lambda: ledger.answer(first.stop, _LONG), later(ledger.record, first, wanted)]
    _in_time("the answer", lambda: unnumbered(at_once(jobs)[0]), wanted)
    assert unnumbered(ledger.answer(first.stop, 0.0)) == wanted
    for verdict, outcome in ((Halt("enough"), "halted"), (Allow(), "passed")):
        begun = ledger.begin(stop(outcome))
        other = decision(begun, outcome, verdict=verdict)
        ledger.record(begun, other)
        assert unnumbered(ledger.answer(begun.stop, 0.0)) == other


@pytest.mark.rule("B12")
def test_giving_a_stop_up_counts_nothing_and_changes_no_answer(ledger):
    answered = decide(ledger, stop(), repeat_key="k")
    ledger.give_up(answered)
    kept = ledger.answer(answered.stop, 0.0)
    assert (kept and kept.outcome) == ("blocked")
    begun = ledger.begin(stop("other"))
    ledger.give_up(begun)
    ledger.give_up(begun)
    ledger.give_up(Begun(stop=begun.stop + 99))
    seen = look(ledger)
    counts = (seen.blocks, seen.session_blocks, seen.blocked, seen.repeats, seen.repeat_key)
    assert counts == (1, 1, True, 1, "k")


@pytest.mark.rule("B3")
def test_a_stop_that_is_over_or_unknown_cannot_be_counted_ledgererror(ledger):
    recorded = decide(ledger, stop())
    refuses(ledger.record, recorded, decision(recorded))
    given_up = ledger.begin(stop("other"))
    ledger.give_up(given_up)
    refuses(ledger.record, given_up, decision(given_up))
    unknown = replace(given_up, stop=given_up.stop + 99)
    refuses(ledger.record, unknown, decision(unknown))
    assert look(ledger).blocks == 1


@pytest.mark.rule("A10", "B9")
def test_a_skipped_stop_counts_nothing_and_answers_no_other(ledger):
    skipped = decision(Begun(stop=0), "skipped", why="off", warnings=("said \ud800",))
    event = stop("same", stop_hook_active=False)
    ledger.skip(event, skipped)
    assert look(ledger, session_id="s2").turn == 1
    first = decide(ledger, event)
    assert first.history.turn == 1
    ledger.skip(stop("other", stop_hook_active=False), skipped)
    ledger.skip(stop(session_id=""), skipped)
    assert ledger.begin(event).repeats == first.stop
    seen = look(ledger)
    assert (seen.turn, seen.blocks, seen.blocked) == (1, 1, True)


@pytest.mark.rule("B3")
def test_threads_lose_no_count(ledger):
    def work(name):
        counts = []
        for n in range(20):
            begun = ledger.begin(stop(f"{name} {n}"))
            counts.append(ledger.record(begun, decision(begun)).count)
        return counts

    counts = at_once([partial(work, name) for name in range(4)])
    told = sorted(count for each in counts for count in each)
    assert told == list(range(1, 81))
    seen = look(ledger)
    assert (seen.blocks, seen.session_blocks) == (80, 80)


@pytest.mark.rule("B12")
def test_of_equal_stops_in_many_threads_one_is_real_and_all_get_its_answer(ledger):
    begun = at_once([lambda: ledger.begin(stop("same"))] * 8)
    real = [each for each in begun if not each.repeats]
    assert len(real) == 1
    assert {each.repeats for each in begun} - {0} == {real[0].stop}
    wanted = decision(real[0])
    jobs = [lambda: ledger.answer(real[0].stop, _LONG)] * 7
    answers = at_once([*jobs, later(ledger.record, real[0], wanted)])
    assert set(map(unnumbered, answers)) == {wanted}


def test_whatever_an_event_or_a_gate_holds_only_ledgererror_is_raised(ledger):
    for odd in ODD_TEXTS:
        begun = ledger.begin(stop(odd, session_id="texts", agent_type=odd, cwd=odd))
        report = Report(gate=odd, answer=Block(odd), matched=odd, warning=odd, output=odd)
        ledger.record(begun, decision(begun, verdict=Block(odd), why=odd, reports=(report,)))
    assert look(ledger, session_id="texts").blocks == len(ODD_TEXTS)
    cycle = {}
    cycle["self"] = cycle
    for n, result in enumerate(({1: 2, "a": 3}, {(1, 2): 3}, cycle, object(), float("nan"), b"x")):
        decide(ledger, stop(f"{n}", session_id="results", result=result, raw={"x": result}))
    assert look(ledger, session_id="results").blocks == 6
    begun = ledger.begin(stop("huge"))
    with suppress(LedgerError):
        ledger.record(begun, decision(begun, "passed", count=2**70))


def test_an_output_that_is_kept_is_a_private_file_of_its_own_all_of_it_else_the_path_is_empty(
    ledger,
):
    begun = [ledger.begin(stop(message)) for message in ("one", "two")]
    kept = []
    for each in begun:
        for gate in ("unit tests", "unit/tests", "é" * 300):
            output = f"{each.stop} {gate} begins " + "x" * 100_000 + " ends"
            path = ledger.keep_output(each, Report(gate=gate, output=output))
            if path:
                kept.append((path, output))
            assert isinstance(path, str)
    for path, output in kept:
        with open(path, encoding="utf-8") as file:
            assert output in file.read()
        assert os.stat(path).st_mode & 0o077 == 0
    ledger.keep_output(begun[0], Report(gate="\ud800 \x00", output="\ud800 \x00"))


@pytest.mark.rule("B3")
def test_what_record_returned_is_there_after_reopening(durable, reopen):
    decide(durable, stop("one", turn_id="a"), extend=9, repeat_key="k")
    assert decide(reopen(durable), stop(turn_id="b")).history.turn == 2
    decide(durable, stop("two", turn_id="b"), extend=8, repeat_key="m")
    again = reopen(durable)
    assert look(again, turn_id="a") == look(durable, turn_id="a")
    seen = look(again, turn_id="b")
    assert (seen.turn, seen.blocks, seen.session_blocks, seen.extend) == (2, 2, 3, 8)
    assert (seen.blocked, seen.repeats, seen.repeat_key) == (True, 1, "m")


def test_a_ledger_that_cannot_be_used_raises_ledgererror_and_nothing_else(unusable):
    begun = Begun(stop=1)
    refuses(unusable.begin, stop())
    refuses(unusable.record, begun, decision(begun))
    refuses(unusable.skip, stop(), decision(begun, "skipped"))
    refuses(unusable.give_up, begun)
    refuses(unusable.answer, 1, 0.0)
    refuses(unusable.recall, stop(), [wanted()])
    refuses(unusable.remember, [passed()])
    refuses(unusable.remember_start, start(), {"s": "t1"})
