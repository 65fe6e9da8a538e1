import math

import pytest

from notyet.config.document import name_of, quoted
from notyet.config.shapes import (
    Choice,
    Either,
    Field,
    Flag,
    Glob,
    ListOf,
    MapOf,
    Number,
    Seconds,
    Table,
    Text,
    Whole,
    check,
)

BOOK = Table(
    fields={
        "title": Field(Text(), required=True, doc="Its name."),
        "pages": Field(Whole(least=1), default=100, doc="How | many."),
        "tags": Field(ListOf(item=Text(), least=1), default=["new"], also=("labels",)),
        "lent": Field(Flag()),
    }
)


def messages(value, shape):
    return [message for _path, message, _hint in check(value, shape)[1]]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90.0),
        (0.5, 0.5),
        ("90s", 90.0),
        ("1.5s", 1.5),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("1h1m1s1ms", 3661.001),
        ("500ms", 0.5),
    ],
)
def test_a_time_span_is_a_number_of_seconds_or_text_with_units(text, seconds):
    clean, found = check(text, Seconds())
    assert found == []
    assert isinstance(clean, float)
    assert clean == pytest.approx(seconds)


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "s", "10", "10 m", "m10", "30m1h", "-5s", "1d", "0s", "25h", "9" * 5000 + "s"),
        *(True, None, [], 0, -1, math.nan, math.inf, 10**400),
    ],
)
def test_what_is_no_time_span_is_refused(wrong):
    clean, found = check(wrong, Seconds())
    assert clean is None
    assert len(found) == 1


@pytest.mark.parametrize(
    ("value", "shape", "message"),
    [
        (3, Text(), "the file must be a string, not 3"),
        ("a\0b", Text(), "the file contains a NUL character or an unpaired surrogate"),
        ("a\nb", Text(line=True), "the file contains a line break or control character"),
        ("abc", Text(most=2), "the file is longer than 2 characters"),
        ("abc", Text(pattern="[0-9]+", words="digits"), 'the file must be digits, not "abc"'),
        ("true", Flag(), 'the file must be true or false, not "true"'),
        (True, Whole(), "the file must be a whole number of at least 0, not true"),
        (math.nan, Number(), "the file must be a number of at least 0, not nan"),
        ({}, Choice(("a", "b", "c")), 'the file must be "a", "b" or "c", not a table'),
        (None, Glob(), "the file must be a pattern, not null"),
        ("\0", Glob(), "the file is not a valid pattern: it is not readable text"),
        ({}, ListOf(item=Text()), "the file must be a list of strings, not a table"),
        ([], MapOf(item=Text()), "the file must be a table of strings, not a list"),
        ("x", BOOK, 'the file must be a table, not "x"'),
        (5, Either((Text(), BOOK)), "the file must be a string or a table, not 5"),
    ],
)
def test_a_wrong_value_is_refused_in_words_that_fit_every_format(value, shape, message):
    assert messages(value, shape) == [message]


@pytest.mark.parametrize(
    ("value", "shape", "hint"),
    [
        ("true", Flag(), "write it without quotes"),
        ("yes", Flag(), "write true"),
        ("12", Whole(), "write it without quotes"),
        (12, Text(), "write it in quotes"),
        ("alow", Choice(("allow", "block")), "did you mean `allow`?"),
        ({"title": "x", "labels": []}, BOOK, "did you mean `tags`?"),
        ({"title": "x", "Pages": 1}, BOOK, "did you mean `pages`?"),
        ({"title": "x", "isbn": 1}, BOOK, "known keys: title, pages, tags, lent"),
    ],
)
def test_a_mistake_comes_with_a_hint_where_one_is_known(value, shape, hint):
    assert [said for _path, _message, said in check(value, shape)[1]] == [hint]


def test_a_key_that_is_only_misspelt_is_not_missing_as_well():
    assert messages({"titel": "x"}, BOOK) == ["`titel` is not a known key"]
    assert check({"titel": "x"}, BOOK)[0] is None
    assert messages({}, BOOK) == ["the file needs `title`"]


def test_keys_may_depend_on_each_other():
    shape = Table(
        fields={key: Field(Text()) for key in "abcde"},
        one_of=("a", "b"),
        apart=(("c", "d"),),
        needs=(("e", "b"),),
        if_is=(("c", "x", "d"),),
    )
    assert messages({}, shape) == ["the file needs `a` or `b`"]
    assert messages({"b": "", "a": "1"}, shape) == [
        "`b` must not be blank",
        "the file has both `b` and `a`",
    ]
    assert messages({"b": "1", "c": "y", "d": "1"}, shape) == ["the file has both `d` and `c`"]
    assert messages({"a": "1", "e": "1"}, shape) == ["`e` has no effect without `b`"]
    assert messages({"a": "1", "c": "x"}, shape) == ["the file needs `d`"]
    assert messages({"b": "1", "e": "1"}, shape) == []


def test_a_pattern_that_looks_like_a_word_was_meant_to_be_that_word():
    assert messages("Mian", Glob(unlike=("main",))) == [
        'the file is "Mian", which looks like "main"'
    ]
    assert messages("main*", Glob(unlike=("main",))) == []
    assert messages("coder", Glob(unlike=("main",))) == []


def test_a_path_is_written_as_people_write_it_and_never_breaks_the_line():
    assert name_of(("gates", "a b", 2, "x\ny")) == '`gates."a b"[2]."x\\x0ay"`'
    assert len(name_of(("k" * 10_000,))) < 100
    assert quoted("\ud800") == '"\ufffd"'
