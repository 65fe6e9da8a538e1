"""Parts of the soak in which processes, the database, clocks and the network fail."""

import asyncio
import random
import time

from fleet_soak.proxy import Proxy
from fleet_soak.world import CONSUMER, world

BACKLOG = 60  # tasks that wait or are at work
BETWEEN_CONSUMERS = 20  # kills of workers between two kills of the consumer
MODELS = ("opus", "haiku", "sonnet")


async def feed(here, is_enough, prefix="t"):
    """Submit tasks as they are done, until there are enough."""
    number = 0
    while not is_enough():
        if len(here.submitted) - len(here.delivered()) < BACKLOG:
            await here.submit(f"{prefix}{number}", MODELS[number % len(MODELS)])
            number += 1
        else:
            await asyncio.sleep(0.1)


def crew_of_four(here):
    """Start workers of three machines; conversations of two of them are bound to theirs."""
    names = ("a", "b", "c", "d")
    for name, machine, is_bound in zip(names, ("m1", "m1", "m2", "m3"), (1, 0, 1, 0), strict=True):
        here.start(name, machine, is_bound=bool(is_bound))
    here.start_consumer()
    return names


async def kills(options):
    """Kill workers at random, consumers now and then, and crash the database."""
    async with world(keep=options.keep) as here:
        names, killed, consumers = crew_of_four(here), 0, 0

        def is_enough():
            return killed >= options.kills and len(here.submitted) >= options.tasks

        feeding = asyncio.ensure_future(feed(here, is_enough))
        while killed < options.kills:
            await asyncio.sleep(random.uniform(0.2, 2 * options.pause))
            here.crew.revive()
            here.crew.kill(random.choice(names))
            killed += 1
            if killed % BETWEEN_CONSUMERS == 0:
                here.crew.kill(CONSUMER)
                consumers += 1
            if here.crashes < options.crashes * killed // options.kills:
                await here.crash()
        await here.until(feeding.done, 600.0)
        feeding.cancel()
        await here.all_delivered()
        figures, broken = here.judge()
        figures["workers killed"], figures["consumers killed"] = killed, consumers
        return figures, broken


async def suspensions(options):
    """Suspend workers for longer than their lease; others take over, and the first is fenced."""
    async with world(keep=options.keep) as here:
        names, count = crew_of_four(here), 0
        feeding = asyncio.ensure_future(feed(here, lambda: count >= options.suspensions))
        await here.until(lambda: len(here.delivered()) > len(names))
        while count < options.suspensions:
            # Of a and b the process is seen to live, for their machine is the same.
            name = random.choice(names)
            here.crew.suspend(name)
            await asyncio.sleep(here.lease * random.uniform(1.5, 2.5))
            here.crew.resume(name)
            count += 1
            await asyncio.sleep(random.uniform(0, 1))
        await feeding
        await here.all_delivered()
        figures, broken = here.judge()
        return {"suspended for longer than the lease": count} | figures, broken


async def clocks(options):
    """One worker's clock is hours ahead, another's hours behind; the database keeps its own."""
    async with world(keep=options.keep) as here:
        for name, hours in (("ahead", 5.0), ("behind", -7.0), ("right", 0.0)):
            here.start(name, hours=hours)
        here.start_consumer(hours=3.0)
        ends, by_name = time.monotonic() + options.seconds, {}
        feeding = asyncio.ensure_future(feed(here, lambda: time.monotonic() > ends))
        while not feeding.done():
            await asyncio.sleep(random.uniform(1, 2 * here.lease))
            by_name |= {here.crew.pid(name): name for name in ("ahead", "behind", "right")}
            here.crew.kill(random.choice(("ahead", "behind", "right")))
        by_name |= {here.crew.pid(name): name for name in ("ahead", "behind", "right")}
        await here.all_delivered()
        figures, broken = here.judge()
        shares = dict.fromkeys(by_name.values(), 0)
        for line in here.prompts():
            shares[by_name.get(line["pid"], "right")] += line["what"] == "prompt"
        figures["prompts by clock"] = ", ".join(f"{n} {name}" for name, n in shares.items())
        broken += [f"the worker {name} took no task" for name, n in shares.items() if not n]
        return figures, broken


async def network(options):
    """One worker reaches the database over a network that stalls and cuts."""
    async with world(keep=options.keep) as here:
        proxy = Proxy(f"{here.cluster.folder}/.s.PGSQL.5432")
        port = await proxy.open()
        far = f"postgresql://tester@127.0.0.1:{port}/postgres"
        here.start("far", url=far)
        here.start("bound", url=far, is_bound=True)
        here.start("near")
        here.start_consumer(url=far)
        ends, drops = time.monotonic() + options.seconds, {"stall": 0, "cut": 0}
        feeding = asyncio.ensure_future(feed(here, lambda: time.monotonic() > ends))
        while not feeding.done():
            await asyncio.sleep(random.uniform(0.5, 2.5))
            here.crew.revive()
            what = random.choice(tuple(drops))
            drops[what] += 1
            await getattr(proxy, what)(here.lease * random.choice((0.1, 0.5, 2.0)))
        await here.all_delivered()
        figures, broken = here.judge()
        far_pids = {here.crew.pid(name) for name in ("far", "bound")}
        took = sum(line["pid"] in far_pids for line in here.prompts())
        if not took:
            broken.append("the workers behind the proxy took no task")
        await proxy.close()
        figures["stalls, cuts"] = f"{drops['stall']}, {drops['cut']}"
        return figures, broken
