"""Which settings Claude Code leaves out, as far as we know it ourselves.

A newer one is asked (`claude_doctor`); this is for older ones, and for those that do not answer.
"""

from __future__ import annotations

from notyet.core.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from notyet.report.faults.contents import Content

    Shape = tuple[tuple[str | int, ...], str]  # what is wrong, and what it should be

_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
_KINDS: Mapping[str, type] = {
    "hooks": dict,
    "env": dict,
    "permissions": dict,
    "statusLine": dict,
    "model": str,
    "disableAllHooks": bool,
}
_RULES = ("allow", "deny", "ask")
_EVENTS = frozenset(
    [
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Notification",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "PermissionRequest",
        "Setup",
        "TeammateIdle",
        "TaskCompleted",
        "ConfigChange",
        "WorktreeCreate",
        "WorktreeRemove",
    ]
)
_TYPES = ("command", "prompt", "agent", "http", "mcp_tool")
_SHELLS = ("bash", "powershell")


def shapes(content: Content) -> Iterator[Shape]:
    """Yield what has a shape for which a whole file is dropped."""
    for key, kind in _KINDS.items():
        if key in content.value and not isinstance(content.value[key], kind):
            yield (key,), _NAMES[kind]
    if "cleanupPeriodDays" in content.value and not _is_number(content.get("cleanupPeriodDays")):
        yield ("cleanupPeriodDays",), "a number"
    for key in _RULES:
        rules = content.get("permissions", key)
        if rules is not None and not isinstance(rules, list):
            yield ("permissions", key), "a list"
    hooks = content.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        if event in _EVENTS:  # others are left out, whatever they hold
            yield from _groups(event, groups)


def _groups(event: str, groups: object) -> Iterator[Shape]:
    if not isinstance(groups, list):
        yield ("hooks", event), "a list"
        return
    for i, group in enumerate(groups):
        handlers = group.get("hooks") if isinstance(group, dict) else None
        if not isinstance(group, dict):
            yield ("hooks", event, i), "an object"
        elif not isinstance(handlers, list):
            yield ("hooks", event, i, "hooks"), "a list"
        for j, handler in enumerate(handlers if isinstance(handlers, list) else ()):
            if not isinstance(handler, dict) or handler.get("type") not in _TYPES:
                yield ("hooks", event, i, "hooks", j), "a hook of a known type"


def why_refused(handler: Mapping[str, Any], matcher: object) -> str:
    """Say why an entry of ours is left out; empty when nothing is known against it."""
    timeout = handler.get("timeout", 1)
    wrong = {
        "type": handler.get("type") == "command",
        "shell": handler.get("shell", "bash") in _SHELLS,
        "timeout": _is_number(timeout) and timeout > 0,
        "matcher": isinstance(matcher, str | None),
    }
    wrong |= {name: isinstance(handler.get(name, ""), str) for name in ("if", "statusMessage")}
    flags = ("async", "asyncRewake", "once")
    wrong |= {name: isinstance(handler.get(name, False), bool) for name in flags}
    for name, is_right in wrong.items():
        if not is_right:
            value = matcher if name == "matcher" else handler.get(name)
            missing = name == "type" and name not in handler
            return f"it has no {name}" if missing else f"its {name} may not be {dumps(value)}"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
