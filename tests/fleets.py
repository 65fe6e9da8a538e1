"""Fleets for tests of what people see of them."""

from notyet.core.session import Turn
from notyet.core.task import Order, Room, Task
from notyet.fleet.queue import Queue
from notyet.ledger.leases import Leases
from notyet.ledger.placements import FLEET, Placements, enter
from notyet.ledger.runs import Runs, run_id


class Made:
    """A fleet made by hand: its workers are this process, and its tasks are moved by a test."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.placements, self.runs = Placements(ledger), Runs(ledger)
        self.leases = Leases(ledger.connection)

    def queue(self, name="agents", **fields):
        queue = Queue(name, **fields)
        self.placements.define(name, queue.about())
        return queue

    def worker(self, name="box-1", **fields):
        owner = self.leases.enrol(1000.0, program=FLEET)
        known = {"id": f"{name}:1", "name": name, "version": "0.1.0", "queues": ["agents"]}
        self.placements.describe(owner, known | {"at_once": 8} | fields)
        return owner

    def submit(self, task, model="", queue="agents", prompt=""):
        known = Task(id=task, prompt=prompt or f"do {task}", scope="agent")
        order = Order(queue=queue, agent="scripted", model=model)
        assert self.ledger.connection.write(lambda db: enter(db, known, order, f"{task}:x"))

    def begin(self, task, owner, model="", queue="agents", prompt=""):
        self.submit(task, model, queue, prompt)
        known = Task(id=task, prompt=prompt or f"do {task}", scope="agent")
        more = {"key": f"{task} begins", "machine": "", "room": Room()}
        assert self.placements.adopt(known, owner, {"agent": "scripted"}, f"s-{task}", **more) == 0

    def end(self, task, owner):
        run = run_id(task, 1)
        assert self.runs.finish(run, Turn(text="done"), "done", owner)
        assert self.runs.end(task, owner, "interrupted")


def fill(made):
    """Fill a fleet as people have one: three workers, two queues, a schedule, a result."""
    limits = {"claude-opus-4": "50/min, 20 at once", "*": "200/min"}
    made.queue(per_worker=8, limits=limits)
    made.queue("nightly", by="", limits={"*": "4 at once"})
    first = made.worker("build-1", queues=["agents", "nightly"])
    second = made.worker("build-2")
    made.worker("build-3", draining=True)
    for number in range(6):
        made.begin(f"a{number}", first if number < 4 else second, "claude-opus-4")
    for number in range(3):
        made.begin(f"b{number}", second, "gpt-5-codex")
        made.submit(f"c{number}", "claude-opus-4")
    made.submit("d0", "gpt-5-codex")
    made.begin("e0", first, queue="nightly")
    made.begin("f0", first, "claude-opus-4", prompt="Upgrade the linter, and fix what it finds.")
    made.end("f0", first)
    statement = "UPDATE outbox SET status = 'suspended', error = 'the consumer answered 500'"
    made.ledger.connection.execute(statement, ())
    order = {"queue": "nightly", "agent": "codex", "prompt": "Make the build green"}
    made.placements.note_schedule("nightly-green", "0 3 * * *", order)
