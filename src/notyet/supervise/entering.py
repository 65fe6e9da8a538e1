"""How a task begins: below whom, with which first prompt, and on a session that is free."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from notyet.core.gate import check_timeout
from notyet.core.record import replace
from notyet.core.task import Run, Task
from notyet.errors import Refused
from notyet.ledger.runs import run_id
from notyet.supervise.context import new_key
from notyet.supervise.events import start_event
from notyet.supervise.life import Life

if TYPE_CHECKING:
    from notyet.core.session import Session
    from notyet.supervise.context import Context

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
