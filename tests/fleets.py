"""Fleets for tests: queued tasks whose moves are made by hand."""

from notyet import Allow, Decision
from notyet.core.session import Turn
from notyet.core.task import Order, Room, Task
from notyet.ledger.outbox import Outbox
from notyet.ledger.placements import Placements, enter
from notyet.ledger.transitions import run_id
from supervised import Dead

ANY = Room()


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
