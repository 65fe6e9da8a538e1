"""What a supervisor lives through before it dies; `SCENARIOS` names each with its agents."""

import asyncio

SCENARIOS = {}


def scenario(**script):
    def known(function):
        SCENARIOS[function.__name__] = (function, script)
        return function

    return known


@scenario(coder=[("say", "done"), ("say", "tests pass")])
async def block_then_pass(world):
    async with world.supervisor() as supervisor:
        await (await supervisor.spawn(world.agent("coder"), "do it"))


@scenario(coder=[("say", "done 1"), ("say", "done 2"), ("say", "done 3"), ("say", "done 4")])
async def blocks_until_the_limit(world):
    async with world.supervisor() as supervisor:
        await (await supervisor.spawn(world.agent("coder"), "do it"))


@scenario(coder=[("hang",), ("say", "tests pass")])
async def steer_by_hand(world):
    async with world.supervisor() as supervisor:
        handle = await supervisor.spawn(world.agent("coder"), "do it")
        await world.until("accepted 1")
        await supervisor.steer(handle, "another way")
        await handle


@scenario(coder=[("say", "done"), ("say", "tests pass")])
async def user_speaks_while_the_gate_is_asked(world):
    world.slow_gate = True
    async with world.supervisor() as supervisor:
        handle = await supervisor.spawn(world.agent("coder"), "do it")
        await world.until("gating 1")
        await supervisor.say(handle, "and also this")
        await handle


@scenario(coder=[("say", "done"), ("slow",)])
async def kill_while_it_is_steered(world):
    async with world.supervisor() as supervisor:
        handle = await supervisor.spawn(world.agent("coder"), "do it")
        await world.until("unaccepted")
        await supervisor.kill(handle)
        await handle


@scenario(coder=[("say", "done"), ("refuse",)])
async def steer_cannot_be_sent(world):
    async with world.supervisor() as supervisor:
        await (await supervisor.spawn(world.agent("coder"), "do it"))


@scenario(coder=[("fail", "a hiccup"), ("say", "tests pass")])
async def error_that_heals(world):
    async with world.supervisor() as supervisor:
        handle = await supervisor.spawn(world.agent("coder"), "do it")
        await world.until("settling 1")
        from notyet.core.session import Turn

        await supervisor.finish(f"{handle.task_id}.1", Turn(text="tests pass after all"))
        await handle


@scenario(coder=[("say", "tests pass")])
async def consumer_refuses_first(world):
    world.refusals = 2
    async with world.supervisor() as supervisor:
        await (await supervisor.spawn(world.agent("coder"), "do it"))


@scenario(main=[("say", "done"), ("say", "tests pass")])
async def main_agent(world):
    async with world.supervisor() as supervisor:
        await supervisor.run(world.agent("main"), "do it")


@scenario(
    main=[("wait", "children"), ("say", "tests pass"), ("say", "tests pass again")],
    first=[("say", "done"), ("say", "tests pass (first)")],
    second=[("say", "tests pass (second)")],
)
async def parent_with_two_children(world):
    supervisor = world.supervisor(deliver=None)
    supervisor.deliver = supervisor.tell_parent
    async with supervisor:
        parent = await supervisor.launch(world.agent("main"), "do it")
        await world.until("accepted 1")
        await supervisor.spawn(world.agent("first"), "one half", parent=parent)
        await supervisor.spawn(world.agent("second"), "other half", parent=parent)
        world.moment("children").set()
        await parent


@scenario(coder=[("wait", "said"), ("hang",), ("say", "tests pass")])
async def other_process_speaks_and_steers(world):
    async with world.supervisor() as supervisor, world.supervisor() as other:
        handle = await supervisor.spawn(world.agent("coder"), "do it")
        await world.until("accepted 1")
        await other.say(handle.task_id, "and also this")
        world.moment("said").set()
        await at_run(other, handle.task_id, 2)
        await other.steer(handle.task_id, "another way")
        await handle


@scenario(coder=[("say", "done"), ("say", "tests pass"), ("say", "tests pass, still")])
async def other_process_speaks_while_the_gate_is_asked(world):
    world.slow_gate = True
    async with world.supervisor() as supervisor, world.supervisor() as other:
        handle = await supervisor.spawn(world.agent("coder"), "do it")
        await world.until("gating 1")
        await other.say(handle.task_id, "and also this")
        await handle


@scenario(coder=[("say", "done"), ("say", "tests pass"), ("say", "tests pass, still")])
async def other_process_steers_while_the_gate_is_asked(world):
    world.slow_gate = True
    async with world.supervisor() as supervisor, world.supervisor() as other:
        handle = await supervisor.spawn(world.agent("coder"), "do it")
        await world.until("gating 1")
        await other.steer(handle.task_id, "another way")
        await handle


@scenario(coder=[("say", "done"), ("hang",)])
async def other_process_kills(world):
    async with world.supervisor() as supervisor, world.supervisor() as other:
        handle = await supervisor.spawn(world.agent("coder"), "do it")
        await at_run(other, handle.task_id, 2)
        await other.kill(handle.task_id)
        await handle


async def at_run(supervisor, task, generation):
    """Wait until the ledger has this run: a task that is being steered is not steered again."""
    async with asyncio.timeout(20):
        while (await supervisor.task(task)).generation < generation:
            await asyncio.sleep(0.005)


async def recovery(world):
    """What whoever comes after does."""
    supervisor = world.supervisor()
    if "first" in world.script:
        supervisor.deliver = supervisor.tell_parent
    async with supervisor:
        handles = await supervisor.recover()
        await asyncio.gather(*(handle.result() for handle in handles))
        async with asyncio.timeout(10):
            while any(view.delivery in {"pending", "leased"} for view in await supervisor.tasks()):
                await asyncio.sleep(0.01)
