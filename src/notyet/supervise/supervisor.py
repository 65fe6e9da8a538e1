"""`Supervisor`: the public face of our own host."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.core.message import announced
from notyet.core.task import Task
from notyet.errors import Refused, Undeliverable
from notyet.supervise.context import NOT_RUNNING, Context, Store, new_key
from notyet.supervise.delivery import Delivery
from notyet.supervise.life import Handle, Life
from notyet.supervise.people import People, Pulse
from notyet.supervise.settings import SupervisorSettings
from notyet.supervise.tasks import LiveTasks, NewTasks, new_id, words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Literal, Self

    from notyet.core.session import Session, Turn
    from notyet.core.task import Announcement, Cleanup, Result, TaskView
    from notyet.engine.engine import Engine
    from notyet.ledger.leases import What
    from notyet.ledger.stops import Ledger
    from notyet.supervise.context import Deliver
    from notyet.supervise.life import Origin
    from notyet.supervise.settings import Progress

    Reopen = Callable[[Mapping[str, Any]], Session]


class Supervisor:
    """Our own host. `async with` it, then `run` main agents and `spawn` subagents.

    `reopen` makes a session again from its `ref()`, for recovery. `deliver` gets the results of
    subagents (as an `Announcement`) and acknowledges them by returning; without it, awaiting a
    handle does. A supervisor recovers the tasks of its own `program` only, and leaves those of
    other programs in the same ledger alone.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        reopen: Reopen | None = None,
        *,
        deliver: Deliver | None = None,
        settings: SupervisorSettings = SupervisorSettings(),  # noqa: B008  # a record cannot be changed
        on_progress: Callable[[Progress], None] | None = None,
        program: str = "",
    ) -> None:
        if not hasattr(ledger, "file"):
            raise TypeError("a supervisor needs a durable ledger, like Ledger('tasks.db')")
        self._reopen = reopen
        store = Store(ledger, settings.ledger_patience, engine.warn)
        self._context = Context(engine, store, settings, on_progress)
        self.deliver = deliver
        self._context.program = program
        self._store = store
        self._settings = settings
        self._delivery = Delivery(self._context)
        self._people = People(self._context)
        self._new_tasks = NewTasks(self._context)
        self._live_tasks = LiveTasks(self._context, self._delivery)
        self._pulse = Pulse(self._context, self._people, self._delivery)
        self._closing: asyncio.Future[None] | None = None
        self._recovering = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._store.open()
        try:
            self._closing = None
            self._context.is_closing = False
            await self._pulse.start()
        except BaseException:
            self._store.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def deliver(self) -> Deliver | None:
        """The consumer of subagents' results."""
        return self._consumer

    @deliver.setter
    def deliver(self, consumer: Deliver | None) -> None:
        self._consumer = consumer
        self._context.deliver = None if consumer is None else _awaiting(consumer)

    async def run(
        self,
        session: Session,
        prompt: str,
        *,
        label: str | None = None,
        cwd: str = "",
        workspace: str = "",
        timeout: float | None = None,  # noqa: ASYNC109  # of the task
    ) -> Result:
        """Send a user's prompt to a main agent, and wait until it may stop.

        `workspace` is where its files are, if on another machine: `ssh://[user@]host[:port]/path`.
        The agent runs here, in `cwd`; command gates without a folder or workspace of their own run
        there (M1). Cancelling this interrupts the agent.
        """
        handle = await self.launch(
            session, prompt, label=label, cwd=cwd, workspace=workspace, timeout=timeout
        )
        try:
            return await handle.result()
        except asyncio.CancelledError:
            self._context.do(self._people.do(handle.task_id, "interrupt"))
            raise

    async def launch(
        self,
        session: Session,
        prompt: str,
        *,
        label: str | None = None,
        cwd: str = "",
        workspace: str = "",
        timeout: float | None = None,  # noqa: ASYNC109  # of the task
    ) -> Handle:
        """Do the same as `run`, but return at once."""
        task = Task(
            id=new_id(),
            prompt=prompt,
            scope="agent",
            label=label,
            cwd=cwd,
            workspace=workspace,
            timeout=timeout,
        )
        return await self._start(session, task)

    async def spawn(
        self,
        session: Session,
        task: str,
        *,
        parent: Handle | str | None = None,
        label: str | None = None,
        agent_type: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # of the task
        cleanup: Cleanup = "keep",
        internal: bool = False,
        cwd: str = "",
        workspace: str = "",
    ) -> Handle:
        """Start a subagent. Raises Refused if there are too many, or it would be nested too deep.

        `parent` is a task of this supervisor, or the session id of any other agent. The subagent
        inherits its `workspace`, unless another one or "local" is given.
        """
        if cleanup not in {"keep", "delete"}:
            raise ValueError(f"cleanup must be 'keep' or 'delete', not {cleanup!r}")
        asked = Task(
            id=new_id(),
            prompt=task,
            label=label,
            agent_type=agent_type,
            cwd=cwd,
            workspace=workspace,
            timeout=timeout,
            cleanup=cleanup,
            internal=internal,
            depth=1,
        )
        if parent is not None:
            asked = await self._new_tasks.below(asked, _id(parent))
        return await self._start(session, asked)

    async def say(self, task: Handle | str, text: str) -> None:
        """Queue a user's message: it is sent when the turn ends, and beats a block."""
        await self._do(task, "say", words(text))

    async def steer(self, task: Handle | str, prompt: str) -> None:
        """Abort the current turn and continue with this prompt. Raises Refused."""
        await self._do(task, "steer", words(prompt))

    async def kill(self, task: Handle | str) -> bool:
        """End a task and its descendants without running gates; False if it had ended before."""
        return await self._do(task, "kill")

    async def reset(self, task: Handle | str) -> bool:
        """End a task because its session starts over."""
        return await self._do(task, "reset")

    async def interrupt(self, task: Handle | str) -> bool:
        """End a task because its user pressed Escape; queued messages are kept."""
        return await self._do(task, "interrupt")

    async def _do(self, task: Handle | str, what: What, text: str = "") -> bool:
        # Finished even if cancelled: an agent that the ledger calls killed must not go on.
        doing = self._context.begin(self._people.do(_id(task), what, text))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            _expect_open(doing)
            raise

    async def finish(self, run: str, turn: Turn) -> bool:
        """Record a signal that a run has ended; False if it is too late, or superseded."""
        return await self._context.finish(run.rpartition(".")[0], run, turn)

    async def tasks(self, most: int = 1000) -> list[TaskView]:
        """Return tasks, the newest first."""
        return await self._store(self._store.tasks.views, "", most)

    async def task(self, task: Handle | str) -> TaskView:
        """Return one task. Raises Refused if it is unknown."""
        views = await self._store(self._store.tasks.views, _id(task))
        if not views:
            raise Refused(f"there is no task {_id(task)}; list them with: notyet tasks")
        return views[0]

    async def retry(self, task: Handle | str) -> None:
        """Deliver a result again."""
        await self._store(self._store.outbox.retry, _id(task), self._context.owner)
        self._delivery.hurry(_id(task))

    async def dismiss(self, task: Handle | str) -> None:
        """Mark a result as no longer needed."""
        await self._store(self._store.outbox.dismiss, _id(task))

    async def recover(
        self, unfinished: Literal["continue", "end"] = "continue", *, only: str = ""
    ) -> tuple[Handle, ...]:
        """Take over the tasks and results of dead processes of this program (K18).

        `unfinished = "end"` ends unfinished tasks as interrupted, instead of continuing those that
        can be continued safely. `only` is one task to take over, of any program.
        """
        if unfinished not in {"continue", "end"}:
            raise ValueError(f"unfinished must be 'continue' or 'end', not {unfinished!r}")
        async with self._recovering:
            if not self._pulse.is_beating:
                raise Refused(NOT_RUNNING)
            claimed = await self._store(self._store.tasks.claim, self._context.owner, only)
            # And our own that lost their driver while the ledger could not be written.
            here = {*self._context.lives, *self._context.at_work.values()}
            claimed += await self._store(self._store.tasks.left, self._context.owner, here)
            origin: Origin = "recovered" if unfinished == "continue" else "to end"
            handles = []
            for task in dict.fromkeys(claimed):
                seen = await self._store(self._store.tasks.look, task)
                if seen is not None and not self._context.is_closing:
                    life = Life(task, self._reopened(seen.ref, task), origin)
                    life.parent = seen.task.parent
                    if task in self._context.unrecorded:
                        run, turn = self._context.unrecorded.pop(task)
                        life.signals[run] = turn
                    handles.append(self._live_tasks.begin(life))
        return tuple(handles)

    async def tell_parent(self, announcement: Announcement) -> None:
        """Deliver a result to its supervised parent's session; can be given as `deliver`.

        If the parent has ended, its own parent gets it; if all have, the result is suspended.
        """
        result = announcement.result
        seen = await self._store(self._store.tasks.look, result.task_id)
        parent = seen.task.parent if seen is not None else ""
        while parent:
            try:
                told = (parent, "machine", announcement.key, announced(result), new_key())
                await self._store(self._store.runs.say, *told)
            except Refused:
                above = await self._store(self._store.tasks.look, parent)
                parent = above.task.parent if above is not None else ""
            else:
                life = self._context.lives.get(parent)
                if life is not None:
                    life.poke()
                return
        raise Undeliverable("its parent and all tasks above it have ended")

    async def close(self) -> None:
        """Stop: abort the agents at work, and leave their tasks to recovery."""
        if self._closing is None:
            if not self._pulse.is_beating:
                return
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._context.is_closing = True
        await self._pulse.stop()
        lives = list(self._context.lives.values())
        drivers = [life.driver for life in lives if life.driver is not None]
        for driver in drivers:
            driver.cancel()
        if drivers:
            await asyncio.wait(drivers, timeout=self._settings.abort_patience)
        busy = [life for life in lives if life.sending is not None]
        await asyncio.gather(*(life.abort(self._settings.abort_patience) for life in busy))
        await self._context.finish_background()
        await self._pulse.retire()
        self._store.close()

    async def _start(self, session: Session, task: Task) -> Handle:
        if not self._pulse.is_beating:
            raise Refused(NOT_RUNNING)
        entering = self._context.begin(self._new_tasks.enter(session, task))
        try:
            life = await asyncio.shield(entering)
        except asyncio.CancelledError:
            _expect_open(entering)
            # The caller gets no handle, but the task may be in the ledger.
            self._context.do(self._forsake(entering))
            raise
        if self._context.is_closing:
            await self._store.at_last(self._end_unbegun, life.task_id)
            raise Refused(NOT_RUNNING)
        return self._live_tasks.begin(life)

    def _end_unbegun(self, task: str) -> None:
        owner, error = self._context.owner, "its supervisor was closed before it began"
        self._store.runs.end(task, owner, "interrupted", error=error)

    async def _forsake(self, entering: asyncio.Task[Life]) -> None:
        """End a task whose caller was cancelled while it was entered."""
        with suppress(Refused):
            life = await entering
            self._live_tasks.begin(life)
            await self._people.do(life.task_id, "interrupt")

    def _reopened(self, ref: Mapping[str, Any], task: str) -> Session | None:
        if self._reopen is None:
            return None
        fault = f"the session of task {task} cannot be reopened"
        return self._context.call(fault, self._reopen, ref)


def _expect_open(inner: asyncio.Task[Any]) -> None:
    """Raise Refused if it was our closing, and not the caller, that cancelled."""
    task = asyncio.current_task()
    if inner.cancelled() and (task is None or not task.cancelling()):
        raise Refused(NOT_RUNNING) from None


def _awaiting(consumer: Deliver) -> Deliver:
    """Return a consumer that can be awaited, also for a plain function."""

    async def deliver(announcement: Announcement) -> None:
        returned: object = consumer(announcement)
        if inspect.isawaitable(returned):
            await returned

    return deliver


def _id(task: Handle | str) -> str:
    return task.task_id if isinstance(task, Handle) else task
