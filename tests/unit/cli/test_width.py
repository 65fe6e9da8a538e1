"""How wide a text is on a terminal."""

import pytest

from notyet.cli.lines import in_a_line
from notyet.cli.terminal import columns_of, cut, padded


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("lint", 4), ("tëst", 4), ("測試", 4), ("ok測", 4), ("e\u0301", 1), ("😀", 2)],
)
def test_wide_letters_take_two_columns_and_accents_none(text, columns):
    assert columns_of(text) == columns
    assert columns_of(padded(text, 9)) == 9


@pytest.mark.parametrize(
    ("text", "most", "rest"),
    [
        ("lint", 2, "li"),
        ("lint", -1, ""),
        ("測試a", 4, "測試"),
        ("測試a", 3, "測"),
        ("測試a", 5, "測試a"),
        ("測", -1, ""),
    ],
)
def test_a_text_is_cut_to_whole_letters(text, most, rest):
    assert cut(text, most) == rest


def test_a_line_is_cut_by_its_columns():
    assert in_a_line("測" * 10, 20) == "測" * 10
    assert in_a_line("測" * 10, 19) == "測" * 7 + " ..."
