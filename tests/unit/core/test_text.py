import time

import pytest

from notyet.core.text import bounded, clean, first_line, joined, listed, masked, visible


@pytest.mark.parametrize(
    ("dirty", "tidy"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;38;5;196mx", "x"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never closed", "]never closed"),
        ("\x1b]broken off\x1b[31mred\x07", "]broken offred"),
        ("\x1b]8;;x\x1b]0;title\x07text", "]8;;xtext"),
        ("\x1b[31é", "é"),
        ("\x1b\x1b[31mred\x1b\nnext", "red\nnext"),
        ("\x1b(Bx", "x"),
        ("\x1b(", ""),
        ("\x1bcx", "x"),
        ("cut \x1b", "cut "),
        ("cut \x1b[12", "cut "),
        ("a\r\nb\rc", "a\nb\nc"),
        ("tab\tkept", "tab\tkept"),
        ("nul\x00bell\x07del\x7fc1\x85", "nulbelldelc1"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("pay\u202etxt.exe\u2066\u200b\ufeff\u061c", "paytxt.exe"),
        ("two\u2028lines", "two\nlines"),
        ("naïve ✓ 日本", "naïve ✓ 日本"),
    ],
)
def test_clean_text_has_no_escapes_or_control_characters(dirty, tidy):
    assert clean(dirty) == tidy


def test_short_text_is_not_touched():
    assert bounded("short", 5) == "short"


def test_long_text_keeps_its_head_and_more_of_its_tail():
    text = "".join(f"{n:04}" for n in range(1000))
    short = bounded(text, 300)
    assert len(short) <= 300
    head, mark, tail = short.split("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(tail) > len(head)
    assert "3700 characters left out" in mark


@pytest.mark.parametrize("limit", [0, 1, 10, 30])
def test_a_tiny_limit_is_kept_too(limit):
    assert len(bounded("x" * 1000, limit)) <= limit


@pytest.mark.rule("A4")
def test_what_gates_said_is_joined_by_a_blank_line():
    assert joined([" one\n", "two"]) == "one\n\ntwo"


@pytest.mark.rule("B6")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 failed in 1.23s", "12 failed in 900.5s"),
        ("took 900 ms", "took 1.2 seconds"),
        ("took 900ms.", "took 2s."),
        ("(0.31s)", "(12 ms)"),
        ("at 0x7f3a9c", "at 0x55d0"),
        ("commit 8f3c2d1e", "commit 91ab00ff"),
        ("at 10:21:33", "at 11:00:01"),
        ("line 12, column 3", "line 7, column 44"),
        ("1,234 rows", "98 rows"),
        ("pid 1234\n5 left", "pid 77\n6 left"),
    ],
)
def test_masking_hides_what_differs_between_two_runs_of_one_failure(one, other):
    assert masked(one) == masked(other)


@pytest.mark.rule("B6")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("test_add failed", "test_sub failed"),
        ("3 failed", "3 passed"),
        ("decade", "facade"),
        ("needs 2 s", "needs 2 tests"),
        ("a b", "a  b"),
    ],
)
def test_masking_keeps_words_apart(one, other):
    assert masked(one) != masked(other)


def test_masking_leaves_plain_words_alone():
    assert masked("deadbeef is a word, s is not a unit here") == (
        "deadbeef is a word, s is not a unit here"
    )


HOSTILE = {
    "strings that never end": "\x1b]",
    "strings, and a bell far away": "\x1b]x" * 50 + "\x07",
    "strings with a bell each": "\x1b]x\x07",
    "strings that are closed": "\x1b]x\x1b\\",
    "strings of every kind": "\x1bP\x1bX\x1b^\x1b_",
    "sequences without an end": "\x1b[",
    "sequences with parameters": "\x1b[1;1;1",
    "charsets": "\x1b((((",
    "escapes only": "\x1b",
    "bells only": "\x07",
    "zero width": "\u200b",
    "surrogates": "\ud800",
}


@pytest.mark.uncounted
@pytest.mark.rule("E5")
@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("tail", ["", "\x07", "\x1b\\"], ids=["open", "bell", "closed"])
def test_a_megabyte_of_hostile_text_is_cleaned_in_no_time(pattern, tail):
    text = pattern * (1_000_000 // len(pattern)) + tail
    started = time.process_time()
    tidy = clean(text)
    assert time.process_time() - started < 5
    assert not set(tidy) & {"\x1b", "\x07", "\u200b", "\ud800"}


def test_nothing_can_hide_in_what_is_made_visible():
    assert visible("plain ü 日本") == "plain ü 日本"
    assert visible("a\nb\x1b[1m\u202e\udc80\0") == r"a\nb\x1b[1m\u202e\udc80\x00"


def test_a_first_line_is_cut_at_its_end():
    assert first_line("one\ntwo") == "one ..."
    assert first_line("x" * 1000) == "x" * 157 + "..."
    assert first_line("") == ""


def test_a_list_of_names_is_short():
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
