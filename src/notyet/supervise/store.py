"""The ledger for an event loop: one thread that writes, so that the loop never waits for a disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from notyet.checks.threads import run_in_thread
from notyet.errors import LedgerError, Refused
from notyet.ledger.intents import Intents
from notyet.ledger.leases import Leases
from notyet.ledger.outbox import Outbox
from notyet.ledger.runs import Runs
from notyet.ledger.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable
    from queue import SimpleQueue
    from typing import TypeVar

    from notyet.ledger.sqlite import Ledger

    T = TypeVar("T")
    Job = Callable[[], None]

NOT_RUNNING = "the supervisor is not running; use it in: async with Supervisor(...)"
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class Store:
    """Calls of the ledger, one after another, off the loop's thread."""

    def __init__(self, ledger: Ledger, patience: float, warn: Callable[[str], None]) -> None:
        from queue import SimpleQueue

        self.ledger = ledger
        self.tasks = Tasks(ledger)
        self.runs = Runs(ledger)
        self.outbox = Outbox(ledger.file)
        self.intents = Intents(ledger.file)
        self.leases = Leases(ledger.file)
        self._patience = patience
        self._warn = warn
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._is_open = False

    def open(self) -> None:
        """Start the thread."""
        if not self._is_open:
            self._is_open = True
            run_in_thread(self._work)

    def close(self) -> None:
        """End the thread, once it has done what it was asked."""
        if self._is_open:
            self._is_open = False
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    async def __call__(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Make a call; raises what it raises. It happens even if nobody waits for it any more."""
        if not self._is_open:
            raise Refused(NOT_RUNNING)
        return await _done(self._jobs.put, lambda: call(*args, **options))

    async def at_last(self, call: Callable[..., T], *args: Any) -> T:
        """Make a call that must not be lost, also when the supervisor has been closed."""
        if self._is_open:
            return await self.insist(call, *args)
        return await _done(run_in_thread, lambda: call(*args))

    async def insist(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Make a call that must not be lost: try again while the ledger cannot be written."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._patience
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self(call, *args, **options)
            except LedgerError as error:
                if loop.time() + pause > ends:
                    raise
                self._warn(f"{error} (trying again)")
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)


async def _done(put: Callable[[Job], None], call: Callable[[], T]) -> T:
    """Put a call where a thread finds it, and wait until it is done."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def deliver(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def job() -> None:
        result: Any = None
        failure: BaseException | None = None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001  # raised where somebody waits
            failure = error
        try:
            loop.call_soon_threadsafe(deliver, result, failure)
        except RuntimeError:  # the loop is closed: nobody waits
            return

    put(job)
    return await done
