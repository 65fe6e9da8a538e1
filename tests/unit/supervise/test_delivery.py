"""Results on their way: delivered until acknowledged, suspended when hopeless, never lost."""

import asyncio
import time

import pytest

from notyet.core.session import Turn
from notyet.errors import Refused, Undeliverable
from supervised import Agent, World


class Consumer:
    """Takes results, after failing as often as a test wants."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.got = []

    async def __call__(self, announcement):
        self.got.append(announcement)
        if self.errors:
            raise self.errors.pop(0)

    @property
    def keys(self):
        return {each.key for each in self.got}


@pytest.mark.rule("K8", "K7")
def test_a_delivery_that_fails_is_tried_again_under_the_same_key(tmp_path):
    consumer = Consumer(OSError("busy"), TimeoutError(), ValueError("odd"))
    with World(tmp_path, deliver=consumer) as world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.view(handle).delivery == "delivered")
        view = world.view(handle)
        assert "delivered" in world.kinds(handle)
    assert [each.attempt for each in consumer.got] == [1, 2, 3, 4]
    assert consumer.keys == {f"{handle.task_id}:1"}
    assert (view.attempts, view.delivery_error) == (4, "")


@pytest.mark.rule("K8")
def test_the_pauses_between_attempts_double_and_are_bounded(tmp_path):
    consumer = Consumer(*[OSError("busy")] * 4)
    pauses = {"first_retry": 10.0, "longest_retry": 25.0}
    with World(tmp_path, deliver=consumer, **pauses) as world:
        handle = world.spawn(Agent("done"))
        seen = []
        for attempt in (1, 2, 3, 4):
            world.until(lambda n=attempt: len(consumer.got) == n)
            world.until(lambda: world.view(handle).delivery == "pending")
            ((next_at, error),) = world.rows("SELECT next_at, error FROM outbox")
            seen.append(next_at - time.time())
            assert error == "OSError: busy"
            world.rows("UPDATE outbox SET next_at = 0")
            world.supervisor._delivery.hurry(handle.task_id)
    for pause, least, most in zip(seen, (6, 14, 18, 18), (12.1, 24.1, 30.1, 30.1), strict=True):
        assert least < pause < most


@pytest.mark.rule("K8")
def test_a_delivery_that_stays_hopeless_is_suspended_with_its_error(tmp_path):
    consumer = Consumer(*[OSError("still busy")] * 3)
    with World(tmp_path, deliver=consumer, delivery_attempts=3) as world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.view(handle).delivery == "suspended")
        view = world.view(handle)
    assert (view.delivery_error, view.attempts) == ("OSError: still busy", 3)
    (said,) = [each for each in world.warnings if "suspended" in each]
    assert said == (
        f"the result of task {handle.task_id} could not be delivered and is suspended: "
        f"OSError: still busy; try again with: notyet tasks retry {handle.task_id}"
    )


@pytest.mark.rule("K8")
def test_a_suspended_result_is_delivered_when_a_person_retries_it(tmp_path):
    consumer = Consumer(Undeliverable("not now"))
    with World(tmp_path, deliver=consumer) as world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.view(handle).delivery == "suspended")
        world.do(world.supervisor.retry(handle))
        world.until(lambda: world.view(handle).delivery == "delivered")
        world.do(world.supervisor.retry(handle))
        world.until(lambda: len(consumer.got) == 3)
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert [each.key for each in consumer.got] == [
        f"{handle.task_id}:1",
        f"{handle.task_id}:1",
        f"{handle.task_id}:2",  # it was delivered, so that again is another delivery
    ]


@pytest.mark.rule("K8")
def test_a_result_that_waits_for_its_next_attempt_can_be_retried_at_once(tmp_path):
    consumer = Consumer(OSError("busy"))
    with World(tmp_path, deliver=consumer, first_retry=600.0, longest_retry=600.0) as world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.view(handle).delivery == "pending" and consumer.got)
        world.do(world.supervisor.retry(handle))
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert len(consumer.got) == 2


@pytest.mark.rule("K8")
def test_a_dismissed_result_is_not_delivered(tmp_path):
    consumer = Consumer(Undeliverable("not now"))
    with World(tmp_path, deliver=consumer) as world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.view(handle).delivery == "suspended")
        world.do(world.supervisor.dismiss(handle))
        world.do(asyncio.sleep(0.05))
        assert world.view(handle).delivery == "dismissed"
    assert len(consumer.got) == 1


@pytest.mark.rule("K8")
def test_a_task_without_a_result_can_neither_be_retried_nor_dismissed(world):
    agent = Agent(Agent.WAIT)
    handle = world.spawn(agent)
    for verb in (world.supervisor.retry, world.supervisor.dismiss):
        with pytest.raises(Refused, match=f"task {handle.task_id} has no result yet; list tasks"):
            world.do(verb(handle))
        with pytest.raises(Refused, match="task t404 has no result yet"):
            world.do(verb("t404"))
    world.do(world.supervisor.kill(handle))


@pytest.mark.rule("K8")
def test_a_consumer_that_hangs_is_given_up_and_tried_again(tmp_path):
    tries = []

    async def hangs_once(announcement):
        tries.append(announcement.attempt)
        if len(tries) == 1:
            await asyncio.Event().wait()

    pauses = {"first_retry": 600.0, "longest_retry": 600.0}
    with World(tmp_path, deliver=hangs_once, delivery_timeout=0.3, **pauses) as world:
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.view(handle).delivery_error)
        assert world.view(handle).delivery_error == "no acknowledgement within 0.3 s"
        world.rows("UPDATE outbox SET next_at = 0")
        world.supervisor._delivery.hurry(handle.task_id)
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert tries == [1, 2]


@pytest.mark.rule("K8")
def test_awaiting_the_handle_consumes_the_result_without_a_consumer(world):
    handle = world.spawn(Agent("done"))
    world.until(lambda: "ended" in world.kinds(handle))
    assert world.view(handle).delivery == "pending"
    assert world.do(_awaited(handle)).text == "done"
    assert world.view(handle).delivery == "delivered"
    assert world.result(handle).text == "done"


async def _awaited(handle):
    return await handle


@pytest.mark.rule("K8")
def test_a_main_agents_result_goes_to_its_caller_and_never_to_the_consumer(tmp_path):
    consumer = Consumer()
    with World(tmp_path, deliver=consumer) as world:
        handle = world.launch(Agent("done"))
        world.until(lambda: "ended" in world.kinds(handle))
        world.do(asyncio.sleep(0.1))
        assert (consumer.got, world.view(handle).delivery) == ([], "pending")
        world.result(handle)
        assert world.view(handle).delivery == "delivered"


@pytest.mark.rule("K8")
def test_closing_ends_a_delivery_that_hangs_and_another_process_delivers(tmp_path):
    started = asyncio.Event()

    async def hang(announcement):
        started.set()
        await asyncio.Event().wait()

    with World(tmp_path, deliver=hang) as world:
        handle = world.spawn(Agent("done"))
        world.until(started.is_set)
    consumer = Consumer()
    with World(tmp_path, deliver=consumer) as world:
        world.do(world.supervisor.recover())
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert consumer.keys == {f"{handle.task_id}:1"}


@pytest.mark.rule("K2")
@pytest.mark.parametrize("delivers", [True, False])
def test_a_sessions_files_are_removed_once_the_result_is_delivered_where_cleanup_says_so(
    tmp_path, delivers
):
    consumer = Consumer(OSError("busy"))
    with World(tmp_path, deliver=consumer if delivers else None) as world:
        world.block(1)
        kept, gone = Agent("a", "b", id="1"), Agent("a", Agent.WAIT, id="2")
        world.spawned(kept, cleanup="keep")
        handle = world.spawn(gone, cleanup="delete")
        world.until(lambda: len(gone.got) == 2 and gone.waiting.is_set())
        assert gone.discarded == 0
        gone.come_back(Turn(text="b"))
        world.result(handle)
        world.until(lambda: gone.discarded)
        assert world.view(handle).delivery == "delivered"
    assert (kept.discarded, gone.discarded) == (0, 1)
