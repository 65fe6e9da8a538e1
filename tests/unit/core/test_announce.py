"""The words that bring a subagent's result to its parent."""

import pytest

from notyet.core.message import announced
from notyet.core.task import Result


def result(**fields):
    return Result(**({"task_id": "t1", "text": "found it", "outcome": "passed"} | fields))


def test_a_report_names_its_subagent_and_follows_in_full():
    assert announced(result(label="finder", agent_type="coder")) == (
        "Subagent finder has finished.\nIts report:\nfound it"
    )
    assert announced(result(agent_type="coder")).startswith("Subagent coder has finished.")
    assert announced(result()).startswith("Subagent t1 has finished.")


@pytest.mark.rule("C2", "C3", "C4")
@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("error", "failed"),
        ("timeout", "ran out of time"),
        ("killed", "was killed"),
        ("reset", "was reset"),
        ("interrupted", "was interrupted"),
    ],
)
def test_every_ending_has_its_words(ending, words):
    said = announced(result(ending=ending, error="boom", text=""))
    assert said == f"Subagent t1 {words}.\nError: boom\nIt gave no report."


@pytest.mark.rule("K15")
@pytest.mark.parametrize("outcome", ["capped", "stuck", "handed_back", "failed_open", "halted"])
def test_work_that_did_not_pass_is_never_announced_as_if_it_had(outcome):
    said = announced(result(outcome=outcome, stop_reason="budget spent"))
    assert f"Its work did not pass the checks ({outcome}: budget spent)." in said
    assert f"({outcome})." in announced(result(outcome=outcome))


@pytest.mark.parametrize("outcome", ["passed", "skipped", "observed"])
def test_work_that_passed_or_met_no_gate_is_announced_plainly(outcome):
    assert "did not pass" not in announced(result(outcome=outcome))


@pytest.mark.rule("K19")
def test_a_rejected_answer_is_announced_as_one():
    assert announced(result(text=" ", rejected="earlier", outcome="capped")) == (
        "Subagent t1 has finished.\n"
        "Its work did not pass the checks (capped).\n"
        "It gave no final report. An earlier one, which the checks may have rejected, was:\n"
        "earlier"
    )


def test_a_report_is_clean_and_bounded():
    said = announced(result(text="\x1b[31mred\x1b[0m\x00 " + "x" * 500_000, label="a\nb"))
    assert "\x1b" not in said
    assert "\x00" not in said
    assert len(said) < 110_000
