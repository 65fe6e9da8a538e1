"""What `with` and `tasks` have in common: tasks of the dead, and how to go on with a session."""

from __future__ import annotations

import asyncio

from notyet.cli.terminal import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.task import TaskView
    from notyet.ledger.ledger import Ledger
    from notyet.supervise import Supervisor

PROGRAM = "notyet with"  # whose tasks these two recover
_PATIENCE = 30.0  # seconds for ending the agents that dead processes left behind
_ENDED = {"ended", "superseded"}
_LONGEST_NAME = 60


def orphaned(ledger: Ledger) -> list[TaskView]:
    """Return the tasks whose process is gone."""
    from notyet.ledger.tasks import Tasks

    views = Tasks(ledger).active()
    return [view for view in views if not view.owner_alive]


def at_work_on(ledger: Ledger, agent: str, session: str) -> str:
    """Return the task of a living process that is at work on an agent's session, if any."""
    from notyet.ledger.tasks import Tasks

    tasks = Tasks(ledger)
    for view in tasks.active():
        if view.agent == agent and view.owner_alive:
            seen = tasks.look(view.task.id)
            if session in {view.session_id, seen.ref.get("session") if seen else None}:
                return view.task.id
    return ""


async def recover(supervisor: Supervisor, ledger: Ledger) -> list[str]:
    """End what dead processes left unfinished; say in a line each what was found.

    Their results stay in the outbox: somebody may come back for them.
    """
    lost = orphaned(ledger)
    if not lost:
        return []
    handles = await supervisor.recover(unfinished="end")
    taken = {handle.task_id: handle for handle in handles}
    said = []
    for view in lost:
        handle = taken.get(view.task.id)
        if handle is None:  # another process was faster
            continue
        if await _has_ended(supervisor, view.task.id):
            said.append(
                f"{view.task.id} ({name_of(view)}) was left by a process that is gone, and is "
                f"interrupted; look at it with: notyet tasks show {view.task.id}"
            )
        if view.task.scope == "agent":  # its user has been told; nobody else waits for it
            await handle.result()
    return said


async def _has_ended(supervisor: Supervisor, task: str) -> bool:
    ends = asyncio.get_running_loop().time() + _PATIENCE
    while asyncio.get_running_loop().time() < ends:
        if (await supervisor.task(task)).state in _ENDED:
            return True
        await asyncio.sleep(0.05)
    return False


def name_of(view: TaskView, most: int = _LONGEST_NAME) -> str:
    """Return a task's label, or the first words of its prompt."""
    return one_line(view.task.label or view.task.prompt, most)


def resume_command(
    ref: Mapping[str, Any], session: str, cwd: str, *, script: str = "FILE", workspace: str = ""
) -> str:
    """Return the command that goes on with a session; empty where that cannot be known."""
    import os
    import shlex

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
