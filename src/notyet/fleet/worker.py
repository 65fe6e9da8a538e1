"""`Worker`: takes tasks from queues and supervises them, one worker on each machine.

A task is placed by the engine, and begun by a guarded move of the ledger. From then on only its
lease counts: if this worker dies, another one takes the task over, on the same machine where its
conversation is bound to that. `sweep` finds what dead workers left.
"""

from __future__ import annotations

import asyncio
import platform
import time
from contextlib import suppress
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING
from uuid import uuid4

import notyet
from notyet.agents import open_session, reopen
from notyet.core.record import replace
from notyet.core.remote import is_remote
from notyet.core.task import FINAL, Order
from notyet.engine.engine import Engine
from notyet.engine.from_project import project_engine
from notyet.errors import LedgerError, LedgerNewer, NotyetError, Refused, SendError
from notyet.fleet.placing import new_placement, task_of
from notyet.fleet.queue import queue_named
from notyet.fleet.workspaces import Workspaces, is_git_address, is_trusted, without_password
from notyet.ledger.placements import FLEET, note_placement, unplaced
from notyet.run.proc import own_machine
from notyet.supervise.settings import SupervisorSettings
from notyet.supervise.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from notyet.core.session import Session, Turn
    from notyet.core.task import Task
    from notyet.fleet.fleet import Fleet
    from notyet.fleet.placing import Enqueue
    from notyet.fleet.queue import Queue
    from notyet.ledger.placements import Orphan
    from notyet.ledger.transitions import Seen
    from notyet.supervise import Handle, Progress

_SWEEPS = 3  # in the time of one lease
_AT_ONCE_PLACED = 100
_LONGEST_WAIT = 5.0  # seconds until limits are looked at again
# Tasks that were placed before their model had a limit wait here for it. After so many seconds
# they give the slot to others, and are placed as the queue says now.
_LONGEST_HELD = 30.0
_PAUSE = 1.0
_FOREVER = 10**9  # seconds


