"""How Claude Code and Codex read a matcher."""

import subprocess
import sys

import pytest

from notyet.core.gate import Match
from notyet.core.matcher import matches, pattern_error

CLAUDE = [
    ("", "anything", True),
    ("*", "anything", True),
    ("general", "general-purpose", False),
    ("general-purpose", "general-purpose", True),
    ("Explore|Plan", "Plan", True),
    ("Explore|Plan", "Explore|Plan", False),
    ("Explore, Plan", "Plan", True),
    ("Explore,Plan", "Planner", False),
    ("explore", "Explore", False),
    ("Exp*", "Explore", True),  # a regular expression: "Ex", then any number of "p"
    ("Exp*", "My-Ex", True),
    ("Exp.*e$", "Explore", True),
    ("^plugin:name$", "plugin:name", True),
    ("plugin:name", "my-plugin:name2", True),
    ("^review", "code-reviewer", False),
    ("a||b", "b", True),
    ("code reviewer", "code reviewer", True),
    ("Ünit", "my-Ünit-2", True),  # not of the plain letters, so it is an expression
]
CODEX = [
    ("", "anything", True),
    ("*", "anything", True),
    ("default", "default", True),
    ("def", "default", False),
    ("def*", "default", True),
    ("def*", "made", True),
    ("explorer|worker", "worker", True),
    ("explorer|worker", "workers", False),
    ("code-reviewer", "my-code-reviewer2", True),
    ("^code-reviewer$", "my-code-reviewer2", False),
    ("explorer, worker", "worker", False),
    ("explorer, worker", "my explorer, worker", True),
    ("Worker", "worker", False),
]


@pytest.mark.rule("D4")
@pytest.mark.parametrize(("pattern", "name", "fits"), CLAUDE)
def test_claude_code_takes_plain_words_as_names_and_the_rest_as_expressions(pattern, name, fits):
    assert matches("claude", pattern, name) == fits
    assert pattern_error("claude", pattern) == ""


@pytest.mark.rule("D5")
@pytest.mark.parametrize(("pattern", "name", "fits"), CODEX)
def test_codex_takes_fewer_words_as_names(pattern, name, fits):
    assert matches("codex", pattern, name) == fits
    assert pattern_error("codex", pattern) == ""


@pytest.mark.rule("D4", "D5")
@pytest.mark.parametrize("kind", ["claude", "codex"])
@pytest.mark.parametrize("pattern", ["(", "a**", "[z-a]", "x{99999999999999999999}", "(" * 5000])
def test_a_broken_expression_is_found_before_it_is_used(kind, pattern):
    assert "is not a regular expression" in pattern_error(kind, pattern)
    with pytest.raises(ValueError, match="is not a regular expression"):
        Match(events=("subagent",), agents=(pattern,), kind=kind)


def test_our_own_patterns_are_globs():
    assert matches("glob", "impl-*", "impl-2")
    assert not matches("glob", "def*", "made")
    assert pattern_error("glob", "impl-*") == ""
    assert pattern_error("glob", "[") != ""


def test_plain_matchers_do_not_load_the_regular_expressions():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from notyet.core.matcher import matches, pattern_error;"
        "assert matches('claude', 'a-b|c', 'c') and matches('codex', '*', 'x');"
        "assert not pattern_error('codex', 'worker|x');"
        "assert 're' not in sys.modules;"
        "assert matches('codex', 'w.*', 'worker') and 're' in sys.modules"
    )
    import notyet

    src = notyet.__path__[0].rsplit("/", 1)[0]
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, src], capture_output=True)
    assert done.returncode == 0, done.stderr
