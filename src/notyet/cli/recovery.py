"""Recovery for `with` and `tasks`: end the tasks of dead processes, resume a session."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import TYPE_CHECKING

from notyet.cli.terminal import one_line
from notyet.ledger.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.task import TaskView
    from notyet.ledger.ledger import Ledger
    from notyet.supervise import Supervisor

PROGRAM = "notyet with"  # whose tasks these commands recover
_TIMEOUT = 30.0  # seconds for ending the agents that dead processes left behind


def orphaned(ledger: Ledger) -> list[TaskView]:
    """Return the tasks whose process is gone."""
    return [view for view in Tasks(ledger).active() if not view.owner_alive]


def task_of_session(ledger: Ledger, agent: str, session: str) -> str:
    """Return the task of a living process that works in an agent's session; empty for none."""
    tasks = Tasks(ledger)
    for view in tasks.active():
        if view.agent == agent and view.owner_alive:
            seen = tasks.look(view.task.id)
            if session in {view.session_id, seen.ref.get("session") if seen else None}:
                return view.task.id
    return ""


async def recover(supervisor: Supervisor, ledger: Ledger) -> list[str]:
    """End what dead processes left unfinished; return a line about each task.

    Their results stay in the outbox, for the program that launched them.
    """
    lost = orphaned(ledger)
    if not lost:
        return []
    handles = {one.task_id: one for one in await supervisor.recover(unfinished="end")}
    said = []
    for view in lost:
        handle = handles.get(view.task.id)
        if handle is None:  # another process was faster
            continue
        if await _has_ended(supervisor, view.task.id):
            said.append(
                f"{view.task.id} ({name_of(view)}) was left by a dead process, and is "
                f"interrupted; see: notyet tasks show {view.task.id}"
            )
        if view.task.scope == "agent":  # its user knows now, and no parent waits for it
            await handle.result()
    return said


async def _has_ended(supervisor: Supervisor, task: str) -> bool:
    loop = asyncio.get_running_loop()
    ends = loop.time() + _TIMEOUT
    while loop.time() < ends:
        if (await supervisor.task(task)).state in {"ended", "superseded"}:
            return True
        await asyncio.sleep(0.05)
    return False


def name_of(view: TaskView, columns: int = 60) -> str:
    """Return a task's label, or the first words of its prompt."""
    return one_line(view.task.label or view.task.prompt, columns)


def resume_command(
    ref: Mapping[str, Any], session: str, cwd: str, *, script: str = "FILE", workspace: str = ""
) -> str:
    """Return the command that resumes a session; empty if it is not known."""
    agent, args = ref.get("agent"), ref.get("args")
    session = str(ref.get("session") or session)  # it may have changed since the task began
    if not isinstance(agent, str) or not session:
        return ""
    words = ["notyet", "with", f"scripted:{script}" if agent == "scripted" else agent]
    if os.path.realpath(cwd) != os.path.realpath("."):
        words += ["--cwd", cwd]
    if workspace:
        words += ["--workspace", workspace]
    words += ["--resume", session, "go on"]
    if isinstance(args, list) and args:
        words += ["--", *map(str, args)]
    elif args is None and "args" in ref:  # not kept, because they may hold a secret
        words += ["--", "..."]
    return shlex.join(words)
