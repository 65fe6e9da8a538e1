"""What is said about the end of a command elsewhere, and what it is taken to mean."""

from types import SimpleNamespace

import pytest

from notyet.run.remote_exit import ending

JOB = SimpleNamespace(remote=SimpleNamespace(host="box"), argv=("make",), dir="/srv")


@pytest.mark.rule("M1")
@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (b"0", {"code": 0}),
        (b"255", {"code": 255}),
        (b"143", {"code": 143}),
        (b"143 77\n[1] + 77 Done(143)", {"code": 143}),
        (b"143 77\n[1] + 77 Terminated", {"signal": 15}),
        (b"143 77\n[2]- 76 Done  printf\n     77 Exit 143  | x", {"code": 143}),
        (b"139 77\n[2]- 76 Done  printf\n     77 Segmentation fault  | x", {"signal": 11}),
        (b"139 77\n\n[2] + 76 Bus error  |\n      77   \n[1] + 75 Running", {"signal": 11}),
        (b"137 77\n\n[2]+  76 Done(137)\n      77      | \n[1]+  75 Killed", {"code": 137}),
        (b"143 77\n[1] + 78 Terminated", {"code": 143}),
        (b"143 77\n[1] + 77 Running", {"code": 143}),
        (b"143 77\n[1] + 77 ", {"code": 143}),
        (b"143 77\n[1] + 7 Killed  kill 77 now", {"code": 143}),
        (b"250 77\n[1] + 77 Terminated", {"code": 250}),
    ],
)
def test_it_is_a_code_unless_a_shell_knows_that_it_was_a_signal(words, meaning):
    said, _, jobs = words.partition(b"\n")
    assert ending(JOB, said, jobs) == (meaning.get("code"), meaning.get("signal", 0), "")


@pytest.mark.rule("M3")
@pytest.mark.parametrize("word", ["256", "271", "999", "9" * 6000, "x-program", "²", "-1", ""])
def test_what_nobody_can_have_said_is_a_problem_and_not_repeated(word):
    problem = "on box: what was said about its end was not understood"
    assert ending(JOB, word.encode(), b"") == (None, 0, problem)
