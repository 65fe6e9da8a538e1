"""Decisions in process: against asyncio alone, an executor, and pluggy."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pluggy

from bench.goals import UNJUDGED
from bench.measure import Curve, Effort, Point, Row, interleaved_async
from notyet import Engine, Function, Gate, StopEvent

EVENT = StopEvent(session_id="bench", scope="agent", last_message="done")
SUBEVENT = StopEvent(session_id="bench", scope="subagent", agent_id="a", last_message="done")
ALLOW = {"allow": True}
SIZES = (1, 10, 100, 1_000)


async def trivial_async(event):
    return None


def trivial_sync(event):
    return None


async def handler(event, ctx):
    return ALLOW


def plain_handler(event, ctx):
    return ALLOW


def measure(effort: Effort) -> list[Row | Curve]:
    """Run all comparisons."""
    return [*asyncio.run(_measure(effort)), *asyncio.run(_grown(effort))]


def _async_gates(count: int) -> Engine:
    return Engine([Gate(name=f"g{n}", check=Function(trivial_async)) for n in range(count)])


def _plain_gates(count: int) -> Engine:
    return Engine([Gate(name=f"g{n}", check=Function(trivial_sync)) for n in range(count)])


def _chain(call) -> Engine:
    engine = Engine()
    for _ in range(3):
        engine.on("subagent_stopping", call)
    return engine


async def _measure(effort: Effort) -> list[Row]:  # noqa: PLR0915  # one run, so that all are interleaved
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(10)
    three, ten, ten_plain = _async_gates(3), _async_gates(10), _plain_gates(10)
    three_plain = _plain_gates(3)
    chain, plain_chain = _chain(handler), _chain(plain_handler)
    hooks = _plugins(handler)
    plain_hooks = _plugins(lambda event, ctx: (plain_handler, event, ctx))

    async def loop_alone():
        for _ in range(3):
            if await trivial_async(EVENT) is not None:
                break

    async def plain_loop():
        for _ in range(3):
            if trivial_sync(EVENT) is not None:
                break

    async def gathered():
        await asyncio.gather(*[trivial_async(EVENT) for _ in range(10)])

    async def in_executor():
        await asyncio.gather(*[loop.run_in_executor(pool, trivial_sync, EVENT) for _ in range(10)])

    async def bare_pluggy():
        for answer in hooks.stopping(event=EVENT, ctx=None):
            await answer

    async def timed_pluggy():
        """Guard and time each handler in our own task.

        One that swallows its cancellation holds us for ever, and what one does to the task or to
        its context variables the next one sees.
        """
        reports = []
        for coroutine in hooks.stopping(event=EVENT, ctx=None):
            started = loop.time()
            try:
                async with asyncio.timeout(600):
                    answer = await coroutine
            except Exception as error:  # noqa: BLE001  # as a plain loop would guard its gates
                answer = error
            reports.append({"answer": answer, "seconds": loop.time() - started})
        return reports

    async def guarded_pluggy():
        """Do what a handler is promised: its failure isolated, its task its own, left when late."""
        reports = []
        for coroutine in hooks.stopping(event=EVENT, ctx=None):
            started = loop.time()
            task = loop.create_task(coroutine)
            done, _ = await asyncio.wait({task}, timeout=600)
            answer: object = "late"
            if done:
                answer = task.exception() or task.result()
            reports.append({"answer": answer, "seconds": loop.time() - started})
        return reports

    async def threaded_pluggy():
        """Do the same for plain functions, which only a thread can keep to a time limit."""
        reports = []
        for call, event, ctx in plain_hooks.stopping(event=EVENT, ctx=None):
            started = loop.time()
            try:
                answer = await asyncio.wait_for(loop.run_in_executor(pool, call, event, ctx), 600)
            except Exception as error:  # noqa: BLE001  # as a plain loop would guard its gates
                answer = error
            reports.append({"answer": answer, "seconds": loop.time() - started})
        return reports

    async def at_once(call):
        call()

    figures = await interleaved_async(
        effort.rounds(40),
        25,
        loop_alone=loop_alone,
        three=lambda: three.decide(EVENT),
        three_checked=lambda: three.check(EVENT),
        plain_loop=plain_loop,
        three_plain=lambda: at_once(lambda: three_plain.decide_sync(EVENT)),
        gathered=gathered,
        ten=lambda: ten.decide(EVENT),
        in_executor=in_executor,
        ten_plain=lambda: ten_plain.decide(EVENT),
        bare_pluggy=bare_pluggy,
        timed_pluggy=timed_pluggy,
        guarded_pluggy=guarded_pluggy,
        chain=lambda: chain.decide(SUBEVENT),
        threaded_pluggy=threaded_pluggy,
        plain_chain=lambda: plain_chain.decide(SUBEVENT),
    )
    pool.shutdown()
    bare, timed = "pluggy, unguarded", "pluggy, a timeout around each"
    threads = "pluggy + thread + timeout"
    rows = (
        ("3 async gates, decided", "await in a loop", "loop_alone", "three", "engine.loop"),
        ("  counted and told as well", "the same", "loop_alone", "three_checked", UNJUDGED),
        ("3 plain gates, decided", "call in a loop", "plain_loop", "three_plain", UNJUDGED),
        ("10 async gates, one stage", "asyncio.gather", "gathered", "ten", 1.5),
        ("10 plain gates, one stage", "run_in_executor", "in_executor", "ten_plain", 2.0),
        (
            "3 async handlers in sequence",
            "pluggy, a task for each",
            "guarded_pluggy",
            "chain",
            "engine.pluggy",
        ),
        ("  where a late one may hold us", timed, "timed_pluggy", "chain", UNJUDGED),
        ("  for scale", bare, "bare_pluggy", "chain", UNJUDGED),
        ("3 plain handlers in sequence", threads, "threaded_pluggy", "plain_chain", 1.0),
    )
    return [
        Row(what, name, figures[floor], figures[ours], goal)
        for what, name, floor, ours, goal in rows
    ]


async def _grown(effort: Effort) -> list[Curve]:
    """Measure how a decision grows with its gates, beside gather and an executor."""
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(10)
    points: dict[str, list[Point]] = {"async": [], "plain": []}
    for size in effort.sizes(SIZES):
        engine, plain = _async_gates(size), _plain_gates(size)

        async def gathered(count: int = size):
            await asyncio.gather(*[trivial_async(EVENT) for _ in range(count)])

        async def in_executor(count: int = size):
            calls = [loop.run_in_executor(pool, trivial_sync, EVENT) for _ in range(count)]
            await asyncio.gather(*calls)

        figures = await interleaved_async(
            effort.rounds(12),
            max(1, 100 // size),
            gathered=gathered,
            ours=partial(engine.decide, EVENT),
            in_executor=in_executor,
            plain=partial(plain.decide, EVENT),
        )
        points["async"].append(Point(size, figures["ours"], figures["gathered"]))
        points["plain"].append(Point(size, figures["plain"], figures["in_executor"]))
    pool.shutdown()
    return [
        Curve("async gates in process", "gates", tuple(points["async"]), floor="asyncio.gather"),
        Curve("plain gates in process", "gates", tuple(points["plain"]), floor="run_in_executor"),
    ]


def _plugins(call):
    spec, impl = pluggy.HookspecMarker("bench"), pluggy.HookimplMarker("bench")

    class Spec:
        @spec
        def stopping(self, event, ctx): ...

    class Plugin:
        @impl
        def stopping(self, event, ctx):
            return call(event, ctx)

    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(Spec)
    for _ in range(3):
        manager.register(Plugin())
    return manager.hook
