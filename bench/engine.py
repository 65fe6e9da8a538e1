"""Decisions in process: against asyncio alone, an executor, and pluggy."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pluggy

from bench.measure import Row, interleaved_async
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


def measure() -> list[Row]:
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
    hooks = _plugins()

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
            except Exception as error:  # noqa: BLE001
                answer = error
            reports.append({"answer": answer, "seconds": loop.time() - started})
            if isinstance(answer, dict) and answer.get("allow") is False:
                break
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
    )
    pool.shutdown()
    return [
        Row(
            "10 async gates, one stage",
            "asyncio.gather",
            figures["gathered"],
            figures["ten_async"],
            1.5,
        ),
        Row(
            "10 sync gates, one stage",
            "run_in_executor",
            figures["in_executor"],
            figures["ten_sync"],
            2.0,
        ),
        Row(
            "3 handlers in sequence",
            "pluggy + timeout + report",
            figures["guarded_pluggy"],
            figures["chain"],
            1.0,
        ),
        Row(
            "  the same, for scale",
            "pluggy, unguarded",
            figures["bare_pluggy"],
            figures["chain"],
            float("inf"),
        ),
    ]


def _plugins():
    spec, impl = pluggy.HookspecMarker("bench"), pluggy.HookimplMarker("bench")

    class Spec:
        @spec
        def stopping(self, event, ctx): ...

    class Plugin:
        @impl
        async def stopping(self, event, ctx):
            return ALLOW

    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(Spec)
    for _ in range(3):
        manager.register(Plugin())
    return manager.hook
