"""Moments as people write them, and as they read them."""

import argparse
import time

import pytest

from notyet.cli.times import since_option, until_option
from notyet.times import age, exactly, since, until, when

NOW = time.mktime((2026, 11, 15, 12, 0, 0, 0, 0, -1))


def local(*parts):
    return time.mktime((*parts, *(0,) * (6 - len(parts)), 0, 0, -1))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2d", 172_800), ("90m", 5_400), ("1h30m", 5_400), ("1w", 604_800), ("0.5h", 1_800)],
)
def test_a_span_means_so_long_ago(text, seconds):
    assert since(text, NOW) == until(text, NOW) == NOW - seconds


def test_a_date_means_its_beginning_or_its_end():
    assert since("2026-11-01", NOW) == local(2026, 11, 1)
    assert until("2026-11-01", NOW) == local(2026, 11, 2)
    assert since("today", NOW) == local(2026, 11, 15)
    assert since(" Yesterday ", NOW) == local(2026, 11, 14)
    assert until("yesterday", NOW) == local(2026, 11, 15)


def test_a_time_of_day_is_local_unless_it_names_a_zone():
    assert since("2026-11-01T14:30", NOW) == local(2026, 11, 1, 14, 30)
    assert until("2026-11-01 14:30", NOW) == local(2026, 11, 1, 14, 30)
    assert since("1970-01-02T00:00:00+00:00", NOW) == 86_400
    assert since("1970-01-02T00:00:00Z", NOW) == 86_400


@pytest.mark.parametrize(
    "text",
    ["", "2", "d", "2x", "1.2.3d", "2d3", "2026-13-01", "soon", "9" * 100, "\x1b[31m", "-2d"],
)
def test_anything_else_is_refused_with_examples(text):
    with pytest.raises(ValueError, match=r"invalid time .*; try 2d, 90m") as found:
        since(text, NOW)
    assert str(found.value).isprintable()
    for option in (since_option, until_option):
        with pytest.raises(argparse.ArgumentTypeError, match="invalid time"):
            option(text)


def test_a_span_longer_than_time_itself_means_before_everything():
    assert since("9999999d", NOW) == NOW - 9999999 * 86_400
    assert until("1970-01-01T00:00+00:00") < 0.001
    assert until("1970-01-01T00:00+00:00")  # which is a moment, and not the lack of one


def test_a_moment_is_told_as_short_as_it_is_understood():
    assert when(NOW - 60, NOW) == "11:59:00"
    assert when(NOW - 86_400, NOW) == "Nov 14 12:00"
    assert when(NOW - 400 * 86_400, NOW) == "2025-10-11"
    assert when(float("nan")) == when(1e300) == exactly(1e300) == "?"
    assert exactly(NOW).startswith("2026-11-15 12:00:00")
    assert [age(s) for s in (-1, 0.25, 12, 90, 7_200, 200_000)] == [
        "0.0s", "0.2s", "12s", "2m", "2h", "2d",
    ]  # fmt: skip
