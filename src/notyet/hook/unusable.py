"""What of a payload cannot be used, in words for whoever sent it."""

from __future__ import annotations

from notyet.hook.payload import of_wrong_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent

# They copied Claude Code's format, and take its `decision: block` at a stop.
LIKE_CLAUDE = frozenset({"vscode", "qwen", "droid", "junie"})
_JSON_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def unusable(payload: Mapping[str, Any], event: StopEvent | StartEvent, host: str) -> list[str]:
    """Say which fields have a type that cannot be used, so that they count as missing."""
    if host == "notyet":  # its fields are the event's own
        wrong = [
            name
            for name, default in event._defaults.items()  # noqa: SLF001  # our own record
            if name != "workspace"  # see below
            and not _is_nothing(payload.get(name), default)
            and getattr(event, name) == default
        ]
    else:
        wrong = of_wrong_kind(payload)
    return [f"the event's {name} is {kind_of(payload[name])}; not used" for name in wrong]


def no_place(payload: Mapping[str, Any], event: StopEvent) -> str:
    """Say why the files that an event of ours is about cannot be found; empty where they can.

    To look here for what is elsewhere would be wrong.
    """
    from notyet.core.address import LOCAL
    from notyet.core.remote import remote_from

    said = payload.get("workspace")
    if event.workspace or _is_nothing(said, LOCAL):
        return ""
    why = f"it is {kind_of(said)}"
    try:
        if isinstance(said, str):
            remote_from(said)
    except ValueError as error:
        why = str(error)
    return f"the event's workspace cannot be used, so nothing was checked: {why}"


def kind_of(value: object) -> str:
    """Return what kind of JSON a value is."""
    return _JSON_KINDS.get(type(value), "null")


def _is_nothing(value: object, default: object) -> bool:
    if isinstance(value, str) and not value.strip():
        return True
    return value is None or value in (default, [])


def is_stop(payload: Mapping[str, Any]) -> bool:
    """Tell whether a payload says, in Claude Code's words, that an agent stops."""
    return payload.get("hook_event_name") in ("Stop", "SubagentStop")
