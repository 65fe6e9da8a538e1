"""What the modules of a supervisor share; and the ledger behind threads of its own."""

from __future__ import annotations

import asyncio
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from notyet.core.task import ending_of
from notyet.errors import LedgerError, LedgerNewer, Refused, attempt, attempt_async
from notyet.ledger.leases import Leases
from notyet.ledger.outbox import Outbox
from notyet.ledger.runs import Runs
from notyet.ledger.tasks import Tasks
from notyet.supervise.settings import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import TypeVar

    from notyet.core.session import Turn
    from notyet.core.task import Announcement
    from notyet.engine.engine import Engine
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.transitions import Seen
    from notyet.run.drive import Progress as GateProgress
    from notyet.supervise.live_task import LiveTask
    from notyet.supervise.settings import ProgressKind, SupervisorSettings

    T = TypeVar("T")
    Deliver = Callable[[Announcement], Awaitable[None]]

NOT_RUNNING = "the supervisor is not running; use it in: async with Supervisor(...)"
# Of our own: a program that seeds the shared one would repeat keys.
_random = random.Random()  # noqa: S311  # keys are no secrets
os.register_at_fork(after_in_child=_random.seed)
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LAST_WAIT = 1.0  # seconds for background work when the supervisor closes


class Store:
    """Makes calls of the ledger in threads, as many as it can serve, so that the loop never waits.

    The calls of one caller are made one after another, also if it is cancelled.
    """

    def __init__(self, ledger: Ledger, patience: float, warn: Callable[[str], None]) -> None:
        self.ledger = ledger
        self.tasks = Tasks(ledger)
        self.runs = Runs(ledger)
        self.outbox = Outbox(ledger.connection)
        self.leases = Leases(ledger.connection)
        self._patience = patience
        self._warn = warn
        self._threads: ThreadPoolExecutor | None = None
        self._calls: set[asyncio.Future[Any]] = set()  # that are not done

    def open(self) -> None:
        """Start the threads."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.ledger.connection.at_once, "notyet ledger")

    async def finish(self) -> None:
        """Wait for the calls that are queued."""
        while self._calls:
            await asyncio.wait(set(self._calls))

    def close(self) -> None:
        """End the threads after the calls that are queued."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    async def __call__(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Make a call and return its result; it is made even if the caller is cancelled."""
        if self._threads is None:
            raise Refused(NOT_RUNNING)
        loop = asyncio.get_running_loop()
        made = loop.run_in_executor(self._threads, partial(call, *args, **options))
        self._calls.add(made)
        made.add_done_callback(self._calls.discard)
        made.add_done_callback(_note_error)
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            await asyncio.wait({made})
            raise

    async def insist(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Make a call that must not be lost: retry while the ledger cannot be written."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._patience
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self(call, *args, **options)
            except LedgerNewer:  # time does not change it
                raise
            except LedgerError as error:
                if loop.time() + pause > ends:
                    raise
                self._warn(f"{error} (trying again)")
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)

    async def at_last(self, call: Callable[..., T], *args: Any) -> T:
        """Make a call that must not be lost, also after `close`."""
        if self._threads is None:
            return await asyncio.to_thread(call, *args)
        return await self.insist(call, *args)


def _note_error(made: asyncio.Future[Any]) -> None:
    """Mark the error of a call as seen: asyncio prints it where the caller was cancelled."""
    if not made.cancelled():
        made.exception()


class FencedError(Exception):
    """Another process owns the task now."""


class Context:
    """The engine, the ledger, the settings, and the tasks of this process."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        settings: SupervisorSettings,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        gate_progress: Callable[[str], GateProgress | None] | None = None,
        program: str = "",
    ) -> None:
        self.engine = engine
        self.store = store
        self.settings = settings
        self.warn = engine.warn
        self.program = program
        self.owner = 0
        self.leased_until = 0.0  # by `clock`; renewed at least until then
        self.is_closing = False
        self.deliver: Deliver | None = None  # takes the results of subagents, if set
        self.live: dict[str, LiveTask] = {}
        self.at_work: dict[int, str] = {}  # the task of each busy session, by its id()
        # Answers that came back while the ledger could not be written, by task and run.
        self.unrecorded: dict[str, dict[str, Turn]] = {}
        self._on_progress = on_progress
        self._gate_progress = gate_progress
        self._background: set[asyncio.Task[Any]] = set()

    def report(self, task: str, kind: ProgressKind, generation: int, **details: Any) -> None:
        """Report progress; an error of the callback must not harm the task."""
        if self._on_progress is not None:
            progress = Progress(task_id=task, kind=kind, generation=generation, **details)
            self.call("on_progress failed", self._on_progress, progress)

    def gate_progress(self, task: str) -> GateProgress | None:
        """Return the progress callback for the gates of a task."""
        if self._gate_progress is None:
            return None
        return self.call("gate_progress failed", self._gate_progress, task)

    def call(self, fault: str, call: Callable[..., T], *args: object) -> T | None:
        """Call foreign code; an error becomes a warning that starts with `fault`."""
        result: T | None
        result, error = attempt(call, *args)
        if error is not None:
            self.warn(f"{fault}: {type(error).__name__}: {error}")
        return result

    @property
    def has_lease(self) -> bool:
        """True while no other process can have taken over our tasks."""
        return clock() < self.leased_until

    async def look(self, task: str) -> Seen:
        """Return a task as the ledger has it. Raises FencedError if another process owns it now."""
        seen = await self.store.insist(self.store.tasks.look, task)
        if seen is None:
            raise LedgerError(self.store.ledger.path, f"task {task} is gone")
        if seen.owner != self.owner:
            raise FencedError
        return seen

    async def finish(self, task: str, run: str, turn: Turn) -> bool:
        """Record that a run has ended; False if it is too late, or superseded."""
        finish = self.store.runs.finish
        seen = await self.store.insist(finish, run, turn, ending_of(turn), self.owner)
        if seen is not None:
            self.poke(task)
        return seen is not None

    def poke(self, task: str) -> None:
        """Make the loop of a task look again, if this process drives it."""
        if task in self.live:
            self.live[task].poked.set()

    def release(self, live: LiveTask) -> None:
        """Free a task's session, unless another task has it already."""
        if self.at_work.get(id(live.session)) == live.task_id:
            del self.at_work[id(live.session)]

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start work that is finished even if its caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(retrieve_error)
        return task

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start work in the background; its errors become warnings."""
        self.begin(self.guarded("news of a session could not be used", work))

    async def guarded(self, fault: str, work: Coroutine[Any, Any, Any]) -> None:
        """Await work that may be foreign; an error becomes a warning that starts with `fault`."""
        _, error = await attempt_async(work)
        if isinstance(error, LedgerError):
            self.warn(str(error))
        elif error is not None:
            self.warn(f"{fault}: {type(error).__name__}: {error}")

    async def finish_background(self) -> None:
        """Wait a moment for background work; the rest is left to recovery."""
        if self._background:
            _, late = await asyncio.wait(set(self._background), timeout=_LAST_WAIT)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_LAST_WAIT)


def clock() -> float:
    """Return seconds that never jump, and go on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def new_key() -> str:
    """Return a key for one sending of one prompt."""
    return f"{_random.getrandbits(64):016x}"


def retrieve_error(task: asyncio.Future[Any]) -> None:
    """Retrieve a task's error, if any: asyncio reports errors that are never retrieved."""
    if not task.cancelled():
        task.exception()
