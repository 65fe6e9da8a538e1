"""Every ledger keeps turns and counts alike: ours in memory and ours in a file."""

import pytest

from ledger_contract import ODD_TEXTS, at_once, decide, decision, look, stop
from notyet import Allow, Ledger, replace
from notyet.core.limits import History, after, open_turn, within_limit
from notyet.core.verdict import OUTCOMES
from notyet.ledger.memory import MemoryLedger

_DECIDED = tuple(outcome for outcome in OUTCOMES if outcome != "overridden")


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else MemoryLedger()


@pytest.mark.rule("B4")
def test_a_new_turn_id_opens_a_turn_a_known_one_never_does(ledger):
    turns = [decide(ledger, stop(f"{n}", turn_id=t)).history.turn for n, t in enumerate("aabac")]
    assert turns == [1, 1, 2, 2, 3]
    for name in "defgh":
        decide(ledger, stop(turn_id=name))
    assert look(ledger, turn_id="a").turn == 8


@pytest.mark.rule("B4")
def test_without_an_id_a_flag_that_is_false_opens_a_turn_and_nothing_else_does(ledger):
    flags = (False, True, None, False, None)
    stops = [stop(f"{n}", stop_hook_active=flag) for n, flag in enumerate(flags)]
    assert [decide(ledger, s).history.turn for s in stops] == [1, 1, 1, 2, 2]


@pytest.mark.rule("B4")
def test_any_text_can_be_an_id(ledger):
    for odd in ODD_TEXTS:
        fields = {"session_id": odd, "agent_id": odd, "host": odd, "turn_id": odd}
        turns = [decide(ledger, stop(f"{n}", **fields)).history.turn for n in range(2)]
        assert turns == [1, 1]
        assert look(ledger, **fields).blocks == 2
        other = fields | {"turn_id": odd + "x"}
        assert look(ledger, **other).turn == 2
        other = fields | {"session_id": odd + "x"}
        assert look(ledger, **other).blocks == 0


@pytest.mark.rule("B1")
def test_agents_are_kept_apart_by_host_session_and_id(ledger):
    agents = [{}, {"host": "h"}, {"session_id": "s2"}, {"agent_id": "a"}]
    for agent in agents:
        decide(ledger, stop(**agent))
    assert [look(ledger, **agent).blocks for agent in agents] == [1, 1, 1, 1]


@pytest.mark.rule("B3")
def test_a_send_back_is_counted_when_record_returns(ledger):
    assert decide(ledger, stop("0")).history.blocks == 0
    for n in range(1, 4):
        (seen,) = at_once([lambda: look(ledger)])  # from another thread
        assert (seen.blocks, seen.session_blocks, seen.blocked) == (n, n, True)
        decide(ledger, stop(f"{n}"))


@pytest.mark.rule("B4", "B13")
def test_a_pass_refills_the_count_of_its_turn_never_that_of_the_session(ledger):
    for outcome in _DECIDED:
        agent = {"session_id": outcome}
        decide(ledger, stop("one", **agent))
        decide(ledger, stop("two", **agent), outcome)
        seen = look(ledger, **agent)
        blocks = {"blocked": 2, "passed": 0, "observed": 0}.get(outcome, 1)
        session_blocks = 2 if outcome == "blocked" else 1
        counts = (seen.blocks, seen.session_blocks, seen.blocked)
        wanted = (blocks, session_blocks, outcome == "blocked")
        assert counts == wanted


@pytest.mark.rule("B2")
def test_an_extended_limit_is_kept_never_lowered_until_the_next_turn(ledger):
    decide(ledger, stop("one", turn_id="a"), extend=9)
    decide(ledger, stop("two", turn_id="a"), "passed", extend=4)
    assert look(ledger, turn_id="a").extend == 9
    assert look(ledger, turn_id="b").extend == 0


