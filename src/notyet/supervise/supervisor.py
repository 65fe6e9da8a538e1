"""`Supervisor`: the public face of our own host."""

from __future__ import annotations

import asyncio
import inspect
import os
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from notyet.core.gate import check_timeout
from notyet.core.message import announced
from notyet.core.record import replace
from notyet.core.task import Run, Task
from notyet.engine.engine import Engine
from notyet.errors import LedgerError, Refused, Undeliverable, attempt_async
from notyet.ledger.placements import Placements
from notyet.ledger.transitions import run_id
from notyet.supervise.context import NOT_RUNNING, Context, Store, new_key
from notyet.supervise.delivery import Delivery
from notyet.supervise.events import start_event
from notyet.supervise.live_task import Handle, LiveTask
from notyet.supervise.requests import Heartbeat, Requests
from notyet.supervise.settings import SupervisorSettings
from notyet.supervise.task_loop import TaskLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Literal, Self, TypeVar

    from notyet.core.session import Session, Turn
    from notyet.core.task import Announcement, Cleanup, Result, Room, TaskView
    from notyet.ledger.ledger import Ledger
    from notyet.run.drive import Progress as GateProgress
    from notyet.supervise.context import Deliver
    from notyet.supervise.live_task import Origin
    from notyet.supervise.requests import What
    from notyet.supervise.settings import Progress

    T = TypeVar("T")
    Reopen = Callable[[Mapping[str, Any]], Session]

_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"  # easy to read out
_ID_LENGTH = 10


