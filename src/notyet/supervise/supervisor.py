"""How a task begins: below whom, with which first prompt, and on a session that is free."""

from __future__ import annotations

import asyncio
import inspect
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.core.gate import check_timeout
from notyet.core.message import announced
from notyet.core.record import replace
from notyet.core.task import Run, Task
from notyet.errors import Refused, Undeliverable
from notyet.ledger.runs import run_id
from notyet.supervise.context import NOT_RUNNING, Context, Store, new_key
from notyet.supervise.delivery import Delivery
from notyet.supervise.gating import start_event
from notyet.supervise.life import Handle, Life
from notyet.supervise.living import Living
from notyet.supervise.people import People, Pulse
from notyet.supervise.settings import SupervisorSettings

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

_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
_ID_LENGTH = 10


class Entering:
    """Enters tasks in the ledger, before anything of them happens."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def below(self, task: Task, parent: str) -> Task:
        """Return the task as one of a parent: a task that we know, or some agent's session."""
        above = await self._store(self._store.tasks.look, parent)
        if above is None:
            return replace(task, parent_session=parent)
        # A session that has just told its id knows it before the ledger does.
        session = above.session_id or self._context.session_id(parent) or above.task.id
        depth = above.task.depth + 1
        return replace(
            task,
            parent=above.task.id,
            parent_session=session,
            depth=depth,
            workspace=task.workspace or above.task.workspace,
        )

    async def enter(self, session: Session, task: Task) -> Life:
        """Enter a task. Raises Refused."""
        check_timeout(task.timeout)
        if not isinstance(session.id, str | None):
            raise TypeError(f"a session's id is text or None, not {type(session.id).__name__}")
        at_work = self._context.at_work
        if id(session) in at_work:
            raise Refused(f"this session is at work on task {at_work[id(session)]}")
        task = replace(task, prompt=words(task.prompt), cwd=task.cwd or os.getcwd())
        at_work[id(session)] = task.id
        try:
            await self._write(session, task)
        except BaseException:
            at_work.pop(id(session), None)
            raise
        life = Life(task.id, session, "here")
        life.parent = task.parent
        return life

    async def _write(self, session: Session, task: Task) -> None:
        settings = self._context.settings
        limits = {"max_depth": settings.max_depth, "max_children": settings.max_children}
        # Before a start hook is told of an agent that never starts (K14).
        await self._store(self._store.tasks.check, task, **limits)
        run = Run(
            id=run_id(task.id, 1),
            task=task.id,
            generation=1,
            state="running",
            source="start",
            key=new_key(),
            prompt=await self._with_context(session, task),
            sent="reserved",
        )
        await self._store(
            self._store.tasks.start,
            task,
            run,
            self._context.owner,
            session.ref(),
            session.id or "",
            **limits,
        )

    async def _with_context(self, session: Session, task: Task) -> str:
        """Return the first prompt, after what start hooks have to say (K14)."""
        if task.internal:
            return task.prompt
        is_new = session.id is None or not await self._store(
            self._store.tasks.knows_session, session.id
        )
        if task.scope == "agent" and not is_new:
            return task.prompt
        told = await self._context.engine.start(start_event(task, session, is_new=is_new))
        return f"{told}\n\n{task.prompt}" if told else task.prompt


def new_id() -> str:
    """Return an id for a task: short, and easy to read out."""
    return "t" + "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(_ID_LENGTH))


