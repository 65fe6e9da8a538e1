"""What an agent did in a turn: kept as the lines that it sent, and read when the turn has ended.

Most lines of a session are pieces of an agent's words. Parsing each of them would cost more than
everything else that a proxy does, and only the last words matter.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from notyet.acp.wire import SPOKEN, TOOLS, parse, text_of, value
from notyet.core.event import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_BYTES = 512 * 1024  # kept of one turn
_MOST_TOOLS = 200  # names that are kept
_LARGE = 64 * 1024  # of lines that are kept only if they are read at the end
_KIND = re.compile(rb'"sessionUpdate"\s*:\s*"(\w+)"')
_READ = frozenset(kind.encode() for kind in (*SPOKEN, *TOOLS, "plan"))
# The names of token counts: those of ACP's draft, and ours.
_COUNTS = {
    "inputTokens": "input",
    "outputTokens": "output",
    "cachedReadTokens": "cache_read",
    "cachedWriteTokens": "cache_write",
    "totalTokens": "total",
}


class Facts(NamedTuple):
    """What is known of a turn when it has ended."""

    text: str  # the agent's last words
    has_acted: bool  # it said something, or used a tool
    tools: tuple[str, ...]
    tool_calls: int
    usage: Mapping[str, Any] | None  # as the agent reports it beside its words


class Heard:
    """The last lines of a turn."""

    def __init__(self) -> None:
        self._bundles: deque[bytes] = deque()
        self._size = 0
        self._lost = False

    def add(self, bundle: bytes) -> None:
        """Keep lines; forget the oldest ones if there are too many."""
        if len(bundle) > _LARGE:
            bundle = b"\n".join(line for line in bundle.split(b"\n") if _is_read(line))
        self._bundles.append(bundle)
        self._size += len(bundle)
        while self._size > _MOST_BYTES and len(self._bundles) > 1:
            self._size -= len(self._bundles.popleft())
            self._lost = True

    def read(self, session: str) -> Facts:
        """Return what a session's lines say."""
        said = _Said()
        for line in b"".join(self._bundles).split(b"\n"):
            message = parse(line)
            found = value(message or {}, "params", "update")
            if isinstance(found, dict) and value(message or {}, "params", "sessionId") == session:
                said.add(found)
        return Facts(
            text=said.text,
            has_acted=said.has_acted or self._lost,
            tools=tuple(dict.fromkeys(filter(None, said.tools.values())))[:_MOST_TOOLS],
            tool_calls=len(said.tools),
            usage=said.usage,
        )


def _is_read(line: bytes) -> bool:
    """Return False for a large line of no interest: Qwen Code lists its commands in 550 KB."""
    if len(line) < _LARGE:
        return True
    kind = _KIND.search(line)
    return kind is None or kind[1] in _READ


class _Said:
    """Reads updates one after another."""

    def __init__(self) -> None:
        self.text = ""
        self.has_acted = False
        self.tools: dict[str, str] = {}  # names, by the id of the call
        self.usage: Mapping[str, Any] | None = None
        self._message: object = None
        self._is_over = True  # what is said next begins a message

    def add(self, update: dict[str, Any]) -> None:
        """Read one update."""
        kind = update.get("sessionUpdate")
        if kind in SPOKEN:
            self._speak(update, whole=kind == "agent_message")
        elif kind in TOOLS:
            self.has_acted = self._is_over = True
            call = update.get("toolCallId")
            name = update.get("name") or update.get("title")
            if isinstance(call, str) and (call not in self.tools or name):
                self.tools[call] = str(name or "")
        elif kind == "plan":
            self.has_acted = True
        usage = value(update, "_meta", "usage")
        if isinstance(usage, dict) and usage:
            self.usage = usage

    def _speak(self, update: dict[str, Any], *, whole: bool) -> None:
        text, message = text_of(update.get("content")), update.get("messageId")
        if not text:
            return
        self.has_acted = True
        is_another = message is not None and message != self._message
        if self._is_over or whole or is_another:
            self.text = ""
        self._is_over, self._message = False, message
        self.text += text


def usage_of(counts: object) -> Usage | None:
    """Return token counts as an agent reports them; None if it reports none."""
    if not isinstance(counts, dict):
        return None
    known = {
        ours: counts[theirs]
        for theirs, ours in _COUNTS.items()
        if isinstance(counts.get(theirs), int) and counts[theirs] >= 0
    }
    return Usage(**known) if known else None
