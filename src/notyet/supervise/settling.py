"""What a run waits for before its gates: an error that may heal, and its children (K9)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.core.task import ending_of
from notyet.supervise.live_task import returned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from notyet.ledger.transitions import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.live_task import LiveTask


class Settling:
    """Waits for one task; `is_overtaken` says if another process or a person moved its run."""

    def __init__(
        self, context: Context, live: LiveTask, is_overtaken: Callable[[Seen], Awaitable[bool]]
    ) -> None:
        self._context = context
        self._live = live
        self._is_overtaken = is_overtaken
        self._insist = context.store.insist
        self._tasks = context.store.tasks

    async def grace_is_over(self, seen: Seen) -> bool:
        """Wait until an error can no longer be transient; False: look again."""
        live, loop = self._live, asyncio.get_running_loop()
        if live.key != seen.run.key:  # nothing is in flight that could still succeed
            return True
        ends = live.grace.setdefault(seen.run.id, loop.time() + self._context.settings.grace)
        while (left := ends - loop.time()) > 0:
            if await self._insist(self._tasks.has_user_message, seen.task.id):
                break  # the user sent a message
            await live.first_of(*([live.sending] if live.sending else ()), within=left)
            if live.sending is not None and live.sending.done():
                turn, live.sending = returned(live.sending), None
                if turn is not None and ending_of(turn) == "done":  # seen as an error elsewhere
                    await self._context.finish(seen.task.id, seen.run.id, turn)
            if await self._is_overtaken(seen):
                return False
        return True

    async def children_are_done(self, seen: Seen, until: str) -> bool:
        """Wait for the children, unless the user sent a message; False: look again."""
        context, live, loop = self._context, self._live, asyncio.get_running_loop()
        patience = context.settings.children_expiry
        ends = loop.time() + patience
        live.overdue = ()
        while children := await self._insist(self._tasks.children, seen.task.id, until):
            if await self._insist(self._tasks.has_user_message, seen.task.id):
                break
            left = ends - loop.time()
            if left <= 0:
                live.overdue = tuple(children)
                context.warn(
                    f"task {seen.task.id} waited {patience:g} s for {len(children)} children, "
                    "and is gated without them"
                )
                break
            await live.first_of(within=min(left, context.settings.poll))
            if await self._is_overtaken(seen):
                return False
        return True
