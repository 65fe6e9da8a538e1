"""Text that people and agents read: clean, bounded, and visible."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_LINE = 160
_ESC = "\x1b"


def clean(text: str) -> str:
    """Return the text without terminal escapes, and without characters that show nothing.

    Those are control characters, lone surrogates, zero-width ones, and those that turn the
    direction of what follows: with them a text reads differently from what it says.
    """
    if _ESC in text:
        from notyet.core.hidden import without_escapes

        text = without_escapes(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isprintable() or (text.isascii() and text.replace("\n", "").isprintable()):
        return text
    from notyet.core.hidden import hidden

    return text.translate(hidden())


def bounded(text: str, limit: int) -> str:
    """Return at most `limit` characters: a third from the head, the rest from the tail."""
    if len(text) <= limit:
        return text
    mark = f"\n... {len(text) - limit} characters left out ...\n"
    room = limit - len(mark)
    if room <= 0:
        return text[: max(0, limit)]
    head = room // 3
    return text[:head] + mark + text[len(text) - (room - head) :]


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text in at most so many bytes of UTF-8."""
    content = text.encode("utf-8", "replace")
    if len(content) <= most:
        return text
    return content[: max(0, most - 3)].decode("utf-8", "ignore") + "..."[: max(0, most)]


def first_line(text: str) -> str:
    """Return the first line of a text, bounded, and whether there is more."""
    lines = text.strip().splitlines() or [""]
    more = " ..." if len(lines) > 1 else ""
    return shortened(lines[0], _LONGEST_LINE) + more


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return some names with commas between, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def visible(text: str) -> str:
    """Return a text in which nothing can hide: a terminal obeys escapes instead of showing them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def joined(parts: list[str]) -> str:
    """Join what several gates said, with a blank line between (A4)."""
    return "\n\n".join(part.strip() for part in parts)
