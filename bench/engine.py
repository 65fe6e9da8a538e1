"""Decisions in process: against asyncio alone, an executor, and pluggy."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pluggy

from bench.measure import Effort, Row, interleaved_async
from notyet import Engine, Function, Gate, StopEvent

EVENT = StopEvent(session_id="bench", scope="agent", last_message="done")
SUBEVENT = StopEvent(session_id="bench", scope="subagent", agent_id="a", last_message="done")
ALLOW = {"allow": True}


async def trivial_async(event):
    return None


def trivial_sync(event):
    return None


async def handler(event, ctx):
    return ALLOW


def plain_handler(event, ctx):
    return ALLOW


def measure(effort: Effort) -> list[Row]:
    """Run all comparisons."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(10)
    ten_async = Engine([Gate(name=f"g{n}", check=Function(trivial_async)) for n in range(10)])
    ten_sync = Engine([Gate(name=f"g{n}", check=Function(trivial_sync)) for n in range(10)])
    chain = Engine()
    for _ in range(3):
        chain.on("subagent_stopping", handler)
    plain_chain = Engine()
    for _ in range(3):
        plain_chain.on("subagent_stopping", plain_handler)
    hooks = _plugins(handler)
    plain_hooks = _plugins(lambda event, ctx: (plain_handler, event, ctx))

    async def gathered():
        await asyncio.gather(*[trivial_async(EVENT) for _ in range(10)])

    async def in_executor():
        await asyncio.gather(*[loop.run_in_executor(pool, trivial_sync, EVENT) for _ in range(10)])

    async def bare_pluggy():
        for answer in hooks.stopping(event=EVENT, ctx=None):
            await answer

    async def guarded_pluggy():
        """Do what a handler is promised: its own time limit, its failure isolated, a report."""
        reports = []
        for coroutine in hooks.stopping(event=EVENT, ctx=None):
            started = loop.time()
            try:
                async with asyncio.timeout(600):
                    answer = await coroutine
            except Exception as error:  # noqa: BLE001  # as a plain loop would guard its gates
                answer = error
            reports.append({"answer": answer, "seconds": loop.time() - started})
            if isinstance(answer, dict) and answer.get("allow") is False:
                break
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

    figures = await interleaved_async(
        40,
        25,
        gathered=gathered,
        ten_async=lambda: ten_async.decide(EVENT),
        ten_checked=lambda: ten_async.check(EVENT),
        in_executor=in_executor,
        ten_sync=lambda: ten_sync.decide(EVENT),
        bare_pluggy=bare_pluggy,
        guarded_pluggy=guarded_pluggy,
        chain=lambda: chain.decide(SUBEVENT),
        threaded_pluggy=threaded_pluggy,
        plain_chain=lambda: plain_chain.decide(SUBEVENT),
    )
    pool.shutdown()
    unjudged = float("inf")
    rows = (
        ("10 async gates, one stage", "asyncio.gather", "gathered", "ten_async", 1.5),
        ("  counted and told as well", "asyncio.gather", "gathered", "ten_checked", unjudged),
        ("10 sync gates, one stage", "run_in_executor", "in_executor", "ten_sync", 2.0),
        (
            "3 async handlers in sequence",
            "pluggy + timeout + report",
            "guarded_pluggy",
            "chain",
            1.0,
        ),
        ("  the same, for scale", "pluggy, unguarded", "bare_pluggy", "chain", unjudged),
        (
            "3 plain handlers in sequence",
            "pluggy + thread + timeout",
            "threaded_pluggy",
            "plain_chain",
            1.0,
        ),
    )
    return [
        Row(what, name, figures[floor], figures[ours], goal)
        for what, name, floor, ours, goal in rows
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
