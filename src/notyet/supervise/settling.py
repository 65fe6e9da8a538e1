"""Between the end of a turn and the gates: an error may heal, and children come first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.core.task import ending_of
from notyet.supervise.context import new_key
from notyet.supervise.settings import Progress

if TYPE_CHECKING:
    from notyet.ledger.task_moves import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.gating import Gating
    from notyet.supervise.life import Life


class Settling:
    """Lets one task settle, as often as a turn of it ends."""

    def __init__(self, context: Context, life: Life, gating: Gating) -> None:
        self._context = context
        self._store = context.store
        self._life = life
        self._gating = gating

    async def settle(self, seen: Seen) -> None:
        """Wait until an error has proved to be one, and until the children are done (K9)."""
        self._context.tell(
            Progress(task_id=seen.task.id, kind="settling", generation=seen.run.generation)
        )
        if seen.run.ending == "error" and not await self._is_over(seen):
            return
        if await self._children_are_done(seen):
            owner, overdue = self._context.owner, self._gating.overdue
            await self._store.insist(
                self._store.runs.settle, seen.run.id, owner, new_key(), overdue
            )

    async def _is_over(self, seen: Seen) -> bool:
        """Wait until an error can no longer prove to be transient; False: look again."""
        life, loop = self._life, asyncio.get_running_loop()
        if life.key != seen.run.key:  # nothing is in flight that could still succeed
            return True
        ends = life.grace.setdefault(seen.run.id, loop.time() + self._context.settings.grace)
        while (left := ends - loop.time()) > 0:
            if await self._store.insist(self._store.tasks.has_word, seen.task.id):
                break  # its user goes on
            await life.first_of(*([life.sending] if life.sending else ()), timeout=left)
            turn = life.take_turn()
            if turn is not None and ending_of(turn) == "done":  # seen as an error elsewhere
                await self._context.finish(seen.task.id, seen.run.id, turn)
            if life.poked.is_set():
                life.poked.clear()
                if (await self._context.look(seen.task.id)).run != seen.run:
                    return False
        return True

    async def _children_are_done(self, seen: Seen) -> bool:
        """Wait for the children, but no message of the user waits with us; False: look again."""
        tasks, life = self._store.tasks, self._life
        patience = self._context.settings.children_expiry
        loop = asyncio.get_running_loop()
        ends = loop.time() + patience
        waited_for = tasks.unheard if self._context.delivers else tasks.children
        self._gating.overdue = ()
        while children := await self._store.insist(waited_for, seen.task.id):
            if await self._store.insist(tasks.has_word, seen.task.id):
                break
            left = ends - loop.time()
            if left <= 0:
                self._gating.overdue = tuple(children)
                self._context.warn(
                    f"task {seen.task.id} waited {patience:g} s for {len(children)} children, "
                    "and is gated without them"
                )
                break
            await life.first_of(timeout=min(left, self._context.settings.poll))
            if life.poked.is_set():
                life.poked.clear()
                if (await self._context.look(seen.task.id)).run != seen.run:
                    return False
        return True
