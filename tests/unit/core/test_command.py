"""`Command` as data: what can be one, and what cannot."""

import pytest

from notyet.core.gate import COMMAND_DIALECTS, Command, Exit


def test_a_command_is_a_script_or_a_list_of_words():
    assert Command(script=" make test\n").line == "make test"
    assert Command(argv=["make", "test"]).argv == ("make", "test")
    assert Command(argv=("make", "test")).line == "make test"
    assert Command(script="x").shell == "/bin/sh"
    assert Command(script="x", env=[["A", "1"]]).env == (("A", "1"),)


@pytest.mark.parametrize("fields", [{}, {"script": " \n"}, {"script": "x", "argv": ("y",)}])
def test_a_command_is_exactly_one_of_the_two(fields):
    with pytest.raises(ValueError, match="either a script or an argv"):
        Command(**fields)


def test_a_command_speaks_a_dialect_that_is_known():
    assert COMMAND_DIALECTS == ("notyet", "claude", "codex", "mux", "conclaude")
    for name in COMMAND_DIALECTS:
        assert Command(script="x", speaks=name).speaks == name
    with pytest.raises(ValueError, match="speaks is one of notyet, claude"):
        Command(script="x", speaks="openclaw")


@pytest.mark.parametrize(
    "fields",
    [
        {"script": "a\0b"},
        {"argv": ("a", "b\0")},
        {"script": "x", "dir": "\0"},
        {"script": "x", "shell": "s\0h"},
    ],
)
def test_nul_cannot_be_part_of_a_command(fields):
    with pytest.raises(ValueError, match="NUL"):
        Command(**fields)


def test_an_exit_without_a_word_is_no_code_and_no_output():
    ended = Exit()
    assert (ended.code, ended.signal, ended.timed_out, ended.cancelled) == (None, 0, False, False)
    assert (ended.stdout, ended.stderr, ended.problem) == (b"", b"", "")
