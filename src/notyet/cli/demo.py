"""`notyet demo`: three scripted agents meet real gates in a throw-away git project."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time

from notyet.cli.style import Style
from notyet.core.event import StopEvent
from notyet.core.gate import Function, Gate
from notyet.core.record import Record
from notyet.core.session import Turn
from notyet.core.text import bounded, clean
from notyet.core.verdict import Allow, Block
from notyet.engine import Engine
from notyet.ledger.sqlite import Ledger
from notyet.workspace import own_environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from notyet.core.verdict import Decision

SUMMARY = "watch three scripted agents meet the gates, in a throw-away project"

_TEST = """\
import unittest
from shop import total


class TotalTest(unittest.TestCase):
    def test_adds_prices(self):
        self.assertEqual(total([2, 3]), 5)

    def test_an_empty_basket_is_free(self):
        self.assertEqual(total([]), 0)
"""
_WRONG = "def total(prices):\n    return prices[0] + prices[1]\n"
_TODO = "def total(prices):\n    return sum(prices)  # TODO: discounts\n"
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
            Step("Fixed: an empty basket works now.", _TODO),
            Step("Removed the leftover note. All tests pass.", _RIGHT),
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
            _write(self._project, "shop.py", step.shop)
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


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--keep", action="store_true", help="do not delete the project afterwards")


def run(args: argparse.Namespace) -> int:
    """Tell the three stories; exit 0 only if each went as it must."""
    if shutil.which("git") is None:
        print("notyet demo: git is not installed; install it and try again", file=sys.stderr)
        return 1
    log = logging.getLogger("notyet")
    level = log.level
    log.setLevel(logging.ERROR)  # the timeline says it in its own words
    folder = tempfile.mkdtemp(prefix="notyet-demo-")
    try:
        return asyncio.run(_tell_all(folder))
    except subprocess.CalledProcessError as error:
        print(f"notyet demo: git failed: {error.stderr.strip()}", file=sys.stderr)
        return 1
    finally:
        log.setLevel(level)
        if args.keep:
            print(f"the project is kept in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


async def _tell_all(folder: str) -> int:
    show = _Timeline()
    show.opening()
    ledger = Ledger(os.path.join(folder, "ledger.db"))
    engine = Engine(
        [
            Gate(name="tests", check=Function(tests_pass)),
            Gate(name="no-todo", check=Function(no_todo_left)),
        ],
        ledger=ledger,
    )
    told = {}
    for story in STORIES:
        project = os.path.join(folder, story.name)
        _make_project(project)
        show.story(story)
        told[story.name] = await _tell(story, project, engine, show)
    ledger.close()
    return show.closing(told)


async def _tell(story: Story, project: str, engine: Engine, show: _Timeline) -> tuple[str, ...]:
    session = ScriptedSession(story, project)
    prompt = "Make total() work for every basket."
    outcomes: list[str] = []
    while True:
        turn = await session.send(prompt, key=f"{story.name}-{len(outcomes)}")
        show.said(story.name, turn.text)
        decision = await engine.check(
            StopEvent(
                host="demo",
                session_id=session.id or "",
                cwd=project,
                last_message=turn.text,
                tools_used=turn.tools,
            )
        )
        outcomes.append(decision.outcome)
        show.decided(decision)
        if not isinstance(decision.verdict, Block):
            return tuple(outcomes)
        prompt = decision.verdict.prompt


def tests_pass(event: StopEvent) -> Allow | Block:
    """Run the project's tests."""
    done = subprocess.run(  # this interpreter, fixed arguments
        [sys.executable, "-m", "unittest", "--quiet"],
        cwd=event.cwd,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 0:
        return Allow()
    failures = [
        line for line in clean(done.stderr).splitlines() if line.startswith(("FAIL:", "ERROR:"))
    ]
    return Block(
        "The tests fail:\n" + bounded("\n".join(failures), 1000) + "\nFix the cause, then finish.",
        reason=f"{len(failures)} failing test(s)",
    )


def no_todo_left(event: StopEvent) -> Block | None:
    """Look for notes the agent left behind."""
    with open(os.path.join(event.cwd, "shop.py"), encoding="utf-8") as file:
        if "TODO" in file.read():
            return Block("shop.py still has a TODO. Do it or remove it.", reason="a TODO is left")
    return None


class _Timeline:
    """Prints what happens, as it happens."""

    def __init__(self) -> None:
        self._paint = Style(sys.stdout).paint
        self._started = time.monotonic()

    def opening(self) -> None:
        self._line(self._paint("Agents say done. notyet checks.", "bold"))
        self._line()
        self._line("Three scripted agents get the same task: make total() work for every basket.")
        self._line("Each time one wants to stop, two gates are asked: do the tests pass, and is no")
        self._line("TODO left? A gate that blocks sends the agent back to work, with the reason.")

    def story(self, story: Story) -> None:
        self._line()
        self._line(f"{self._paint(story.name, 'bold', 'cyan')} {story.about}")

    def said(self, name: str, text: str) -> None:
        self._event(name, f'"{text}"')

    def decided(self, decision: Decision) -> None:
        asked = "  ".join(
            f"{report.gate}: {report.status} ({report.seconds:.1f}s)" for report in decision.reports
        )
        self._event("gates", self._paint(asked, "dim"))
        if isinstance(decision.verdict, Block):
            count = f"send-back {decision.count} of {decision.limit}"
            self._event("notyet", f"{self._paint('not yet', 'bold', 'red')} ({count})")
            for line in decision.verdict.prompt.splitlines():
                self._event("", self._paint(f"| {line}", "dim"))
        else:
            colour = "green" if decision.outcome == "passed" else "yellow"
            word = self._paint(f"may stop: {decision.outcome}", "bold", colour)
            self._event("notyet", f"{word}{': ' if decision.why else ''}{decision.why}")

    def closing(self, told: dict[str, tuple[str, ...]]) -> int:
        self._line()
        wrong = 0
        for story in STORIES:
            outcomes = told[story.name]
            as_it_must = outcomes == story.outcomes
            wrong += not as_it_must
            mark = self._paint("ok", "green") if as_it_must else self._paint("WRONG", "bold", "red")
            self._line(f"{story.name}  {len(outcomes)} stops  {' > '.join(outcomes)}  {mark}")
            if not as_it_must:
                self._line(f"     expected {' > '.join(story.outcomes)}")
        return 1 if wrong else 0

    def _event(self, who: str, text: str) -> None:
        at = f"{time.monotonic() - self._started:5.1f}s" if who else " " * 6
        self._line(f"  {self._paint(at, 'dim')}  {who:<6}  {text}")

    def _line(self, text: str = "") -> None:
        print(text, flush=True)


def _make_project(project: str) -> None:
    os.mkdir(project)
    _write(project, "shop.py", _WRONG)
    _write(project, "test_shop.py", _TEST)
    _write(project, ".gitignore", "__pycache__/\n")
    _git(project, "init", "--quiet")
    _git(project, "add", ".")
    _git(project, "commit", "--quiet", "--message", "The task")


def _write(project: str, name: str, text: str) -> None:
    with open(os.path.join(project, name), "w", encoding="utf-8") as file:
        file.write(text)


def _git(project: str, *args: str) -> None:
    settings = ("user.name=demo", "user.email=demo@localhost", "commit.gpgsign=false")
    options = [
        part for setting in (*settings, "core.hooksPath=/dev/null") for part in ("-c", setting)
    ]
    environ = own_environ() | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(  # noqa: S603
        ["git", *options, *args],  # noqa: S607
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
