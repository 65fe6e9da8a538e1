"""Which host wrote a payload (G6).

One committed settings file is run by five hosts, so the payload tells, not the file and not the
environment: agents started inside another's terminal inherit its variables.
"""

from __future__ import annotations

from notyet.hosts import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Payload = Mapping[str, Any]

# They copied the format of the default host, and take its `decision: block` at a stop.
LIKE_DEFAULT = frozenset({"vscode", "qwen", "droid", "junie"})
_MUX_SESSIONS = ("/.mux/sessions/", "/.xum/sessions/")


def _is_mux(payload: Payload) -> bool:
    path = payload.get("transcript_path")
    return isinstance(path, str) and any(place in path for place in _MUX_SESSIONS)


def _has(*names: str) -> Callable[[Payload], bool]:
    return lambda payload: all(name in payload for name in names)


def _event(payload: Payload) -> object:
    return payload.get("hook_event_name")


# The first sign that fits counts.
_SIGNS: tuple[tuple[str, Callable[[Payload], bool]], ...] = (
    ("notyet", _has("scope", "session_id")),
    ("cursor", _has("cursor_version")),
    ("cursor", _has("conversation_id", "generation_id")),
    ("gemini", lambda p: _event(p) in ("AfterAgent", "AfterTool", "BeforeTool")),
    ("codex", _has("turn_id")),
    ("copilot", lambda p: "hook_event_name" not in p and _has("stopReason", "sessionId")(p)),
    ("copilot", _has("stop_reason", "timestamp")),
    ("antigravity", _has("conversationId", "workspacePaths")),
    ("letta", _has("event_type", "working_directory")),
    ("goose", lambda payload: "event" in payload and "hook_event_name" not in payload),
    ("auggie", _has("agent_stop_cause")),
    ("windsurf", _has("agent_action_name")),
    ("junie", _has("project_path")),
    ("qwen", _has("crons")),
    ("qwen", _has("context_limit")),
    ("qwen", _has("timestamp", "prompt_id")),
    ("droid", _has("tool_execution_count")),
    ("droid", _has("task_name")),
    ("vscode", _has("hookEventName", "sessionId")),
    ("vscode", _has("timestamp", "stop_hook_active")),
    ("mux", _is_mux),
    # Start events of Codex and Claude Code have the same keys, but only Codex always has a model.
    # (A tuple, because the value may be unhashable.)
    ("codex", lambda p: _event(p) in ("SessionStart", "SessionEnd") and _is_codex_session(p)),
    ("kimi", lambda p: "stop_hook_active" in p and "transcript_path" not in p),
    ("kiro", lambda p: "hook_event_name" in p and "session_id" not in p),
)


def _is_codex_session(payload: Payload) -> bool:
    path = payload.get("transcript_path")
    rollout = isinstance(path, str) and "/rollout-" in path
    return rollout or {"model", "permission_mode", "source"} <= payload.keys()


def detect(payload: Payload) -> str:
    """Return the name of the host, which may be one that notyet does not support."""
    for host, fits in _SIGNS:
        if fits(payload):
            return host
    return DEFAULT
