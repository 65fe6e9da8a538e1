"""Agents that say `end_turn` after a failed call of their model: what tells them from finished."""

import pytest

from notyet.acp.heard import Facts
from notyet.acp.turns import Spending

USED, MORE = {"inputTokens": 7}, {"inputTokens": 9}
FAILED = "Ran into this error: Bad request (400)"


def why(end, text="Done.", *, before=None, sums_up=False, signs=()):
    """Return why an end is no finished turn, after one that used `before`."""
    spending = Spending()
    facts = Facts(text=text, has_acted=bool(text), tools=(), tool_calls=0, usage=None)
    if before is not None:
        spending.failed_call({"usage": before}, facts, sums_up=sums_up, signs=signs)
    return spending.failed_call(end, facts, sums_up=sums_up, signs=signs)


def test_an_end_without_a_word_is_a_failed_call():
    assert "without a word" in why({}, "")
    assert not why({})


@pytest.mark.parametrize(("end", "before"), [({"usage": None}, None), ({}, USED)])
def test_no_tokens_where_the_agent_reports_them_are_a_failed_call(end, before):
    assert "reports no tokens" in why(end, before=before)


def test_a_sum_that_stays_the_same_is_a_failed_call():
    assert "used no tokens" in why({"usage": USED}, before=USED, sums_up=True)
    assert not why({"usage": MORE}, before=USED, sums_up=True)
    assert not why({"usage": USED}, before=USED)  # two turns that cost the same


@pytest.mark.parametrize("end", [{}, {"usage": USED}, {"usage": MORE}])
@pytest.mark.parametrize("before", [None, USED])
def test_words_of_the_agent_are_a_failed_call_also_beside_the_tokens_of_another_one(end, before):
    assert why(end, FAILED, before=before, signs=("Ran into this error",))
    assert not why(end, f"I {FAILED}", before=None, signs=("Ran into this error",))


def test_words_that_answers_begin_with_too_are_none_where_tokens_were_used():
    signs = ("Error: ",)
    assert why({}, "Error: 400", sums_up=True, signs=signs)
    assert not why({"usage": MORE}, "Error: 3 tests", before=USED, sums_up=True, signs=signs)
