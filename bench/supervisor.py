"""One full cycle of a supervised agent: start, end, gate, steer, end, announce.

Does its cost grow with the ledger, what does one transition cost beside a registry that is
rewritten each time, and what bounds the number of cycles?
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.goals import UNJUDGED
from bench.measure import Curve, Effort, Point, Row, interleaved, interleaved_async
from notyet import Allow, Block, Decision, Engine, Ledger, StopEvent
from notyet.core.record import replace
from notyet.core.session import News, Turn
from notyet.core.task import Run, Task
from notyet.ledger.connection import Connection
from notyet.ledger.leases import Leases
from notyet.ledger.outbox import Outbox
from notyet.ledger.prune import prune_tasks
from notyet.ledger.runs import Runs
from notyet.ledger.task_rows import TOLD
from notyet.ledger.tasks import Tasks
from notyet.supervise import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = 50
SIZES = (1_000, 10_000, 100_000)
BUSY = f"  percent, {AT_ONCE} at once"
MOSTLY = 70  # percent
PROMPT = "Look at the tests of the parser and make them pass. " * 20
ANSWER = "I have changed the parser. All tests pass now. " * 20


class Session:
    """The least that is a session: it answers at once, and is sent back once."""

    def __init__(self) -> None:
        self.id: str | None = os.urandom(8).hex()
        self.on_news: Callable[[News], None] | None = None
        self.turns = 0

    def ref(self):
        return {"id": self.id}

    async def send(self, prompt, key):
        assert self.on_news is not None
        self.on_news(News(kind="accepted"))
        self.turns += 1
        return Turn(text="done" if self.turns == 1 else "tests pass")

    def knows(self, key):
        return None

    async def abort(self):
        return None

    def transcript(self):
        return None


async def stopping(event, ctx):
    """Send it back once. A handler: gates of files would ask git about the tree as well."""
    if event.last_assistant_message == "tests pass":
        return None
    return {"allow": False, "prompt": "run the tests"}


async def deliver(announcement):
    return None


@asynccontextmanager
async def supervising(ledger: Ledger):
    engine = Engine(ledger=ledger)
    engine.on("subagent_stopping", stopping)
    async with Supervisor(engine, ledger, deliver=deliver) as supervisor:
        yield supervisor


async def cycle(supervisor: Supervisor) -> None:
    """Start, end, gate, steer, end, announce."""
    handle = await supervisor.spawn(Session(), "do it", label="bench")
    driver = supervisor._context.live[handle.task_id].loop
    assert driver is not None
    result = await handle.result()
    assert (result.steers, result.outcome) == (1, "passed")
    await asyncio.wait({driver})  # until it is delivered, too


async def _filled(folder: str, tasks: int) -> Ledger:
    """Return a ledger with so many ended tasks, as one cycle leaves them."""
    ledger = Ledger(os.path.join(folder, f"{tasks}.db"))
    async with supervising(ledger) as supervisor:
        await cycle(supervisor)
    ledger.connection.write(lambda db: _multiply(db, tasks))
    ledger.close()  # which moves all of that from the log of changes into the file
    return Ledger(ledger.path)


def _multiply(db, tasks: int) -> None:
    """Copy the only task with its runs, steers, stops and result."""
    (task,) = db.execute("SELECT id FROM tasks").fetchone()
    db.execute(
        "CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n",
        (tasks - 1,),
    )
    for table, unique in (
        ("tasks", ("id", "run", "session_id")),
        ("runs", ("id", "task", "key")),
        ("steers", ("key", "task", "run")),
        ("outbox", ("key", "task")),
        ("agents", ("session_id", "agent_id")),
    ):
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]  # our own tables
        names = [name for name in names if (table, name) != ("agents", "id")]
        values = [f"{name} || '-' || i" if name in unique else name for name in names]
        rows = f"SELECT {', '.join(values)} FROM {table}, numbers"  # noqa: S608  # as above
        db.execute(f"INSERT INTO {table} ({', '.join(names)}) {rows}")  # as above
    db.execute(
        "INSERT INTO stops (agent, turn, begun_at, ended_at, pid, token, digest, event, outcome)"
        " SELECT agent + i, turn, begun_at, ended_at, pid, token, digest, event, outcome"
        " FROM stops, numbers"
    )
    db.execute("DROP TABLE numbers")
    assert db.execute("SELECT count(*) FROM tasks").fetchone() == (tasks,), task


def measure(effort: Effort) -> list[Row | Curve]:
    """Compare ledgers of different sizes, and a registry of JSON that is rewritten each time."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        curves, cycled = asyncio.run(_grown(folder, effort))
        return [*asyncio.run(_measure(folder, effort, cycled)), *curves]