def words(text: str) -> str:
    """Return a prompt, which must say something."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError("a prompt needs words")
    return text


class Supervisor:
    """Our own host. `async with` it, then `run` main agents and `spawn` subagents.

    `reopen` makes a session again from what its `ref()` returned, for recovery. `deliver` gets
    the results of subagents (as an `Announcement`); to return is to acknowledge. Without it,
    whoever awaits a handle is the consumer. `program` names what can go on with these tasks: a
    supervisor recovers those of its own program, and leaves others' in the same ledger alone.
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
        self._entering = Entering(self._context)
        self._living = Living(self._context, self._delivery)
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
        timeout: float | None = None,  # noqa: ASYNC109  # of the task, which is more than a wait
    ) -> Result:
        """Put a user's prompt to a main agent, and wait until it may stop.

        `workspace` is where the files are that it works on, if they are on another machine:
        `ssh://[user@]host[:port]/path`. The agent runs here, in `cwd`; command gates that name
        neither a folder nor a workspace of their own run there (M1).

        To cancel this is to interrupt the agent.
        """
        handle = await self.launch(
            session, prompt, label=label, cwd=cwd, workspace=workspace, timeout=timeout
        )
        try:
            return await handle.result()
        except asyncio.CancelledError:  # whoever waited has gone, and the agent is to stop
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
        timeout: float | None = None,  # noqa: ASYNC109  # as above
    ) -> Handle:
        """Do what `run` does, but return at once."""
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
        timeout: float | None = None,  # noqa: ASYNC109  # as above
        cleanup: Cleanup = "keep",
        internal: bool = False,
        cwd: str = "",
        workspace: str = "",
    ) -> Handle:
        """Give a subagent a task. Raises Refused where it would be one too many, or too deep.

        `parent` is a task of this supervisor, or the session of an agent it does not know. Its
        `workspace` is the subagent's too, unless another one is given, or "local".
        """
        if cleanup not in {"keep", "delete"}:
            raise ValueError(f"cleanup is 'keep' or 'delete', not {cleanup!r}")
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
            asked = await self._entering.below(asked, _id(parent))
        return await self._start(session, asked)

    async def say(self, task: Handle | str, text: str) -> None:
        """Keep a user's message for a task: it is sent when the turn ends, and beats a block."""
        await self._do(task, "say", words(text))

    async def steer(self, task: Handle | str, prompt: str) -> None:
        """Stop what an agent is doing and let it go on with this prompt. Raises Refused."""
        await self._do(task, "steer", words(prompt))

    async def kill(self, task: Handle | str) -> bool:
        """End a task and what it started; no gate is asked. False: it had ended before."""
        return await self._do(task, "kill")

    async def reset(self, task: Handle | str) -> bool:
        """End a task because its session is begun anew."""
        return await self._do(task, "reset")

    async def interrupt(self, task: Handle | str) -> bool:
        """End a task for its user, who pressed Escape; messages that wait are kept."""
        return await self._do(task, "interrupt")

    async def _do(self, task: Handle | str, what: What, text: str = "") -> bool:
        # To its end: an agent that the ledger calls killed must not go on.
        doing = self._context.begin(self._people.do(_id(task), what, text))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            _expect_open(doing)
            raise

    async def finish(self, run: str, turn: Turn) -> bool:
        """Take a signal from elsewhere that a run has ended; False: too late, or superseded."""
        return await self._context.finish(run.rpartition(".")[0], run, turn)

    async def tasks(self, most: int = 1000) -> list[TaskView]:
        """Return tasks, the newest first, with what became of them and of their results."""
        return await self._store(self._store.tasks.views, "", most)

    async def task(self, task: Handle | str) -> TaskView:
        """Return one task. Raises Refused for one that nobody knows."""
        views = await self._store(self._store.tasks.views, _id(task))
        if not views:
            raise Refused(f"there is no task {_id(task)}; list them with: notyet tasks")
        return views[0]

    async def retry(self, task: Handle | str) -> None:
        """Deliver a result again."""
        await self._store(self._store.outbox.retry, _id(task), self._context.owner)
        self._delivery.hurry(_id(task))

    async def dismiss(self, task: Handle | str) -> None:
        """Say that nobody needs a task's result any more."""
        await self._store(self._store.outbox.dismiss, _id(task))

    async def recover(
        self, unfinished: Literal["continue", "end"] = "continue", *, only: str = ""
    ) -> tuple[Handle, ...]:
        """Take over the tasks and results of this program's processes that are gone (K18).

        `unfinished = "end"` ends what they had not finished as interrupted, instead of going on
        where that is safe. `only` is one task to take over, whatever program it was of.
        """
        if unfinished not in {"continue", "end"}:
            raise ValueError(f"unfinished is 'continue' or 'end', not {unfinished!r}")
        async with self._recovering:
            if not self._pulse.is_beating:
                raise Refused(NOT_RUNNING)
            claimed = await self._store(self._store.tasks.claim, self._context.owner, only)
            # Of our own, what a ledger that could not be written left without a driver.
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
                    handles.append(self._living.begin(life))
        return tuple(handles)

    async def tell_parent(self, announcement: Announcement) -> None:
        """Deliver a result to its supervised parent's session; one of several ways to `deliver`.

        A parent that has ended leaves it to its own parent; with nobody left, it is suspended.
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
        raise Undeliverable("nobody who asked for it is at work any more")

    async def close(self) -> None:
        """Stop; agents at work are ended, and their tasks are left to whoever recovers them."""
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
        await self._context.finish_asides()
        await self._pulse.retire()
        self._store.close()

    async def _start(self, session: Session, task: Task) -> Handle:
        if not self._pulse.is_beating:
            raise Refused(NOT_RUNNING)
        entering = self._context.begin(self._entering.enter(session, task))
        try:
            life = await asyncio.shield(entering)
        except asyncio.CancelledError:
            _expect_open(entering)
            # Nobody will have a handle; but it may be in the ledger.
            self._context.do(self._forsake(entering))
            raise
        if self._context.is_closing:
            await self._store.at_last(self._end_unbegun, life.task_id)
            raise Refused(NOT_RUNNING)
        return self._living.begin(life)

    def _end_unbegun(self, task: str) -> None:
        owner, error = self._context.owner, "its supervisor was closed before it began"
        self._store.runs.end(task, owner, "interrupted", error=error)

    async def _forsake(self, entering: asyncio.Task[Life]) -> None:
        """End a task that was entered when whoever wanted it had gone."""
        with suppress(Refused):
            life = await entering
            self._living.begin(life)
            await self._people.do(life.task_id, "interrupt")

    def _reopened(self, ref: Mapping[str, Any], task: str) -> Session | None:
        if self._reopen is None:
            return None
        try:
            return self._reopen(ref)
        except Exception as error:  # noqa: BLE001  # foreign code
            self._context.warn(f"the session of task {task} cannot be reopened: {error}")
            return None


def _expect_open(inner: asyncio.Task[Any]) -> None:
    """Say why something was cancelled, where it was not its caller but our closing."""
    task = asyncio.current_task()
    if inner.cancelled() and (task is None or not task.cancelling()):
        raise Refused(NOT_RUNNING) from None


def _awaiting(consumer: Deliver) -> Deliver:
    """Return a consumer that may be awaited, also for a plain function."""

    async def deliver(announcement: Announcement) -> None:
        returned: object = consumer(announcement)
        if inspect.isawaitable(returned):
            await returned

    return deliver


def _id(task: Handle | str) -> str:
    return task.task_id if isinstance(task, Handle) else task
