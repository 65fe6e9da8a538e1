"""Requests of people for a task (K16, K18), and the heartbeat of its owner."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.core.task import FINAL
from notyet.errors import LedgerError, Refused
from notyet.ledger.prune import tidy
from notyet.supervise.context import clock, new_key

if TYPE_CHECKING:
    from typing import Literal

    from notyet.core.event import Ending
    from notyet.ledger.postgres import Listener
    from notyet.supervise.context import Context
    from notyet.supervise.delivery import Delivery

    What = Literal["steer", "kill", "reset", "interrupt", "say"]

_LONGEST_SILENCE = 5.0  # seconds without a notice, after which it is looked all the same
_MOST_PAUSE = 1.0  # seconds until a move of another process is noticed
_ENDINGS: dict[What, Ending] = {"kill": "killed", "reset": "reset", "interrupt": "interrupted"}
_RENEWALS = 4  # in the time of one lease
_TIDIED_FIRST = 5.0  # seconds after the start
_TIDIED_EVERY = 60.0


class Requests:
    """Steers, messages and ends tasks of any process; the owner of a task notices (K18)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._insist = context.store.insist

    async def make(self, task: str, what: What, text: str = "", key: str = "") -> bool:
        """Carry out a request; False if the task had ended before. Raises Refused.

        A steer or message with a known key is ignored.
        """
        runs, mover = self._store.runs, self._context.owner
        if what in _ENDINGS:
            seen = await self._insist(self._store.tasks.look, task)
            if seen is None:
                raise Refused(f"there is no task {task}; list them with: notyet tasks")
            return seen.run.state not in FINAL and await self._end(task, _ENDINGS[what])
        if what == "steer":
            pause = self._context.settings.steer_pause
            await self._insist(runs.steer, task, mover, key or new_key(), text, pause)
        else:
            said = (task, "user", key or new_key(), text, new_key())
            await self._insist(runs.say, *said, mover=mover)
        self._context.poke(task)
        return True

    async def _end(self, task: str, ending: Ending) -> bool:
        """End a task after its descendants, and then those that started meanwhile."""
        known: set[str] = set()
        has_ended = None
        while True:
            below = await self._insist(self._store.tasks.descendants, task)
            new = [child for child in below if child not in known]
            known.update(new)
            for child in new:
                await self._end_one(child, ending)
            if has_ended is None:
                has_ended = await self._end_one(task, ending)
            elif not new:
                return has_ended

    async def _end_one(self, task: str, ending: Ending) -> bool:
        result = await self._insist(self._store.runs.end, task, self._context.owner, ending)
        self._context.poke(task)
        return result is not None


class Changes:
    """Waits for a change of another process, where the ledger tells of it (PostgreSQL)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._listener: Listener | None = None

    async def wait(self, most: float) -> None:
        """Wait for a change at most this many seconds; not at all if the ledger tells of none."""
        store = self._context.store
        try:
            if self._listener is None:
                # Changes before this were not heard: the caller looks at once.
                self._listener = await store(store.ledger.connection.listen)
            else:
                await self._hear(self._listener, min(most, _LONGEST_SILENCE))
        except (LedgerError, OSError):
            self.close()  # the caller looks, and says what is wrong

    async def _hear(self, listener: Listener, most: float) -> None:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        file = listener.fileno()
        loop.add_reader(file, heard.set)
        try:
            async with asyncio.timeout(most):
                while self._context.owner not in listener.take():
                    heard.clear()
                    await heard.wait()
        except TimeoutError:
            return
        finally:
            loop.remove_reader(file)

    def close(self) -> None:
        """Stop listening; the next `wait` begins again."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()


class Heartbeat:
    """Renews the lease, notices moves of other processes, delivers due results, prunes."""

    def __init__(self, context: Context, delivery: Delivery) -> None:
        self._context = context
        self._store = context.store
        self._delivery = delivery
        self._changes = Changes(context)
        self._beating: asyncio.Task[None] | None = None

    @property
    def is_beating(self) -> bool:
        """True between `start` and `stop`."""
        return self._beating is not None

    async def start(self) -> None:
        """Enter this process as an owner."""
        await self._enrol()
        self._beating = asyncio.ensure_future(self._beat())

    async def stop(self) -> None:
        """Stop renewing; `retire` gives up the lease when all agents have stopped."""
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            await asyncio.wait({beating})
            self._changes.close()

    async def retire(self) -> None:
        """Give up the lease: others may take over unfinished tasks at once."""
        try:
            await self._store(self._store.leases.retire, self._context.owner)
        except LedgerError as error:
            self._context.warn(f"{error} (its lease runs out by itself)")

    async def _beat(self) -> None:
        settings, guarded = self._context.settings, self._context.guarded
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + settings.lease / _RENEWALS
        tidy_at = loop.time() + _TIDIED_FIRST
        while True:
            await asyncio.sleep(min(settings.poll, _MOST_PAUSE))
            await self._changes.wait(min(renew_at, tidy_at) - loop.time())
            if loop.time() >= renew_at:
                renew_at = loop.time() + settings.lease / _RENEWALS
                await guarded("the lease was not renewed", self._renew())
            if loop.time() >= tidy_at:
                tidy_at = loop.time() + _TIDIED_EVERY
                await guarded("old rows were not pruned", self._tidy())
            await guarded("moves of other processes were not noticed", self._notice())
            if self._context.deliver is not None:
                await guarded("results were not delivered", self._delivery.deliver_due())

    async def _renew(self) -> None:
        context, lease = self._context, self._context.settings.lease
        until = clock() + lease  # the database counts from a later moment
        if await self._store(self._store.leases.renew, context.owner, lease):
            context.leased_until = until
            return
        context.leased_until = 0.0
        await self._enrol()
        context.warn("another process took this supervisor for dead, and took over its tasks")
        for task in list(context.live):
            context.poke(task)  # each loop finds that it is fenced

    async def _enrol(self) -> None:
        context, lease = self._context, self._context.settings.lease
        until = clock() + lease
        enrol = self._store.leases.enrol
        context.owner = await self._store(enrol, lease, context.owner, context.program)
        context.leased_until = until

    async def _notice(self) -> None:
        for task in await self._store(self._store.tasks.moved, self._context.owner):
            self._context.poke(task)

    async def _tidy(self) -> None:
        """Prune a few old rows."""
        ledger = self._store.ledger
        if ledger.retention is not None:
            await self._store(tidy, ledger, ledger.retention)
