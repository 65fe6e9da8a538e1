"""What Claude Code is told: how an agent goes on, why it halts, and what its user reads (G1)."""

from __future__ import annotations

from notyet.core.text import bounded
from notyet.core.verdict import Block, Halt
from notyet.dialects.claude import event_name
from notyet.dialects.reply import presentable, prompt_for, utf16_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StopEvent
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