@pytest.mark.rule("B6")
def test_failures_that_are_alike_are_counted_one_after_another(ledger):
    for n, (key, repeats) in enumerate((("k", 1), ("k", 2), ("m", 1), ("", 0))):
        decide(ledger, stop(f"{n}"), repeat_key=key)
        seen = look(ledger)
        assert (seen.repeats, seen.repeat_key) == (repeats, key)


@pytest.mark.rule("B11")
def test_a_new_turn_after_a_block_begins_afresh(ledger):
    event = stop("same", turn_id="a", stop_hook_active=False)
    decide(ledger, event, extend=9, repeat_key="k")
    new = ledger.begin(replace(event, turn_id="b"))
    assert new.repeats == 0
    wanted = History(turn=2, turn_ids=("a", "b"), session_blocks=1)
    assert new.history == wanted


@pytest.mark.rule("B1", "B13")
def test_a_late_decision_of_an_older_turn_spends_the_session_s_budget_only(ledger):
    asked = (stop("one", turn_id="a"), stop("two", turn_id="a"), stop(turn_id="b"))
    early, late, new = [ledger.begin(event) for event in asked]
    for begun in (early, new, late):
        ledger.record(begun, decision(begun))
    seen = look(ledger, turn_id="b")
    assert (seen.turn, seen.blocks, seen.session_blocks) == (2, 1, 3)


@pytest.mark.rule("B1")
def test_stops_at_the_same_time_never_use_more_than_the_limit_together(ledger):
    begun = [ledger.begin(stop(f"{n}")) for n in range(6)]
    final = [ledger.record(each, decision(each, limit=3)) for each in begun]
    assert [each.outcome for each in final] == ["blocked"] * 3 + ["capped"] * 3
    assert [each.count for each in final] == [1, 2, 3, 3, 3, 3]
    assert final[-1].verdict == Allow()
    assert look(ledger).blocks == 3


@pytest.mark.rule("B13")
def test_stops_of_all_turns_stay_below_the_session_s_ceiling_and_0_is_none(ledger):
    for ceiling, blocked in ((2, 2), (0, 4)):
        agent = {"session_id": f"ceiling {ceiling}"}
        begun = [ledger.begin(stop(turn_id=f"t{n}", **agent)) for n in range(4)]
        final = [ledger.record(each, decision(each), ceiling) for each in begun]
        wanted = ["blocked"] * blocked + ["capped"] * (4 - blocked)
        assert [each.outcome for each in final] == wanted
        assert look(ledger, **agent).session_blocks == blocked


def test_histories_move_as_open_turn_and_after_say_decisions_as_within_limit_says(ledger):
    known = {"s1": History(), "s2": History()}
    for n in range(120):
        session = f"s{1 + n % 2}"
        event = stop(f"{n}", session_id=session, turn_id=f"t{n // 9}")
        wanted = open_turn(known[session], event)
        begun = ledger.begin(event)
        assert begun.history == wanted
        outcome = "blocked" if n % 5 else _DECIDED[n // 5 % len(_DECIDED)]
        fields = {"limit": 3, "extend": n % 7, "repeat_key": "k" * (n % 3 > 0)}
        proposed = decision(begun, outcome, **fields)
        final = within_limit(wanted, proposed, 30)
        got = ledger.record(begun, proposed, 30)
        assert replace(got, warnings=(), stop=0) == final
        known[session] = after(wanted, final)


@pytest.mark.rule("A8")
def test_the_gates_that_sent_an_agent_back_are_known_in_this_turn_only(ledger):
    by = tuple((f"gate {n}", f"/p/{odd}") for n, odd in enumerate(ODD_TEXTS))
    for message in ("blocked", "failed_open"):
        decide(ledger, stop(message, turn_id="a"), message, sent_back_by=by)
        assert look(ledger, turn_id="a").sent_back_by == by
    assert look(ledger, turn_id="b").sent_back_by == ()
    decide(ledger, stop("late", turn_id="b"), sent_back_by=by[:1])
    decide(ledger, stop("passed", turn_id="b"), "passed")
    assert look(ledger, turn_id="b").sent_back_by == ()
