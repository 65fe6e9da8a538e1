"""Supervised tasks on a file and on PostgreSQL, beside a bare workflow of DBOS.

A task has three prompts: its gate sends it back twice, then its result is delivered. Its agent
answers at once. The workflow has five steps that do nothing. Both run 20 at once, in turns, in one
process and on one server; DBOS has its default pool of 20 connections, a supervisor at most 8.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Amount, Effort, Missing, Result, Row, interleaved_async
from bench.supervisor import Session, deliver, stopping
from notyet import Engine, Ledger
from notyet.core.session import News, Turn
from notyet.supervise import Supervisor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Work = Callable[[], Awaitable[object]]

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from postgres_server import Cluster, missing  # type: ignore[import-not-found]  # of the tests

AT_ONCE = 20
PROMPTS = 3
STEPS = 5
FASTER = 1.2  # than the bare workflow


class SentBackTwice(Session):
    """A session whose third answer passes."""

    async def send(self, prompt, key):
        assert self.on_news is not None
        self.on_news(News(kind="accepted"))
        self.turns += 1
        return Turn(text="done" if self.turns < PROMPTS else "tests pass")


def measure(effort: Effort) -> list[Result]:
    """Count the transactions of a task, and compare the stores and DBOS."""
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder, _cluster() as cluster:
        return asyncio.run(_measure(effort, folder, cluster))


async def _measure(effort: Effort, folder: str, cluster) -> list[Result]:
    results: list[Result] = []
    subjects: dict[str, Work] = {}
    async with AsyncExitStack() as stack:
        places = {"a file": os.path.join(folder, "ledger.db")}
        if isinstance(cluster, str):
            results.append(Missing("PostgreSQL and DBOS", cluster))
        else:
            places["PostgreSQL"] = cluster.url()
        for name, place in places.items():
            ledger = Ledger(place)
            stack.callback(ledger.close)
            engine = Engine(ledger=ledger)
            engine.on("subagent_stopping", stopping)
            supervisor = await stack.enter_async_context(
                Supervisor(engine, ledger, deliver=deliver)
            )
            number = await _transactions(supervisor)
            results.append(
                Amount(f"transactions of a task, {name}", number, "", "stores.transactions")
            )
            subjects[name] = partial(_task, supervisor)
        if not isinstance(cluster, str):
            workflow, why = _bare_workflow(cluster, stack)
            if workflow is None:
                results.append(Missing("a bare workflow of DBOS", why))
            else:
                subjects["DBOS"] = workflow
                results += _placing(cluster, effort)
        figures = await interleaved_async(
            effort.rounds(30), 1, **{name: partial(_many, each) for name, each in subjects.items()}
        )
    each = {name: figure.over(AT_ONCE) for name, figure in figures.items()}
    if "PostgreSQL" in each:
        results.append(Row("a task on PostgreSQL", "on a file", each["a file"], each["PostgreSQL"]))
    if "DBOS" in each:
        floor = f"{STEPS} empty steps of DBOS"
        results += [
            Row(
                "a task on PostgreSQL, times faster",
                floor,
                each["DBOS"],
                each["PostgreSQL"],
                FASTER,
                at_least=True,
            ),
            Row("  the same on a file", floor, each["DBOS"], each["a file"], at_least=True),
        ]
    return results


def _placing(cluster, effort: Effort) -> list[Result]:
    """Compare tasks of three seconds that are placed with those that are launched."""
    from bench import placed

    rounds = effort.rounds(placed.ROUNDS)
    took = placed.seconds(cluster.url(schema="placed"), rounds * AT_ONCE)
    waits = (took["placed"] - took["alone"]) / rounds
    note = "DBOS looks for queued tasks twice a second"
    return [
        Amount("a free slot of a worker waits for its next task", waits, "s", note=note),
        Amount(
            "  so tasks of 3 s take, placed by DBOS", took["placed"] / took["alone"], "x launched"
        ),
    ]


async def _many(work: Work) -> None:
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def _task(supervisor: Supervisor) -> None:
    handle = await supervisor.spawn(SentBackTwice(), "do it")
    driver = supervisor._context.live[handle.task_id].loop
    assert driver is not None
    result = await handle.result()
    assert (result.steers, result.outcome) == (PROMPTS - 1, "passed")
    await asyncio.wait({driver})  # until it is delivered, too


async def _transactions(supervisor: Supervisor) -> int:
    """Count the transactions of one task, without those of the heartbeat."""
    await _task(supervisor)
    connection, found = supervisor._store.ledger.connection, Counter[str]()
    original = connection._transact

    def transact(begin, work, *args, **options):
        found[work.__qualname__] += 1
        return original(begin, work, *args, **options)

    connection._transact = transact  # type: ignore[method-assign]
    await _task(supervisor)
    del connection._transact
    return sum(count for name, count in found.items() if not name.startswith("Connection.rows"))


@contextmanager
def _cluster() -> Iterator[object]:
    """Start a PostgreSQL server; yield it, or why there is none."""
    if reason := missing():
        yield reason
        return
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.close()


def _bare_workflow(cluster, stack: AsyncExitStack) -> tuple[Work | None, str]:
    """Return a workflow with steps that do nothing; None and why, if there is no DBOS."""
    try:
        from dbos import DBOS
    except ImportError:
        return None, "dbos is not installed (pip install '.[fleet]')"
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    cluster.psql("CREATE DATABASE bare")
    DBOS(
        config={
            "name": "bare",
            "system_database_url": cluster.url(database="bare"),
            "log_level": "CRITICAL",
        }
    )

    @DBOS.step()
    async def step(number: int) -> int:
        return number

    @DBOS.workflow()
    async def steps() -> None:
        for number in range(STEPS):
            await step(number)

    DBOS.launch()
    stack.callback(DBOS.destroy)
    return steps, ""
