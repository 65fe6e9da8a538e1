"""The parts that a supervisor's modules share; and the ledger behind one thread of its own."""

from __future__ import annotations

import asyncio
import json
import os
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from notyet.core.task import ending_of
from notyet.errors import LedgerError, Refused
from notyet.ledger.leases import Intents, Leases
from notyet.ledger.outbox import Outbox
from notyet.ledger.runs import Runs
from notyet.ledger.tasks import Tasks
from notyet.run.functions import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import TypeVar

    from notyet.core.session import Session, Turn
    from notyet.core.task import Announcement
    from notyet.engine.engine import Engine
    from notyet.ledger.moves import Seen
    from notyet.ledger.stops import Ledger
    from notyet.supervise.life import Life
    from notyet.supervise.settings import Progress, SupervisorSettings

    T = TypeVar("T")
    Job = Callable[[], None]
    Deliver = Callable[[Announcement], Awaitable[None]]

NOT_RUNNING = "the supervisor is not running; use it in: async with Supervisor(...)"
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class Store:
    """Makes calls of the ledger one after another in a thread, so that the loop never waits."""

    def __init__(self, ledger: Ledger, patience: float, warn: Callable[[str], None]) -> None:
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
        """End the thread after the calls that are queued."""
        if self._is_open:
            self._is_open = False
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    async def __call__(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Make a call and return its result; it is made even if the caller is cancelled."""
        if not self._is_open:
            raise Refused(NOT_RUNNING)
        return await _done(self._jobs.put, lambda: call(*args, **options))

    async def at_last(self, call: Callable[..., T], *args: Any) -> T:
        """Make a call that must not be lost, also after `close`."""
        if self._is_open:
            return await self.insist(call, *args)
        return await _done(run_in_thread, lambda: call(*args))

    async def insist(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Make a call that must not be lost: retry while the ledger cannot be written."""
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
    """Give a call to a thread, and wait for its result."""
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
        except Exception as error:  # noqa: BLE001  # raised in the waiting task
            failure = error
        try:
            loop.call_soon_threadsafe(deliver, result, failure)
        except RuntimeError:  # the loop is closed
            return

    put(job)
    return await done


_LAST_WAIT = 1.0  # seconds for background work when the supervisor closes


class Fenced(Exception):  # noqa: N818  # named after what happened
    """Another process owns the task now."""


class Context:
    """The engine, the ledger, the settings, and the tasks of this process."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        settings: SupervisorSettings,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.engine = engine
        self.store = store
        self.settings = settings
        self.warn = engine.warn
        self.owner = 0
        self.is_closing = False
        self.program = ""
        self.deliver: Deliver | None = None
        self.lives: dict[str, Life] = {}
        self.at_work: dict[int, str] = {}  # the task of each busy session, by its id()
        # Answers that came back while the ledger could not be written, with their runs.
        self.unrecorded: dict[str, tuple[str, Turn]] = {}
        self._on_progress = on_progress
        self._background: set[asyncio.Task[Any]] = set()

    @property
    def delivers(self) -> bool:
        """Whether `deliver` takes the results of subagents, and not their handles."""
        return self.deliver is not None

    def tell(self, progress: Progress) -> None:
        """Report progress; an error of the callback must not harm the task."""
        if self._on_progress is not None:
            self.call("on_progress failed", self._on_progress, progress)

    def transcript(self, session: Session | None) -> str | None:
        """Return the path of a session's transcript, if it has one."""
        path: object = None if session is None else self._ask(session.transcript)
        return path if isinstance(path, str) else None

    def session_id(self, task: str) -> str:
        """Return the id of the session of a task in this process; empty if not known yet."""
        life = self.lives.get(task)
        told: object = None if life is None or life.session is None else life.session.id
        return told if isinstance(told, str) else ""

    def knows(self, session: Session, key: str) -> bool | None:
        """Return whether a prompt arrived, as the session says; None if it cannot tell."""
        known: object = self._ask(session.knows, key)
        return known if isinstance(known, bool) else None

    def ref(self, session: Session) -> tuple[dict[str, object], str] | None:
        """Return how a session is reopened, and its id; None if that is not JSON."""
        ref = self._ask(session.ref)
        try:
            json.dumps(ref, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            self.warn(f"the ref of a session is no JSON, and is not kept: {error}")
            return None
        return (ref, session.id or "") if isinstance(ref, dict) else None

    def _ask(self, call: Callable[..., T], *args: object) -> T | None:
        name = getattr(call, "__name__", "method")
        return self.call(f"a session's {name} failed", call, *args)

    def call(self, fault: str, call: Callable[..., T], *args: object) -> T | None:
        """Call foreign code; an error becomes a warning that starts with `fault`."""
        try:
            return call(*args)
        except Exception as error:  # noqa: BLE001  # foreign code
            self.warn(f"{fault}: {type(error).__name__}: {error}")
            return None

    async def look(self, task: str) -> Seen:
        """Return a task as the ledger has it. Raises Fenced if another process owns it now."""
        seen = await self.store.insist(self.store.tasks.look, task)
        if seen is None:
            raise LedgerError(self.store.ledger.path, f"task {task} is gone")
        if seen.owner != self.owner:
            raise Fenced
        return seen

    def release(self, life: Life) -> None:
        """Free a task's session, unless another task has it already."""
        if self.at_work.get(id(life.session)) == life.task_id:
            del self.at_work[id(life.session)]

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start work that is finished even if its caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(retrieve_error)
        return task

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start work in the background; its errors become warnings."""
        task = asyncio.ensure_future(self._guarded(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _guarded(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except LedgerError as error:
            self.warn(str(error))
        except Exception as error:  # noqa: BLE001  # a session's news may be nonsense
            self.warn(f"news of a session could not be used: {type(error).__name__}: {error}")

    async def finish_background(self) -> None:
        """Wait a moment for background work; the rest is left to recovery."""
        if self._background:
            _, late = await asyncio.wait(set(self._background), timeout=_LAST_WAIT)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_LAST_WAIT)

    async def finish(self, task_id: str, run_id: str, turn: Turn) -> bool:
        """Record that a run has ended; False if it is too late, or superseded."""
        ending = ending_of(turn)
        finished = await self.store.insist(self.store.runs.finish, run_id, turn, ending, self.owner)
        life = self.lives.get(task_id)
        if finished and life is not None:
            life.poke()
        return finished


def new_key() -> str:
    """Return a key for one sending of one prompt."""
    return os.urandom(8).hex()


def retrieve_error(task: asyncio.Future[Any]) -> None:
    """Retrieve a task's error, if any: asyncio reports errors that are never retrieved."""
    if not task.cancelled():
        task.exception()
