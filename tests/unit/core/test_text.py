import pytest

from notyet.core.text import bounded, clean, joined, masked


@pytest.mark.parametrize(
    ("dirty", "tidy"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;38;5;196mx", "x"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never closed", "]never closed"),
        ("\x1b(Bx", "x"),
        ("\x1b(", ""),
        ("\x1bcx", "x"),
        ("cut \x1b", "cut "),
        ("cut \x1b[12", "cut "),
        ("a\r\nb\rc", "a\nb\nc"),
        ("tab\tkept", "tab\tkept"),
        ("nul\x00bell\x07del\x7fc1\x85", "nulbelldelc1"),
        ("lone \ud800 surrogate", "lone  surrogate"),
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


def test_cleaning_hostile_text_takes_no_longer_than_its_length_deserves():
    for hostile in ("\x1b]" * 200_000, "\x1b[" * 200_000, ("\x1b]" * 50 + "\x07") * 2000):
        assert "\x1b" not in clean(hostile)
