"""What outlives a supervisor: its agents, its consumer and its observers, each with a journal."""

import asyncio
import json
import os

from crash.faults import point
from notyet import Block, Engine, Function, Gate, Ledger, Limits, Match, replace
from notyet.core.session import News, Turn
from notyet.errors import SendError
from notyet.supervise import Supervisor, SupervisorSettings
from stores import place

MAX_BLOCKS = 2
QUICK = SupervisorSettings(
    grace=0.05,
    poll=0.02,
    steer_pause=0.0,
    first_retry=0.01,
    abort_patience=2.0,
    ledger_patience=5.0,
)


class World:
    """One folder: a ledger, and a journal that many processes append to."""

    def __init__(self, folder, script, knowing, *, is_recovering=False, machine="this", lease=60.0):
        self.folder = folder
        self.ledger = Ledger(place(os.path.join(folder, "ledger.db")))
        self.script = script  # agent -> its steps, one for each prompt that it gets
        self.knowing = knowing  # "knows", "cannot know", "cannot be reopened"
        self.is_recovering = is_recovering
        self.machine = machine
        self.settings = replace(QUICK, lease=lease)
        self.path = os.path.join(folder, "journal")
        self.told = {}  # what on_progress was told, as events to wait for
        self.slow_gate = False
        self.refusals = 0  # by the consumer, before it takes anything

    def write(self, what, **known):
        line = json.dumps({"what": what, **known}) + "\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def read(self, what=None):
        try:
            with open(self.path, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        except FileNotFoundError:
            return []
        return [line for line in lines if what in {None, line["what"]}]

    def supervisor(self, **options):
        reopen = None if self.knowing == "cannot be reopened" else self.reopened
        options = {
            "deliver": self.deliver,
            "settings": self.settings,
            "on_progress": self.hear,
        } | options
        return Supervisor(self.engine(), self.ledger, reopen, **options)

    def engine(self):
        scopes = Match(events=("agent", "subagent"))
        gate = Gate(name="tests", check=Function(self.judge, "notyet"), match=scopes)
        limits = Limits(max_blocks=MAX_BLOCKS, stuck_after=0)
        engine = Engine([gate], limits=limits, ledger=self.ledger, warn=lambda _: None)
        engine.on("subagent_ended", self.observe)
        engine.on("stop", self.observe_main)
        return engine

    async def judge(self, event):
        self.write("asked", run=event.run_id, count=event.block_count, most=event.max_blocks)
        point("a gate is asked")
        if self.slow_gate and event.run_id.endswith(".1"):
            await self.until("overtaken")
        if "tests pass" not in (event.last_message or ""):
            return Block(f"go on after {event.run_id}")
        return None

    async def observe(self, event, ctx):
        point("before an observer is told")
        self.write("observed", task=ctx.agent_id, ending=event.outcome)
        point("after an observer was told")

    async def observe_main(self, event, ctx):
        point("before an observer of the main agent is told")
        self.write("observed", task="main", ending="")
        point("after an observer of the main agent was told")

    async def deliver(self, announcement):
        point("before the consumer has a result")
        tried = len(self.read("refused"))
        if tried < self.refusals:
            self.write("refused")
            point("after the consumer refused a result")
            raise OSError("not now")
        result = announcement.result
        self.write(
            "delivered",
            key=announcement.key,
            task=result.task_id,
            ending=result.ending,
            text=result.text,
        )
        point("after the consumer had a result")

    def hear(self, progress):
        self.moment(f"{progress.kind} {progress.generation}").set()

    def moment(self, name):
        return self.told.setdefault(name, asyncio.Event())

    async def until(self, name):
        if not self.is_recovering:
            async with asyncio.timeout(20):
                await self.moment(name).wait()

    def agent(self, name):
        return Agent(self, name)

    def reopened(self, ref):
        return Agent(self, ref["agent"])


class Agent:
    """A session whose memory is the journal; the nth prompt that it gets meets its nth step."""

    def __init__(self, world, name):
        self.world = world
        self.name = name
        self.id = f"session of {name}"
        self.on_news = None
        self.stopped = asyncio.Event()

    def ref(self):
        return {"agent": self.name}

    async def send(self, prompt, key):
        self.stopped.clear()
        point("before a prompt reaches its agent")
        if self.knows(key):  # as agents do that keep keys
            raise SendError("it has this prompt")
        number = sum(line["agent"] == self.name for line in self.world.read("got"))
        steps = self.world.script[self.name]
        step, *words = steps[min(number, len(steps) - 1)]
        if step == "refuse":
            raise SendError("the agent is not there")
        self.world.write("got", agent=self.name, key=key, prompt=prompt)
        point("after a prompt reached its agent")
        if step == "slow":
            self.world.moment("unaccepted").set()
            await self._or_stopped(self.world.until("accepting"))
        self.on_news(News(kind="accepted"))
        self.on_news(News(kind="ref"))
        point("after a prompt was accepted")
        if step == "wait" or (step in {"hang", "slow"} and not self.world.is_recovering):
            until = words[0] if step == "wait" else "never"
            await self._or_stopped(self.world.until(until))
            if self.stopped.is_set():
                return Turn(text="", stop_reason="cancelled")
        point("before a turn returns")
        if step == "fail":
            return Turn(text="", stop_reason="error", error=words[0])
        return Turn(text=words[-1] if words else "tests pass")

    async def _or_stopped(self, coroutine):
        waiting = asyncio.ensure_future(coroutine)
        stopped = asyncio.ensure_future(self.stopped.wait())
        await asyncio.wait({waiting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        stopped.cancel()

    def knows(self, key):
        if self.world.knowing == "cannot know":
            return None
        return any(line["key"] == key for line in self.world.read("got"))

    async def abort(self):
        self.world.write("aborted", agent=self.name)
        point("an agent is stopped")
        self.stopped.set()

    def transcript(self):
        return None
