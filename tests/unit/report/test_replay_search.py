"""Which decisions are possible when some answers are not known."""

import pytest

from notyet import Allow, Block, Command, Gate, Halt, History, Limits, Report, StopEvent
from notyet.core.verdict import HIGHEST_EXTEND
from notyet.replay.answers import UNKNOWN_TREE, Alike, Missing, Recalled, tree_of
from notyet.replay.search import Stopped, possible


def gate(name, **fields):
    return Gate(name=name, check=Command(script="true"), **fields)


def stopped(*missing, known=(), spared=None, halting=(), **fields):
    """Return a stop that meets gates, of which some have an answer."""
    gates = (*(one for one, _ in known), *missing)
    recalled = Recalled(
        known={one.name: Report(gate=one.name, answer=answer) for one, answer in known},
        spared=spared or {},
        missing=tuple(
            Missing(
                gate=one,
                why="new",
                may_be_spared=one.when == "changed",
                halts=one.name in halting,
            )
            for one in missing
            if one.name not in (spared or {})
        ),
    )
    values = {"history": History(turn=1), "limits": Limits(), "tree": ""} | fields
    event = StopEvent(session_id="s", host="claude")
    return Stopped(event=event, gates=gates, declared=gates, recalled=recalled, **values)


def names(found):
    return [missing.gate.name for missing in found.matters]


def test_what_is_known_leaves_one_decision():
    found = possible(stopped(known=[(gate("a"), Allow())]))
    assert found.outcomes == ("passed",)
    assert found.is_whole


def test_an_unknown_answer_is_tried_in_every_way():
    assert possible(stopped(gate("a"))).outcomes == ("passed", "blocked", "failed_open")
    broken = possible(stopped(gate("a", if_broken="block")))
    assert broken.outcomes == ("passed", "blocked", "failed_open")  # by the host's deadline
    watching = stopped(gate("a", observe=True), known=[(gate("b"), Allow())])
    assert possible(watching).outcomes == ("passed", "observed")


def test_whether_a_gate_halts_is_tried_where_it_is_known_to():
    untried = possible(stopped(gate("a")))
    assert "halted" not in untried.outcomes
    assert [one.gate.name for one in untried.unheard] == ["a"]
    assert "halted" in possible(stopped(gate("a"), halting={"a"})).outcomes


def test_only_who_is_asked_and_can_hold_an_agent_might_say_anything():
    watching = possible(stopped(gate("watch", observe=True)))
    unreached = stopped(gate("slow", priority=-1), known=[(gate("a"), Block("no"))])
    assert watching.unheard == possible(unreached).unheard == ()


def test_a_gate_that_could_have_been_spared_may_leave_nobody_who_was_asked():
    assert "skipped" in possible(stopped(gate("a", when="changed"))).outcomes
    asked = possible(stopped(gate("a", when="changed"), known=[(gate("b"), Allow())]))
    assert "skipped" not in asked.outcomes
    unreached = stopped(gate("a", when="changed"))
    missing = Missing(gate=unreached.gates[0], why="not_asked")  # who is spared was found before
    unreached.__dict__["recalled"] = Recalled(missing=(missing,))
    assert "skipped" not in possible(unreached).outcomes


def test_who_was_spared_is_spared_again():
    found = possible(stopped(gate("a", when="changed"), spared={"a": "unchanged"}))
    assert found.outcomes == ("skipped",)
    assert found.decisions[0].why == "unchanged"


def test_a_gate_that_is_not_reached_makes_no_difference():
    found = possible(stopped(gate("slow", priority=-1), known=[(gate("a"), Block("no"))]))
    assert found.outcomes == ("blocked",)
    assert found.matters == ()


def test_only_those_that_make_a_difference_are_named():
    found = possible(
        stopped(gate("beside"), gate("first", priority=1), known=[(gate("a"), Block("no"))])
    )
    assert found.outcomes == ("blocked",)
    found = possible(stopped(gate("watch", observe=True), gate("b"), known=[(gate("a"), Allow())]))
    assert names(found) == ["watch", "b"]
    watched = possible(stopped(gate("watch", observe=True), known=[(gate("a"), Block("no"))]))
    assert (watched.outcomes, names(watched)) == (("blocked",), [])


def test_many_like_gates_are_few_ways():
    found = possible(stopped(*(gate(f"g{n}") for n in range(40))))
    assert found.is_whole
    assert found.outcomes == ("passed", "blocked", "failed_open")
    assert len(names(found)) == 40


def test_too_many_ways_are_not_tried_and_nothing_is_claimed():
    found = possible(stopped(*(gate(f"g{n}", priority=n) for n in range(12))))
    assert not found.is_whole
    assert found.outcomes == ()
    assert len(names(found)) == 12


# -- answers that are known, of gates that may be spared (N1)


