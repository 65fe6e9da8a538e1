"""Processes of the fleet's soak: workers and consumers, to be killed and suspended.

They are forked from a server that has loaded notyet before, so that hundreds can be started.
"""

import asyncio
import multiprocessing
import os
import random
import signal
import sys
import time
from dataclasses import dataclass

QUEUE = "agents"
LOADED = ["notyet.fleet", "fleet_soak.agents", "notyet.supervise", "concurrent.futures.thread"]


@dataclass(frozen=True)
class Job:
    """What a worker is told. `hours` shift its clock; a newer one has a further version."""

    folder: str
    url: str
    machine: str
    lease: float
    at_once: int = 4
    is_bound: bool = False
    hours: float = 0.0
    is_newer: bool = False
    patience: float = 60.0


def work(job):
    """Be a worker until SIGTERM."""
    pretend(job)
    from fleet_soak.agents import note
    from notyet.errors import NotyetError

    sys.stdout = sys.stderr = open(os.path.join(job.folder, "output"), "a", buffering=1)  # noqa: SIM115
    try:
        asyncio.run(_work(job))
    except NotyetError as error:
        note(os.path.join(job.folder, "refusals"), machine=job.machine, text=str(error))
        sys.exit(1)


def pretend(job):
    """Make this process one of another machine, with another clock or version."""
    if job.hours:
        now, now_ns = time.time, time.time_ns
        time.time = lambda: now() + job.hours * 3600
        time.time_ns = lambda: now_ns() + int(job.hours * 3600e9)
    from notyet.run import proc

    proc._own_machine.clear()
    proc._own_machine[os.getpid()] = job.machine
    if job.is_newer:
        from notyet.ledger import connection, migrations, postgres

        def step(db):
            db.execute("CREATE TABLE of_a_newer_version (id INTEGER)")

        for module in (connection, migrations, postgres):
            module.VERSION += 1
        for module in (migrations, postgres):
            module.STEPS = (*module.STEPS, step)


async def _work(job):
    from fleet_soak.agents import note, opened, reopened, tests_pass
    from notyet import Engine, Function, Gate, Limits
    from notyet.fleet import Fleet, Worker
    from notyet.supervise import SupervisorSettings

    def warn(text):
        note(os.path.join(job.folder, "warnings"), machine=job.machine, pid=os.getpid(), text=text)

    gate = Gate(name="tests", check=Function(tests_pass, "notyet"))
    async with Fleet(job.url) as fleet:
        engine = Engine(
            [gate], limits=Limits(max_blocks=5, stuck_after=0), ledger=fleet.ledger, warn=warn
        )
        worker = Worker(
            fleet,
            [QUEUE],
            at_once=job.at_once,
            open_session=opened(job.folder),
            reopen=reopened,
            is_bound=job.is_bound,
            engine_of=lambda _task: engine,
            settings=SupervisorSettings(
                lease=job.lease, grace=0.0, poll=0.1, ledger_patience=job.patience
            ),
            warn=warn,
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.drain)
        await worker.run()


def consume(job):
    """Take results, and write each down, until killed."""
    pretend(job)
    from fleet_soak.agents import note

    inbox = os.path.join(job.folder, "inbox")

    async def take(announcement):
        result = announcement.result
        known = {"task": result.task_id, "ending": result.ending, "error": result.error}
        note(inbox, key=announcement.key, label=result.label, **known)
        await asyncio.sleep(random.uniform(0, 0.05))  # a kill comes before it is acknowledged

    async def deliver():
        from notyet.fleet import Fleet

        async with Fleet(job.url) as fleet:
            await fleet.deliver(take)

    asyncio.run(deliver())


class Crew:
    """Processes that are started again when they end, as a service manager does it."""

    def __init__(self, journal):
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(LOADED)
        self._journal = journal
        self._jobs = {}  # name: what it does
        self._processes = {}
        self.killed = 0
        self.ended = 0  # by themselves

    def start(self, name, call, job):
        """Start a process."""
        self._jobs[name] = (call, job)
        process = self._context.Process(target=call, args=(job,), name=name, daemon=True)
        process.start()
        self._processes[name] = process
        return process

    def pid(self, name):
        return self._processes[name].pid

    def is_alive(self, name):
        return self._processes[name].is_alive()

    def kill(self, name, *, again=True):
        """Kill one, and start it again; return when it was killed."""
        process = self._processes[name]
        self._journal("killed", process.pid)
        process.kill()
        process.join()
        self.killed += 1
        if again:
            self.start(name, *self._jobs[name])

    def forget(self, name):
        """Leave one that has ended alone."""
        del self._processes[name]

    def suspend(self, name):
        os.kill(self.pid(name), signal.SIGSTOP)
        self._journal("suspended", self.pid(name))

    def resume(self, name):
        self._journal("resumed", self.pid(name))
        os.kill(self.pid(name), signal.SIGCONT)

    def revive(self):
        """Start those again that ended by themselves."""
        for name, process in list(self._processes.items()):
            if not process.is_alive():
                self.ended += 1
                process.join()
                self.start(name, *self._jobs[name])

    def close(self):
        for process in self._processes.values():
            process.kill()
            process.join()
