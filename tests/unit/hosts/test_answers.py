"""What the answers of hook commands have in common, and what every reply does."""

import pytest

from notyet.core.gate import Exit
from notyet.core.record import replace
from notyet.core.verdict import Problem
from notyet.hosts import hook_answers
from notyet.hosts.wire import presentable, prompt_for
from notyet.light import loads
from wire import gate_of

GATE = gate_of("claude", {})


@pytest.mark.parametrize(
    ("exit_", "problem"),
    [
        (Exit(problem="there is no bash"), Problem("cannot_start", "there is no bash")),
        (Exit(problem="it was lost", lost=True), Problem("unreachable", "it was lost")),
        (
            Exit(timed_out=True, signal=15),
            Problem("timeout", "did not finish within 30 s: it hangs or is too slow"),
        ),
        (Exit(cancelled=True), Problem("crashed", "it was ended before it could answer")),
        (Exit(signal=9), Problem("killed", "was ended by signal 9")),
        (Exit(code=0), None),
        (Exit(code=2), None),
    ],
)
def test_what_kept_a_command_from_answering_is_said(exit_, problem):
    assert hook_answers.problem_of(GATE, exit_) == problem


@pytest.mark.rule("E9")
@pytest.mark.parametrize(
    ("timeout", "seconds", "within"),
    [
        (600, 600.1, "10 min"),
        (60, 60, "1 min"),
        (90, 90.2, "90 s"),
        (0.5, 0.5, "0.5 s"),
        (600, 57.04, "57.0 s, all that its host allows"),
        (None, 4.0, "4.0 s, all that its host allows"),
    ],
)
def test_a_command_that_does_not_finish_is_told_how_long_it_had(timeout, seconds, within):
    ended = Exit(timed_out=True, signal=15, seconds=seconds)
    problem = hook_answers.problem_of(replace(GATE, timeout=timeout), ended)
    assert str(problem) == f"did not finish within {within}: it hangs or is too slow"


@pytest.mark.rule("E5")
def test_words_are_clean_text_whatever_was_printed():
    assert hook_answers.words(b"\xff\x00\x1b[31mred\x1b[0m\r\n\x9b ") == "\ufffdred\n\ufffd"


def test_one_json_object_is_an_answer_and_nothing_else_is():
    assert hook_answers.json_object(b'\xef\xbb\xbf {"a": 1}\n') == {"a": 1}
    for printed in (b"", b"x", b"[1]", b"{", b'{"a":1} x', b'{"a":"\n"}', b"{" * 99_999):
        assert hook_answers.json_object(printed) is None
    assert hook_answers.json_object(b'{"a":"\n"}', loads) == {"a": "\n"}


@pytest.mark.rule("E5")
def test_presentable_text_has_no_escapes_and_no_half_characters():
    assert presentable("one\n\ttwo") == "one\n\ttwo"
    assert presentable("a\x1b[1mb\ud800\0\r\nc") == "ab\nc"


@pytest.mark.parametrize(
    ("unit", "letter", "size"),
    [
        ("characters", "a", len),
        ("utf-8", "😀", lambda text: len(text.encode())),
        ("utf-16", "😀", lambda text: len(text.encode("utf-16-le")) // 2),
    ],
)
def test_a_prompt_is_never_blank_and_never_larger_than_its_host_shows(unit, letter, size):
    assert prompt_for(letter, 9_000, unit) == letter
    assert prompt_for(" \x07", 9_000, unit) == "Not yet."
    for count in (2_000, 2_500, 9_001, 30_000):
        assert size(prompt_for(letter * count, 9_000, unit)) <= 9_000
    mixed = "a" * 20_000 + "😀" * 20_000
    assert size(prompt_for(mixed, 9_000, unit)) <= 9_000
