"""What a long queue costs: submitting, listing and claiming, with many tasks and with few."""

import asyncio
import statistics
import time

from dbos._sys_db import SystemDatabase

from fleet_soak.processes import QUEUE
from fleet_soak.world import PATIENCE, world
from notyet import Engine
from notyet.core.session import Turn
from notyet.fleet import Queue, Worker
from notyet.ledger.placements import Placements
from notyet.ledger.tasks import Tasks
from notyet.supervise import SupervisorSettings

FEW = 1_000
SUBMITTED, LISTED, CLAIMED = 150, 60, 96
MOST_GROWTH = 4.0  # a cost that is linear would grow a hundredfold
MODELS = ("opus", "haiku", "sonnet")
PARTS = ("submit", "list the newest", "list those at work", "claim: place", "claim: begin", "sweep")


class Instant:
    """A session that answers at once."""

    id = None

    def ref(self):
        return {}

    async def send(self, prompt, key):
        return Turn(text="done")

    def knows(self, key):
        return False

    async def abort(self):
        return

    def transcript(self):
        return None


class Stopwatch:
    """Measures calls of a method, in whichever thread."""

    def __init__(self, owner, name, counts=bool):
        self._owner, self._name, self._counts = owner, name, counts
        self._original = getattr(owner, name)
        self.seconds = []

    def __enter__(self):
        original = self._original

        def timed(*args, **options):
            began = time.perf_counter()
            found = original(*args, **options)
            if self._counts(found):
                self.seconds.append(time.perf_counter() - began)
            return found

        setattr(self._owner, self._name, timed)
        return self

    def __exit__(self, *_):
        setattr(self._owner, self._name, self._original)


async def queued(options):
    """Keep submitting, listing and claiming at the same cost, however many tasks are queued."""
    limits = {"opus": "500 at once, 100000/min", "*": "500 at once"}
    async with world(Queue(QUEUE, limits=limits), keep=options.keep) as here:
        for number in range(FEW):
            await here.submit(f"few-{number}", MODELS[number % len(MODELS)])
        few = await measured(here, "few")
        await asyncio.to_thread(multiply, here.cluster, options.queued // FEW)
        waiting = sum(count for count, _ in Placements(here.fleet.ledger).counts().values())
        many = await measured(here, "many")
        figures = {"queued": f"{waiting:,}, against {FEW:,}"}
        broken = []
        for part in PARTS:
            growth = many[part] / few[part]
            took = f"{few[part] * 1e3:.2f} -> {many[part] * 1e3:.2f} ms"
            figures[part] = f"x {growth:.2f}   ({took})"
            if growth > MOST_GROWTH:
                broken.append(f"{part} costs {growth:.1f} times as much")
        return figures, broken


async def measured(here, prefix):
    """Return the median seconds of each part."""
    found = {part: [] for part in PARTS}

    async def timed(part, call, *args):
        began = time.perf_counter()
        await call(*args)
        found[part].append(time.perf_counter() - began)

    here.cluster.psql("ANALYZE")
    for number in range(SUBMITTED):
        await timed("submit", here.submit, f"{prefix}-more-{number}", MODELS[number % len(MODELS)])
    page = Tasks(here.fleet.ledger).page
    for _ in range(LISTED):
        await timed("list the newest", asyncio.to_thread, page, "all")
        await timed("list those at work", asyncio.to_thread, page, "active")
    engine = Engine(ledger=here.fleet.ledger)
    worker = Worker(
        here.fleet,
        [QUEUE],
        at_once=8,
        open_session=lambda *_: Instant(),
        engine_of=lambda _task: engine,
        settings=SupervisorSettings(grace=0.0, poll=0.1),
    )
    placing = Stopwatch(SystemDatabase, "start_queued_workflows", lambda answer: bool(answer[0]))
    beginning = Stopwatch(Placements, "adopt", lambda wait: wait == 0.0)
    with placing, beginning:
        running = asyncio.ensure_future(worker.run())
        async with asyncio.timeout(PATIENCE):
            while len(beginning.seconds) < CLAIMED and not running.done():
                await asyncio.sleep(0.1)
        for _ in range(5):
            await timed("sweep", worker.sweep)
        worker.drain()
        await running
    found["claim: place"], found["claim: begin"] = placing.seconds, beginning.seconds
    return {part: statistics.median(seconds) for part, seconds in found.items()}


def multiply(cluster, times):
    """Copy the tasks that wait, with their runs and placements, so that there are many.

    A copy's ids have other letters before them; they are in texts, too.
    """
    is_waiting = "begun = 0 AND ended_at IS NULL"
    task = "split_part(workflow_uuid, ':', 1)"
    placements = f"{task} IN (SELECT id FROM notyet.tasks WHERE {is_waiting})"
    copies = (  # the table, its ids, a text with ids in it, the task, and which rows
        ("notyet_dbos.workflow_input", ("workflow_uuid",), "inputs", task, placements),
        ("notyet_dbos.workflow_status", ("workflow_uuid",), "", task, "status = 'ENQUEUED'"),
        ("notyet.runs", ("id", "task"), "", "task", "state = 'queued'"),
        ("notyet.tasks", ("id", "run", "placement"), "about", "id", is_waiting),
    )
    script = []
    for table, ids, text, of, rows in copies:
        schema, _, name = table.partition(".")
        known = f"table_schema = '{schema}' AND table_name = '{name}' AND is_generated = 'NEVER'"
        sql = f"SELECT column_name FROM information_schema.columns WHERE {known}"
        names = cluster.run("psql", "-qAt", "-d", "postgres", "-c", sql).stdout.split()
        copied = {one: f"'c' || n || {one}" for one in ids}
        copied |= {text: f"replace({text}, {of}, 'c' || n || {of})"} if text else {}
        wanted = ", ".join(copied.get(one, one) for one in names)
        script.append(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {wanted}"
            f" FROM {table}, generate_series(1, {times - 1}) AS n WHERE {rows};"
        )
    if complaint := cluster.psql("\n".join(script)):
        raise RuntimeError(complaint)
