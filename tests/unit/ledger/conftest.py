"""Ledgers for the contract that all of them keep."""

import os

import pytest

from notyet import Allow, Decision, Ledger
from notyet.core.session import Turn
from notyet.core.task import Task
from notyet.ledger.outbox import Outbox
from notyet.ledger.transitions import run_id
from stores import URL
from supervised import Dead, first_run
from support import rows


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db")


@pytest.fixture
def durable(tmp_path):
    """Return a new ledger that outlives its process."""
    return Ledger(tmp_path / "ledger.db")


@pytest.fixture
def reopen():
    """Open a ledger's file a second time."""
    return lambda ledger: Ledger(ledger.path)


@pytest.fixture
def unusable(tmp_path):
    """Return a ledger whose place is a folder, or a database that does not exist."""
    if os.environ.get(URL):
        return Ledger(os.environ[URL].replace("/postgres?", "/missing?"))
    return Ledger(tmp_path)


class Desk(Dead):
    """A ledger with tasks whose moves are made by hand."""

    def __init__(self, folder):
        super().__init__(folder)
        self.outbox = Outbox(self.ledger.connection)

    def enter(self, task="t1", session="", ref=None, owner=None, *, limit=9, run=None, **fields):
        run = run or first_run(task)
        known = Task(id=task, prompt="do it", **fields)
        limits = {"max_depth": limit, "max_children": limit}
        return self.tasks.start(known, run, owner or self.owner, ref or {}, session, **limits)

    def gate(self, task="t1", text="done", generation=1):
        run = run_id(task, generation)
        assert self.runs.finish(run, Turn(text=text), "done", self.owner)
        assert self.runs.settle(run, self.owner, f"{run} settles")

    def decide(self, decision, task="t1", generation=1, begun=None, ceiling=0):
        run = run_id(task, generation)
        how = {"begun": begun, "ceiling": ceiling, "key": f"{run} decides"}
        return self.runs.decide(run, self.owner, decision, **how).decision

    def end(self, task="t1"):
        self.gate(task)
        assert self.decide(Decision(verdict=Allow(), outcome="passed", turn=1), task)

    def state(self, task="t1"):
        return self.tasks.look(task).run.state

    def status(self, task):
        return rows(self.ledger, "SELECT status, error FROM outbox WHERE task = ?", task)[0]


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)
