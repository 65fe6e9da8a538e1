import pytest

from notyet import Allow, Block, Decision, History, Limits
from notyet.core.limits import after, limit_in_force, open_turn, uncounted, within_limit
from support import stop


def decided(outcome, **fields):
    return Decision(**({"verdict": Allow(), "outcome": outcome, "turn": 1} | fields))


@pytest.mark.parametrize("name", ["max_blocks", "session_ceiling", "stuck_after"])
@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None])
def test_limits_are_whole_numbers(name, value):
    with pytest.raises(ValueError, match=f"{name} is a whole number"):
        Limits(**{name: value})


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3"])
def test_there_is_room_for_at_least_one_job(value):
    with pytest.raises(ValueError, match="jobs is a whole number from 1 up"):
        Limits(jobs=value)
    assert Limits(jobs=2).jobs == 2


def test_stuck_after_one_is_refused_because_no_agent_would_be_sent_back():
    with pytest.raises(ValueError, match="stuck_after = 1"):
        Limits(stuck_after=1)


@pytest.mark.rule("B1", "B2", "B8", "B13")
@pytest.mark.parametrize(
    ("limits", "history", "cap", "number", "source"),
    [
        (Limits(), History(), 0, 3, "max_blocks"),
        (Limits(max_blocks=0), History(), 0, 0, "max_blocks"),
        (Limits(), History(extend=5), 0, 5, "extended by a gate"),
        (Limits(), History(extend=2), 0, 3, "max_blocks"),
        (Limits(max_blocks=20), History(), 8, 7, "below the host's cap of 8"),
        (Limits(), History(extend=9), 8, 7, "below the host's cap of 8"),
        (Limits(), History(), 1, 1, "below the host's cap of 1"),
        (Limits(), History(), 8, 3, "max_blocks"),
        (Limits(), History(session_blocks=49), 0, 1, "session_ceiling 50"),
        (Limits(), History(session_blocks=50), 0, 0, "session_ceiling 50"),
        (Limits(), History(session_blocks=60), 0, 0, "session_ceiling 50"),
        (Limits(), History(blocks=1, session_blocks=49), 0, 2, "session_ceiling 50"),
        (Limits(session_ceiling=0), History(session_blocks=999), 0, 3, "max_blocks"),
    ],
)
def test_the_limit_in_force_names_its_source(limits, history, cap, number, source):
    limit = limit_in_force(limits, history, cap)
    assert (limit.number, limit.source) == (number, source)


@pytest.mark.rule("B4")
def test_the_hosts_turn_id_numbers_the_turns():
    one = open_turn(History(), stop(turn_id="t1"))
    assert (one.turn, one.turn_ids) == (1, ("t1",))
    used = one.__replace__(blocks=2, extend=9, session_blocks=2)
    assert open_turn(used, stop(turn_id="t1", stop_hook_active=False)) == used
    two = open_turn(used, stop(turn_id="t2", stop_hook_active=True))
    assert two == History(turn=2, turn_ids=("t1", "t2"), session_blocks=2)


@pytest.mark.rule("B1", "B4")
def test_a_turn_id_that_comes_back_gets_no_second_budget():
    history, sent_back = History(), {"t1": 0, "t2": 0}
    for n in range(20):
        turn_id = f"t{n % 2 + 1}"
        history = open_turn(history, stop(turn_id=turn_id))
        if history.blocks < 3:
            history = after(history, decided("blocked", turn=history.turn))
            sent_back[turn_id] += 1
    assert sum(sent_back.values()) <= 6


@pytest.mark.rule("B4")
def test_only_the_last_few_turn_ids_are_kept():
    history = History()
    for n in range(50):
        history = open_turn(history, stop(turn_id=f"t{n}"))
    assert history.turn == 50
    assert history.turn_ids == tuple(f"t{n}" for n in range(42, 50))


@pytest.mark.rule("B4")
def test_without_an_id_the_flag_opens_and_continues_turns():
    used = History(turn=1, blocks=2, session_blocks=2)
    assert open_turn(used, stop(stop_hook_active=True)) == used
    assert open_turn(used, stop(stop_hook_active=False)) == History(turn=2, session_blocks=2)
    assert open_turn(History(), stop(stop_hook_active=True)).turn == 1


