"""The end of a task: notify its observers, then deliver its result (K1)."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.core.verdict import Allow, Block, Decision
from notyet.errors import LedgerError, Refused, Undeliverable
from notyet.ledger.task_rows import TELLING, TOLD, UNKNOWN
from notyet.supervise.events import ended_event

if TYPE_CHECKING:
    from typing import TypedDict

    from notyet.core.task import Announcement, Result, Task
    from notyet.ledger.transitions import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.live_task import LiveTask

    class Marks(TypedDict):
        """How far a result is handed out, as `freeze` and `Outbox.take` mark it."""

        told: int
        is_leased: bool


_LEAST_PAUSE = 0.001


class Delivery:
    """Hands results to handles and to `deliver`, with retries."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._insist = context.store.insist
        self._outbox = context.store.outbox
        self._under_way: dict[str, asyncio.Event] = {}  # deliveries; set to retry at once
        self._looked_at: set[str] = set()  # due results that are not ours to deliver

    async def conclude(self, live: LiveTask, seen: Seen | None = None) -> None:
        """Notify the observers, then hand out the result, which the last move may have brought."""
        context, task = self._context, live.task_id
        if seen is None or seen.outgoing is None:
            marks = self.marks(live)
            seen = await self._insist(self._outbox.take, task, context.owner, **marks)
        if seen is None or seen.outgoing is None:
            return
        result, told = seen.outgoing.result, seen.outgoing.told
        if told == TELLING:
            event = ended_event(seen, result, live.transcript())
            await live.engine.tell(event, _last_decision(live, result))
            await self._insist(self._outbox.told, task, context.owner)
        elif told == UNKNOWN:
            context.warn(
                f"a process died while it notified the observers of task {task}; "
                "they may not have been notified, and are not notified again"
            )
        context.report(task, "ended", result.generation, result=result, decision=live.decision)
        if not live.result.done():
            live.result.set_result(result)
        leased = seen.outgoing.announcement
        if leased is not None and await self.deliver(task, leased):
            self.discard(live)
        context.poke(live.task.parent)

    def marks(self, live: LiveTask) -> Marks:
        """Return how a result is marked by the move after which it is handed out."""
        told = TELLING if live.engine.observed else TOLD
        return {"told": told, "is_leased": self.is_ours(live.task)}

    def discard(self, live: LiveTask) -> None:
        """Let a session remove its files, if its task has `cleanup="delete"`."""
        discard = getattr(live.session, "discard", None)
        if live.task.cleanup == "delete" and discard is not None:
            self._context.call(f"task {live.task_id} left files behind", discard)

    def is_ours(self, task: Task) -> bool:
        """Return True if `deliver` gets this result; a main agent's goes to its caller."""
        return self._context.deliver is not None and task.scope == "subagent"

    def hurry(self, task_id: str) -> None:
        """Make the next attempt of a delivery now."""
        if task_id in self._under_way:
            self._under_way[task_id].set()

    async def deliver_due(self) -> None:
        """Deliver results that are due and have no loop of this process."""
        for task in await self._store(self._outbox.due, self._context.owner):
            self.hurry(task)  # `retry` may have made it due early
            if task not in self._context.live and task not in self._looked_at:
                self._looked_at.add(task)
                self._context.do(self._deliver_due(task))

    async def _deliver_due(self, task: str) -> None:
        try:
            seen = await self._insist(self._store.tasks.look, task)
        except LedgerError:
            self._looked_at.discard(task)  # to be tried again
            raise
        # A main agent's result waits for its caller.
        if seen is not None and self.is_ours(seen.task):
            self._looked_at.discard(task)
            await self.deliver(task)

    async def deliver(self, task_id: str, leased: Announcement | None = None) -> bool:
        """Deliver a result, with retries until it is acknowledged or suspended."""
        if task_id in self._under_way:
            return False
        self._under_way[task_id] = asyncio.Event()
        lease, owner = self._outbox.lease, self._context.owner
        try:
            while leased := leased or await self._insist(lease, task_id, owner):
                pause = await self._attempt(leased)
                if not pause:
                    return pause is not None
                leased = None
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._hurried(task_id)
            return False
        finally:
            del self._under_way[task_id]

    async def _hurried(self, task_id: str) -> None:
        """Wait until `hurry` asks for the next attempt now."""
        hurry = self._under_way[task_id]
        while True:
            hurry.clear()
            await hurry.wait()
            # It may have been asked during the last attempt.
            if await self._insist(self._outbox.is_due, task_id):
                return

    async def _attempt(self, announcement: Announcement) -> float | None:
        """Try once; return the pause before the next try: 0 for done, None for never."""
        pause = None
        try:
            pause = await self._leased(announcement)
        finally:
            if pause is None:  # the lease may still be held
                # Written even if we are cancelled again; if it fails, the result is still due.
                with suppress(LedgerError, Refused):
                    task, owner = announcement.result.task_id, self._context.owner
                    await self._store(self._outbox.release, task, owner)
        return pause

    async def _leased(self, announcement: Announcement) -> float | None:
        context, outbox, settings = self._context, self._outbox, self._context.settings
        key, result = announcement.key, announcement.result
        if context.deliver is None:
            return None
        try:
            async with asyncio.timeout(settings.delivery_timeout) as limit:
                await context.deliver(announcement)
        except Undeliverable as error:
            if not await self._insist(outbox.drop, key, context.owner):
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
            await self._insist(outbox.postpone, key, context.owner, said, pause)
            return pause
        attempt = announcement.attempt
        is_taken = await self._insist(outbox.acknowledge, result.task_id, attempt)
        if not is_taken and await self._insist(outbox.is_due, result.task_id):
            return _LEAST_PAUSE  # its parent ended before it read it
        context.report(result.task_id, "delivered", result.generation, result=result)
        return 0.0

    async def _suspend(self, announcement: Announcement, error: str) -> None:
        suspend, owner = self._outbox.suspend, self._context.owner
        if await self._insist(suspend, announcement.key, owner, error):
            task = announcement.result.task_id
            self._context.warn(
                f"the result of task {task} could not be delivered and is suspended: {error}; "
                f"try again with: notyet tasks retry {task}"
            )


def _is_cancelled(error: BaseException) -> bool:
    """Return True if this task is being cancelled, and not only the consumer's own work."""
    task = asyncio.current_task()
    is_meant = task is not None and task.cancelling() > 0
    return isinstance(error, asyncio.CancelledError) and is_meant


def _last_decision(live: LiveTask, result: Result) -> Decision:
    """Return the decision that ended a task, for observers; made up if it was no gate."""
    last = live.decision
    if last is None or isinstance(last.verdict, Block) or last.outcome != result.outcome:
        why = result.stop_reason or result.ending
        return Decision(verdict=Allow(), outcome=result.outcome, why=why)
    return last
