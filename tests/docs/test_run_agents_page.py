"""The page about running agents shows what really comes of it."""

import re
from pathlib import Path

import pytest

from conftest import git
from pages import fenced, shown
from with_runs import project, run_with

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-agents.md"
BROKEN = "def total(prices): return prices[0] + total(prices[1:])\n"
TEST = """import unittest
from shop import total
class Test(unittest.TestCase):
    def test_empty(self): self.assertEqual(total([]), 0)
"""


def timeless(lines):
    """Return lines without what is never twice the same: times, and ids of tasks."""
    text = re.sub(r"\d+\.\d+s", "0.0s", "\n".join(lines))
    return re.sub(r"\bt[a-z0-9]{10}\b", "TASK", text).splitlines()


@pytest.mark.rule("N1")
@pytest.mark.parametrize("kept", ["in git", "outside of git"])
def test_the_agent_that_follows_a_script_is_sent_back_as_the_page_shows(tmp_path, kept):
    (step,) = (step for step in shown(PAGE) if "scripted:agent.toml" in step.command[0])
    config, (script, *_) = fenced(PAGE, "toml")[0], fenced(PAGE, "text")
    folder = project(tmp_path / "shop", script, config)
    (folder / "shop.py").write_text(BROKEN)
    (folder / "test_shop.py").write_text(TEST)
    (folder / ".gitignore").write_text("__pycache__\n")
    if kept == "in git":
        git(folder, "init", "--quiet")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "one")
    done = run_with(folder, prompt="Make the tests pass.")
    assert done.returncode == 0
    said = [*done.stderr.splitlines(), *done.stdout.splitlines()]
    assert timeless(said) == timeless(step.expected)