async def _measure(folder: str, effort: Effort, cycled: float) -> list[Row]:
    ledger = Ledger(os.path.join(folder, f"{SIZES[0]}.db"))  # as filled before
    moves, slow, fast = Moves(ledger), _registry(folder, "dump"), _registry(folder, "dumps")
    beside = interleaved(effort.rounds(15), 2, moves=moves.cycle, slow=slow, fast=fast)
    each = beside["moves"] / moves.COUNT
    bounds = await _bounds(folder)
    ledger.close()
    dump, dumps = "json.dump of 1,000 tasks, rename", "the same in one piece (json.dumps)"
    return [
        Row("a transition, times cheaper", dump, beside["slow"], each, 50.0, at_least=True),
        Row("  the same", dumps, beside["fast"], each, UNJUDGED, at_least=True),
        *(
            Row(f"  a cycle, beside its {n}", what, figure, cycled)
            for n, (what, figure) in bounds.items()
        ),
    ]


async def _grown(folder: str, effort: Effort) -> tuple[list[Curve], float]:
    """Measure what supervising costs where many tasks are known; and a cycle where few are."""
    taken: dict[str, list[Point]] = {}
    async with AsyncExitStack() as stack:
        supervisors = {}
        for size in effort.sizes(SIZES):
            ledger = await _filled(folder, size)
            stack.callback(ledger.close)
            supervisors[size] = await stack.enter_async_context(supervising(ledger))
        for what, (times, use) in USES.items():
            figures = await interleaved_async(
                effort.rounds(20),
                times,
                **{str(size): partial(use, each) for size, each in supervisors.items()},
            )
            taken[what] = [Point(size, figures[str(size)]) for size in supervisors]
    curves = [
        Curve(what, "tasks", tuple(points), "growth.tasks" if what == CYCLE else "flat")
        for what, points in taken.items()
    ]
    return curves, taken[CYCLE][0].us


async def _list(supervisor: Supervisor) -> None:
    assert len(await supervisor.tasks(50)) == 50


async def _recover(supervisor: Supervisor) -> None:
    assert await supervisor.recover() == ()


async def _tidy(supervisor: Supervisor) -> None:
    ledger = supervisor._store.ledger
    await supervisor._store(
        ledger.connection.write, lambda db: prune_tasks(db, time.time() - 3600, 5)
    )


CYCLE = "spawn, end, gate, steer, end, announce"
USES = {
    CYCLE: (3, cycle),
    "list the newest 50": (2, _list),
    "recover, with nothing left to do": (10, _recover),
    "tidy up, with nothing old": (2, _tidy),
}


class Moves:
    """The transitions of a cycle alone, as the supervisor makes them: no loop, no threads."""

    COUNT = 15  # enter, dispatch, twice end, settle, begin and decide, ..., in seven transactions

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.tasks, self.runs = Tasks(ledger), Runs(ledger)
        self.outbox = Outbox(ledger.connection)
        self.owner = Leases(ledger.connection).enrol(3600.0)

    def cycle(self) -> None:
        task, owner, runs = Task(id=os.urandom(8).hex(), prompt=PROMPT), self.owner, self.runs
        run = Run(
            id=f"{task.id}.1",
            task=task.id,
            generation=1,
            state="running",
            source="start",
            key=os.urandom(8).hex(),
            prompt=PROMPT,
            sent="dispatched",
        )
        self.tasks.start(task, run, owner, {"id": task.id}, task.id, max_depth=5, max_children=9)
        steer = os.urandom(8).hex()
        self._end(run.id, task.id, Decision(verdict=Block("go on"), outcome="blocked"), steer)
        runs.accept(steer, owner)
        self._end(f"{task.id}.2", task.id, Decision(verdict=Allow(), outcome="passed"), "")
        self.outbox.acknowledge(task.id)

    def _end(self, run: str, task: str, decision: Decision, key: str) -> None:
        runs, owner = self.runs, self.owner
        event = StopEvent(session_id=task, run_id=run, scope="subagent", last_message=ANSWER)
        settled = runs.settle(
            run, owner, key, turn=Turn(text=ANSWER), until="delivered", event=lambda _: event
        )
        assert settled is not None
        assert settled.begun is not None
        after = runs.decide(
            run,
            owner,
            replace(decision, turn=settled.begun.history.turn, limit=3),
            begun=settled.begun,
            ceiling=50,
            key=key,
            phase="dispatched",
            told=TOLD,
            is_leased=True,
        )
        assert after is not None
        assert after.decision is not None
        assert after.decision.outcome == decision.outcome


