"""What a supervised agent was asked, and what came of it."""

from __future__ import annotations

from notyet.core.event import Usage
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from notyet.core.event import Ending, Scope
    from notyet.core.lifecycle import State
    from notyet.core.verdict import Outcome

    Cleanup = Literal["keep", "delete"]
    # Who continues an agent: only what gates ask for is counted (B7).
    Source = Literal["start", "gate", "manual", "user", "children"]
    Delivery = Literal["", "pending", "leased", "delivered", "suspended", "dismissed"]


class Task(Record, kw_only=True):
    """What an agent was asked. Its id stays the same, however often the agent is continued."""

    id: str
    prompt: str
    scope: Scope = "subagent"
    parent: str = ""  # the parent's task, where the parent is supervised too
    parent_session: str = ""
    label: str | None = None
    agent_type: str | None = None
    cwd: str = ""
    timeout: float | None = None  # seconds for each run
    cleanup: Cleanup = "keep"
    internal: bool = False
    depth: int = 0


class Result(Record, kw_only=True):
    """How a task ended; frozen when it did, so that later traffic cannot change it."""

    task_id: str
    run_id: str = ""
    generation: int = 1
    session_id: str = ""
    label: str | None = None
    agent_type: str | None = None
    ending: Ending = "done"
    outcome: Outcome = "skipped"
    text: str = ""  # the agent's last message
    error: str | None = None
    stop_reason: str | None = None  # why a gate halted it, or why nobody asked the gates
    rejected: str = ""  # an earlier answer that a gate sent back, where none came after it (K19)
    unsent: tuple[str, ...] = ()  # messages of the user that came too late
    steers: int = 0  # how often a gate sent it back
    usage: Usage = Usage()  # of the last run, like all figures
    tools: tuple[str, ...] = ()
    tool_calls: int = 0
    turns: int = 0
    model: str | None = None
    duration_ms: float = 0.0
    warnings: tuple[str, ...] = ()


class Announcement(Record, kw_only=True):
    """A result on its way to whoever asked for it. A consumer that knows the key has had it."""

    key: str  # the same at every attempt
    result: Result
    attempt: int = 1


class TaskView(Record, kw_only=True):
    """A task as a list shows it."""

    task: Task
    run_id: str
    generation: int
    state: State
    source: Source
    steers: int
    session_id: str
    created_at: float
    ended_at: float | None = None
    ending: Ending | None = None
    outcome: Outcome | None = None
    text: str = ""
    owner_pid: int = 0
    owner_alive: bool = False
    delivery: Delivery = ""
    delivery_error: str = ""
    attempts: int = 0
