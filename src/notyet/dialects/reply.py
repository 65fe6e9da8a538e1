"""Words as a host takes them: presentable, never blank, and not more than it shows."""

from __future__ import annotations

from notyet.core.text import bounded, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


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
