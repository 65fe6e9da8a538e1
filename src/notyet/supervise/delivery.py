"""What happens once a task has ended: observers are told, then its result is handed out (K1)."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.core.verdict import Block
from notyet.errors import Undeliverable
from notyet.supervise.events import ended_decision, ended_event
from notyet.supervise.settings import Progress

if TYPE_CHECKING:
    from notyet.core.task import Announcement, Result
    from notyet.core.verdict import Decision
    from notyet.ledger.task_moves import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.life import Life


_LEAST_PAUSE = 0.001


class Delivery:
    """Brings results to where they belong."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._under_way: dict[str, asyncio.Event] = {}  # set: try again at once

    async def conclude(self, life: Life) -> None:
        """Tell the observers, then hand the result to whoever waits for it."""
        seen = await self._store.insist(self._store.tasks.look, life.task_id)
        known = await self._store.insist(self._store.outbox.read, life.task_id)
        if seen is None or known is None:
            return
        result, is_told = known
        if not is_told:
            event = ended_event(seen, result, self._context.transcript(life.session))
            await self._context.engine.tell(event, _decision(life, result))
            await self._store.insist(self._store.outbox.told, life.task_id)
        self._context.tell(
            Progress(
                task_id=life.task_id,
                kind="ended",
                generation=result.generation,
                result=result,
                decision=life.decision,
            )
        )
        if not life.result.done():
            life.result.set_result(result)
        if self.is_ours(seen) and await self.deliver(life.task_id):
            self.discard(life, seen)
        self._wake_parent(life)

    def discard(self, life: Life, seen: Seen) -> None:
        """Let a session remove its files, where its task is not to leave any."""
        discard = getattr(life.session, "discard", None)
        if seen.task.cleanup == "delete" and discard is not None:
            try:
                discard()
            except Exception as error:  # noqa: BLE001  # foreign code
                self._context.warn(f"task {life.task_id} left files behind: {error}")

    def is_ours(self, seen: Seen) -> bool:
        """Tell whether the consumer gets this result; a main agent's goes to its caller."""
        return self._context.delivers and seen.task.scope == "subagent"

    async def deliver(self, task_id: str) -> bool:
        """Deliver a result, again and again until it is acknowledged or hopeless."""
        if task_id in self._under_way:
            return False
        hurry = self._under_way[task_id] = asyncio.Event()
        try:
            while announcement := await self._store.insist(
                self._store.outbox.lease, task_id, self._context.owner
            ):
                pause = await self._attempt(announcement)
                if pause is None:
                    return False
                if not pause:
                    return True
                hurry.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await hurry.wait()
            return False
        finally:
            del self._under_way[task_id]

    def hurry(self, task_id: str) -> None:
        """Try again now, where the next attempt is being waited for."""
        if task_id in self._under_way:
            self._under_way[task_id].set()

    async def _attempt(self, announcement: Announcement) -> float | None:
        """Try once; return how long to wait before the next try: 0 for done, None for never."""
        store, settings = self._store, self._context.settings
        deliver = self._context.deliver
        if deliver is None:
            return None
        try:
            async with asyncio.timeout(settings.delivery_timeout) as limit:
                await deliver(announcement)
        except Undeliverable as error:
            await self._suspend(announcement, str(error) or "refused for good")
            return None
        except Exception as error:  # noqa: BLE001  # foreign code; perhaps it helps to try again
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            if limit.expired():
                said = f"no acknowledgement within {settings.delivery_timeout:g} s"
            if announcement.attempt >= settings.delivery_attempts:
                await self._suspend(announcement, said)
                return None
            pause = settings.first_retry * 2.0 ** (announcement.attempt - 1)
            pause = min(settings.longest_retry, pause) * random.uniform(0.8, 1.2) + _LEAST_PAUSE  # noqa: S311  # so that not all come at once
            await store.insist(store.outbox.postpone, announcement.key, said, pause)
            return pause
        await store.insist(store.outbox.acknowledge, announcement.result.task_id)
        self._context.tell(
            Progress(
                task_id=announcement.result.task_id,
                kind="delivered",
                generation=announcement.result.generation,
                result=announcement.result,
            )
        )
        return 0.0

    async def _suspend(self, announcement: Announcement, error: str) -> None:
        await self._store.insist(self._store.outbox.suspend, announcement.key, error)
        task = announcement.result.task_id
        self._context.warn(
            f"the result of task {task} could not be delivered and is suspended: {error}; "
            f"try again with: notyet tasks retry {task}"
        )

    def _wake_parent(self, life: Life) -> None:
        parent = self._context.lives.get(life.parent)
        if parent is not None:
            parent.poke()


def _decision(life: Life, result: Result) -> Decision:
    """Return what observers are told: the last decision, if it is what ended the task."""
    decision = life.decision
    if decision is None or isinstance(decision.verdict, Block):
        return ended_decision(result)
    return decision if decision.outcome == result.outcome else ended_decision(result)