class Worker:
    """Runs the tasks of some queues, `at_once` of them at most.

    `trust` are patterns of git addresses whose gates are trusted. `open_session` and `reopen` make
    sessions of other agents than those of `notyet with`; such conversations are bound to this
    machine unless `is_bound` is False. `engine_of` returns the engine of a task.
    """

    def __init__(
        self,
        fleet: Fleet,
        queues: Sequence[str],
        *,
        at_once: int = 4,
        trust: Sequence[str] = (),
        workspaces: Workspaces | None = None,
        open_session: Callable[[Order, str], Session] | None = None,
        reopen: Callable[[Mapping[str, Any]], Session] = reopen,
        is_bound: bool = True,
        engine_of: Callable[[Task], Engine] | None = None,
        settings: SupervisorSettings = SupervisorSettings(grace=0.0),  # noqa: B008  # a record
        warn: Callable[[str], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.id = uuid4().hex
        self._fleet = fleet
        self._names = list(queues)
        self._queues: dict[str, Queue] = {}
        self._at_once = at_once
        self._trust = tuple(trust)
        self._workspaces = workspaces or Workspaces()
        self._open = _opened if open_session is None else open_session
        self._engine_of = self._project_engine if engine_of is None else engine_of
        self._engines: dict[str, Engine] = {}  # of tasks that begin
        self._machine = own_machine() if is_bound else ""
        self._settings = settings
        self._warn = warn or (lambda _: None)
        self._slots = asyncio.Semaphore(at_once)
        self._queue_slots: dict[str, _Slots] = {}
        self._placed: set[str] = set()
        self._reserved = 0  # slots for tasks of dead workers, when they are free
        self._at_work: set[str] = set()
        self._taken_over: set[asyncio.Task[None]] = set()
        self._checked = ""  # the last queued task whose placement was looked up
        self._draining = asyncio.Event()
        self._soon = asyncio.Event()  # there may be something to sweep
        self._supervisor = Supervisor(
            Engine(ledger=fleet.ledger, warn=self._warn),
            fleet.ledger,
            reopen,
            settings=settings,
            program=FLEET,
            engine_of=self._engine_for,
            on_progress=on_progress,
        )

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks at work here."""
        return frozenset(self._at_work)

    def drain(self) -> None:
        """Take no more tasks; `run` returns when those at work have ended."""
        self._draining.set()

    async def run(self) -> None:
        """Take tasks until `drain`; a cancellation leaves the tasks at work to other workers.

        Raises Refused for an unknown queue, and LedgerError: LedgerNewer also when a newer notyet
        has updated the tables since.
        """
        await self._fleet.open()
        known = await asyncio.to_thread(self._fleet.placements.queues)
        self._queues = {name: queue_named(name, known) for name in self._names}
        for name, queue in self._queues.items():
            self._queue_slots[name] = _Slots(queue.per_worker or self._at_once)
        placing, loop = self._fleet.placing, asyncio.get_running_loop()

        async def place(task: str, placement: str) -> None:
            await _in(loop, self._place(task, placement))

        async def submit(at: str, order: dict[str, Any]) -> None:
            name = str(order.pop("schedule", ""))
            await _in(loop, self._fleet.submit_scheduled(at, name, order))

        async with self._supervisor:
            await self._describe()
            sweeping = None
            try:
                serve = partial(placing.serve, self.id, self._names, self._room)
                await asyncio.to_thread(serve, place, submit)
                sweeping = asyncio.ensure_future(self._sweep_always())
                await self._draining.wait()
                await self._describe()
                await asyncio.to_thread(placing.stop, _FOREVER)
                await asyncio.gather(*self._taken_over)
            except BaseException:
                self._draining.set()  # what waits for a slot is given back
                await asyncio.to_thread(placing.stop, 0)
                raise
            finally:
                if sweeping is not None:
                    sweeping.cancel()

    # -- one task

    def _room(self) -> int:
        """Return how many more tasks can be placed here."""
        if self._draining.is_set():
            return 0
        # Else what dead workers left would wait for as long as tasks are queued.
        return max(0, self._at_once - self._reserved - len(self._placed | self._at_work))

    async def _place(self, task: str, placement: str) -> None:
        """Begin a task that the engine placed here, and wait until it has ended or moved on."""
        self._placed.add(task)
        try:
            while True:
                try:
                    return await self._begin(task, placement)
                except LedgerError as error:  # nobody else would place it again
                    self._warn(f"task {task}: {error} (trying again)")
                    await asyncio.sleep(_PAUSE)
                except Exception as error:  # noqa: BLE001  # a sweep places it again
                    why = str(error) or type(error).__name__
                    return self._warn(f"task {task}: {why} (trying again)")
        finally:
            self._placed.discard(task)
            self._engines.pop(task, None)

    async def _begin(self, task: str, placement: str) -> None:
        placements = self._fleet.placements
        found = await self._ask(placements.order, task)
        if found is None or found[0].run.state in FINAL:
            return
        seen, order = found
        async with self._queue_slots[order.queue], self._slots:
            self._at_work.add(task)
            try:
                handle = await self._adopted(seen, order)
                if handle is not None:
                    await self._ended(handle)
                else:
                    await self._ask(placements.unplace, task, placement)
            finally:
                self._at_work.discard(task)
        await self._tidy()

    async def _adopted(self, seen: Seen, order: Order) -> Handle | None:
        """Begin a task when there is room for it; None if it must be placed again, or moved on."""
        if seen.run.state != "queued":
            # Maybe begun by us, without that we heard of it: the ledger could not be reached.
            is_ours = seen.owner == self._supervisor.owner
            found = await self._supervisor.recover(only=seen.task.id) if is_ours else ()
            return next((handle for handle in found if handle.task_id == seen.task.id), None)
        if self._draining.is_set():
            return None
        # Not of the run alone: a worker that is not dead after all may be cloning, too.
        task, session = await self._opened(seen.task, order, f"{seen.run.id}.{self.id[:8]}")
        ends = time.monotonic() + _LONGEST_HELD
        while not self._draining.is_set() and time.monotonic() < ends:
            queue = queue_named(order.queue, await self._ask(self._fleet.placements.queues))
            room = queue.room_for(order.model)
            begun = await self._supervisor.adopt(task, session, room=room, machine=self._machine)
            if not isinstance(begun, float):
                return begun
            if begun > _LONGEST_HELD:
                break
            with suppress(TimeoutError):
                await asyncio.wait_for(self._draining.wait(), min(begun, _LONGEST_WAIT))
        self._soon.set()
        return None

    async def _opened(self, task: Task, order: Order, name: str) -> tuple[Task, Session]:
        """Return a task with its folder, and its session; one that only fails, if that is all."""
        try:
            folder = await asyncio.to_thread(self._folder, order, name)
            task = replace(task, cwd=folder)
            self._engines[task.id] = await asyncio.to_thread(self._engine_of, task)
            return task, await asyncio.to_thread(self._open, order, folder)
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001  # of other people's code, too
            self._engines[task.id] = Engine(ledger=self._fleet.ledger)
            return task, _Unopened(str(error) or type(error).__name__)

    def _folder(self, order: Order, name: str) -> str:
        folder = self._workspaces.prepare(order.place, name)
        if is_trusted(order.place, self._trust):
            self._workspaces.trust(folder, is_clone=is_git_address(order.place))
        return folder

    def _engine_for(self, task: Task) -> Engine:
        """Return the engine of a task that begins, or was taken over from a dead worker."""
        return self._engines.get(task.id) or self._engine_of(task)

    def _project_engine(self, task: Task) -> Engine:
        """Return the engine of a task's project; what is wrong with its gates is a warning."""
        found = self._fleet.placements.order(task.id)
        order = found[1] if found is not None else Order(queue="")
        return project_engine(
            task.cwd,
            order.agent.partition(":")[0],
            task.workspace if is_remote(task.workspace) else "",
            self._fleet.ledger,
            lambda text: self._warn(f"task {task.id}: {text}"),
            untrusted="the gates of its project are not trusted; "
            f"start workers with --trust {quote(without_password(order.place))}",
        )

    async def _tidy(self) -> None:
        def ended(tasks: list[str]) -> set[str]:
            states = self._fleet.placements.states(tasks)
            return {task for task in tasks if states.get(task, "ended") in FINAL}

        with suppress(LedgerError, OSError):
            await asyncio.to_thread(self._workspaces.tidy, ended)

    # -- what dead workers left

    async def _sweep_always(self) -> None:
        while True:
            self._soon.clear()
            try:
                await self.sweep()
            except LedgerNewer:  # nothing can be written any more: others have to go on
                self._draining.set()  # `run` finds the same
                return
            except (NotyetError, OSError) as error:
                self._warn(f"{error} (trying again)")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), self._settings.lease / _SWEEPS)

    async def sweep(self) -> None:
        """Place what has no placement, and take over what dead workers left."""
        placements, placing = self._fleet.placements, self._fleet.placing
        await self._describe()
        workers = await self._ask(placements.workers)
        living = {str(worker.get("id")) for worker in workers}
        left = await asyncio.to_thread(placing.left_by_dead, living)
        states = await self._ask(placements.states, [task_of(one) for one in left])
        over = []
        for one in left:
            state = states.get(task_of(one), "ended")
            if state == "queued":
                await self._ask(placements.unplace, task_of(one), one)
            if state == "queued" or state in FINAL:
                over.append(one)  # else its slot is that of the worker that took the task over
        await asyncio.to_thread(placing.cancel, over)
        await self._unplace_lost()
        queues = await self._ask(placements.queues)
        for name, slots in self._queue_slots.items():
            with suppress(Refused):  # of a newer notyet, maybe
                await slots.resize(queue_named(name, queues).per_worker or self._at_once)
        await asyncio.to_thread(placing.write, partial(_place_all, queues))
        await asyncio.to_thread(placing.forget_old)
        machines = {str(worker.get("machine")) for worker in workers}
        waiting = 0
        for orphan in await self._ask(placements.orphans):
            if self._draining.is_set():
                break
            is_here = orphan.machine in {"", own_machine()}
            if not is_here and orphan.machine in machines:
                continue  # a worker of that machine has the conversation
            if is_here and self._slots.locked():
                waiting += 1
            else:
                await self._take_over(orphan, "continue" if is_here else "end")
        self._reserved = waiting
        await asyncio.to_thread(placing.listen, self._names)

    async def _unplace_lost(self) -> None:
        """Find queued tasks whose placement ended or is gone, a few at each sweep."""
        placements = self._fleet.placements
        placed = await self._ask(placements.placed, self._checked, _AT_ONCE_PLACED)
        self._checked = placed[-1][0] if len(placed) == _AT_ONCE_PLACED else ""
        found = [placement for _, placement in placed]
        held = await asyncio.to_thread(self._fleet.placing.held, found)
        for task, placement in placed:
            if placement not in held:
                await self._ask(placements.unplace, task, placement)

    async def _take_over(self, orphan: Orphan, unfinished: Literal["continue", "end"]) -> None:
        for handle in await self._supervisor.recover(unfinished, only=orphan.task):
            waiting = asyncio.ensure_future(self._wait_for(handle))
            self._taken_over.add(waiting)
            waiting.add_done_callback(self._taken_over.discard)

    async def _wait_for(self, handle: Handle) -> None:
        async with self._slots:
            self._at_work.add(handle.task_id)
            try:
                await self._ended(handle)
            except LedgerError as error:
                self._warn(f"task {handle.task_id}: {error}")
            finally:
                self._at_work.discard(handle.task_id)

    async def _ended(self, handle: Handle) -> None:
        """Wait until a task has ended or moved on."""
        try:
            await handle.ended()
        except Refused:  # another worker has it now, or it is queued again and needs a placement
            self._soon.set()

    async def _describe(self) -> None:
        about = {
            "id": self.id,
            "name": platform.node(),
            "machine": own_machine(),
            "version": notyet.__version__,
            "queues": self._names,
            "at_once": self._at_once,
            "draining": self._draining.is_set(),
        }
        await self._ask(self._fleet.placements.describe, self._supervisor.owner, about)

    async def _ask(self, call: Callable[..., Any], *args: Any) -> Any:
        return await self._supervisor.ask(call, *args)


