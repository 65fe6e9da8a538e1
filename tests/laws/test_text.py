"""Laws of globs and text."""

import fnmatch

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from notyet.core.matcher import glob_error, glob_matches
from notyet.core.text import bounded, clean, masked

names = st.text(alphabet="ab-*?[]!", max_size=8)


@pytest.mark.rule("D1")
@given(names, names)
def test_every_good_pattern_means_what_fnmatch_says(pattern, text):
    assume(not glob_error(pattern))
    assert glob_matches(pattern, text) == fnmatch.fnmatchcase(text, pattern)


@given(st.text())
def test_a_pattern_is_good_or_says_why_and_never_crashes(pattern):
    if glob_error(pattern):
        with pytest.raises(ValueError):
            glob_matches(pattern, "x")
    else:
        assert glob_matches(pattern, "x") in (True, False)


@given(st.text(), st.integers(0, 300))
def test_bounded_text_is_never_longer_than_allowed(text, limit):
    assert len(bounded(text, limit)) <= limit


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b[]\x07\\m\r\n\x00")))
def test_clean_text_is_clean_and_cleaning_again_changes_nothing(text):
    tidy = clean(text)
    assert "\x1b" not in tidy
    assert "\x00" not in tidy
    tidy.encode()
    assert clean(tidy) == tidy


@given(st.text(alphabet="abcdef0123456789 .,:smx()\n"))
def test_masking_is_stable_and_hides_every_digit(text):
    hidden = masked(text)
    assert not any(character.isdigit() for character in hidden)
    assert masked(hidden) == hidden