@pytest.mark.rule("B4")
def test_without_id_and_flag_the_session_is_one_turn():
    used = History(turn=1, blocks=2, session_blocks=2)
    assert open_turn(used, stop()) == used


@pytest.mark.rule("B3", "B13")
def test_a_block_is_counted_for_the_turn_and_for_the_session():
    history = after(History(turn=1), decided("blocked"))
    assert (history.blocks, history.session_blocks, history.blocked) == (1, 1, True)


@pytest.mark.rule("B4", "B13")
@pytest.mark.parametrize("outcome", ["passed", "observed"])
def test_a_passing_stop_refills_the_turn_but_not_the_session(outcome):
    history = after(
        History(
            turn=1, blocks=2, session_blocks=7, blocked=True, repeats=2, repeat_key="k", extend=5
        ),
        decided(outcome),
    )
    assert history == History(turn=1, session_blocks=7, extend=5)


@pytest.mark.rule("B4")
@pytest.mark.parametrize(
    "outcome", ["halted", "capped", "stuck", "handed_back", "skipped", "failed_open"]
)
def test_any_other_stop_neither_counts_nor_refills(outcome):
    history = after(History(turn=1, blocks=2, session_blocks=7, blocked=True), decided(outcome))
    assert (history.blocks, history.session_blocks, history.blocked) == (2, 7, False)


@pytest.mark.rule("B2")
def test_an_extension_is_kept_with_the_turn_and_never_lowers():
    history = after(History(turn=1, extend=6), decided("passed", extend=4))
    assert history.extend == 6
    assert after(history, decided("blocked", extend=9)).extend == 9


@pytest.mark.rule("B6")
def test_equal_failures_in_a_row_are_counted_until_one_differs():
    history = History(turn=1)
    seen = []
    for key in ("k", "k", "other", ""):
        history = after(history, decided("blocked", repeat_key=key))
        seen.append(history.repeats)
    assert seen == [1, 2, 1, 0]


def test_a_decision_of_an_older_turn_spends_only_the_sessions_budget():
    newer = History(turn=2, session_blocks=1)
    assert after(newer, decided("blocked")) == History(turn=2, session_blocks=2)
    assert after(newer, decided("passed", extend=9)) == newer


@pytest.mark.rule("B7")
def test_only_a_block_spends_the_budget():
    history = History(turn=1)
    for outcome in ("passed", "halted", "capped", "stuck", "handed_back", "skipped", "failed_open"):
        assert after(history, decided(outcome)).session_blocks == 0
    assert after(history, decided("blocked")).session_blocks == 1


@pytest.mark.rule("B6")
@pytest.mark.parametrize("between", ["failed_open", "passed", "skipped", "capped", "halted"])
def test_a_row_of_equal_failures_is_broken_by_any_other_stop(between):
    history = after(History(turn=1), decided("blocked", repeat_key="k"))
    history = after(history, decided(between))
    assert (history.repeats, history.repeat_key) == (0, "")


@pytest.mark.rule("B3")
def test_a_send_back_that_could_not_be_counted_does_not_happen():
    blocked = Decision(verdict=Block("no"), outcome="blocked", count=2, limit=3, why="g")
    let_go = uncounted(blocked, "the disk is full")
    assert (let_go.verdict, let_go.outcome, let_go.count) == (Allow(), "failed_open", 1)
    assert let_go.why == "g blocked, but the ledger failed"
    assert let_go.warnings == ("the disk is full (this decision was not recorded)",)
    passed = Decision(verdict=Allow(), outcome="passed", count=2)
    assert uncounted(passed, "x").outcome == "passed"
    assert uncounted(passed, "x").warnings == ("x (this decision was not recorded)",)


@pytest.mark.rule("B1", "B13")
@pytest.mark.parametrize(
    ("history", "outcome", "count"),
    [
        (History(turn=1, blocks=1), "blocked", 2),
        (History(turn=1, blocks=3), "capped", 3),
        (History(turn=1, blocks=1, session_blocks=9), "capped", 1),
        (History(turn=2), "blocked", 1),  # a later turn has its own budget
        (History(turn=2, session_blocks=9), "capped", 1),
    ],
)
def test_other_stops_at_the_same_time_count_for_the_limit(history, outcome, count):
    blocked = decided("blocked", verdict=Block("no"), count=1, limit=3, why="g")
    stands = within_limit(history, blocked, 9)
    assert (stands.outcome, stands.count) == (outcome, count)
