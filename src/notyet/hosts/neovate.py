"""Neovate-style observers: `stop` for the main agent, `subagent_stop` for subagents (K11)."""

from __future__ import annotations

from notyet.core.event import StopEvent, Usage
from notyet.hosts.plugins import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.core.verdict import Decision


class UsageView(View, kw_only=True):
    """Tokens spent; all zero when the run failed."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class Result(View, kw_only=True):
    """How the run ended, if the host gave no result object."""

    success: bool
    text: str
    error: str | None
    stop_reason: str | None


class LastRun(View, kw_only=True):
    """What the last run cost; the figures beside it are those of all runs."""

    usage: UsageView
    turns_count: int
    tool_calls_count: int
    duration: float  # milliseconds


class Stop(View, kw_only=True):
    """What a `stop` observer gets."""

    session_id: str
    result: Any
    usage: UsageView
    turns_count: int
    tool_calls_count: int
    duration: float  # milliseconds
    model: str
    last_run: LastRun | None  # of a supervised task


class SubagentStop(View, kw_only=True):
    """What a `subagent_stop` observer gets."""

    parent_session_id: str
    agent_id: str
    agent_type: str
    result: Any
    usage: UsageView
    total_tool_calls: int
    total_duration: float  # milliseconds
    model: str
    last_run: LastRun | None  # of a supervised task


class Context(View, kw_only=True):
    """Where it happened, and what the gates decided."""

    host: str
    session_id: str
    cwd: str
    ending: str
    outcome: str
    stop_reason: str | None  # why a gate halted the agent (K15)


def write_stop(event: StopEvent, decision: Decision) -> tuple[Stop, Context]:
    """Return the arguments of a `stop` observer."""
    counted = _counted(event)
    stop = Stop(
        session_id=event.session_id,
        result=_result(event, decision),
        usage=_usage(counted.usage),
        turns_count=counted.turns or 0,
        tool_calls_count=counted.tool_calls or 0,
        duration=counted.duration_ms or 0.0,
        model=event.model or "",
        last_run=_last_run(counted),
    )
    return stop, _context(event, decision)


def write_subagent_stop(event: StopEvent, decision: Decision) -> tuple[SubagentStop, Context]:
    """Return the arguments of a `subagent_stop` observer."""
    counted = _counted(event)
    stop = SubagentStop(
        parent_session_id=event.parent_session_id or "",
        agent_id=event.agent_id or "",
        agent_type=event.agent_type or "",
        result=_result(event, decision),
        usage=_usage(counted.usage),
        total_tool_calls=counted.tool_calls or 0,
        total_duration=counted.duration_ms or 0.0,
        model=event.model or "",
        last_run=_last_run(counted),
    )
    return stop, _context(event, decision)


def _counted(event: StopEvent) -> StopEvent:
    """Return the event whose counts are shown: those of a failed run are all zero."""
    return event if event.ending == "done" else StopEvent()


def _result(event: StopEvent, decision: Decision) -> Any:
    if event.result is not None:
        return event.result
    return Result(
        success=event.ending == "done",
        text=event.last_message or "",
        error=event.error,
        stop_reason=_stop_reason(decision),
    )


def _stop_reason(decision: Decision) -> str | None:
    return decision.why if decision.outcome == "halted" else None


def _last_run(event: StopEvent) -> LastRun | None:
    last = event.raw.get("last_run") if event.raw is not None else None
    if last is None:
        return None
    from notyet.core.task import Figures

    if not isinstance(last, Figures):  # a host's own payload
        return None
    return LastRun(
        usage=_usage(last.usage),
        turns_count=last.turns,
        tool_calls_count=last.tool_calls,
        duration=last.duration_ms,
    )


def _usage(usage: Usage | None) -> UsageView:
    usage = usage or Usage()
    return UsageView(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )


def _context(event: StopEvent, decision: Decision) -> Context:
    return Context(
        host=event.host,
        session_id=event.session_id,
        cwd=event.cwd,
        ending=event.ending,
        outcome=decision.outcome,
        stop_reason=_stop_reason(decision),
    )
