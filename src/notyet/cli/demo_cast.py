"""The cast of the demo: three scripted agents, and the project each of them works on."""

from __future__ import annotations

import os
import subprocess
import sys

from notyet.core.record import Record
from notyet.core.session import Turn
from notyet.workspace import own_environ

_TEST = """\
import unittest
from shop import total


class TotalTest(unittest.TestCase):
    def test_adds_prices(self):
        self.assertEqual(total([2, 3]), 5)

    def test_an_empty_basket_is_free(self):
        self.assertEqual(total([]), 0)
"""
CONFIG = f"""\
[limits]
max_blocks = 3

[gates.tests]
run = ['{sys.executable}', "-B", "-m", "unittest", "--quiet"]
hint = "Fix the cause, not the test."

[gates.no-prints]
run = "! grep -n 'print(' shop.py"
"""
_WRONG = "def total(prices):\n    return prices[0] + prices[1]\n"
_NOISY = "def total(prices):\n    print('prices:', prices)\n    return sum(prices)\n"
_RIGHT = "def total(prices):\n    return sum(prices)\n"


class Step(Record):
    """One turn of a scripted agent: what it does to the project, and what it says then."""

    says: str
    shop: str | None = None  # the new text of shop.py


class Story(Record, kw_only=True):
    """An agent, and what must become of it for the demo to have told the truth."""

    name: str
    about: str
    steps: tuple[Step, ...]
    outcomes: tuple[str, ...]


STORIES = (
    Story(
        name="ada",
        about="says done too early, is sent back, and does the work",
        steps=(
            Step("Done! total() adds up the prices."),
            Step("Fixed: an empty basket works now.", _NOISY),
            Step("Removed the leftover print. All tests pass.", _RIGHT),
        ),
        outcomes=("blocked", "blocked", "passed"),
    ),
    Story(
        name="bob",
        about="never improves, and is let go as stuck",
        steps=(
            Step("Everything works."),
            Step("I looked again: everything works."),
            Step("It really does work."),
        ),
        outcomes=("blocked", "blocked", "stuck"),
    ),
    Story(
        name="cyd",
        about="keeps trying the wrong thing, and hits the limit",
        steps=(
            Step("Done."),
            Step("Now it should work.", _WRONG.replace("prices[1]", "prices[-1]")),
            Step("This time for sure.", "def total(prices):\n    return prices[0]\n"),
            Step("I give up on elegance.", "def total(prices):\n    return len(prices)\n"),
        ),
        outcomes=("blocked", "blocked", "blocked", "capped"),
    ),
)


class ScriptedSession:
    """A `Session` whose agent follows a script instead of a model."""

    def __init__(self, story: Story, project: str) -> None:
        self.id: str | None = story.name
        self._project = project
        self._steps = list(story.steps)
        self._keys: set[str] = set()

    def ref(self) -> dict[str, object]:
        """Return what it takes to reopen the session."""
        return {"agent": self.id}

    async def send(self, prompt: str, key: str) -> Turn:  # noqa: ARG002  # it cannot read
        """Play the next step, whatever the prompt says."""
        self._keys.add(key)
        step = self._steps.pop(0)
        if step.shop is not None:
            write(self._project, "shop.py", step.shop)
        return Turn(text=step.says, tools=("edit",) if step.shop else ())

    def knows(self, key: str) -> bool | None:
        """Tell whether a prompt arrived."""
        return key in self._keys

    async def abort(self) -> None:
        """End the script."""
        self._steps.clear()

    def transcript(self) -> str | None:
        """Return nothing: a script keeps no transcript."""
        return None


def make_project(project: str) -> None:
    """Make a git project with a failing test."""
    os.mkdir(project)
    write(project, "shop.py", _WRONG)
    write(project, "test_shop.py", _TEST)
    write(project, "notyet.toml", CONFIG)
    write(project, ".gitignore", "__pycache__/\n")
    _git(project, "init", "--quiet")
    _git(project, "add", ".")
    _git(project, "commit", "--quiet", "--message", "The task")


def write(project: str, name: str, text: str) -> None:
    """Write one of the project's files."""
    with open(os.path.join(project, name), "w", encoding="utf-8") as file:
        file.write(text)


def _git(project: str, *args: str) -> None:
    settings = ("user.name=demo", "user.email=demo@localhost", "commit.gpgsign=false")
    options = [
        part for setting in (*settings, "core.hooksPath=/dev/null") for part in ("-c", setting)
    ]
    environ = own_environ() | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(  # noqa: S603  # git, with fixed arguments
        ["git", *options, *args],  # noqa: S607  # as the user has it
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
