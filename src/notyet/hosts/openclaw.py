"""OpenClaw's plugin hooks: `subagent_stopping` decides, `subagent_ended` observes.

Handlers get `(event, ctx)` and may answer `{"allow": False, "prompt": ..., "reason": ...,
"extend_max_steers": n}`, in snake or camel case, or one of our verdicts.
"""

from __future__ import annotations

from notyet.core.event import child_key
from notyet.core.gate import GATED_ENDINGS, Function, Gate, Match, name_of
from notyet.core.limits import Limits
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Problem
from notyet.hosts.notyet.hooks import VERDICTS
from notyet.hosts.plugins import DIALECT, View, snake, view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from notyet.core.event import Scope, StopEvent, Usage
    from notyet.core.verdict import Decision, Halt

OPENCLAW = DIALECT  # the key of `[read]` that names its file
_ALLOW = Allow()
_PATIENCE = 600.0  # seconds for one handler; a handler that hangs must not block for ever
_OUTCOMES = {"done": "ok", "error": "error", "timeout": "timeout"}
_REASONS = {
    "done": "subagent-complete",
    "error": "subagent-error",
    "timeout": "subagent-error",
    "killed": "subagent-killed",
    "reset": "session-reset",
    "interrupted": "subagent-interrupted",
}
# Hooks that decide, and their scope. "stopping" is our addition, for main agents.
DECIDING: dict[str, Scope] = {"subagent_stopping": "subagent", "stopping": "agent"}
_RESULT_KEYS = frozenset({"allow", "prompt", "reason", "extend_max_steers"})


class UsageView(View, kw_only=True):
    """Tokens spent in this run."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    total: int


class SubagentStopping(View, kw_only=True):
    """What a `subagent_stopping` (or `stopping`) handler gets."""

    run_id: str
    child_session_key: str
    requester_session_key: str
    agent_id: str
    task: str | None
    label: str | None
    outcome: str  # "ok", "error" or "timeout"
    reason: str
    error: str | None
    last_assistant_message: str | None
    usage: UsageView | None
    duration_ms: float | None
    tools_used: tuple[str, ...]
    steer_count: int
    max_steers: int


class SubagentEnded(View, kw_only=True):
    """What a `subagent_ended` handler gets."""

    target_session_key: str
    target_kind: str
    run_id: str
    agent_id: str
    outcome: str
    reason: str
    error: str | None
    stop_reason: str | None  # why a gate halted the agent (K15)


class Context(View, kw_only=True):
    """The agent, for both hooks."""

    agent_id: str
    run_id: str
    child_session_key: str
    requester_session_key: str


def gate(name: str, handler: Callable[..., Any], priority: int, step: int) -> Gate:
    """Return the gate for a handler; they run by priority, also after errors (C2)."""
    return Gate(
        name=f"{name}[{step}] {name_of(handler)}",
        check=Function(handler, OPENCLAW),
        match=Match(events=(DECIDING[name],), endings=GATED_ENDINGS),
        priority=priority,
        step=step,
        timeout=_PATIENCE,
    )


def limits(given: Mapping[str, Any]) -> Limits:
    """Return limits of a dict: OpenClaw's configuration, a part of it, or fields of `Limits`.

    Names may be in camel case. Raises TypeError and ValueError.
    """
    for key in ("agents", "defaults", "subagents"):
        inner = given.get(key)
        given = inner if isinstance(inner, dict) else given
    names = {snake(str(key)): value for key, value in given.items()}
    if "max_steer_restarts" in names:
        names["max_blocks"] = names.pop("max_steer_restarts")
    return Limits(**names)


def write_call(event: StopEvent) -> Callable[[], tuple[SubagentStopping, Context]]:
    """Return a function that makes the arguments of a `subagent_stopping` handler."""
    ctx = _context(event)
    fields = {
        "run_id": ctx.run_id,
        "child_session_key": ctx.child_session_key,
        "requester_session_key": ctx.requester_session_key,
        "agent_id": ctx.agent_id,
        "task": event.task,
        "label": event.label,
        "outcome": _OUTCOMES.get(event.ending, event.ending),
        "reason": event.end_reason or _REASONS[event.ending],
        "error": event.error,
        "last_assistant_message": event.last_message,
        "usage": _usage(event.usage),
        "duration_ms": event.duration_ms,
        "tools_used": event.tools_used,
        "steer_count": event.block_count,
        "max_steers": event.max_blocks,
    }
    own = ctx.__dict__
    return lambda: (view(SubagentStopping, fields.copy()), view(Context, own.copy()))


def write_ended(event: StopEvent, decision: Decision) -> tuple[SubagentEnded, Context]:
    """Return the arguments of a `subagent_ended` handler."""
    ctx = _context(event)
    halted = decision.outcome == "halted"
    ended = SubagentEnded(
        target_session_key=ctx.child_session_key,
        target_kind="subagent",
        run_id=ctx.run_id,
        agent_id=ctx.agent_id,
        outcome=_OUTCOMES.get(event.ending, event.ending),
        reason=event.end_reason or _REASONS[event.ending],
        error=event.error,
        stop_reason=decision.why if halted else None,
    )
    return ended, ctx


def read_return(returned: object) -> tuple[Allow | Block | Halt | Problem, str]:
    """Read what a `subagent_stopping` handler returned."""
    if returned is None:
        return _ALLOW, ""
    if isinstance(returned, VERDICTS):
        return returned, ""
    if not isinstance(returned, dict):
        kind = type(returned).__name__
        hint = "return a verdict, None or a dict like {'allow': False, 'prompt': '...'}"
        return Problem("bad_answer", f"it returned {kind}; {hint}"), ""
    result = returned
    warning = ""
    if not _RESULT_KEYS.issuperset(returned):
        result = {snake(str(key)): value for key, value in returned.items()}
        unknown = [key for key in result if key not in _RESULT_KEYS]
        if unknown:
            known = ", ".join(sorted(_RESULT_KEYS))
            strange = bounded(repr(unknown[0]), 80)
            warning = f"unknown key {strange} in its answer; known: {known}"
    extend = 0
    if result.get("extend_max_steers") is not None:
        extend, complaint = _extend(result["extend_max_steers"])
        warning = complaint or warning
    if result.get("allow") is not False:
        return (Allow(extend=extend) if extend else _ALLOW), warning
    prompt = result.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return Allow(extend=extend), f"allow=False with {_lacking(prompt)}; treated as allow=True"
    reason = result.get("reason")
    return Block(prompt, reason if isinstance(reason, str) else "", extend), warning


def _lacking(prompt: object) -> str:
    if prompt is None:
        return "no prompt"
    return "an empty prompt" if isinstance(prompt, str) else "a prompt that is not text"


def _extend(extend: object) -> tuple[int, str]:
    try:
        return Allow(extend=extend).extend, ""  # type: ignore[arg-type]  # checked there
    except ValueError:
        strange = bounded(repr(extend), 80)
        return 0, f"extend_max_steers is a whole number, not {strange}; ignored"


def _context(event: StopEvent) -> Context:
    return Context(
        agent_id=event.agent_id or event.agent_type or "",
        run_id=event.run_id or "",
        child_session_key=child_key(event),
        requester_session_key=event.parent_session_id or event.session_id,
    )


def _usage(usage: Usage | None) -> UsageView | None:
    if usage is None:
        return None
    parts = usage.input + usage.output + usage.cache_read + usage.cache_write
    return UsageView(
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        total=usage.total or parts,
    )
