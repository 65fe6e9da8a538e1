"""Sessions that `with` and `tasks` resume, or find at work."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from notyet.agents import ACP
from notyet.ledger.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.ledger.ledger import Ledger


def task_of_session(ledger: Ledger, agent: str, session: str) -> str:
    """Return the task of a living process that works in an agent's session; empty for none."""
    tasks = Tasks(ledger)
    for view in tasks.begun():
        if view.agent == agent and view.owner_alive:
            seen = tasks.look(view.task.id)
            if session in {view.session_id, seen.ref.get("session") if seen else None}:
                return view.task.id
    return ""


def resume_command(
    ref: Mapping[str, Any], session: str, cwd: str, *, script: str = "FILE", workspace: str = ""
) -> str:
    """Return the command that resumes a session; empty if it is not known."""
    agent, args = ref.get("agent"), ref.get("args")
    session = str(ref.get("session") or session)  # it may have changed since the task began
    if not isinstance(agent, str) or not session:
        return ""
    forms = {"scripted": f"scripted:{script}", ACP: f"{ACP}:{ref.get('command')}"}
    words = ["notyet", "with", forms.get(agent, agent)]
    if os.path.realpath(cwd) != os.path.realpath("."):
        words += ["--cwd", cwd]
    if workspace:
        words += ["--workspace", workspace]
    words += ["--resume", session, "go on"]
    if agent != ACP and isinstance(args, list) and args:
        words += ["--", *map(str, args)]
    elif args is None and "args" in ref:  # not kept, because they may hold a secret
        words += ["--", "..."]
    return shlex.join(words)
