"""Tasks of this process: entering them in the ledger, driving them, handing out their results."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from notyet.core.gate import check_timeout
from notyet.core.record import replace
from notyet.core.task import Run, Task
from notyet.errors import LedgerError, NotyetError, Refused
from notyet.ledger.runs import run_id
from notyet.supervise.context import Fenced, new_key, retrieve_error
from notyet.supervise.driver import Driver
from notyet.supervise.gating import start_event
from notyet.supervise.life import Handle, Life

if TYPE_CHECKING:
    from notyet.core.session import Session
    from notyet.core.task import Result
    from notyet.supervise.context import Context
    from notyet.supervise.delivery import Delivery

_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
_ID_LENGTH = 10


class NewTasks:
    """Enters tasks in the ledger, before anything of them happens."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def below(self, task: Task, parent: str) -> Task:
        """Return the task as a child of `parent`: a known task, or an agent's session id."""
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
            raise TypeError(
                f"a session's id must be a string or None, not {type(session.id).__name__}"
            )
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
        # Start hooks must not run for an agent that is refused (K14).
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
        """Return the first prompt, with the context that start hooks add (K14)."""
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
    """Return a new task id: short, and easy to read out."""
    return "t" + "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(_ID_LENGTH))


def words(text: str) -> str:
    """Return a prompt. Raises ValueError if it is empty."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError("a prompt needs words")
    return text


class LiveTasks:
    """Gives each task a driver, and each handle a result or an error."""

    def __init__(self, context: Context, delivery: Delivery) -> None:
        self._context = context
        self._store = context.store
        self._delivery = delivery

    def begin(self, life: Life) -> Handle:
        """Drive a task from its current state, in one driver at most; return a handle."""
        known = self._context.lives.get(life.task_id)
        if known is not None:
            return Handle(known.task_id, lambda: self._result(known))
        self._context.lives[life.task_id] = life
        self._context.at_work[id(life.session)] = life.task_id
        life.result.add_done_callback(retrieve_error)
        life.driver = asyncio.ensure_future(self._drive(life))
        return Handle(life.task_id, lambda: self._result(life))

    async def _drive(self, life: Life) -> None:
        try:
            await Driver(self._context, life).drive()
            self._context.release(life)  # its session can take another task
            await self._delivery.conclude(life)
        except Fenced:
            if life.sending is not None:  # only a turn that we started is ours to end
                await self._stop(life)
            _break(life, Refused(f"another process took over task {life.task_id}"))
        except asyncio.CancelledError:
            _break(life, Refused(f"the supervisor of task {life.task_id} was closed"))
            raise
        except LedgerError as error:
            self._context.warn(f"task {life.task_id} is left to recovery: {error}")
            await self._stop(life)
            self._break_off(life, error)
        except Exception as error:  # noqa: BLE001  # a handle waits for it
            await self._stop(life)
            await self._give_up(life, error)
        finally:
            self._context.lives.pop(life.task_id, None)
            self._context.release(life)

    async def _stop(self, life: Life) -> None:
        """Abort the agent, unless its session works on another task by now."""
        if self._context.at_work.get(id(life.session)) == life.task_id:
            await life.abort(self._context.settings.abort_patience)

    def _break_off(self, life: Life, error: LedgerError) -> None:
        """Keep an answer that could not be recorded, for a later `recover` of this process."""
        if life.turn is not None:
            self._context.unrecorded[life.task_id] = (life.turn_of, life.turn)
            error.add_note(f"the agent's answer was: {life.turn.text}")
        _break(life, error)

    async def _give_up(self, life: Life, error: Exception) -> None:
        """End a task that cannot be driven: another process could not either."""
        said = f"internal error: {type(error).__name__}: {error}"
        self._context.warn(f"task {life.task_id}: {said}")
        try:
            await self._store(
                self._store.runs.end,
                life.task_id,
                self._context.owner,
                "interrupted",
                turn=life.turn,
                error=said,
            )
            await self._delivery.conclude(life)
        except NotyetError as again:
            self._context.warn(f"task {life.task_id} is left to recovery: {again}")
        finally:
            _break(life, error)

    async def _result(self, life: Life) -> Result:
        result = await asyncio.shield(life.result)
        seen = await self._store.at_last(self._store.tasks.look, life.task_id)
        if seen is not None and not self._delivery.is_ours(seen):
            await self._store.at_last(self._store.outbox.acknowledge, life.task_id)
            self._delivery.discard(life, seen)
        return result


def _break(life: Life, error: BaseException) -> None:
    if not life.result.done():
        life.result.set_exception(error)
