"""Fleets for tests: queued tasks whose moves are made by hand, and crews with real workers."""

import asyncio
import gc
import time
import warnings
from itertools import count

from notyet import Allow, Decision, Engine
from notyet.core.session import Turn
from notyet.core.task import Order, Room, Task
from notyet.fleet import Fleet, Queue, Worker
from notyet.ledger.outbox import Outbox
from notyet.ledger.placements import Placements, enter
from notyet.ledger.transitions import run_id
from notyet.supervise import SupervisorSettings
from supervised import Agent, Dead

ANY = Room()


class Agents(list):
    """Opens a new agent for each task; `answers` are those of each."""

    def __init__(self, *answers):
        self.answers = answers
        self.orders = []

    def __call__(self, order, cwd):
        self.append(Agent(*self.answers, id=f"s{len(self)}"))
        self.orders.append(order)
        return self[-1]


class Office(Dead):
    """A ledger with the queue `agents`; on SQLite, too, where no fleet runs."""

    def __init__(self, folder):
        super().__init__(folder)
        self.placements = Placements(self.ledger)
        self.outbox = Outbox(self.ledger.connection)
        self.placements.define("agents", {"name": "agents"})

    def task(self, task="t1", **fields):
        return Task(**({"id": task, "prompt": "do it", "scope": "agent"} | fields))

    def enter(self, task="t1", *, queue="agents", model="", retries=0, placement="p1", **fields):
        """Queue a task; return False if it is known."""
        order = Order(queue=queue, agent="x", model=model, retries=retries, priority=5)
        new = self.task(task, **fields)
        return self.ledger.connection.write(lambda db: enter(db, new, order, placement))

    def adopt(self, task="t1", *, room=ANY, machine="", owner=None, key="", **fields):
        """Begin a queued task: 0, the seconds to wait, or None."""
        begin, owner = self.placements.adopt, owner or self.owner
        known = {"key": key or f"key of {task}", "machine": machine, "room": room}
        return begin(self.task(task, **fields), owner, {"agent": "x"}, "s1", **known)

    def finish(self, task="t1", generation=1, ending="done", text="done", **turn):
        run = run_id(task, generation)
        assert self.runs.finish(run, Turn(text=text, **turn), ending, self.owner)
        assert self.runs.settle(run, self.owner, f"{run} settles")

    def decide(self, outcome="passed", task="t1", generation=1):
        decision = Decision(verdict=Allow(), outcome=outcome, turn=1)
        move = {"begun": None, "ceiling": 0, "key": f"{task} {generation} decides"}
        return self.runs.decide(run_id(task, generation), self.owner, decision, **move)

    def end(self, task="t1", generation=1):
        self.finish(task, generation)
        assert self.decide("passed", task, generation)

    def state(self, task="t1"):
        return self.tasks.look(task).run.state

    def result(self, task="t1"):
        return self.outbox.read(task)


# Fleets with a database and an engine.

QUICK = {"lease": 3.0, "poll": 0.01, "grace": 0.0, "steer_pause": 0.0, "abort_patience": 5.0}
PATIENCE = 30.0  # seconds after which a test gives up
_numbers = count()


def new_database(cluster):
    """Return the address of a new database with the tables of a fleet."""
    if not hasattr(cluster, "has_fleet"):
        cluster.has_fleet = True
        cluster.psql("CREATE DATABASE fleet")
        asyncio.run(_prepared(cluster.url(database="fleet")))
    name = f"fleet{next(_numbers)}"
    assert cluster.psql(f"CREATE DATABASE {name} TEMPLATE fleet") == ""
    return cluster.url(database=name)


async def _prepared(url):
    async with Fleet(url):
        pass


class Crew:
    """A fleet with at most one worker in this process; its loop runs while a test waits."""

    def __init__(self, url, *queues):
        self.url = url
        self.runner = asyncio.Runner()
        self.warnings, self.progress = [], []
        self.fleet = Fleet(url, queues=queues or [Queue("agents")])
        self.do(self.fleet.open())
        self.worker = self.working = None

    def close(self):
        if self.working is not None and not self.working.done():
            self.stop()
        self.do(self.fleet.close())
        self.runner.close()
        # Threads of the engine may drop a connection without closing it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

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
            assert time.monotonic() < ends, f"it never came true; {self.warnings}"
            self.do(asyncio.sleep(0.01))

    def submit(self, prompt="do it", queue="agents", agent="scripted", **options):
        return self.do(self.fleet.submit(prompt, agent=agent, queue=queue, **options))

    def start(self, open_session=None, *queues, settings=(), **options):
        """Start the worker, and wait until it serves its queues."""
        known = {"settings": SupervisorSettings(**(QUICK | dict(settings)))}
        known |= {"warn": self.warnings.append, "on_progress": self.progress.append}
        if "engine_of" not in options:
            known["engine_of"] = lambda task: Engine(ledger=self.fleet.ledger)
        known["open_session"] = open_session if open_session is not None else _scripted
        self.worker = Worker(self.fleet, queues or ["agents"], **(known | options))

        async def begun():
            self.working = asyncio.ensure_future(self.worker.run())
            while not self.working.done():
                workers = await asyncio.to_thread(self.fleet.placements.workers)
                if self.worker.id in {one.get("id") for one in workers}:
                    return
                await asyncio.sleep(0.01)

        self.do(begun())
        return self.worker

    def drain(self):
        """Let the worker end what it has."""
        self.worker.drain()
        self.do(asyncio.wait({self.working}))
        self.working.result()

    def stop(self):
        """Stop the worker at once, as a second signal does."""
        self.working.cancel()
        self.do(asyncio.wait({self.working}))

    def result(self, task):
        return self.do(self.fleet.result(task))

    def state(self, task):
        return self.fleet.placements.states([task])[task]


def _scripted(order, cwd):
    return Agent()
