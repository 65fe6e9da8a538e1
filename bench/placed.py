"""Tasks that are placed on a worker by DBOS, beside those that a supervisor launches itself.

Each has three prompts with turns of a second. Run as a program, because DBOS is one in a process:
`python -m bench.placed URL TASKS` prints the seconds of both.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

from bench.stores import AT_ONCE, PROMPTS
from bench.supervisor import Session
from notyet import Block, Engine, Ledger
from notyet.core.session import News, Turn
from notyet.fleet import Fleet, Queue, Worker
from notyet.supervise import Supervisor, SupervisorSettings

TURN = 1.0  # seconds
ROUNDS = 5  # of tasks, all slots at once


class Working(Session):
    """A session whose third answer passes, after turns of a second."""

    async def send(self, prompt, key):
        assert self.on_news is not None
        self.on_news(News(kind="accepted"))
        self.turns += 1
        await asyncio.sleep(TURN)
        return Turn(text="done" if self.turns < PROMPTS else "tests pass")


def gate(event):
    """Send an agent back until its third answer."""
    return None if event.last_message == "tests pass" else Block("go on")


def seconds(url: str, tasks: int) -> dict[str, float]:
    """Return the seconds that so many tasks take, alone and placed, measured by a new process."""
    command = [sys.executable, "-m", "bench.placed", url, str(tasks)]
    place = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place)
    known: dict[str, float] = json.loads(done.stdout)
    return known


async def alone(url: str, tasks: int) -> float:
    """Launch tasks in a supervisor."""
    ledger = Ledger(url)
    engine = Engine([gate], ledger=ledger)
    slots = asyncio.Semaphore(AT_ONCE)
    async with Supervisor(engine, ledger) as supervisor:

        async def task():
            async with slots:
                handle = await supervisor.launch(Working(), "do it")
                assert (await handle.result()).outcome == "passed"

        started = time.monotonic()
        await asyncio.gather(*(task() for _ in range(tasks)))
        return time.monotonic() - started


async def placed(url: str, tasks: int) -> float:
    """Submit tasks to a queue, and take them with a worker."""
    async with Fleet(url, queues=[Queue("agents", limits={"*": "1000 at once"})]) as fleet:
        engine = Engine([gate], ledger=fleet.ledger)
        worker = Worker(
            fleet,
            ["agents"],
            at_once=AT_ONCE,
            open_session=lambda _order, _folder: Working(),
            engine_of=lambda _task: engine,
            settings=SupervisorSettings(grace=0.0),
        )
        working = asyncio.ensure_future(worker.run())
        await fleet.result(await fleet.submit("first", agent="x", queue="agents"))  # it serves
        started = time.monotonic()
        ids = [await fleet.submit("do it", agent="x", queue="agents") for _ in range(tasks)]
        results = await asyncio.gather(*(fleet.result(task) for task in ids))
        took = time.monotonic() - started
        assert {result.outcome for result in results} == {"passed"}
        worker.drain()
        await working
        return took


if __name__ == "__main__":
    address, count = sys.argv[1], int(sys.argv[2])
    print(
        json.dumps(
            {
                "alone": asyncio.run(alone(address, count)),
                "placed": asyncio.run(placed(address, count)),
            }
        )
    )
