"""The end of a task: notify its observers, then deliver its result (K1)."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.core.verdict import Block
from notyet.errors import LedgerError, Refused, Undeliverable
from notyet.supervise.gating import ended_decision, ended_event
from notyet.supervise.settings import Progress

if TYPE_CHECKING:
    from notyet.core.task import Announcement, Result
    from notyet.core.verdict import Decision
    from notyet.ledger.moves import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.life import Life


_LEAST_PAUSE = 0.001


class Delivery:
    """Hands results to handles and to `deliver`, with retries."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._under_way: dict[str, asyncio.Event] = {}  # deliveries; set to retry at once

    async def conclude(self, life: Life) -> None:
        """Notify the observers, then hand out the result."""
        seen = await self._store.insist(self._store.tasks.look, life.task_id)
        known = await self._store.insist(self._store.outbox.read, life.task_id)
        if seen is None or known is None:
            return
        result, is_told = known
        if not is_told:
            event = ended_event(seen, result, self._context.transcript(life.session))
            await self._context.engine.tell(event, _decision(life, result))
            await self._store.insist(self._store.outbox.told, life.task_id, self._context.owner)
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
        """Let a session remove its files, if its task has `cleanup="delete"`."""
        discard = getattr(life.session, "discard", None)
        if seen.task.cleanup == "delete" and discard is not None:
            self._context.call(f"task {life.task_id} left files behind", discard)

    def is_ours(self, seen: Seen) -> bool:
        """Return True if `deliver` gets this result; a main agent's goes to its caller."""
        return self._context.delivers and seen.task.scope == "subagent"

    async def deliver(self, task_id: str) -> bool:
        """Deliver a result, with retries until it is acknowledged or suspended."""
        if task_id in self._under_way:
            return False
        self._under_way[task_id] = asyncio.Event()
        try:
            while announcement := await self._store.insist(
                self._store.outbox.lease, task_id, self._context.owner
            ):
                pause = await self._leased(announcement)
                if pause is None:
                    return False
                if not pause:
                    return True
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._hurried(task_id)
            return False
        finally:
            del self._under_way[task_id]

    async def _leased(self, announcement: Announcement) -> float | None:
        """Try once; release the lease unless the attempt settled it."""
        is_settled = False
        try:
            pause = await self._attempt(announcement)
            is_settled = pause is not None
            return pause
        finally:
            if not is_settled:
                # Written even if we are cancelled again; if it fails, the result is still due.
                with suppress(LedgerError, Refused):
                    outbox, task = self._store.outbox, announcement.result.task_id
                    await self._store(outbox.release, task, self._context.owner)

    async def _hurried(self, task_id: str) -> None:
        """Wait until `hurry` asks for the next attempt now."""
        hurry = self._under_way[task_id]
        while True:
            hurry.clear()
            await hurry.wait()
            # It may have been asked during the last attempt.
            if await self._store.insist(self._store.outbox.is_due, task_id):
                return

    def hurry(self, task_id: str) -> None:
        """Make the next attempt of a delivery now."""
        if task_id in self._under_way:
            self._under_way[task_id].set()

    async def _attempt(self, announcement: Announcement) -> float | None:
        """Try once; return the pause before the next try: 0 for done, None for never."""
        store, settings = self._store, self._context.settings
        deliver = self._context.deliver
        if deliver is None:
            return None
        try:
            async with asyncio.timeout(settings.delivery_timeout) as limit:
                await deliver(announcement)
        except Undeliverable as error:
            key, owner = announcement.key, self._context.owner
            if not await store.insist(store.outbox.drop, key, owner):
                await self._suspend(announcement, str(error) or "refused for good")
            return None
        except (Exception, asyncio.CancelledError) as error:  # foreign code
            if _is_cancelled(error):
                raise
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            if limit.expired():
                said = f"no acknowledgement within {settings.delivery_timeout:g} s"
            if announcement.attempt >= settings.delivery_attempts:
                await self._suspend(announcement, said)
                return None
            pause = settings.first_retry * 2.0 ** (announcement.attempt - 1)
            pause = min(settings.longest_retry, pause) * random.uniform(0.8, 1.2) + _LEAST_PAUSE  # noqa: S311  # jitter
            owner = self._context.owner
            await store.insist(store.outbox.postpone, announcement.key, owner, said, pause)
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
        suspend, owner = self._store.outbox.suspend, self._context.owner
        if not await self._store.insist(suspend, announcement.key, owner, error):
            return
        task = announcement.result.task_id
        self._context.warn(
            f"the result of task {task} could not be delivered and is suspended: {error}; "
            f"try again with: notyet tasks retry {task}"
        )

    def _wake_parent(self, life: Life) -> None:
        parent = self._context.lives.get(life.parent)
        if parent is not None:
            parent.poke()


def _is_cancelled(error: BaseException) -> bool:
    """Return True if this task is being cancelled, and not only the consumer's own work."""
    task = asyncio.current_task()
    is_meant = task is not None and task.cancelling() > 0
    return isinstance(error, asyncio.CancelledError) and is_meant


def _decision(life: Life, result: Result) -> Decision:
    """Return the last decision for observers, if it is what ended the task."""
    decision = life.decision
    if decision is None or isinstance(decision.verdict, Block):
        return ended_decision(result)
    return decision if decision.outcome == result.outcome else ended_decision(result)