class Supervisor:
    """Our own host. `async with` it, then `run` main agents and `spawn` subagents.

    `reopen` makes a session again from its `ref()`, for recovery. `deliver` gets the results of
    subagents (as an `Announcement`) and acknowledges them by returning; without it, awaiting a
    handle does. `on_progress` is called with the events of tasks; `gate_progress` is called with a
    task whose gates run, and returns what `Engine.decide` takes as `progress`. A supervisor
    recovers the tasks of its own `program` only, and leaves those of other programs in the same
    ledger alone. `engine_of` returns another engine for a task, where tasks have projects of their
    own; it is called in a thread.
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
        gate_progress: Callable[[str], GateProgress | None] | None = None,
        program: str = "",
        engine_of: Callable[[Task], Engine] | None = None,
    ) -> None:
        if getattr(ledger, "in_memory", True):
            raise TypeError("a supervisor needs a durable ledger, like Ledger('tasks.db')")
        self._reopen = reopen
        store = Store(ledger, settings.ledger_patience, engine.warn)
        self._context = Context(
            engine,
            store,
            settings,
            on_progress=on_progress,
            gate_progress=gate_progress,
            program=program,
        )
        self.deliver = deliver
        self._engine_of = engine_of
        self._store = store
        self._insist = store.insist
        self._settings = settings
        self._delivery = Delivery(self._context)
        self._requests = Requests(self._context)
        self._heartbeat = Heartbeat(self._context, self._delivery)
        self._closing: asyncio.Future[None] | None = None
        self._recovering = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._store.open()
        with ExitStack() as undo:
            undo.callback(self._store.close)
            self._closing = None
            self._context.is_closing = False
            await self._heartbeat.start()
            undo.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def owner(self) -> int:
        """The number of this supervisor in the ledger."""
        return self._context.owner

    async def ask(self, call: Callable[..., T], *args: Any) -> T:
        """Make a call of the ledger in its thread; retry while it cannot be written."""
        return await self._insist(call, *args)

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
            self._context.do(self._requests.make(handle.task_id, "interrupt"))
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
            asked = await self._below(asked, _id(parent))
        return await self._start(session, asked)

    async def adopt(
        self, task: Task, session: Session, *, room: Room, machine: str = ""
    ) -> Handle | float | None:
        """Begin a queued task of a fleet with this session.

        Returns the seconds for which there is no room, or None if the task is not queued any more.
        `machine` is where its conversation must stay; empty for anywhere.
        """
        placements, key, at_work = Placements(self._store.ledger), new_key(), self._context.at_work
        begin = partial(placements.adopt, key=key, machine=machine, room=room)
        with ExitStack() as undo:
            at_work[id(session)] = task.id  # or `recover` takes it for one without a driver
            undo.callback(at_work.pop, id(session), None)
            live = await self._live(task, session, "here")
            entry = (task, self._context.owner, session.ref(), session.id or "")
            wait = await self._insist(begin, *entry)
            if wait is None or wait:
                return wait
            prompt = await self._first_prompt(session, task, live.engine)
            if prompt != task.prompt:
                note, owner = self._store.tasks.note_prompt, self._context.owner
                await self._insist(note, task.id, owner, prompt)
            undo.pop_all()
        return self._drive(live)

    async def say(self, task: Handle | str, text: str, *, key: str = "") -> None:
        """Queue a user's message: it is sent when the turn ends, and beats a block.

        A message with a `key` is sent once, however often it is said.
        """
        await self._do(task, "say", prompt_of(text), key)

    async def steer(self, task: Handle | str, prompt: str, *, key: str = "") -> None:
        """Abort the current turn and continue with this prompt. Raises Refused.

        A prompt with a `key` is sent once, however often it is given.
        """
        await self._do(task, "steer", prompt_of(prompt), key)

    async def kill(self, task: Handle | str) -> bool:
        """End a task and its descendants without running gates; False if it had ended before."""
        return await self._do(task, "kill")

    async def reset(self, task: Handle | str) -> bool:
        """End a task because its session starts over."""
        return await self._do(task, "reset")

    async def interrupt(self, task: Handle | str) -> bool:
        """End a task because its user pressed Escape; queued messages are kept."""
        return await self._do(task, "interrupt")

    async def _do(self, task: Handle | str, what: What, text: str = "", key: str = "") -> bool:
        # Finished even if cancelled: an agent that the ledger calls killed must not go on.
        request = self._requests.make(_id(task), what, text, key)
        return await _shielded(self._context.begin(request))

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
            if not self._heartbeat.is_beating:
                raise Refused(NOT_RUNNING)
            claimed = await self._store(self._store.tasks.claim, self._context.owner, only)
            # And our own that lost their driver while the ledger could not be written.
            here = {*self._context.live, *self._context.at_work.values()}
            claimed += await self._store(self._store.tasks.left, self._context.owner, here)
            origin: Origin = "recovered" if unfinished == "continue" else "to end"
            handles = []
            for task in dict.fromkeys(claimed):
                seen = await self._store(self._store.tasks.look, task)
                if seen is not None and not self._context.is_closing:
                    session = self._reopened(seen.ref, task)
                    live = await self._live(seen.task, session, origin)
                    live.signals |= self._context.unrecorded.pop(task, {})
                    handles.append(self._drive(live))
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
                message = (parent, "machine", announcement.key, announced(result), new_key())
                await self._store(self._store.runs.say, *message, mover=self._context.owner)
            except Refused:
                above = await self._store(self._store.tasks.look, parent)
                parent = above.task.parent if above is not None else ""
            else:
                self._context.poke(parent)
                return
        raise Undeliverable("its parent and all tasks above it have ended")

    async def close(self) -> None:
        """Stop: abort the agents at work, and leave their tasks to recovery."""
        if self._closing is None:
            if not self._heartbeat.is_beating:
                return
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._context.is_closing = True
        await self._heartbeat.stop()
        tasks = list(self._context.live.values())
        loops = [live.loop for live in tasks if live.loop is not None]
        for loop in loops:
            loop.cancel()
        if loops:
            await asyncio.wait(loops, timeout=self._settings.abort_patience)
        await asyncio.gather(*(live.abort() for live in tasks if live.sending is not None))
        await self._context.finish_background()
        await self._store.finish()  # no call of ours comes after the end of the lease
        await self._heartbeat.retire()
        self._store.close()

    # -- starting a task

    async def _below(self, task: Task, parent: str) -> Task:
        """Return the task as a child of `parent`: a known task, or an agent's session id."""
        above = await self._store(self._store.tasks.look, parent)
        if above is None:
            return replace(task, parent_session=parent)
        # A session may have an id that is not in the ledger yet.
        live = self._context.live.get(parent)
        session = above.session_id or (live.session_id if live else "") or above.task.id
        return replace(
            task,
            parent=above.task.id,
            parent_session=session,
            depth=above.task.depth + 1,
            workspace=task.workspace or above.task.workspace,
        )

    async def _start(self, session: Session, task: Task) -> Handle:
        if not self._heartbeat.is_beating:
            raise Refused(NOT_RUNNING)
        entering = self._context.begin(self._enter(session, task))
        try:
            live = await _shielded(entering)
        except asyncio.CancelledError:
            # The caller gets no handle, but the task may be in the ledger.
            self._context.do(self._end_abandoned(entering))
            raise
        if self._context.is_closing:
            await self._store.at_last(self._end_unbegun, live.task_id)
            raise Refused(NOT_RUNNING)
        return self._drive(live)

    async def _enter(self, session: Session, task: Task) -> LiveTask:
        """Enter a task in the ledger, before anything of it happens. Raises Refused."""
        check_timeout(task.timeout)
        if not isinstance(session.id, str | None):
            raise TypeError(
                f"a session's id must be a string or None, not {type(session.id).__name__}"
            )
        at_work = self._context.at_work
        if id(session) in at_work:
            raise Refused(f"this session is at work on task {at_work[id(session)]}")
        task = replace(task, prompt=prompt_of(task.prompt), cwd=task.cwd or os.getcwd())
        tasks = self._store.tasks
        limits = {
            "max_depth": self._settings.max_depth,
            "max_children": self._settings.max_children,
        }
        with ExitStack() as undo:
            at_work[id(session)] = task.id
            undo.callback(at_work.pop, id(session), None)
            # Start hooks must not run for an agent that is refused (K14).
            await self._store(tasks.check, task, **limits)
            live = await self._live(task, session, "here")
            run = Run(
                id=run_id(task.id, 1),
                task=task.id,
                generation=1,
                state="running",
                source="start",
                key=new_key(),
                prompt=await self._first_prompt(session, task, live.engine),
                sent="dispatched",  # it is sent next
            )
            entry = (task, run, self._context.owner, session.ref(), session.id or "")
            live.seen = await self._store(tasks.start, *entry, **limits)
            live.marked = run.key
            undo.pop_all()
        return live

    async def _live(self, task: Task, session: Session | None, origin: Origin) -> LiveTask:
        engine = self._context.engine
        if self._engine_of is not None:
            made, error = await attempt_async(asyncio.to_thread(self._engine_of, task))
            if isinstance(error, LedgerError):
                raise error
            engine = made or Engine(unchecked=[f"its gates could not be loaded: {error}"])
        return LiveTask(self._context, task, session, origin, engine=engine)

    async def _first_prompt(self, session: Session, task: Task, engine: Engine) -> str:
        """Return the first prompt, with the context that start hooks add (K14)."""
        if task.internal or not engine.acts_at_start:
            return task.prompt
        knows = self._store.tasks.knows_session
        is_new = session.id is None or not await self._store(knows, session.id)
        if task.scope == "agent" and not is_new:
            return task.prompt
        added = await engine.start(start_event(task, session, is_new=is_new))
        return f"{added}\n\n{task.prompt}" if added else task.prompt

    def _end_unbegun(self, task: str) -> None:
        owner, error = self._context.owner, "its supervisor was closed before it began"
        self._store.runs.end(task, owner, "interrupted", error=error)

    async def _end_abandoned(self, entering: asyncio.Task[LiveTask]) -> None:
        """End a task whose caller was cancelled while it was entered."""
        with suppress(Refused):
            live = await entering
            try:
                await self._requests.make(live.task_id, "interrupt")
            finally:
                live.seen = None
                self._drive(live)

    def _drive(self, live: LiveTask) -> Handle:
        """Drive a task from its current state, in one loop at most; return a handle."""
        known = self._context.live.setdefault(live.task_id, live)
        if known is live:
            self._context.at_work[id(live.session)] = live.task_id
            loop = TaskLoop(self._context, live, self._delivery)
            live.loop = asyncio.ensure_future(loop.drive())
        return Handle(live.task_id, lambda: self._result(known), known.result)

    async def _result(self, live: LiveTask) -> Result:
        result = await asyncio.shield(live.result)
        if not self._delivery.is_ours(live.task):
            await self._store.at_last(self._store.outbox.acknowledge, live.task_id)
            self._delivery.discard(live)
        return result

    def _reopened(self, ref: Mapping[str, Any], task: str) -> Session | None:
        if self._reopen is None:
            return None
        fault = f"the session of task {task} cannot be reopened"
        return self._context.call(fault, self._reopen, ref)


async def _shielded(doing: asyncio.Task[T]) -> T:
    """Wait for work that goes on if the caller is cancelled; only our closing cancels it."""
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        if doing.cancelled():
            raise Refused(NOT_RUNNING) from None
        raise


def _awaiting(consumer: Deliver) -> Deliver:
    """Return a consumer that can be awaited, also for a plain function."""

    async def deliver(announcement: Announcement) -> None:
        returned: object = consumer(announcement)
        if inspect.isawaitable(returned):
            await returned

    return deliver


def _id(task: Handle | str) -> str:
    return task.task_id if isinstance(task, Handle) else task


def new_id() -> str:
    """Return the id of a new task."""
    return "t" + "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(_ID_LENGTH))


def prompt_of(text: str) -> str:
    """Return a prompt. Raises ValueError if it is empty."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError("a prompt needs words")
    return text
