"""The one line that the user of an agent reads about a stop."""

import pytest

from notyet import Allow, Block, Decision, Halt, Problem, Report
from notyet.core.message import note
from notyet.core.record import replace
from notyet.core.verdict import OUTCOMES, group_of

FAILED = Report(gate="tests", answer=Block("x"), seconds=12.345, exit="exit 1")
BROKEN = Report(gate="g", answer=Problem("timeout", "no answer"))


def decided(outcome, why="", *reports, **fields):
    return Decision(verdict=Allow(), outcome=outcome, why=why, reports=reports, **fields)


@pytest.mark.rule("N3")
@pytest.mark.parametrize(
    ("decision", "line"),
    [
        (decided("passed"), ""),
        (decided("passed", count=1), "notyet: passed after 1 send-back"),
        (decided("passed", count=2), "notyet: passed after 2 send-backs"),
        (
            decided("blocked", "tests", FAILED, count=2, limit=3),
            "notyet: sent back 2/3: tests (exit 1)",
        ),
        (
            decided("blocked", "tests", replace(FAILED, workspace="ssh://dev@box:22/srv"), limit=3),
            "notyet: sent back 0/3: tests (exit 1, on dev@box)",
        ),
        (
            decided(
                "blocked", "g", Report(gate="g", answer=Block("Say more.\nMuch more.")), limit=3
            ),
            "notyet: sent back 0/3: g (Say more. ...)",
        ),
        (
            decided("blocked", "g", Report(gate="o", answer=Block("x"), observed=True), limit=3),
            "notyet: sent back 0/3: g",
        ),
        (
            decided("blocked", "g", BROKEN, replace(BROKEN, gate="b", held=True), limit=3),
            "notyet: sent back 0/3: b (no answer); broken: g",
        ),
        (
            decided("blocked", "t", FAILED, *(replace(BROKEN, gate=f"g{n}") for n in range(5))),
            "notyet: sent back 0/0: tests (exit 1); broken: g0, g1, g2 and 2 more",
        ),
        (
            decided("blocked", "t", *(replace(FAILED, gate=f"g{n}") for n in range(5))),
            "notyet: sent back 0/0: g0 (exit 1), g1 (exit 1), g2 (exit 1) and 2 more",
        ),
        (
            decided("blocked", "t", FAILED, replace(BROKEN, observed=True)),
            "notyet: sent back 0/0: tests (exit 1)",
        ),
        (
            decided("skipped", "ledger", warnings=("ledger /l: busy (no gate ran)",)),
            "notyet: NOT CHECKED: ledger /l: busy (no gate ran)",
        ),
        (decided("skipped", "duplicate"), "notyet: NOT CHECKED: duplicate"),
        (
            decided("skipped", "no-session", warnings=("no session_id",)),
            "notyet: NOT CHECKED: no session_id",
        ),
        (
            decided("capped", "tests still failing", BROKEN),
            "notyet: NOT PASSED: tests still failing; broken: g",
        ),
        (decided("capped", "tests still failing"), "notyet: NOT PASSED: tests still failing"),
        (decided("stuck", "no file changed"), "notyet: NOT PASSED: no file changed"),
        (decided("handed_back"), "notyet: NOT PASSED: the agent says it needs you"),
        (
            decided("failed_open", "g", Report(gate="g", answer=Problem("timeout", "no answer"))),
            "notyet: NOT CHECKED: g: no answer",
        ),
        (decided("failed_open", "x gave no answer"), "notyet: NOT CHECKED: x gave no answer"),
        (decided("observed", "g would have blocked"), ""),
        (decided("skipped", "background"), ""),
        (
            decided("passed", "", Report(gate="g", answer=Allow(), tell_user="Be\n  careful.")),
            "Be careful.",
        ),
    ],
)
def test_the_user_reads_one_line(decision, line):
    assert note(decision) == line


def test_a_halt_is_for_the_host_to_tell():
    assert note(Decision(verdict=Halt("enough"), outcome="halted", why="enough")) == ""


@pytest.mark.rule("N3")
def test_a_block_that_could_not_be_counted_is_not_hidden_by_a_broken_gate():
    blocked = Report(gate="a", answer=Block("x"))
    broken = Report(gate="b", answer=Problem("crashed", "boom"))
    decision = decided("failed_open", "a blocked, but the ledger failed", blocked, broken)
    line = "notyet: NOT CHECKED: a blocked, but the ledger failed; broken: b"
    assert note(decision) == line


@pytest.mark.rule("N3")
def test_broken_gates_are_named_whatever_came_of_the_stop():
    broken = Report(gate="b", answer=Problem("crashed", "boom"))
    assert note(decided("handed_back", "", broken)).endswith("needs you; broken: b")
    assert note(decided("halted", "x", broken)) == "notyet: ended by a gate; broken: b"
    assert note(decided("halted", "x")) == ""


@pytest.mark.rule("B11", "N3")
def test_the_user_reads_that_an_earlier_stop_was_overridden():
    line = note(decided("passed", overridden=7))
    gone = "the agent was sent back and did not come again (interrupt, API error or host)"
    assert line == f"notyet: NOT PASSED: {gone} (notyet log 7)"


@pytest.mark.rule("N3")
def test_a_stop_that_was_skipped_was_not_checked_unless_there_was_nothing_to_check():
    groups = {outcome: group_of(outcome, "unchanged") for outcome in OUTCOMES}
    not_passed = {"capped", "stuck", "handed_back", "overridden"}
    assert {name for name, group in groups.items() if group == "not_passed"} == not_passed
    assert {name for name, group in groups.items() if group == "not_checked"} == {"failed_open"}
    for cause in ("untrusted", "off", "ledger", "deadline", "lost"):
        assert group_of("skipped", cause) == "not_checked"


@pytest.mark.rule("N3")
def test_the_user_reads_which_gates_no_change_skipped():
    line = note(decided("skipped", why="unchanged", unchanged=("tests", "lint")))
    assert line == "notyet: not checked: no file changed since this session began (tests, lint)"


@pytest.mark.rule("N3")
def test_the_user_reads_which_subagents_did_not_pass():
    line = note(decided("passed", subagents=("subagent a: NOT PASSED: g failed",)))
    assert line == "notyet: subagent a: NOT PASSED: g failed"


@pytest.mark.rule("N3")
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_loud_words_name_the_stop_in_the_log_and_no_others_do(outcome):
    line = note(decided(outcome, "ledger", stop=4))
    is_loud = any(word in line for word in ("NOT PASSED", "NOT CHECKED"))
    assert is_loud == line.endswith(" (notyet log 4)")
    assert is_loud == (outcome in {"capped", "stuck", "handed_back", "failed_open", "skipped"})
