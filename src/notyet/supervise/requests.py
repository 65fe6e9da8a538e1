"""Requests of people for a task (K16, K18), and the heartbeat that serves other processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.errors import LedgerError, NotyetError, Refused
from notyet.ledger.prune import tidy
from notyet.supervise.context import new_key

if TYPE_CHECKING:
    from typing import Literal

    from notyet.core.event import Ending
    from notyet.ledger.leases import Intent, What
    from notyet.ledger.transitions import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.delivery import Delivery

_ENDINGS: dict[What, Ending] = {"kill": "killed", "reset": "reset", "interrupt": "interrupted"}
_RENEWALS = 4  # in the time of one lease
_TIDIED_FIRST = 5.0  # seconds after the start
_TIDIED_EVERY = 60.0


class Requests:
    """Steers, messages and ends tasks of this process, and asks the owners of others to."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._insist = context.store.insist
        self._served: set[int] = set()  # intents that are being carried out

    async def make(self, task: str, what: What, text: str = "") -> bool:
        """Carry out a request; False if the task had ended before. Raises Refused."""
        seen = await self._look(task)
        if seen.run.state in {"ended", "superseded"}:
            if what in _ENDINGS:
                return False
            raise Refused(f"task {task} has ended ({seen.run.ending or 'done'})")
        if seen.owner == self._context.owner:
            return await self._carry_out(task, what, text, new_key())
        return await self._ask_owner(task, what, text)

    async def serve(self) -> None:
        """Start what other processes requested for tasks of this one, in order."""
        for intent in await self._store(self._store.intents.waiting, self._context.owner):
            if intent.id not in self._served:
                self._served.add(intent.id)
                self._context.do(self._serve(intent))

    async def _serve(self, intent: Intent) -> None:
        """Carry out one request and answer it; others do not wait for it."""
        state: Literal["done", "refused"] = "done"
        answer = ""
        try:
            # The intent is the key: an owner that died before its answer may have done it.
            key = f"intent {intent.id}"
            if not await self._carry_out(intent.task, intent.what, intent.text, key):
                state, answer = "refused", f"task {intent.task} has ended"
        except NotyetError as error:
            state, answer = "refused", str(error)
        await self._insist(self._store.intents.answer, intent.id, state, answer)
        self._served.discard(intent.id)

    async def _carry_out(self, task: str, what: What, text: str, key: str) -> bool:
        if what in _ENDINGS:
            return await self._end(task, what)
        runs = self._store.runs
        if what == "steer":
            pause = self._context.settings.steer_pause
            await self._insist(runs.steer, task, self._context.owner, key, text, pause)
        else:
            await self._insist(runs.say, task, "user", key, text, new_key())
        self._context.poke(task)
        return True

    async def _end(self, task: str, what: What) -> bool:
        """End a task after its descendants, and then those that started meanwhile."""
        known: set[str] = set()
        has_ended = None
        while True:
            below = await self._insist(self._store.tasks.descendants, task)
            new = [child for child in below if child not in known]
            for child in new:
                known.add(child)
                if (await self._look(child)).owner == self._context.owner:
                    await self._end_one(child, what)
                else:  # its owner does it, and the parent's end does not wait
                    await self._insist(self._store.intents.add, child, what, "")
            if has_ended is None:
                has_ended = await self._end_one(task, what)
            elif not new:
                return has_ended

    async def _end_one(self, task: str, what: What) -> bool:
        end, owner = self._store.runs.end, self._context.owner
        result = await self._insist(end, task, owner, _ENDINGS[what])
        self._context.poke(task)
        return result is not None

    async def _ask_owner(self, task: str, what: What, text: str) -> bool:
        settings, intents = self._context.settings, self._store.intents
        intent = await self._insist(intents.add, task, what, text)
        loop = asyncio.get_running_loop()
        ends = loop.time() + settings.intent_patience
        while True:
            state, answer = await self._store(intents.read, intent)
            if state == "done":
                return True
            if state == "refused":
                if what in _ENDINGS and (await self._look(task)).run.state == "ended":
                    return False
                raise Refused(answer)
            if loop.time() >= ends and await self._store(intents.withdraw, intent):
                raise Refused(
                    f"the process that owns task {task} does not answer; if it is gone, "
                    "`notyet tasks` takes over what it left"
                )
            await asyncio.sleep(settings.poll / 2)

    async def _look(self, task: str) -> Seen:
        seen = await self._insist(self._store.tasks.look, task)
        if seen is None:
            raise Refused(f"there is no task {task}; list them with: notyet tasks")
        return seen


class Heartbeat:
    """Renews the lease, serves requests of other processes, delivers due results, prunes."""

    def __init__(self, context: Context, requests: Requests, delivery: Delivery) -> None:
        self._context = context
        self._store = context.store
        self._requests = requests
        self._delivery = delivery
        self._beating: asyncio.Task[None] | None = None

    @property
    def is_beating(self) -> bool:
        """True between `start` and `stop`."""
        return self._beating is not None

    async def start(self) -> None:
        """Enter this process as an owner."""
        context, enrol = self._context, self._store.leases.enrol
        context.owner = await self._store(enrol, context.settings.lease, 0, context.program)
        self._beating = asyncio.ensure_future(self._beat())

    async def stop(self) -> None:
        """Stop renewing; `retire` gives up the lease when all agents have stopped."""
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            await asyncio.wait({beating})

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
            await asyncio.sleep(settings.poll)
            if loop.time() >= renew_at:
                renew_at = loop.time() + settings.lease / _RENEWALS
                await guarded("the lease was not renewed", self._renew())
            if loop.time() >= tidy_at:
                tidy_at = loop.time() + _TIDIED_EVERY
                await guarded("old rows were not pruned", self._tidy())
            await guarded("requests were not served", self._requests.serve())
            if self._context.deliver is not None:
                await guarded("results were not delivered", self._delivery.deliver_due())

    async def _renew(self) -> None:
        context, leases, lease = self._context, self._store.leases, self._context.settings.lease
        if await self._store(leases.renew, context.owner, lease):
            return
        context.owner = await self._store(leases.enrol, lease, context.owner, context.program)
        context.warn("another process took this supervisor for dead, and took over its tasks")
        for task in list(context.live):
            context.poke(task)  # each loop finds that it is fenced

    async def _tidy(self) -> None:
        """Prune a few old rows."""
        ledger = self._store.ledger
        if ledger.retention is not None:
            await self._store(tidy, ledger, ledger.retention)
