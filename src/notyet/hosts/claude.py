"""What Claude Code is told: how an agent goes on, why it halts, and what its user reads (G1)."""

from __future__ import annotations

from notyet.core.event import StopEvent
from notyet.core.text import bounded
from notyet.core.verdict import Block, Halt
from notyet.hosts import Reply
from notyet.hosts.payload import (
    background_tasks,
    flag,
    path,
    presentable,
    prompt_for,
    text,
    utf16_size,
)
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import Scope, StartEvent
    from notyet.core.verdict import Allow

_CONTEXT_SINCE = (2, 1, 163)  # the first version that continues on `additionalContext`
_MOST_CONTEXT = 9_000  # characters; beyond 10,000 Claude Code shows a preview and a file
_MOST_REASON = 30_000
_LONGEST_PART = 9  # digits of one part of a version


def said_of(
    verdict: Allow | Block | Halt, note: str, event: StopEvent, settings: Mapping[str, str]
) -> dict[str, Any]:
    """Return the one JSON object of an answer."""
    told: dict[str, Any] = {"systemMessage": presentable(note)} if note else {}
    if isinstance(verdict, Halt):
        # Together with a block it would lose the agent's final answer.
        return _halting(verdict) | told
    if isinstance(verdict, Block):
        return _holding(verdict, event, settings) | told
    return told


def _halting(verdict: Halt) -> dict[str, Any]:
    return {"continue": False, "stopReason": bounded(presentable(verdict.reason), _MOST_REASON)}


def _holding(verdict: Block, event: StopEvent, settings: Mapping[str, str]) -> dict[str, Any]:
    """Prefer context: told once, without our command line, and the answer survives the cap."""
    if settings.get("claude") == "block" or not _takes_context(event.host_version):
        return {"decision": "block", "reason": prompt_for(verdict.prompt, _MOST_REASON)}
    return adding(verdict.prompt, event_name(event))


def adding(told: str, name: str) -> dict[str, Any]:
    """Return what puts a text before an agent's next request; `name` is that of the event."""
    context = prompt_for(told, _MOST_CONTEXT, utf16_size)
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}


def _takes_context(version: str | None) -> bool:
    parts = (version or "").split(".")
    if not all(part.isdecimal() and len(part) <= _LONGEST_PART for part in parts):
        return False
    return tuple(int(part) for part in parts) >= _CONTEXT_SINCE


_STOPS = ("Stop", "SubagentStop", "StopFailure")
_STARTS: dict[str, Scope] = {"SessionStart": "agent", "SubagentStart": "subagent"}
NAMES: dict[Scope, str] = {"agent": "Stop", "subagent": "SubagentStop"}
_CAP = 8  # blocks in a row that Claude Code honours; the next one costs the final answer
_CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


def read_event(
    payload: Mapping[str, Any], environ: Mapping[str, str], host: str = "claude"
) -> StopEvent | StartEvent | None:
    """Read a payload of Claude Code, or of a host that copied its format (W1)."""
    name = text(payload, "hook_event_name")
    if name in _STARTS:
        return read_start(payload, host, _STARTS[name])
    if name not in _STOPS:
        return None
    # `agent_type` alone does not make a subagent: `claude --agent` has one too.
    agent_id = text(payload, "agent_id")
    failed = name == "StopFailure"
    is_subagent = name == "SubagentStop" or (failed and agent_id is not None)
    return StopEvent(
        scope="subagent" if is_subagent else "agent",
        host=host,
        session_id=text(payload, "session_id") or "",
        turn_id=text(payload, "prompt_id"),
        agent_id=agent_id,
        agent_type=text(payload, "agent_type") or text(payload, "subagent_type"),
        agent_name=text(payload, "agent_name"),
        cwd=path(payload, "cwd") or path(environ, "CLAUDE_PROJECT_DIR") or "",
        ending="error" if failed else "done",
        error=text(payload, "error") if failed else None,
        last_message=text(payload, "last_assistant_message"),
        transcript_path=path(payload, "transcript_path"),
        agent_transcript_path=path(payload, "agent_transcript_path"),
        stop_hook_active=flag(payload, "stop_hook_active"),
        background_tasks=background_tasks(payload),
        permission_mode=text(payload, "permission_mode"),
        host_version=_version(environ) if host == "claude" else None,
        # What calls us as conclaude is Claude Code, too.
        host_cap=_cap(environ) if host in {"claude", "conclaude"} else 0,
        raw=payload,
    )


def read_start(payload: Mapping[str, Any], host: str, scope: Scope) -> StartEvent:
    """Read a start event, which Claude Code and Codex write alike."""
    from notyet.core.event import StartEvent

    return StartEvent(
        scope=scope,
        host=host,
        session_id=text(payload, "session_id") or "",
        agent_id=text(payload, "agent_id"),
        agent_type=text(payload, "agent_type"),
        cwd=path(payload, "cwd") or "",
        source=text(payload, "source"),
        turn_id=text(payload, "turn_id") or text(payload, "prompt_id"),
        transcript_path=path(payload, "transcript_path"),
        model=text(payload, "model"),
        permission_mode=text(payload, "permission_mode"),
    )


def _version(environ: Mapping[str, str]) -> str | None:
    """Return the version from `AI_AGENT`, e.g. "claude-code_2-1-325_agent"."""
    name, _, rest = environ.get("AI_AGENT", "").partition("_")
    version = rest.partition("_")[0].replace("-", ".")
    return version if name == "claude-code" and version else None


def _cap(environ: Mapping[str, str]) -> int:
    try:
        cap = int(environ.get(_CAP_VARIABLE, _CAP))
    except ValueError:
        return _CAP
    return max(0, cap)  # 0 and below switch it off


def write_reply(
    verdict: Allow | Block | Halt,
    note: str,
    event: StopEvent,
    settings: Mapping[str, str],
) -> Reply:
    """Answer Claude Code: exit 0 and at most one JSON object, whatever we say (G1)."""
    from notyet.core.verdict import Allow

    if isinstance(verdict, Allow) and not note:
        return Reply()
    return Reply(stdout=dumps(said_of(verdict, note, event, settings)))


def write_context(told: str, event: StartEvent) -> Reply:
    """Put a text before a starting agent's first request (F13)."""
    return Reply(stdout=dumps(adding(told, start_name(event.scope))))


def start_name(scope: Scope) -> str:
    """Return what Claude Code and Codex call the beginning of an agent (C8)."""
    return "SubagentStart" if scope == "subagent" else "SessionStart"


def event_name(event: StopEvent) -> str:
    """Return what Claude Code and those after it call this event."""
    return NAMES[event.scope]
