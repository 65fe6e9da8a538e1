"""Codex itself, when it calls us; hook commands written for it are in `codex_hooks`."""

from __future__ import annotations

from notyet.core.event import StopEvent
from notyet.core.gate import CODEX_DEFAULT
from notyet.hosts import Reply
from notyet.hosts.claude import read_start, start_name
from notyet.hosts.payload import flag, path, text
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import Scope, StartEvent
    from notyet.core.verdict import Allow, Block, Halt

_STOPS: dict[str, Scope] = {"Stop": "agent", "SubagentStop": "subagent"}
_STARTS: dict[str, Scope] = {"SessionStart": "agent", "SubagentStart": "subagent"}
_MOST_REASON = 9_000  # bytes; from 10,000 on Codex shows a preview and a file


def read_event(
    payload: Mapping[str, Any],
    environ: Mapping[str, str],  # noqa: ARG001  # Codex says everything in its payload
) -> StopEvent | StartEvent | None:
    """Read a payload of Codex (W2)."""
    name = text(payload, "hook_event_name") or ""
    if name in _STARTS:
        start = read_start(payload, "codex", _STARTS[name])
        return start if start.scope == "agent" else _typed(start)
    if name not in _STOPS:
        return None
    is_child = _STOPS[name] == "subagent"
    return StopEvent(
        scope=_STOPS[name],
        host="codex",
        session_id=text(payload, "session_id") or "",  # the root's, for a child too
        turn_id=text(payload, "turn_id"),
        agent_id=text(payload, "agent_id"),
        agent_type=text(payload, "agent_type") or (CODEX_DEFAULT if is_child else None),
        cwd=path(payload, "cwd") or "",
        last_message=text(payload, "last_assistant_message"),
        transcript_path=path(payload, "transcript_path"),
        agent_transcript_path=path(payload, "agent_transcript_path"),
        stop_hook_active=flag(payload, "stop_hook_active"),
        model=text(payload, "model"),
        permission_mode=text(payload, "permission_mode"),
        raw=payload,
    )


def _typed(start: StartEvent) -> StartEvent:
    from notyet.core.record import replace

    return replace(start, agent_type=start.agent_type or CODEX_DEFAULT)


def write_reply(
    verdict: Allow | Block | Halt,
    note: str,
    event: StopEvent,  # noqa: ARG001  # of the protocol
    settings: Mapping[str, str],  # noqa: ARG001  # as above
) -> Reply:
    """Answer Codex, which drops an answer with a key that it does not know (G2)."""
    from notyet.core.text import bounded
    from notyet.core.verdict import Block, Halt
    from notyet.hosts.payload import presentable, prompt_for, utf8_size

    said: dict[str, Any] = {}
    if isinstance(verdict, Block):
        said = {"decision": "block", "reason": prompt_for(verdict.prompt, _MOST_REASON, utf8_size)}
    elif isinstance(verdict, Halt):
        said = {"continue": False}
        if verdict.reason.strip():
            said["stopReason"] = bounded(presentable(verdict.reason), _MOST_REASON)
    if note:
        said["systemMessage"] = presentable(note)
    return Reply(stdout=dumps(said))


def write_context(told: str, event: StartEvent) -> Reply:
    """Put a text before a starting agent's first request (F13)."""
    from notyet.hosts.payload import prompt_for, utf8_size

    context = prompt_for(told, _MOST_REASON, utf8_size)
    output = {"hookEventName": start_name(event.scope), "additionalContext": context}
    return Reply(stdout=dumps({"hookSpecificOutput": output}))
