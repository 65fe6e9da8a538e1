import pytest

from notyet.core.matcher import glob_error, glob_matches


@pytest.mark.rule("D1")
@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("coder", "coder", True),
        ("coder", "Coder", False),
        ("coder", "coder2", False),
        ("*", "", True),
        ("*", "anything", True),
        ("test*", "tester", True),
        ("test*", "a-test", False),
        ("*coder", "auto-coder", True),
        ("*coder", "coder-x", False),
        ("agent_[0-9]*", "agent_1", True),
        ("agent_[0-9]*", "agent_2x", True),
        ("agent_[0-9]*", "agent_x", False),
        ("[!a-c]x", "dx", True),
        ("[!a-c]x", "bx", False),
        ("[]a]", "]", True),
        ("[!]a]", "b", True),
        ("[!]a]", "]", False),
        ("[a-]", "-", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("[*]", "*", True),
        ("[*]", "x", False),
        ("[?]", "?", True),
        ("a**b", "a--b", True),
        ("*a*b*c*", "xxaxxbxxcxx", True),
        ("*a*b*c*", "xxaxxcxxbxx", False),
        ("é*", "été", True),
    ],
)
def test_globs_match_whole_names_and_case_counts(pattern, text, fits):
    assert glob_matches(pattern, text) is fits


@pytest.mark.rule("D1")
@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("[abc", "never closed"),
        ("[]", "never closed"),
        ("[z-a]", "backwards"),
        ("{a,b}", "braces"),
    ],
)
def test_a_bad_pattern_is_an_error_that_says_what_is_wrong(pattern, words):
    assert words in glob_error(pattern)
    with pytest.raises(ValueError, match=words):
        glob_matches(pattern, "x")


def test_a_good_pattern_has_no_error():
    assert glob_error("impl-[a-z]?*") == ""


def test_many_stars_do_not_take_for_ever():
    assert not glob_matches("*a" * 40 + "b", "a" * 400)
