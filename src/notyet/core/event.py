"""`StopEvent`: one agent or subagent is about to finish."""

from __future__ import annotations

from notyet.core.record import Record, variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    Scope = Literal["agent", "subagent"]
    Ending = Literal["done", "error", "timeout", "killed", "reset", "interrupted"]

SCOPES = ("agent", "subagent")
ENDINGS = ("done", "error", "timeout", "killed", "reset", "interrupted")


class Usage(Record, kw_only=True):
    """Tokens spent in this run."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0


class BackgroundTask(Record, kw_only=True):
    """Work of the same session that is still running while the agent stops."""

    id: str
    type: str  # "subagent", "workflow", "teammate", "shell", "monitor", ...
    status: str = "running"


class StopEvent(Record, kw_only=True):
    """Who wants to stop, where, how it ended and what it said. Only `session_id` must be known."""

    scope: Scope = "agent"
    host: str = "embedded"
    session_id: str
    turn_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    agent_name: str | None = None
    parent_session_id: str | None = None
    internal: bool = False  # the host's own helpers (review, compaction): never gated (C7)
    cwd: str = ""
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
    turns: int | None = None
    tool_calls: int | None = None
    tools_used: tuple[str, ...] = ()
    duration_ms: float | None = None
    model: str | None = None
    result: Any = None
    background_tasks: tuple[BackgroundTask, ...] = ()
    permission_mode: str | None = None
    host_cap: int = 0  # blocks in a row after which the host overrides us; 0: none known (B8)
    # Filled in by the engine before a gate is asked (B5).
    block_count: int = 0
    max_blocks: int = 0
    raw: Mapping[str, Any] | None = None

    def _validate(self) -> None:
        if self.scope not in SCOPES:
            raise ValueError(f"scope is one of {', '.join(SCOPES)}, not {self.scope!r}")
        if self.ending not in ENDINGS:
            raise ValueError(f"ending is one of {', '.join(ENDINGS)}, not {self.ending!r}")


def child_key(event: StopEvent) -> str:
    """Return the session of the stopping agent itself, not of its parent."""
    if event.scope == "subagent" and not event.parent_session_id and event.agent_id:
        return event.agent_id  # the host counts subagents under the main session
    return event.session_id


def private_copy(event: StopEvent) -> StopEvent:
    """Return a copy that foreign code may scribble on without anybody else seeing it (A9)."""
    if event.raw is None and event.result is None:
        return event.__copy__()
    return variant(event, {"raw": _fresh(event.raw), "result": _fresh(event.result)})


def _fresh(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    return value