def _registry(folder: str, how: str):
    """Return what rewrites a registry: one record for each task, as ours are, in one file."""
    path = Path(folder, "registry.json")
    record = {
        "runId": "r" * 36,
        "childSessionKey": "agent:main:subagent:" + "s" * 36,
        "requesterSessionKey": "agent:main:main",
        "task": PROMPT,
        "label": "parser",
        "cleanup": "keep",
        "createdAt": time.time(),
        "startedAt": time.time(),
        "endedAt": time.time(),
        "outcome": {"status": "ok"},
        "frozenResultText": ANSWER,
        "steerCount": 1,
    }
    runs = {f"run-{n}": record for n in range(1_000)}

    def rewrite() -> None:
        fresh = path.with_suffix(".new")
        with open(fresh, "w", encoding="utf-8") as file:
            if how == "dump":
                json.dump({"version": 2, "runs": runs}, file)
            else:
                file.write(json.dumps({"version": 2, "runs": runs}))
        fresh.replace(path)

    return rewrite


async def _bounds(folder: str) -> dict[str, tuple[str, float]]:
    """Measure what a cycle is made of: how often each part occurs, and the time of all of it."""
    ledger = Ledger(os.path.join(folder, "bounds.db"))
    counts = {"flushed": 0, "calls": 0}
    original = Connection._attempt

    def counted(self, begin, work, *, flush):
        counts["calls"] += 1
        counts["flushed"] += flush
        return original(self, begin, work, flush=flush)

    async with supervising(ledger) as supervisor:
        store = supervisor._store
        await cycle(supervisor)
        Connection._attempt = counted  # type: ignore[method-assign]
        await cycle(supervisor)
        Connection._attempt = original  # type: ignore[method-assign]

        async def hop():
            await store(lambda: None)

        hops = await interleaved_async(30, 20, hop=hop)
    moves = Moves(ledger)
    moved = interleaved(20, 3, moves=moves.cycle)["moves"]
    row = "UPDATE owners SET lease_until = lease_until + 1"
    writes = interleaved(
        30,
        5,
        plain=lambda: ledger.connection.write(lambda db: db.execute(row)),
        flushed=lambda: ledger.connection.write_through(lambda db: db.execute(row)),
    )
    ledger.close()
    flush = max(0.0, writes["flushed"] - writes["plain"])
    flushes = counts["flushed"] * flush
    return {
        "moves": (f"{moves.COUNT} moves, without fsync", max(1.0, moved - flushes)),
        "thread hops": (f"{counts['calls']} hops to a thread", counts["calls"] * hops["hop"]),
        "fsyncs": (f"{counts['flushed']} fsyncs", flushes),
    }


def cycles() -> dict[str, float]:
    """Return cycles in a second, one after another and many at once."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder:
        return asyncio.run(_cycles(folder))


def bound(rates: dict[str, float]) -> str:
    """Say what keeps more cycles from fitting into a second."""
    if rates[BUSY] > MOSTLY:
        return "one core: the loop, the statements and their JSON take turns in one interpreter"
    return "waiting: for the disk (fsync), for other threads, or for a busy machine"


async def _cycles(folder: str) -> dict[str, float]:
    ledger = Ledger(os.path.join(folder, "cycles.db"))
    async with supervising(ledger) as supervisor:
        await cycle(supervisor)

        async def many() -> None:
            await asyncio.gather(*(cycle(supervisor) for _ in range(AT_ONCE)))

        alone = await _rate(200, 1, lambda: cycle(supervisor))
        together = await _rate(6, AT_ONCE, many)
    ledger.close()
    return {
        "one after another": alone[0],
        "  percent of a core": alone[1],
        f"{AT_ONCE} at once": together[0],
        BUSY: together[1],
    }


async def _rate(rounds: int, cycles: int, work) -> tuple[float, float]:
    started, busy = time.perf_counter(), time.process_time()
    for _ in range(rounds):
        await work()
    seconds = time.perf_counter() - started
    return rounds * cycles / seconds, (time.process_time() - busy) / seconds * 100
