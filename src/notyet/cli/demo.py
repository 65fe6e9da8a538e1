"""`notyet demo`: scripted agents under a supervisor meet real gates in a throw-away project."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.agents.script import Say, Scene, Script, Tool, Wait, Write
from notyet.agents.scripted import ScriptedSession
from notyet.cli.person import refuse
from notyet.cli.progress import Lines
from notyet.config.files import ConfigFile
from notyet.config.find import FILE_NAME, KIND_NOTYET
from notyet.config.load import load_vouched
from notyet.core.verdict import Block
from notyet.engine.from_project import configured_engine
from notyet.git.run import own_environ
from notyet.ledger.connection import LEDGER, demo_ledger, make_private
from notyet.ledger.ledger import Ledger
from notyet.supervise import Supervisor, SupervisorSettings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from notyet.core.verdict import Decision
    from notyet.supervise import Progress

SUMMARY = "watch scripted agents meet the gates, in a throw-away project"
EXAMPLES = (
    ("notyet demo", "it takes a few seconds"),
    ("notyet demo --keep", "keep the project, to look around in it"),
)
_SETTINGS = SupervisorSettings(grace=0.0, poll=0.05)
_AT_MOST = 60.0  # seconds; it takes a few


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--keep", action="store_true", help="do not delete the project afterwards")


def run(args: argparse.Namespace) -> int:
    """Run the agents; exit 0 only if each came to its expected outcomes."""
    if shutil.which("git") is None:
        return refuse("demo", "git is not installed; install it and try again")
    log = logging.getLogger("notyet")
    level = log.level
    log.setLevel(logging.ERROR)  # the timeline shows it
    folder = tempfile.mkdtemp(prefix="notyet-demo-")
    try:
        return _kept(folder)
    except subprocess.CalledProcessError as error:
        return refuse("demo", f"git failed: {error.stderr.strip()}")
    except TimeoutError:
        return refuse("demo", f"it did not end within {_AT_MOST:g} s")
    finally:
        log.setLevel(level)
        if args.keep:
            print(f"the project is kept in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _kept(folder: str) -> int:
    """Run the agents, keep the ledger, and say how to look at it."""
    with _kept_ledger() as path:
        ended = asyncio.run(_Demo(folder, path or os.path.join(folder, LEDGER)).run())
    if path:
        print(f"\nLook at these agents in your browser: {notyet_command()} page --demo")
    return ended


@contextmanager
def _kept_ledger() -> Iterator[str]:
    """Empty the folder of the last demo's ledger, and return the path of a new one in it.

    Empty where that cannot be: without a home folder that can be written, or while another demo
    writes there.
    """
    path = demo_ledger(os.environ)
    folder = os.path.dirname(path)
    try:
        make_private(path)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield ""
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.chmod(folder, 0o700)
        shutil.rmtree(os.path.join(folder, "logs"), ignore_errors=True)
        for name in os.listdir(folder):
            if name.startswith(LEDGER):
                os.unlink(os.path.join(folder, name))
    except OSError:
        path = ""
    try:
        yield path
    finally:
        os.close(lock)


def notyet_command() -> str:
    """Return how a shell starts this program."""
    if shutil.which("notyet"):
        return "notyet"
    program = sys.argv[0]
    if os.path.basename(program) == "notyet":
        return shlex.quote(program)
    return f"{shlex.quote(sys.executable)} -m notyet"


class _Demo:
    """One run of all agents."""

    def __init__(self, folder: str, ledger: str) -> None:
        self._folder = folder
        self._show = Timeline()
        self._ledger = Ledger(ledger)

    async def run(self) -> int:
        """Run all agents; return 0 if all outcomes are as expected."""
        self._show.opening(CONFIG)
        try:
            async with asyncio.timeout(_AT_MOST):
                await self._team()
                for role in LONERS:
                    await self._alone(role)
        finally:
            self._ledger.close()
        return 1 if self._show.closing((LEAD, *CREW, *LONERS)) else 0

    async def _team(self) -> None:
        """Run a main agent with two subagents, whose reports reach it when they pass."""
        self._show.scene(LEAD, *CREW)
        project, supervisor = self._project("team")
        supervisor.deliver = supervisor.tell_parent
        crew = {role.name: role for role in CREW}

        async def spawn(name: str, task: str) -> str:
            role = crew[name]
            session = ScriptedSession(role.script, cwd=project)
            child = await supervisor.spawn(
                session, task, parent=main, label=name, agent_type=role.kind, cwd=project
            )
            self._show.cast(child.task_id, role)
            return f"{name} is at work"

        session = ScriptedSession(LEAD.script, cwd=project, tools={"spawn": spawn})
        async with supervisor:
            main = await supervisor.launch(session, LEAD.task, label=LEAD.name, cwd=project)
            self._show.cast(main.task_id, LEAD)
            await main.result()

    async def _alone(self, role: Role) -> None:
        """Run one subagent, without its main agent."""
        self._show.scene(role)
        project, supervisor = self._project(role.name)
        session = ScriptedSession(role.script, cwd=project)
        async with supervisor:
            task = await supervisor.spawn(
                session, role.task, label=role.name, agent_type=role.kind, cwd=project
            )
            self._show.cast(task.task_id, role)
            await task.result()

    def _project(self, name: str) -> tuple[str, Supervisor]:
        project = os.path.join(self._folder, name)
        make_project(project)
        # No trust is needed: the demo wrote this file itself.
        setup = load_vouched([ConfigFile(path=os.path.join(project, FILE_NAME), kind=KIND_NOTYET)])
        engine = configured_engine(setup, self._ledger)
        return project, Supervisor(
            engine, self._ledger, settings=_SETTINGS, on_progress=self._show.on_progress
        )


# How lines begin that differ from send-back to send-back.
_NEW_LINES = ("FAILED", "It is the same", "This is the last", "Your report was not")


class Timeline:
    """Prints events as they happen."""

    def __init__(self) -> None:
        self._lines = Lines(sys.stdout)
        self._paint = self._lines.paint
        self._line = self._lines.line
        self._event = self._lines.event
        self._names: dict[str, str] = {}  # of tasks
        self._has_shown_all = False
        self.outcomes: dict[str, list[str]] = {}

    def opening(self, config: str) -> None:
        """Print what is going to happen."""
        self._line(self._paint("Agents say done. notyet checks.", "bold"))
        self._line()
        self._line(
            "A main agent gets a task and gives two parts of it to subagents. Whenever one of"
        )
        self._line(
            "them stops, the gates of the project's notyet.toml run. A gate that fails sends"
        )
        self._line("the agent back, with its output:")
        self._line()
        for line in config.splitlines():
            self._line(f"    {self._paint(line, 'dim')}".rstrip())

    def scene(self, *roles: Role) -> None:
        """Introduce agents."""
        self._line()
        for role in roles:
            self._line(f"{self._paint(role.name, 'bold', 'cyan')} {role.about}")

    def cast(self, task: str, role: Role) -> None:
        """Remember which agent has a task."""
        self._names[task] = role.name

    def on_progress(self, progress: Progress) -> None:
        """Print an event of a task."""
        name = self._names.get(progress.task_id, "")
        if progress.kind == "text":
            self._event(name, f'"{progress.text}"')
        elif progress.kind == "tool":
            self._event(name, self._paint(f"{progress.tool} {progress.text}", "dim"))
        elif progress.kind == "decided" and progress.decision is not None:
            self.outcomes.setdefault(name, []).append(progress.decision.outcome)
            self._decided(name, progress.decision)
        elif progress.kind == "delivered":
            self._event("notyet", f"the report of {name} goes to the agent that gave the task")

    def _decided(self, name: str, decision: Decision) -> None:
        results = "  ".join(
            f"{report.gate}: {report.status} ({report.seconds:.1f}s)" for report in decision.reports
        )
        self._event("gates", f"of {name}  {self._paint(results, 'dim')}")
        if isinstance(decision.verdict, Block):
            count = f"send-back {decision.count} of {decision.limit}"
            self._event("notyet", f"{name}: {self._paint('not yet', 'bold', 'red')} ({count})")
            for line in self._worth_showing(decision.verdict.prompt):
                self._event("", self._paint(f"| {line}".rstrip(), "dim"))
        else:
            colour = "green" if decision.outcome == "passed" else "yellow"
            word = self._paint(f"may stop: {decision.outcome}", "bold", colour)
            self._event("notyet", f"{name} {word}{': ' if decision.why else ''}{decision.why}")

    def _worth_showing(self, prompt: str) -> list[str]:
        """Return the lines of a prompt: all of the first one, then only the new ones."""
        lines = prompt.splitlines()
        if not self._has_shown_all:
            self._has_shown_all = True
            return lines
        return [line for line in lines if line.startswith(_NEW_LINES)]

    def closing(self, roles: tuple[Role, ...]) -> int:
        """Print the outcomes of each agent; return how many are not as expected."""
        self._line()
        wrong = 0
        for role in roles:
            outcomes = tuple(self.outcomes.get(role.name, ()))
            mark = self._paint("ok", "green")
            if outcomes != role.outcomes:
                wrong += 1
                mark = self._paint(f"WRONG: expected {' > '.join(role.outcomes)}", "bold", "red")
            stops = f"{len(outcomes)} stop{'' if len(outcomes) == 1 else 's'}"
            self._line(f"{role.name:<4}  {stops:<7}  {' > '.join(outcomes)}  {mark}")
        return wrong


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
)
CREW = (ADA, BOB)
LONERS = (
    Role(
        name="cyd",
        about="never improves, and is allowed to stop as stuck",
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
