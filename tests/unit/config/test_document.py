import pytest

from notyet.config.document import Mistake, did_you_mean

KNOWN = ("max_blocks", "session_ceiling", "paths", "run", "for", "if_broken", "timeout", "env")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({"line": 3, "column": 7}, "a.toml:3:7: it is wrong (try this)"),
        ({"line": 3}, "a.toml:3: it is wrong (try this)"),
        ({}, "a.toml: it is wrong (try this)"),
        ({"line": 1, "column": 1, "hint": ""}, "a.toml:1:1: it is wrong"),
    ],
)
def test_a_mistake_is_written_as_compilers_do_with_its_hint_behind(place, text):
    said = {"file": "a.toml", "message": "it is wrong", "hint": "try this"} | place
    assert str(Mistake(**said)) == text


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("maxBlocks", "max_blocks"),
        ("max-blocks", "max_blocks"),
        ("pahts", "paths"),
        ("tiemout", "timeout"),
        ("time_out", "timeout"),
        ("runs", "run"),
        ("fro", "for"),
        ("enviroment", ""),
        ("xyz", ""),
        ("", ""),
        ("x" * 10_000, ""),
    ],
)
def test_a_typo_another_case_or_another_separator_is_understood(word, meant):
    assert did_you_mean(word, KNOWN) == (f"did you mean `{meant}`?" if meant else "")