def _place_all(queues: Mapping[str, Mapping[str, Any]], db: Any, enqueue: Enqueue) -> None:
    """Place tasks of all queues: those of a queue without workers must not be in the way."""
    for task, order in unplaced(db, _AT_ONCE_PLACED):
        try:
            queue = queue_named(order.queue, queues)
        except Refused:  # of a newer notyet, maybe
            continue
        placement = new_placement(task)
        if note_placement(db, task, placement):
            enqueue(task, placement, order, queue)


class _Slots:
    """A semaphore whose size may change."""

    def __init__(self, most: int) -> None:
        self._most, self._used = most, 0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._used < self._most)
            self._used += 1

    async def __aexit__(self, *_: object) -> None:
        self._used -= 1
        await self.resize(self._most)

    async def resize(self, most: int) -> None:
        async with self._changed:
            self._most = most
            self._changed.notify_all()


class _Unopened:
    """A session of an agent that could not be started."""

    id: str | None = None

    def __init__(self, error: str) -> None:
        self._error = error

    def ref(self) -> dict[str, object]:
        return {}

    async def send(self, prompt: str, key: str) -> Turn:  # noqa: ARG002  # as the protocol says
        raise SendError(self._error)

    def knows(self, key: str) -> bool | None:  # noqa: ARG002  # as the protocol says
        return False

    async def abort(self) -> None:
        return

    def transcript(self) -> str | None:
        return None


def _opened(order: Order, cwd: str) -> Session:
    """Return a session with the agent of an order. Raises Refused."""
    name, _, script = order.agent.partition(":")
    return open_session(name, cwd=cwd, args=[script] if script else list(order.args))


async def _in(loop: asyncio.AbstractEventLoop, work: Any) -> None:
    """Run a coroutine in the loop of the supervisor; the engine has a loop of its own."""
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
