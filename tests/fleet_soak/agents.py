"""Agents of the fleet's soak: they run in workers, and what they did is in files that outlive them.

Each prompt is written down before anything else happens, with its key and the time of the clock
that all processes of this machine share.
"""

import asyncio
import json
import os
import random
import time
from contextlib import suppress
from pathlib import Path

from notyet import Block
from notyet.core.session import News, Turn

LONGEST_TURN = 0.6  # seconds


def note(path, **known):
    """Append a line that is there even if this process is killed at once."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (json.dumps(known) + "\n").encode())
    finally:
        os.close(file)


def notes(path):
    """Return the lines of a file; a process may have been killed in the middle of the last one."""
    try:
        text = Path(path).read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


class Agent:
    """A session. Its name says how often gates send it back."""

    def __init__(self, folder, name, model, session=""):
        self.id = session or f"s{os.urandom(6).hex()}"
        self.on_news = None
        self._folder, self._name, self._model = folder, name, model
        self._path = os.path.join(folder, "agents", name)
        self._stopped = asyncio.Event()

    def ref(self):
        return {"folder": self._folder, "name": self._name, "model": self._model, "id": self.id}

    def knows(self, key):
        return any(line["what"] == "prompt" and line["key"] == key for line in notes(self._path))

    def transcript(self):
        return None

    async def abort(self):
        self._stopped.set()

    async def send(self, prompt, key):
        self._stopped.clear()
        self._note("prompt", key, prompt=prompt)
        if self.on_news is not None:
            self.on_news(News(kind="accepted"))
        said = sum(one["what"] == "prompt" and one["id"] == self.id for one in notes(self._path))
        chance = random.Random(self._name)
        sent_back = chance.randrange(3)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), random.uniform(0.1, LONGEST_TURN))
        self._note("end", key)
        if self._stopped.is_set():
            return Turn(text="", stop_reason="cancelled")
        return Turn(text="tests pass" if said > sent_back else f"done {said}")

    def _note(self, what, key, **more):
        known = {"name": self._name, "model": self._model, "id": self.id, "key": key}
        note(self._path, what=what, pid=os.getpid(), at=time.monotonic(), **known, **more)


def opened(folder):
    """Return what opens the session of an order; its first argument is the agent's name."""
    return lambda order, _cwd: Agent(folder, order.args[0], order.model)


def reopened(ref):
    """Return the session of a worker that died."""
    return Agent(ref["folder"], ref["name"], ref["model"], ref["id"])


def tests_pass(event):
    """Block until the agent says that tests pass."""
    said = event.last_message or ""
    return None if said == "tests pass" else Block(f"run the tests ({said})")
