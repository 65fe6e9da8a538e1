"""The agents of the demo, what each of them does, and the project they work on."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from notyet.agents.script import Say, Scene, Script, Tool, Wait, Write
from notyet.git.run import own_environ

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

[gates.changelog]
run = "test -s CHANGELOG.md"
when = "always"

[gates.tests]
for = ["coder"]
when = "always"
run = ['{sys.executable}', "-B", "-m", "unittest", "--quiet"]
hint = "Fix the cause, not the test."

[gates.no-prints]
for = ["coder"]
when = "always"
run = "! grep -n 'print(' shop.py"

[gates.docs]
for = ["writer"]
when = "always"
run = "grep -q total README.md"
"""
_WRONG = "def total(prices):\n    return prices[0] + prices[1]\n"
_NOISY = "def total(prices):\n    print('prices:', prices)\n    return sum(prices)\n"
_RIGHT = "def total(prices):\n    return sum(prices)\n"
_CODE = "Make total() work for every basket."
_DOCS = "Explain total() in README.md."


@dataclass(frozen=True, kw_only=True)
class Role:
    """An agent, its script, and the outcomes that are expected."""

    name: str
    about: str
    task: str
    kind: str  # which gates it meets
    script: Script
    outcomes: tuple[str, ...]
    hears: tuple[str, ...] = ()  # texts that the reports of its subagents must contain


def _shop(text: str) -> Write:
    return Write("shop.py", text)


def _script(*turns: tuple[object, ...]) -> Script:
    return Script(turns=tuple(Scene(steps=steps) for steps in turns))  # type: ignore[arg-type]  # steps


ADA = Role(
    name="ada",
    about="says done too early, is sent back twice, and does the work",
    task=_CODE,
    kind="coder",
    script=_script(
        (Say("Done! total() adds up the prices."),),
        (_shop(_NOISY), Say("Fixed: an empty basket works now.")),
        (_shop(_RIGHT), Say("Removed the leftover print. All tests pass.")),
    ),
    outcomes=("blocked", "blocked", "passed"),
)
BOB = Role(
    name="bob",
    about="gets it right at once",
    task=_DOCS,
    kind="writer",
    script=_script(
        (
            Write("README.md", "# Shop\n\n`total(prices)` adds up a basket.\n"),
            Wait(0.2),
            Say("README.md explains total()."),
        )
    ),
    outcomes=("passed",),
)
LEAD = Role(
    name="lead",
    about="splits the work, waits for the reports, and forgets the changelog",
    task="Get the shop ready.",
    kind="",
    script=_script(
        (
            Say("I split this up."),
            Tool("spawn", {"name": "ada", "task": _CODE}),
            Tool("spawn", {"name": "bob", "task": _DOCS}),
            Say("Two agents are at work; I wait for their reports."),
        ),
        (Say("Both reports are in. The shop is ready."),),
        (
            Write("CHANGELOG.md", "- total() works for every basket\n"),
            Say("The changelog is written, too."),
        ),
    ),
    outcomes=("blocked", "passed"),
    hears=("Removed the leftover print. All tests pass.", "README.md explains total()."),
)
CREW = (ADA, BOB)
LONERS = (
    Role(
        name="cyd",
        about="never improves, and is let go as stuck",
        task=_CODE,
        kind="coder",
        script=_script(
            (Say("Everything works."),),
            (Say("I looked again: everything works."),),
            (Say("It really does work."),),
        ),
        outcomes=("blocked", "blocked", "stuck"),
    ),
    Role(
        name="dan",
        about="keeps trying the wrong thing, and hits the limit",
        task=_CODE,
        kind="coder",
        script=_script(
            (Say("Done."),),
            (_shop(_WRONG.replace("prices[1]", "prices[-1]")), Say("Now it should work.")),
            (_shop("def total(prices):\n    return prices[0]\n"), Say("This time for sure.")),
            (_shop("def total(prices):\n    return len(prices)\n"), Say("I give up on elegance.")),
        ),
        outcomes=("blocked", "blocked", "blocked", "capped"),
    ),
)


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
