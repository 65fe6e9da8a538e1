"""No statement of a supervised cycle looks at all rows of a table: 100,000 tasks cost no more."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from notyet import Engine, Ledger
from notyet.core.session import News, Turn
from notyet.ledger.connection import Connection
from notyet.supervise import Supervisor, SupervisorSettings

pytestmark = pytest.mark.file_only("SQLite's plans")

GROWING = ("tasks", "runs", "steers", "messages", "outbox", "agents", "stops", "reports")


class Agent:
    def __init__(self):
        self.id = None
        self.on_news = None
        self.turns = 0

    def ref(self):
        return {}

    async def send(self, prompt, key):
        self.id = f"session {id(self)}"
        self.on_news(News(kind="accepted"))
        self.on_news(News(kind="ref"))
        self.turns += 1
        await asyncio.sleep(0.05)
        return Turn(text="tests pass" if self.turns > 1 else "done")

    def knows(self, key):
        return None

    async def abort(self):
        return None

    def transcript(self):
        return None


async def live(ledger):
    engine = Engine(ledger=ledger, warn=lambda _: None)

    async def stopping(event, ctx):
        passes = event.last_assistant_message == "tests pass"
        return None if passes else {"allow": False, "prompt": "go on"}

    engine.on("subagent_stopping", stopping)
    settings = SupervisorSettings(poll=0.01, grace=0.0, steer_pause=0.0, first_retry=0.01)
    tries = []

    async def deliver(announcement):
        tries.append(announcement)
        if len(tries) == 1:
            raise OSError("not now")

    async with Supervisor(engine, ledger, deliver=deliver, settings=settings) as supervisor:
        parent = await supervisor.spawn(Agent(), "do it")
        supervisor.deliver = supervisor.tell_parent
        child = await supervisor.spawn(Agent(), "half of it", parent=parent)
        await supervisor.say(child, "and also this")
        await child
        await parent
        supervisor.deliver = deliver
        steered = await supervisor.spawn(Agent(), "do it")
        await supervisor.steer(steered, "another way")
        await steered
        await supervisor.recover()
        while len(tries) < 2:
            await asyncio.sleep(0.01)


def test_every_statement_of_a_supervised_cycle_finds_its_rows_by_an_index(tmp_path, monkeypatch):
    said = set()
    opened = Connection._opened

    def listened_to(self, begin):
        db = opened(self, begin)
        db.set_trace_callback(said.add)
        return db

    monkeypatch.setattr(Connection, "_opened", listened_to)
    ledger = Ledger(tmp_path / "ledger.db")
    asyncio.run(asyncio.wait_for(live(ledger), 30))
    ledger.close()
    asked = [sql for sql in said if sql.split()[0] in {"SELECT", "UPDATE", "DELETE"}]
    assert len(asked) > 20
    scans = {}
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        for sql in asked:
            for *_, step in db.execute(f"EXPLAIN QUERY PLAN {sql}"):
                if step.startswith("SCAN") and step.split()[-1] in GROWING:
                    scans[sql] = step
    assert scans == {}
