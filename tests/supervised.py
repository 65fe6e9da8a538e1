"""A world for tests of the supervisor: real ledger, real engine, agents whose turns a test holds.

Its loop runs only while a test waits for something, so that a test is a row of plain steps.
"""

import asyncio
import os
import subprocess
import sys
import textwrap
import time

from notyet import Engine, Ledger, Limits
from notyet.core.session import News, Turn
from notyet.core.task import Run
from notyet.ledger.leases import Leases
from notyet.ledger.runs import Runs
from notyet.ledger.tasks import Tasks
from notyet.ledger.transitions import run_id
from notyet.supervise import Supervisor, SupervisorSettings
from stores import place
from support import rows

PATIENCE = 30.0  # seconds after which a test gives up; nothing here should take one
QUICK = {
    "grace": 0.0,
    "poll": 0.01,
    "steer_pause": 0.0,
    "abort_patience": 5.0,
    "first_retry": 0.01,
    "ledger_patience": 5.0,
}


class Agent:
    """A session. Each answer is a text, a Turn, an error to raise, or WAIT.

    A function is called with the prompt and returns one of these, or is awaited for it.
    """

    WAIT = object()

    def __init__(self, *answers, id="s1", knows=None, transcript=None):  # noqa: A002  # as the protocol says
        self.id = None
        self.on_news = None
        self.answers = list(answers)
        self.got = []
        self.keys = []
        self.aborts = 0
        self.discarded = 0
        self.waiting = asyncio.Event()
        self._real_id = id
        self._knows = knows
        self._transcript = transcript
        self._turn = None

    def ref(self):
        return {"agent": "tests", "id": self.id}

    async def send(self, prompt, key):
        self.id = self._real_id
        self.got.append(prompt)
        self.keys.append(key)
        self.news("ref")
        answer = self.answers.pop(0) if self.answers else "done"
        if callable(answer):
            answer = answer(prompt)
            if asyncio.iscoroutine(answer):
                answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        self.news("accepted")
        if answer is Agent.WAIT:
            answer = await self._wait()
        return Turn(text=answer) if isinstance(answer, str) else answer

    def news(self, kind, **fields):
        if self.on_news is not None:
            self.on_news(News(kind=kind, **fields))

    async def _wait(self):
        self._turn = asyncio.get_running_loop().create_future()
        self.waiting.set()
        try:
            return await self._turn
        finally:
            self.waiting.clear()

    def come_back(self, turn):
        self._turn.set_result(turn)

    def knows(self, key):
        return self._knows

    async def abort(self):
        self.aborts += 1
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(Turn(text="", stop_reason="cancelled"))

    def transcript(self):
        return self._transcript

    def discard(self):
        self.discarded += 1


class World:
    """A supervisor on a ledger in a folder, with a loop of its own or another world's."""

    def __init__(
        self,
        folder,
        *,
        gates=(),
        limits=Limits(),
        engine=None,
        reopen=None,
        deliver=None,
        beside=None,
        **settings,
    ):
        self.folder = folder
        self.warnings = []
        self.progress = []
        self.ledger = Ledger(folder / "ledger.db")
        self.engine = engine or Engine(
            gates, ledger=self.ledger, limits=limits, warn=self.warnings.append
        )
        self.supervisor = Supervisor(
            self.engine,
            self.ledger,
            reopen,
            deliver=deliver,
            settings=SupervisorSettings(**(QUICK | settings)),
            on_progress=self.progress.append,
        )
        self._own = asyncio.Runner() if beside is None else None
        self.runner = self._own or beside.runner

    def __enter__(self):
        self.do(self.supervisor.__aenter__())
        return self

    def __exit__(self, *_):
        self.do(self.supervisor.close())
        if self._own is not None:
            self._own.close()
        self.ledger.close()

    def do(self, work):
        """Run the loop until this has been done."""

        async def patiently():
            async with asyncio.timeout(PATIENCE):
                return await work

        return self.runner.run(patiently())

    def until(self, condition):
        """Run the loop until this is true."""
        ends = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < ends, "it never came true"
            self.do(asyncio.sleep(0.005))

    def spawn(self, agent, task="do it", **fields):
        return self.do(self.supervisor.spawn(agent, task, **self._here(fields)))

    def launch(self, agent, prompt="do it", **fields):
        return self.do(self.supervisor.launch(agent, prompt, **self._here(fields)))

    def _here(self, fields):
        return {"cwd": str(self.folder)} | fields

    def result(self, handle):
        return self.do(handle.result())

    def spawned(self, agent, task="do it", **fields):
        """Let a subagent do a task, and return what came of it."""
        return self.result(self.spawn(agent, task, **fields))

    def ran(self, agent, prompt="do it", **fields):
        """Let a main agent do the same."""
        return self.do(self.supervisor.run(agent, prompt, **self._here(fields)))

    def block(self, times, prompt="more"):
        """Let a handler send each subagent back so often."""
        self.engine.on(
            "subagent_stopping",
            lambda event, _: (
                {"allow": False, "prompt": prompt} if event.steerCount < times else None
            ),
        )

    def at_work(self, *agents):
        """Run the loop until these agents wait for their turns to come back."""
        self.until(lambda: all(agent.waiting.is_set() for agent in agents))

    def known(self):
        """Run the loop until the ledger knows how each agent can be reopened: its last news."""
        self.until(lambda: all('"id": "' in ref for (ref,) in self.rows("SELECT ref FROM tasks")))

    def view(self, handle):
        return self.do(self.supervisor.task(handle))

    def state(self, handle):
        return self.view(handle).state

    def kinds(self, handle=None):
        """Return what was told of a task while it went on."""
        return [
            each.kind for each in self.progress if handle is None or each.task_id == handle.task_id
        ]

    def rows(self, sql, *values):
        return rows(self.ledger, sql, *values)


class Asking:
    """A gate that waits until a test lets it answer."""

    def __init__(self, answer=None):
        self.answer = answer
        self.asked = 0
        self.cancelled = 0
        self.open = asyncio.Event()

    async def __call__(self, *_):
        self.asked += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.answer


def first_run(task):
    """Return the first run of a task, as it is entered."""
    return Run(
        id=run_id(task, 1),
        task=task,
        generation=1,
        state="running",
        source="start",
        key=f"key of {task}",
        prompt="do it",
        sent="reserved",
    )


class Dead:
    """What a supervisor left in a ledger when it died; its moves are made by hand."""

    def __init__(self, folder):
        self.ledger = Ledger(folder / "ledger.db")
        self.tasks = Tasks(self.ledger)
        self.runs = Runs(self.ledger)
        self.leases = Leases(self.ledger.connection)
        self.owner = self.leases.enrol(1000.0)

    def buried(self):
        """Say that it is gone."""
        self.leases.retire(self.owner)
        self.ledger.close()


def other_process(path, body):
    """Start another process with a supervisor on the same ledger; `body` is its story."""
    story = textwrap.indent(textwrap.dedent(body), " " * 8)
    source = f"""
import asyncio
from notyet import Engine, Ledger
from notyet.errors import Refused
from notyet.supervise import Supervisor, SupervisorSettings
async def main():
    settings = SupervisorSettings(poll=0.01)
    async with Supervisor(Engine(), Ledger({place(path)!r}), settings=settings) as supervisor:
{story}
asyncio.run(main())
"""
    return subprocess.Popen(
        [sys.executable, "-c", source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )


def said_by(world, process):
    """Run the loop until another process has ended; return what it printed."""
    world.until(lambda: process.poll() is not None)
    out, problems = process.communicate()
    assert process.returncode == 0, problems
    return out.strip()
