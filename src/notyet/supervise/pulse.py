"""What a supervisor does all the time: it says that it lives, and looks what others want."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from notyet.supervise.context import Context
    from notyet.supervise.delivery import Delivery
    from notyet.supervise.people import People

_RENEWALS = 4  # in the time of one lease
_TIDIED_FIRST = 5.0  # seconds after the start
_TIDIED_EVERY = 60.0
_LATER = 5.0  # seconds until a row that cannot be read is looked at again


class Pulse:
    """Renews the lease, obeys other processes, and delivers what is due."""

    def __init__(self, context: Context, people: People, delivery: Delivery) -> None:
        self._context = context
        self._store = context.store
        self._people = people
        self._delivery = delivery
        self._beating: asyncio.Task[None] | None = None
        self._looked_at: set[str] = set()  # results that are due, and not ours to deliver

    @property
    def is_beating(self) -> bool:
        """Whether the supervisor is in use."""
        return self._beating is not None

    async def start(self) -> None:
        """Enter this process as an owner."""
        lease, program = self._context.settings.lease, self._context.program
        self._context.owner = await self._store(self._store.leases.enrol, lease, 0, program)
        self._beating = asyncio.ensure_future(self._beat())

    async def stop(self) -> None:
        """Stop renewing; the lease is given up later, when nothing is at work any more."""
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            await asyncio.wait({beating})

    async def retire(self) -> None:
        """Leave what is unfinished to others, at once."""
        try:
            await self._store(self._store.leases.retire, self._context.owner)
        except LedgerError as error:
            self._context.warn(f"{error} (its lease runs out by itself)")

    async def _beat(self) -> None:
        settings = self._context.settings
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + settings.lease / _RENEWALS
        tidy_at = loop.time() + _TIDIED_FIRST
        while True:
            await asyncio.sleep(settings.poll)
            if loop.time() >= renew_at:
                renew_at = loop.time() + settings.lease / _RENEWALS
                await self._guarded(self._renew())
            if loop.time() >= tidy_at:
                tidy_at = loop.time() + _TIDIED_EVERY
                await self._guarded(self._tidy())
            await self._guarded(self._people.obey())
            if self._context.delivers:
                await self._guarded(self._deliver_due())

    async def _tidy(self) -> None:
        """Remove a little of what the ledger need not keep."""
        ledger = self._store.ledger
        if ledger.retention is not None:
            from notyet.ledger.prune import tidy

            await self._store(tidy, ledger, ledger.retention)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do one of these; what goes wrong with it must not stop the others."""
        try:
            await work
        except LedgerError as error:
            self._context.warn(f"{error} (trying again)")
        except Exception as error:  # noqa: BLE001  # a row that makes no sense
            self._context.warn(f"{type(error).__name__}: {error} (trying again)")

    async def _deliver_due(self) -> None:
        for task in await self._store(self._store.outbox.due, self._context.owner):
            self._delivery.hurry(task)  # somebody retried what waits for its next attempt
            if task not in self._context.lives and task not in self._looked_at:
                self._looked_at.add(task)
                self._context.do(self._deliver(task))

    async def _deliver(self, task: str) -> None:
        """Deliver a result that no driver sees to; one that makes no sense holds up no other."""
        try:
            seen = await self._store(self._store.tasks.look, task)
        except LedgerError as error:
            self._context.warn(f"the result of task {task} waits: {error}")
            await asyncio.sleep(_LATER)
            self._looked_at.discard(task)
            return
        # A main agent's result waits for its caller, who may not have asked for it yet.
        if seen is not None and self._delivery.is_ours(seen):
            self._looked_at.discard(task)
            await self._delivery.deliver(task)

    async def _renew(self) -> None:
        lease, leases = self._context.settings.lease, self._store.leases
        if await self._store(leases.renew, self._context.owner, lease):
            return
        self._context.owner = await self._store(
            leases.enrol, lease, self._context.owner, self._context.program
        )
        self._context.warn("another process took this supervisor for dead, and took over its tasks")
        for life in list(self._context.lives.values()):
            life.poke()  # each finds out that it is fenced
