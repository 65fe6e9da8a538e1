import pytest

from notyet import Allow, Block, Halt, Problem, Report
from notyet.core.verdict import OUTCOMES, outcome_words


@pytest.mark.rule("A5")
@pytest.mark.parametrize("prompt", ["", "   ", "\n\t", None, 7])
def test_a_block_without_words_cannot_be_built(prompt):
    with pytest.raises(ValueError, match="a Block needs words"):
        Block(prompt)


@pytest.mark.rule("B2")
@pytest.mark.parametrize("extend", [-1, True, 1.5, "4", None])
def test_an_extension_is_a_whole_number(extend):
    with pytest.raises(ValueError, match="whole number"):
        Allow(extend=extend)
    with pytest.raises(ValueError, match="whole number"):
        Block("x", extend=extend)


def test_a_halt_may_be_wordless():
    assert Halt().reason == ""


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Allow(), "allowed"),
        (Block("x"), "blocked"),
        (Halt(), "halted"),
        (Problem("timeout", "x"), "problem"),
        (None, "not_asked"),
    ],
)
def test_a_report_has_one_word_for_its_answer(answer, status):
    assert Report(gate="g", answer=answer).status == status


@pytest.mark.rule("N1")
def test_a_report_of_a_gate_that_was_spared_says_why():
    assert Report(gate="g", answer=Allow(), spared="passed").status == "remembered"
    assert Report(gate="g", answer=Allow(), spared="unchanged").status == "unchanged"


def test_a_problem_reads_as_kind_and_detail():
    assert str(Problem("crashed", "ValueError: x")) == "crashed: ValueError: x"
    assert str(Problem("cannot_start", "./x: not found")) == "cannot start: ./x: not found"
    assert str(Problem("timeout", "did not finish")) == "did not finish"


@pytest.mark.rule("A8")
def test_the_outcomes_are_the_ten_words_of_the_contract():
    assert len(OUTCOMES) == len(set(OUTCOMES)) == 10


@pytest.mark.parametrize(
    ("outcome", "why", "words"),
    [
        ("passed", "", "passed"),
        ("observed", "lint would have blocked", "observed"),
        ("blocked", "tests", "sent back"),
        ("halted", "tests", "halted"),
        ("stuck", "tests", "NOT PASSED"),
        ("overridden", "tests", "NOT PASSED"),
        ("failed_open", "tests", "NOT CHECKED"),
        ("skipped", "off", "NOT CHECKED"),
        ("skipped", "unchanged", "skipped"),
        ("asking", "", "being checked"),
        ("", "", ""),
    ],
)
def test_people_read_an_outcome_in_words(outcome, why, words):
    assert outcome_words(outcome, why) == words
