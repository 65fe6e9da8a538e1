"""`StopEvent` and `StartEvent`: an agent wants to stop, or starts."""

from __future__ import annotations

from notyet.core.record import Record, check_types, variant
from notyet.core.remote import LOCAL, remote_from
from notyet.errors import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    Scope = Literal["agent", "subagent"]
    Ending = Literal["done", "error", "timeout", "killed", "reset", "interrupted"]


class Usage(Record, kw_only=True):
    """Tokens spent in this run."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0

    def _validate(self) -> None:
        check_types(self)


class BackgroundTask(Record, kw_only=True):
    """Work of the same session that is still running while the agent stops."""

    id: str
    type: str  # "subagent", "workflow", "teammate", "shell", "monitor", ...
    status: str = "running"


SCOPES = ("agent", "subagent")
ENDINGS = ("done", "error", "timeout", "killed", "reset", "interrupted")


class StopEvent(Record, kw_only=True):
    """Who wants to stop, where, how it ended and what it said.

    Nothing must be known; but without a `session_id` nothing is checked (B9).
    """

    scope: Scope = "agent"
    host: str = "embedded"
    session_id: str = ""
    turn_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    agent_name: str | None = None
    parent_session_id: str | None = None
    internal: bool = False  # the host's own helpers (review, compaction): never gated (C7)
    cwd: str = ""  # on the machine that the agent's host runs on
    workspace: str = ""  # where the files are that it works on, if elsewhere: ssh://host/path
    ending: Ending = "done"
    end_reason: str | None = None
    error: str | None = None
    task: str | None = None
    label: str | None = None
    last_message: str | None = None
    transcript_path: str | None = None
    agent_transcript_path: str | None = None
    # None: the host does not say, or cannot be believed; the session is then one turn (B4).
    stop_hook_active: bool | None = None
    usage: Usage | None = None
    total_usage: Usage | None = None  # with what was spent before the send-backs of this turn
    turns: int | None = None
    tool_calls: int | None = None
    tools_used: tuple[str, ...] = ()
    duration_ms: float | None = None
    model: str | None = None
    result: Any = None
    background_tasks: tuple[BackgroundTask, ...] = ()
    permission_mode: str | None = None
    host_version: str | None = None  # where what we may answer depends on it (G1)
    forgets_answers: bool = False  # the host takes an answer that we block out of the conversation
    host_cap: int = 0  # blocks in a row after which the host overrides us; 0: none known (B8)
    # Filled in by the engine before a gate runs (B5).
    block_count: int = 0
    max_blocks: int = 0
    raw: Mapping[str, Any] | None = None

    def _validate(self) -> None:
        if self.scope not in SCOPES:
            raise ValueError(f"scope is one of {', '.join(SCOPES)}, not {self.scope!r}")
        if self.ending not in ENDINGS:
            raise ValueError(f"ending is one of {', '.join(ENDINGS)}, not {self.ending!r}")
        check_types(self)
        if not all(isinstance(tool, str) for tool in self.tools_used):
            raise TypeError("tools_used must contain only str")
        if not all(isinstance(task, BackgroundTask) for task in self.background_tasks):
            raise TypeError("background_tasks must contain only BackgroundTask")
        for name in ("usage", "total_usage"):
            usage = getattr(self, name)
            if usage is not None and not isinstance(usage, Usage):
                raise TypeError(f"{name} is a Usage or None, not {type(usage).__name__}")
        if self.workspace:
            self.__dict__["workspace"] = workspace_url(self.workspace)


def stop_of(event: StartEvent) -> StopEvent:
    """Return the stop that an agent which starts will come to, as far as that is known."""
    return StopEvent(
        scope=event.scope,
        host=event.host,
        session_id=event.session_id,
        agent_id=event.agent_id,
        agent_type=event.agent_type,
        cwd=event.cwd,
    )


def workspace_url(text: str) -> str:
    """Return a workspace in its canonical form; empty for one that is here."""
    return "" if text == LOCAL else remote_from(text).url


def child_key(event: StopEvent) -> str:
    """Return the session of the stopping agent itself, not of its parent."""
    is_own = bool(event.parent_session_id or event.task_id)  # as a supervisor says
    if event.scope == "subagent" and not is_own and event.agent_id:
        return event.agent_id  # the host counts subagents under the main session
    return event.session_id


def parents_key(event: StopEvent | StartEvent) -> str:
    """Return the session that hosts name in payloads: for a subagent that of its parent."""
    return (event.scope == "subagent" and event.parent_session_id) or event.session_id


def private_copy(event: StopEvent) -> StopEvent:
    """Return a copy that foreign code may change without effect on others (A9)."""
    if event.raw is None and event.result is None:
        return event.__copy__()
    return variant(event, {"raw": _own(event.raw), "result": _own(event.result)})


def _own(value: Any) -> Any:
    from copy import deepcopy

    copied, error = attempt(deepcopy, value)
    return copied if error is None else value  # shared, if it cannot be copied


class StartEvent(Record, kw_only=True):
    """An agent or subagent starts; it can read which gates it will meet."""

    scope: Scope = "agent"
    host: str = "embedded"
    session_id: str = ""
    agent_id: str | None = None
    agent_type: str | None = None
    parent_session_id: str | None = None
    cwd: str = ""
    source: str | None = None  # "startup", "resume", ...
    turn_id: str | None = None
    transcript_path: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    workspace: str = ""  # where the files are, if elsewhere: ssh://host/path

    def _validate(self) -> None:
        if self.workspace:
            self.__dict__["workspace"] = workspace_url(self.workspace)