def may_spare(*answers, limits=Limits()):
    """Return what can come of gates that said this, if they were asked."""
    gates = [gate(f"g{at}", when="changed") for at in range(len(answers))]
    missing = [
        Missing(
            gate=one,
            why="might_be_spared",
            report=Report(gate=one.name, answer=answer),
            may_be_spared=True,
        )
        for one, answer in zip(gates, answers, strict=True)
    ]
    unsure = stopped(*gates, limits=limits)
    unsure.__dict__["recalled"] = Recalled(missing=tuple(missing))
    return possible(unsure)


def test_a_gate_that_may_be_spared_says_what_it_said_or_nothing():
    assert may_spare(Block("no")).outcomes == ("passed", "blocked", "skipped")
    assert may_spare(Allow()).outcomes == ("passed", "skipped")
    assert may_spare(Halt()).outcomes == ("passed", "halted", "skipped")
    assert may_spare(Halt()).unheard == ()


def test_many_gates_that_passed_and_may_be_spared_are_few_ways():
    assert may_spare(*[Allow()] * 40).outcomes == ("passed", "skipped")
    assert may_spare(*[Allow()] * 40, Block("no")).outcomes == ("passed", "blocked", "skipped")


def test_something_to_remember_is_left_only_by_those_who_are_asked():
    asked = possible(stopped(known=[(gate("a"), Allow()), (gate("b"), Block("no"))]))
    assert asked.may_say == asked.must_say == {("a", "Allow"), ("b", "Block")}
    unsure = may_spare(Allow())
    assert (unsure.may_say, unsure.must_say) == ({("g0", "Allow")}, frozenset())


# -- limits that gates ask for (B2)


@pytest.mark.rule("B2")
def test_an_unknown_answer_may_ask_for_any_limit():
    found = possible(stopped(gate("new"), known=[(gate("a"), Block("no", extend=4))]))
    assert found.extends == {"blocked": (4, HIGHEST_EXTEND)}
    assert possible(stopped(known=[(gate("a"), Allow(extend=4))])).extends == {"passed": (4, 4)}
    broken = possible(stopped(gate("new"))).extends["failed_open"]
    assert broken == (0, 0)


@pytest.mark.rule("B2")
def test_whether_the_limit_is_reached_is_not_known_where_it_may_have_been_extended():
    def at(blocks, **fields):
        history = History(turn=1, blocks=blocks, session_blocks=blocks)
        known = [(gate("a"), Block("no"))]
        found = possible(stopped(known=known, history=history, highest=HIGHEST_EXTEND, **fields))
        return found.outcomes, found.limit_matters

    assert at(2) == (("blocked",), False)
    assert at(3) == (("blocked", "capped"), True)
    assert at(3, limits=Limits(session_ceiling=3)) == (("capped",), False)


# -- failing alike (B6)

STUCK = Limits(stuck_after=2)


def failing(tree, alike, *missing, words="no"):
    known = [(gate("a"), Block(words))]
    return possible(stopped(*missing, known=known, limits=STUCK, tree=tree, alike=alike))


def before(tree, words="no"):
    """Return what the stop before left: the same failure, with these files."""
    return failing(tree, Alike(), words=words).alike


def test_the_same_failure_of_the_same_files_is_stuck():
    assert failing("t1", before("t1")).outcomes == ("stuck",)
    assert failing("t2", before("t1")).outcomes == ("blocked",)
    assert failing("t1", before("t1", words="else")).outcomes == ("blocked",)
    assert failing("", before("")).outcomes == ("blocked",)


def test_whether_unknown_files_changed_is_not_known():
    assert failing(UNKNOWN_TREE, before("t1")).outcomes == ("blocked", "stuck")
    assert failing("t1", before(UNKNOWN_TREE)).outcomes == ("blocked", "stuck")
    assert failing(UNKNOWN_TREE, before("t1", words="else")).outcomes == ("blocked",)


def test_whether_unknown_words_are_the_same_is_not_known():
    last = Alike(key="1-2-t1", repeats=1)
    found = possible(stopped(gate("new"), limits=STUCK, tree="t1", alike=last))
    assert found.outcomes == ("passed", "blocked", "stuck", "failed_open")


def test_after_stops_that_nobody_knows_it_may_be_the_same():
    unknown = Alike(repeats=2, is_known=False)
    assert failing("t1", unknown).outcomes == ("blocked", "stuck")


def test_what_comes_next_is_compared_only_with_what_is_known():
    assert before("t1").is_known
    assert failing("t1", before("t1")).alike.repeats == 2
    assert failing("t1", before(UNKNOWN_TREE)).alike.repeats == 2  # at most
    assert failing("t2", before("t1")).alike.repeats == 1
    open_ = failing("t1", before("t1"), gate("new")).alike
    assert (open_.is_known, open_.repeats) == (False, 2)
    assert possible(stopped(known=[(gate("a"), Allow())], alike=before("t1"))).alike == Alike()


@pytest.mark.parametrize(("key", "tree"), [("", ""), ("ab-3-x-y z", "x-y z"), ("odd", "")])
def test_the_files_are_read_off_what_stays_equal(key, tree):
    assert tree_of(key) == tree
