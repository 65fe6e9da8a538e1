"""`Fleet`: submit tasks to the workers of many machines, steer them, and take their results."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from typing import TYPE_CHECKING

from notyet.core.gate import check_timeout
from notyet.core.record import replace
from notyet.core.remote import is_remote
from notyet.core.task import Announcement, Order, Task
from notyet.engine.engine import Engine
from notyet.errors import LedgerError, Refused
from notyet.fleet.placing import Placing, new_placement
from notyet.fleet.queue import Queue, check_model, check_number, queue_named
from notyet.fleet.workspaces import is_git_address
from notyet.ledger.ledger import Ledger
from notyet.ledger.outbox import Outbox
from notyet.ledger.placements import ADDRESS, Placements, enter
from notyet.ledger.postgres_address import masked
from notyet.ledger.transitions import delivery_key
from notyet.supervise.context import Context, Store
from notyet.supervise.requests import Requests
from notyet.supervise.settings import SupervisorSettings
from notyet.supervise.supervisor import new_id, prompt_of
from notyet.times import span_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Self

    from notyet.core.task import Result
    from notyet.errors import NotyetError
    from notyet.fleet.placing import Enqueue
    from notyet.supervise.requests import What

_RETRIES = range(1_001)
_POLL = 1.0  # seconds between two looks for results


class Fleet:
    """A client of a fleet: usable anywhere that reaches its database.

    `url` is the address of the ledger, postgresql://…; without one, that in NOTYET_FLEET. `queues`
    are defined, or changed, at the first use.
    """

    def __init__(self, url: str = "", *, queues: Sequence[Queue] = ()) -> None:
        self.ledger = Ledger(address(url))
        self.placing = Placing(self.ledger)
        self.placements = Placements(self.ledger)
        self._outbox = Outbox(self.ledger.connection)
        self._new_queues = [*queues]
        self._opening = asyncio.Lock()
        self._is_open = False
        store = Store(self.ledger, SupervisorSettings().ledger_patience, lambda _: None)
        self._context = Context(Engine(), store, SupervisorSettings(), program="")
        self._requests = Requests(self._context)
        self._waiting: dict[str, asyncio.Future[Result]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Create the tables that are missing, and define the queues. Raises LedgerError."""
        async with self._opening:
            if not self._is_open:
                self._context.store.open()
                await asyncio.to_thread(self.placing.prepare)
                self._is_open = True
            while self._new_queues:
                await self._define(self._new_queues[-1])
                self._new_queues.pop()

    async def close(self) -> None:
        """Close the connections; tasks go on."""
        if self._looking is not None:
            self._looking.cancel()
        self._give_up(Refused("the fleet was closed; its tasks go on"))
        await self._context.store.finish()
        self._context.store.close()
        await asyncio.to_thread(self.placing.close)
        self.ledger.close()

    async def define(self, queue: Queue) -> None:
        """Define a queue, or change what it allows; workers notice."""
        await self.open()
        await self._define(queue)

    async def _define(self, queue: Queue) -> None:
        await asyncio.to_thread(self.placing.define, queue)
        await asyncio.to_thread(self.placements.define, queue.name, queue.about())

    async def queues(self) -> dict[str, Queue]:
        """Return the queues by name."""
        await self.open()
        known = await asyncio.to_thread(self.placements.queues)
        return {name: queue_named(name, known) for name in known}

    # -- tasks

    async def submit(
        self,
        prompt: str,
        *,
        agent: str,
        queue: str,
        cwd: str = "",
        args: Sequence[str] = (),
        model: str = "",
        priority: int | None = None,
        key: str = "",
        timeout: float | str | None = None,  # noqa: ASYNC109  # of the task
        retries: int = 0,
        label: str | None = None,
    ) -> str:
        """Queue a task and return its id. Raises Refused, ValueError and LedgerError.

        `cwd` is a git address (with #branch), ssh://host/path, or a folder of the worker. A task
        with a `key` is submitted once, however often this is called. `retries` are new runs, in a
        new session, after an ending as interrupted or error.
        """
        asked: dict[str, Any] = {"cwd": cwd, "args": args, "model": model, "priority": priority}
        asked |= {"timeout": timeout, "retries": retries, "label": label}
        chosen, task, order = await self._asked(queue, prompt, agent, **asked)
        if key:
            task = replace(task, id=_id_for(key))

        def enqueued(db: Any, enqueue: Enqueue) -> None:
            placement = new_placement(task.id)
            if enter(db, task, order, placement):
                enqueue(task.id, placement, order, chosen)

        await asyncio.to_thread(self.placing.write, enqueued)
        return task.id

    async def _asked(
        self,
        queue: str,
        prompt: str,
        agent: str,
        *,
        cwd: str = "",
        args: Sequence[str] = (),
        model: str = "",
        priority: int | None = None,
        timeout: float | str | None = None,  # noqa: ASYNC109  # of the task
        retries: int = 0,
        label: str | None = None,
    ) -> tuple[Queue, Task, Order]:
        """Return the queue, and a new task with its order. Raises Refused and ValueError."""
        await self.open()
        chosen = queue_named(queue, await asyncio.to_thread(self.placements.queues))
        check_model(model)
        if not isinstance(retries, int) or retries not in _RETRIES:
            raise ValueError(f"retries must be a whole number from 0 to 1000, not {retries!r}")
        check_number("priority", chosen.priority if priority is None else priority)
        seconds = span_of(timeout) if isinstance(timeout, str) else timeout
        if timeout is not None and seconds is None:
            raise ValueError(f"invalid duration {timeout!r}; try 90s, 30m or 2h")
        check_timeout(seconds)
        if not isinstance(agent, str) or not agent:
            raise ValueError(f"agent must be a name, such as claude or codex, not {agent!r}")
        order = Order(
            queue=queue,
            agent=agent,
            args=tuple(args),
            place=_place(cwd),
            model=model,
            priority=chosen.priority if priority is None else priority,
            retries=retries,
        )
        task = Task(
            id=new_id(),
            prompt=prompt_of(prompt),
            scope="agent",
            label=label,
            workspace=cwd if is_remote(cwd) else "",
            timeout=seconds,
        )
        return chosen, task, order

    async def steer(self, task: str, prompt: str, *, key: str = "") -> None:
        """Abort the current turn and continue with this prompt. Raises Refused."""
        await self._do(task, "steer", prompt_of(prompt), key)

    async def say(self, task: str, text: str, *, key: str = "") -> None:
        """Queue a user's message: it is sent when the turn ends, and beats a block."""
        await self._do(task, "say", prompt_of(text), key)

    async def interrupt(self, task: str) -> bool:
        """End a task as interrupted, for good; False if it had ended before."""
        return await self._do(task, "interrupt")

    async def kill(self, task: str) -> bool:
        """End a task without running gates; False if it had ended before."""
        return await self._do(task, "kill")

    async def _do(self, task: str, what: What, text: str = "", key: str = "") -> bool:
        await self.open()
        return await self._requests.make(task, what, text, key)

    # -- results

    async def result(self, task: str) -> Result:
        """Wait for a task's result; this acknowledges it.

        Raises Refused for an unknown task and when the fleet is closed, and LedgerError.
        """
        await self.open()
        if task not in await asyncio.to_thread(self.placements.states, [task]):
            raise Refused(f"there is no task {task}; list them with: notyet tasks")
        waiting = self._waiting.setdefault(task, asyncio.get_running_loop().create_future())
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look_for_results())
        result = await asyncio.shield(waiting)
        await self._context.store.insist(self._outbox.acknowledge, task)
        return result

    async def deliver(self, consumer: Callable[[Announcement], Awaitable[None]]) -> None:
        """Give each result that nobody has taken to a consumer, until cancelled.

        A result is acknowledged when `consumer` returns. After a crash it is given again, with the
        same key; an error of `consumer` ends this.
        """
        await self.open()
        while True:
            for task, result in await self._context.store.insist(self._outbox.untaken):
                await consumer(Announcement(key=delivery_key(task), result=result))
                await self._context.store.insist(self._outbox.acknowledge, task)
            await asyncio.sleep(_POLL)

    async def _look_for_results(self) -> None:
        """Resolve what `result` waits for, with one look for all of it."""
        try:
            while self._waiting:
                found = await self._context.store.insist(self._outbox.results, [*self._waiting])
                for task, result in found.items():
                    self._waiting.pop(task).set_result(result)
                await asyncio.sleep(_POLL if not found else 0)
        except LedgerError as error:
            self._give_up(error)

    def _give_up(self, error: NotyetError) -> None:
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(error)
            future.exception()  # its caller may be gone

    # -- schedules

    async def schedule(
        self, name: str, cron: str, prompt: str, *, agent: str, queue: str, **options: Any
    ) -> None:
        """Submit a task whenever a cron expression says so (UTC). Raises Refused.

        `options` are those of `submit`, but for `key`: each time has its own, so that it is
        submitted once.
        """
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ValueError(f"the name of a schedule must be text, not {name!r}")
        await self._asked(queue, prompt, agent, **options)
        order = {"prompt": prompt, "agent": agent, "queue": queue, "schedule": name, **options}
        # UTF-8 cannot hold lone surrogates.
        order = json.loads(json.dumps(order, ensure_ascii=False).encode("utf-8", "replace"))
        await asyncio.to_thread(self.placing.schedule, name, cron, order)
        await asyncio.to_thread(self.placements.note_schedule, name, cron, order)

    async def unschedule(self, name: str) -> None:
        """Delete a schedule. Raises Refused if there is none of this name."""
        await self.open()
        await asyncio.to_thread(self.placing.unschedule, name)
        if not await asyncio.to_thread(self.placements.forget_schedule, name):
            raise Refused(f"there is no schedule {name!r}; see them with: notyet tasks queue")

    async def submit_scheduled(self, at: str, name: str, order: Mapping[str, Any]) -> str:
        """Submit what a schedule says, for one of its times."""
        return await self.submit(**order, key=f"{name} {at}")


def address(url: str = "") -> str:
    """Return the address of a fleet's ledger. Raises Refused."""
    found = url or os.environ.get(ADDRESS, "")
    if not found.startswith(("postgresql://", "postgres://")):
        shown = masked(found) if "://" in found else found
        what = f"{shown!r} is not the address of a fleet" if found else "no fleet is named"
        raise Refused(f"{what}; give postgresql://USER@HOST/NAME, or set {ADDRESS} to it")
    return found


def _place(cwd: str) -> str:
    if cwd and not (is_git_address(cwd) or is_remote(cwd) or os.path.isabs(cwd)):
        raise Refused(
            f"cwd {cwd!r} means nothing on another machine; write a git address, ssh://host/path "
            "or the absolute path of a folder that workers have"
        )
    return cwd


def _id_for(key: str) -> str:
    return "t" + hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
