"""`TurnBuilder`: the turn of a headless agent, put together while its output is read."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from notyet.core.event import Usage
from notyet.core.session import News, Turn
from notyet.core.text import bounded, clean
from notyet.errors import attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from notyet.agents.transcript_writer import Transcript
    from notyet.core.session import StopReason

    Notify = Callable[[News], None]

_LONGEST_TEXT = 1_000_000
_LONGEST_SHOWN = 400  # of a tool's input
_MOST = 2**53  # larger numbers are no counts, and not every reader of JSON keeps them
FIGURES = ("input", "output", "cache_read", "cache_write")


class TurnBuilder:
    """The turn so far. The readers of the formats call these methods, in the order of events."""

    def __init__(self, notify: Notify, transcript: Transcript, key: str) -> None:
        self._notify = notify
        self._transcript = transcript
        self._key = key
        self.session: str | None = None
        self.model: str | None = None
        self.text = ""
        self.error: str | None = None
        self.stop_reason: StopReason = "end_turn"
        self.is_accepted = self.is_finished = False
        self.unread = 0  # lines that could not be read
        self.figures: dict[str, int] | None = None  # as the agent sums them up
        self.parts: dict[str, dict[str, int]] = {}  # as they come, by message
        self.tools: list[str] = []
        self.tool_calls = 0
        self.turns = 0
        self._pieces: list[str] = []
        self._calls: set[str] = set()

    def named(self, session: object) -> None:
        """Note the id of the conversation."""
        if isinstance(session, str) and session:
            self.session = session

    def accept(self) -> None:
        """Note that the agent has the prompt."""
        if not self.is_accepted:
            self.is_accepted = True
            self.keep(self._transcript.accepted, self._key)
            self._notify(News(kind="accepted"))

    def say(self, text: object) -> None:
        """Note a whole message of the agent; the last one is its answer."""
        self.flush()
        if isinstance(text, str) and text.strip():
            self.accept()
            self.text = bounded(text, _LONGEST_TEXT)
            self.keep(self._transcript.said, text)
            self._notify(News(kind="text", text=text))

    def piece(self, text: object) -> None:
        """Note a piece of a message, which goes on until something else happens."""
        if isinstance(text, str) and text:
            self.accept()
            self._pieces.append(text)

    def flush(self) -> None:
        """End a message that came in pieces."""
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            self.say(text)

    def use(self, name: object, given: object, script: object = None) -> None:
        """Note a tool call; `script` is what a shell is given, where the tool is one."""
        self.flush()
        self.accept()
        tool = name if isinstance(name, str) and name else "unknown"
        self.tool_calls += 1
        if tool not in self.tools:
            self.tools.append(tool)
        if isinstance(script, str):  # under the name that scripts look for
            self.keep(self._transcript.tool, "bash", {"script": script, "tool": tool})
        else:
            self.keep(self._transcript.tool, tool, given)
        self._notify(News(kind="tool", tool=tool, text=in_a_line(script or given)))

    def is_new(self, call: object) -> bool:
        """Return True for a call that was not noted before: some formats repeat it."""
        is_new = not isinstance(call, str) or call not in self._calls
        self._calls.add(str(call))
        return is_new

    def answered(self, text: object) -> None:
        """Note the output of a tool."""
        if isinstance(text, str) and text:
            self.keep(self._transcript.result, text)

    def count(
        self, message: object, figures: Mapping[str, Any], names: tuple[str, ...] = FIGURES
    ) -> None:
        """Note the tokens of one request; a repeated report replaces the first."""
        self.parts[message if isinstance(message, str) else ""] = _numbers(figures, names)

    def sum_up(self, figures: Mapping[str, Any], names: tuple[str, ...] = FIGURES) -> None:
        """Note the tokens that the agent summed up itself."""
        self.figures = _numbers(figures, names)

    def report(self, error: object) -> None:
        """Note an error that does not end the turn."""
        self._notify(News(kind="error", text=clean(in_a_line(error))))

    def fail(self, error: object) -> None:
        """Note that the turn failed."""
        self.stop_reason = "error"
        self.error = clean(in_a_line(error)) or "the agent says that it failed, and not why"

    def finish(self, stop_reason: StopReason = "end_turn") -> None:
        """Note that the agent ended the turn."""
        self.flush()
        self.is_finished = True
        if self.error is None:
            self.accept()
            self.stop_reason = stop_reason

    def spent(self) -> dict[str, int]:
        """Return the tokens by kind."""
        if self.figures is not None:
            return self.figures
        parts = self.parts.values()
        return {name: sum(part[name] for part in parts) for name in FIGURES}

    def turn(self, spent: Mapping[str, int], duration_ms: float) -> Turn:
        """Return the turn."""
        return Turn(
            text=self.text,
            stop_reason=self.stop_reason,
            usage=Usage(**spent, total=sum(spent.values())),
            tools=tuple(self.tools),
            tool_calls=self.tool_calls,
            turns=self.turns or 1,
            model=self.model,
            duration_ms=duration_ms,
            error=self.error,
        )

    def keep(self, write: Callable[..., None], *values: object) -> None:
        """Write to the transcript; a full disk must not stop the agent."""
        try:
            write(*values)
        except (OSError, ValueError, RecursionError):  # a value that has no JSON
            return


def notify(on_news: Notify | None, news: News) -> None:
    """Call a session's `on_news`, whose failure must not end the turn."""
    if on_news is None:
        return
    _, error = attempt(on_news, news)
    if error is not None:
        context = {"message": "on_news failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)


def in_a_line(value: object) -> str:
    """Return a value as a short text on one line."""
    try:
        is_text = isinstance(value, str)
        text = str(value) if is_text else json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):  # too deeply nested
        text = "..."
    return bounded(text, _LONGEST_SHOWN).replace("\n", " ").strip()


def whole(value: object) -> int:
    """Return a count; 0 for anything that is none: text, infinity, a negative number."""
    return int(value) if isinstance(value, int | float) and 0 <= value < _MOST else 0


def _numbers(figures: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, int]:
    """Return token counts by our names; `names` are the agent's, in the same order."""
    return {ours: whole(figures.get(theirs)) for ours, theirs in zip(FIGURES, names, strict=True)}
