"""Claude Code under `guard = "tests"`: a weaker check goes back, unless the agent names it."""

import pytest

from clients.conftest import newest_claude
from clients.model.script import Run, Say

GUARD = '[gates.guard]\nguard = "tests"\n'
TESTS = """\
from sums import add, multiply


def test_adds():
    assert add(1, 1) == 2


def test_multiplies():
    assert multiply(2, 3) == 6
"""
DELETES = Run("sed -i '/^def test_multiplies/,$d' tests/test_sums.py")
NAMES = Say("I removed `test_multiplies`: sums no longer multiply.")


@pytest.fixture
def guarded(claude):
    """Return a function that has the agent work in a project with tests, under a guard."""
    (claude.project / "tests").mkdir()
    (claude.project / "tests" / "test_sums.py").write_text(TESTS)
    claude.git("add", ".")
    claude.git("commit", "--quiet", "-m", "tests")

    def run(steps, more=""):
        claude.gates(GUARD + more)
        claude.install()
        return claude.run(steps)

    return run


@newest_claude
def test_an_agent_that_deletes_a_failing_test_is_sent_back_with_the_finding(claude, guarded):
    restores = Run("git checkout --quiet -- tests")
    ran = guarded([DELETES, Say("All tests pass."), restores, Say("It is back.")])
    assert claude.outcomes() == ["blocked", "passed"]
    (prompt,) = claude.WIRE.prompts(ran.model.asked()[2].news)
    assert "tests/test_sums.py:8: 1 test removed: test_multiplies" in prompt
    assert "before: def test_multiplies():" in prompt
    assert "name each file or test (in quotes) in your final message" in prompt
    assert "test_multiplies" in (claude.project / "tests" / "test_sums.py").read_text()
    assert ran.text == "It is back."


@newest_claude
def test_an_agent_that_names_the_test_passes_and_its_user_is_told(claude, guarded):
    ran = guarded([DELETES, Say("All tests pass."), NAMES])
    assert claude.outcomes() == ["blocked", "passed"]
    assert ran.text == NAMES.text
    assert claude.tells_user(ran, "declared: tests/test_sums.py:8: 1 test removed")


@newest_claude
def test_a_strict_guard_does_not_accept_the_agents_word(claude, guarded):
    limit = "strict = true\n[limits]\nmax_blocks = 1\nstuck_after = 0\n"
    ran = guarded([DELETES, NAMES, NAMES], limit)
    assert claude.outcomes() == ["blocked", "capped"]
    (prompt,) = claude.WIRE.prompts(ran.model.asked()[2].news)
    assert "Restore it." in prompt
    assert "name each file" not in prompt
    assert claude.tells_user(ran, "NOT PASSED: guard still failing")
