"""A worker of a fleet in a process of its own, which a test may kill: `python crew_member.py`.

Its agents write each prompt into a file, and read there which keys have arrived.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

from notyet import Engine, Turn
from notyet.fleet import Fleet, Worker
from notyet.supervise import SupervisorSettings
from support import gate

MODULES = ("notyet.run.proc", "notyet.ledger.leases", "notyet.fleet.worker", "notyet.ledger.ledger")


class Writing:
    """A session whose prompts are in a file; a prompt with "wait" waits for another file."""

    def __init__(self, folder, name=""):
        self.folder, self.name = Path(folder), name or f"s{time.time_ns()}"
        self.id = None
        self.on_news = None

    def ref(self):
        return {"agent": "writing", "folder": str(self.folder), "name": self.name}

    async def send(self, prompt, key):
        self.id = self.name
        with (self.folder / "prompts").open("a") as file:
            file.write(json.dumps([key, prompt, os.getpid()]) + "\n")
        while "wait" in prompt and not (self.folder / "go").exists():
            await asyncio.sleep(0.01)
        return Turn(text=f"done by {os.getpid()}")

    def knows(self, key):
        return key in {known for known, _, _ in prompts(self.folder)}

    async def abort(self):
        return

    def transcript(self):
        return None


def prompts(folder):
    """Return what agents were sent: keys, prompts and the processes that sent them."""
    path = Path(folder, "prompts")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def reopen(ref):
    return Writing(ref["folder"], ref["name"])


def hang(folder, what):
    """Say where this process is, and stay there."""
    Path(folder, what).touch()
    time.sleep(100)


async def main(url, folder, where, machine):
    for name in MODULES if machine else ():
        __import__(name)
        if hasattr(sys.modules[name], "own_machine"):
            sys.modules[name].own_machine = lambda: machine

    def opened(order, cwd):
        if where == "opening":
            hang(folder, where)
        return Writing(folder)

    def on_progress(progress):
        if where == progress.kind:
            os.kill(os.getpid(), signal.SIGKILL)

    async with Fleet(url) as fleet:
        gates = [gate(answer=lambda event: hang(folder, where))] if where == "gating" else []
        engine = Engine(gates, ledger=fleet.ledger)
        worker = Worker(
            fleet,
            ["agents"],
            open_session=opened,
            reopen=reopen,
            engine_of=lambda task: engine,
            on_progress=on_progress if where == "ended" else None,
            settings=SupervisorSettings(lease=1.5, poll=0.05, grace=0.0, abort_patience=5.0),
        )
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
