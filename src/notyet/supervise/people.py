"""Requests of people for a task (K16, K18), and the pulse that serves them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.errors import LedgerError, Refused
from notyet.ledger.prune import tidy
from notyet.supervise.context import new_key

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, Literal

    from notyet.core.event import Ending
    from notyet.ledger.leases import Intent, What
    from notyet.ledger.moves import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.delivery import Delivery

_ENDINGS: dict[What, Ending] = {"kill": "killed", "reset": "reset", "interrupt": "interrupted"}


class People:
    """Steers, messages and ends tasks of this process, and asks the owners of others to."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._obeyed: set[int] = set()  # intents that are being carried out

    async def do(self, task: str, what: What, text: str = "") -> bool:
        """Carry out a request; False if the task had ended before. Raises Refused."""
        seen = await self._look(task)
        if seen.run.state in {"ended", "superseded"}:
            if what in _ENDINGS:
                return False
            raise Refused(f"task {task} has ended ({seen.run.ending or 'done'})")
        if seen.owner == self._context.owner:
            return await self._act(task, what, text, new_key())
        return await self._ask_owner(task, what, text)

    async def obey(self) -> None:
        """Start what other processes requested for tasks of this one, in order."""
        for intent in await self._store(self._store.intents.waiting, self._context.owner):
            if intent.id not in self._obeyed:
                self._obeyed.add(intent.id)
                self._context.do(self._obey(intent))

    async def _obey(self, intent: Intent) -> None:
        """Carry out one request and answer it; others do not wait for it."""
        state: Literal["done", "refused"] = "done"
        answer = ""
        try:
            # The intent is the key: an owner that died before its answer may have done it.
            key = f"intent {intent.id}"
            if not await self._act(intent.task, intent.what, intent.text, key):
                state, answer = "refused", f"task {intent.task} has ended"
        except Exception as error:  # noqa: BLE001  # the other process gets it as an answer
            state, answer = "refused", str(error)
        try:
            await self._store.insist(self._store.intents.answer, intent.id, state, answer)
        finally:
            self._obeyed.discard(intent.id)

    async def _act(self, task: str, what: What, text: str, key: str) -> bool:
        if what in _ENDINGS:
            return await self._end(task, what)
        store = self._store
        if what == "steer":
            pause = self._context.settings.steer_pause
            owner = self._context.owner
            await store.insist(store.runs.steer, task, owner, key, text, pause)
        else:
            await store.insist(store.runs.say, task, "user", key, text, new_key())
        self._poke(task)
        return True

    async def _end(self, task: str, what: What) -> bool:
        """End a task after its descendants, and then those that started meanwhile."""
        wanted: set[str] = set()
        await self._end_all_below(task, what, wanted)
        has_ended = await self._end_one(task, what)
        while await self._end_all_below(task, what, wanted):
            continue
        return has_ended

    async def _end_all_below(self, task: str, what: What, wanted: set[str]) -> bool:
        """End the active descendants of a task; False if there was no new one."""
        below = await self._store.insist(self._store.tasks.descendants, task)
        new = [child for child in below if child not in wanted]
        for child in new:
            wanted.add(child)
            await self._end_below(child, what)
        return bool(new)

    async def _end_one(self, task: str, what: What) -> bool:
        result = await self._store.insist(
            self._store.runs.end, task, self._context.owner, _ENDINGS[what]
        )
        self._poke(task)
        return result is not None

    async def _end_below(self, child: str, what: What) -> None:
        seen = await self._look(child)
        if seen.owner == self._context.owner:
            await self._end_one(child, what)
        else:  # its owner does it, and the parent's end does not wait
            await self._store.insist(self._store.intents.wish, child, what, "")

    async def _ask_owner(self, task: str, what: What, text: str) -> bool:
        settings, intents = self._context.settings, self._store.intents
        intent = await self._store.insist(intents.wish, task, what, text)
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
        seen = await self._store.insist(self._store.tasks.look, task)
        if seen is None:
            raise Refused(f"there is no task {task}; list them with: notyet tasks")
        return seen

    def _poke(self, task: str) -> None:
        life = self._context.lives.get(task)
        if life is not None:
            life.poke()


_RENEWALS = 4  # in the time of one lease
_TIDIED_FIRST = 5.0  # seconds after the start
_TIDIED_EVERY = 60.0
_LATER = 5.0  # seconds until a row that cannot be read is read again


class Pulse:
    """Renews the lease, serves requests of other processes, delivers due results, prunes."""

    def __init__(self, context: Context, people: People, delivery: Delivery) -> None:
        self._context = context
        self._store = context.store
        self._people = people
        self._delivery = delivery
        self._beating: asyncio.Task[None] | None = None
        self._looked_at: set[str] = set()  # due results that are not ours to deliver

    @property
    def is_beating(self) -> bool:
        """True between `start` and `stop`."""
        return self._beating is not None

    async def start(self) -> None:
        """Enter this process as an owner."""
        lease, program = self._context.settings.lease, self._context.program
        self._context.owner = await self._store(self._store.leases.enrol, lease, 0, program)
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
        """Prune a few old rows."""
        ledger = self._store.ledger
        if ledger.retention is not None:
            await self._store(tidy, ledger, ledger.retention)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do one part of a beat; an error must not stop the others."""
        try:
            await work
        except LedgerError as error:
            self._context.warn(f"{error} (trying again)")
        except Exception as error:  # noqa: BLE001  # an unreadable row
            self._context.warn(f"{type(error).__name__}: {error} (trying again)")

    async def _deliver_due(self) -> None:
        for task in await self._store(self._store.outbox.due, self._context.owner):
            self._delivery.hurry(task)  # `retry` may have made it due early
            if task not in self._context.lives and task not in self._looked_at:
                self._looked_at.add(task)
                self._context.do(self._deliver(task))

    async def _deliver(self, task: str) -> None:
        """Deliver a result that has no driver; an unreadable one holds up no other."""
        try:
            seen = await self._store(self._store.tasks.look, task)
        except LedgerError as error:
            self._context.warn(f"the result of task {task} waits: {error}")
            await asyncio.sleep(_LATER)
            self._looked_at.discard(task)
            return
        # A main agent's result waits for its caller.
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
            life.poke()  # each driver finds that it is fenced
