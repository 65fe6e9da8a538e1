"""Where lives are played: supervisors whose every wait is for us."""

import asyncio
import os
import sqlite3
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing

from lives.model import MAX_BLOCKS
from lives.puppets import Consumer, Gate
from notyet import Engine, Function, Ledger, Limits, Match
from notyet import Gate as GateOf
from notyet.ledger import ledger as sqlite
from notyet.supervise import Supervisor, SupervisorSettings

FOR_EVER = 1e9
PATIENT = SupervisorSettings(
    grace=500.0,
    poll=500.0,
    lease=FOR_EVER,
    children_expiry=FOR_EVER,
    delivery_timeout=FOR_EVER,
    delivery_attempts=10**6,
    longest_retry=100.0,
    steer_pause=0.0,
    ledger_patience=5.0,
)
A_WHILE = 1000.0  # longer than any patience above that is not for ever
MOST_TASKS = 4  # at once
ALL = Match(events=("subagent",), endings=("done", "error", "timeout"))


class Calls(ThreadPoolExecutor):
    """The thread that calls a ledger, and how many calls it got."""

    count = 0

    def submit(self, *args, **options):
        self.count += 1
        return super().submit(*args, **options)


class DeadCalls(Executor):
    """The calls of a supervisor that died: none is made, and none ever ends."""

    def __init__(self):
        self.calls = []

    def submit(self, *args, **options):
        self.calls.append(Future())
        return self.calls[-1]


class Stage:
    """A ledger, a gate, a consumer, and the supervisors that come one after another."""

    def __init__(self, folder):
        self.ledger = Ledger(os.path.join(folder, "ledger.db"))
        self.gate, self.consumer = Gate(), Consumer()
        self.agents = {}
        self.observed = {}
        self.supervisor = None
        self.supervisors = []  # those that live, or only seem to be dead
        self.dead = []  # kept, so that what waits for them waits for ever

    def raised(self):
        check = Function(self.gate, "notyet")
        gate = GateOf(name="g", check=check, match=ALL, timeout=FOR_EVER)
        limits = Limits(max_blocks=MAX_BLOCKS, stuck_after=0, session_ceiling=0)
        engine = Engine([gate], limits=limits, ledger=self.ledger, warn=lambda _: None)
        engine.on("subagent_ended", self._observe)
        reopen = lambda ref: self.agents[ref["agent"]].session()
        supervisor = Supervisor(
            engine, self.ledger, reopen, deliver=self.consumer, settings=PATIENT
        )
        supervisor._store._threads = Calls(1)
        self.supervisors.append(supervisor)
        return supervisor

    async def _observe(self, event, ctx):
        self.observed[ctx.agent_id] = self.observed.get(ctx.agent_id, 0) + 1

    async def quiet(self):
        """Wait until nothing can happen any more without us."""
        loop = asyncio.get_running_loop()
        stores = [each._store for each in self.supervisors]
        is_busy = True
        while is_busy:
            asked = [store._threads.count + 1 for store in stores]  # and what we ask now
            for store in stores:
                await store(lambda: None)
            for _ in range(5):
                await asyncio.sleep(0)
            is_busy = loop._ready or asked != [store._threads.count for store in stores]

    async def leave(self):
        """End what is left, also what hangs because it is dead."""
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=0.01)
        for supervisor in self.supervisors:
            await supervisor._store(lambda: None)
            supervisor._store.close()

    def lose_supervisor(self, kind):
        """Let it die; or be silent for so long that it counts as dead."""
        old = self.supervisor
        if kind == "dead":
            old._store._threads.shutdown(wait=False)
            old._store._threads = DeadCalls()  # nothing that it still wants to write is written
            self.dead.append(old)
            self.supervisors.remove(old)
            sqlite.deciding_here.clear()  # they are of this process, and not lost by themselves
        self.gate.asked.clear()
        self.consumer.offered.clear()
        with closing(sqlite3.connect(self.ledger.path)) as db, db:
            db.execute("UPDATE owners SET lease_until = 0")
