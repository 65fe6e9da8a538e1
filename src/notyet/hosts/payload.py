"""Payloads of hosts: anything may be missing or of a wrong type, and none of it may hurt.

Events refuse wrong types, so what a host sends is tidied up here first: a field of the wrong
type counts as missing.
"""

from __future__ import annotations

from notyet.core.text import bounded, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from notyet.core.event import BackgroundTask

_MOST_TASKS = 1000


def text(payload: Mapping[str, Any], name: str) -> str | None:
    """Return a text that is there and not blank."""
    value = payload.get(name)
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character, which no program can be given
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def path(payload: Mapping[str, Any], name: str) -> str | None:
    """Return a path that the system could open: without NUL and half characters."""
    value = payload.get(name)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return None
    try:
        value.encode("utf-8", "surrogateescape")  # as names that are not UTF-8 come
    except UnicodeEncodeError:
        return None
    return value


def flag(payload: Mapping[str, Any], name: str) -> bool | None:
    """Return a truth value; None when the host does not say."""
    value = payload.get(name)
    return value if isinstance(value, bool) else None


def background_tasks(payload: Mapping[str, Any]) -> tuple[BackgroundTask, ...]:
    """Return the work that still runs, as far as it can be made out."""
    tasks = payload.get("background_tasks")
    if not isinstance(tasks, list) or not tasks:
        return ()
    from notyet.core.event import BackgroundTask

    return tuple(
        BackgroundTask(
            id=text(task, "id") or "",
            type=text(task, "type") or "",
            status=text(task, "status") or "running",
        )
        for task in tasks[:_MOST_TASKS]
        if isinstance(task, dict)
    )


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def presentable(text: str) -> str:
    """Return text that no host stumbles over: some refuse a reply with half a character in it."""
    return text if text.replace("\n", "").isprintable() else clean(text)


def prompt_for(text: str, most: int, size: Callable[[str], int] = len) -> str:
    """Return what an agent is sent back with: never blank, and not more than its host shows.

    `size` measures as the host does.
    """
    text = presentable(text)
    limit = most
    while size(bounded(text, limit)) > most:
        limit -= limit // 4
    return bounded(text, limit) if text.strip() else "Not yet."


def utf8_size(text: str) -> int:
    """Count bytes, as Codex does."""
    return len(text.encode())


def utf16_size(text: str) -> int:
    """Count as JavaScript does, where some characters are two."""
    return len(text.encode("utf-16-le")) // 2
