"""The tasks that live in this process: driven, concluded, and waited for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.errors import LedgerError, Refused
from notyet.supervise.context import Fenced, looked_at
from notyet.supervise.driver import Driver
from notyet.supervise.life import Handle

if TYPE_CHECKING:
    from notyet.core.task import Result
    from notyet.supervise.context import Context
    from notyet.supervise.delivery import Delivery
    from notyet.supervise.life import Life


class Living:
    """Lets each task have its driver, and whoever waits for it an answer, whatever happens."""

    def __init__(self, context: Context, delivery: Delivery) -> None:
        self._context = context
        self._store = context.store
        self._delivery = delivery

    def begin(self, life: Life) -> Handle:
        """Drive a task from where it is; once, however often that is asked for."""
        known = self._context.lives.get(life.task_id)
        if known is not None:
            return Handle(known.task_id, lambda: self._result(known))
        self._context.lives[life.task_id] = life
        self._context.at_work[id(life.session)] = life.task_id
        life.result.add_done_callback(looked_at)
        life.driver = asyncio.ensure_future(self._drive(life))
        return Handle(life.task_id, lambda: self._result(life))

    async def _drive(self, life: Life) -> None:
        try:
            await Driver(self._context, life).drive()
            self._context.release(life)  # its session may get the next prompt
            await self._delivery.conclude(life)
        except Fenced:
            if life.sending is not None:  # what others sent is not ours to end
                await self._stop(life)
            _break(life, Refused(f"another process took over task {life.task_id}"))
        except asyncio.CancelledError:
            _break(life, Refused(f"the supervisor of task {life.task_id} was closed"))
            raise
        except LedgerError as error:
            self._context.warn(f"task {life.task_id} is left to recovery: {error}")
            await self._stop(life)
            self._break_off(life, error)
        except Exception as error:  # noqa: BLE001  # somebody waits for it, and not here
            await self._stop(life)
            await self._give_up(life, error)
        finally:
            self._context.lives.pop(life.task_id, None)
            self._context.release(life)

    async def _stop(self, life: Life) -> None:
        """End the agent, unless its session is at work on another task by now."""
        if self._context.at_work.get(id(life.session)) == life.task_id:
            await life.abort(self._context.settings.abort_patience)

    def _break_off(self, life: Life, error: LedgerError) -> None:
        """Keep an answer that could not be recorded, for a recovery while this process lives."""
        if life.turn is not None:
            self._context.unrecorded[life.task_id] = (life.turn_of, life.turn)
            error.add_note(f"the agent's answer was: {life.turn.text}")
        _break(life, error)

    async def _give_up(self, life: Life, error: Exception) -> None:
        """End a task that we cannot drive: nobody else could either."""
        said = f"internal error: {type(error).__name__}: {error}"
        self._context.warn(f"task {life.task_id}: {said}")
        try:
            await self._store(
                self._store.runs.end,
                life.task_id,
                self._context.owner,
                "interrupted",
                turn=life.turn,
                error=said,
            )
            await self._delivery.conclude(life)
        except Exception as again:  # noqa: BLE001  # as above
            self._context.warn(f"task {life.task_id} is left to recovery: {again}")
        _break(life, error)

    async def _result(self, life: Life) -> Result:
        result = await asyncio.shield(life.result)
        seen = await self._store.at_last(self._store.tasks.look, life.task_id)
        if seen is not None and not self._delivery.is_ours(seen):
            await self._store.at_last(self._store.outbox.acknowledge, life.task_id)
            self._delivery.discard(life, seen)
        return result


def _break(life: Life, error: BaseException) -> None:
    if not life.result.done():
        life.result.set_exception(error)
