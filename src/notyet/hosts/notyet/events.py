"""Read an event in notyet's own format; any field may be missing or wrong (W5)."""

from __future__ import annotations

from notyet.core.event import ENDINGS, SCOPES, StopEvent, Usage
from notyet.core.remote import LOCAL, remote_from
from notyet.hosts.wire import background_tasks, flag, path, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_READ_APART = frozenset(
    {"scope", "ending", "usage", "total_usage", "tools_used", "background_tasks", "result", "raw"}
    | {"workspace"}
)
_PATHS = frozenset({"cwd", "transcript_path", "agent_transcript_path"})
_MOST = 1_000_000


def read(payload: Mapping[str, Any]) -> StopEvent:
    """Return the event; a field of the wrong type counts as missing."""
    tools = payload.get("tools_used")
    scope = payload.get("scope")
    ending = payload.get("ending")
    fields: dict[str, Any] = {
        "scope": scope if scope in SCOPES else "agent",
        "ending": ending if ending in ENDINGS else "done",
        "usage": _usage(payload, "usage"),
        "total_usage": _usage(payload, "total_usage"),
        "tools_used": _texts(tools) if isinstance(tools, list) else (),
        "background_tasks": background_tasks(payload),
        "result": payload.get("result"),
        "raw": payload,
        "workspace": _workspace(payload),
    }
    for name, default in StopEvent._defaults.items():  # noqa: SLF001  # our own record
        if name not in _READ_APART:
            fields[name] = _like(default, payload, name)
    return StopEvent(**fields)


def _workspace(payload: Mapping[str, Any]) -> str:
    """Return the address of the files; an invalid one counts as missing."""
    address = path(payload, "workspace")
    if address is None or address == LOCAL:
        return ""
    try:
        return remote_from(address).url
    except ValueError:
        return ""


def _like(default: object, payload: Mapping[str, Any], name: str) -> Any:
    """Return a field's value if it has the type of its default."""
    value = payload.get(name)
    if name == "stop_hook_active":
        return flag(payload, name)
    if name in {"turns", "tool_calls", "duration_ms"}:
        return value if _is_number(value) else None
    if isinstance(default, bool):
        return value is True
    if isinstance(default, int):  # counts
        return value if isinstance(value, int) and _is_number(value) else default
    value = path(payload, name) if name in _PATHS else text(payload, name)
    return default if value is None else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST**2


def _usage(payload: Mapping[str, Any], name: str) -> Usage | None:
    usage = payload.get(name)
    if not isinstance(usage, dict):
        return None
    return Usage(
        **{
            name: usage[name]
            for name in Usage._fields  # our own record
            if isinstance(usage.get(name), int) and _is_number(usage[name])
        }
    )


def _texts(values: list[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))
