"""Read the output of headless agents line by line, one function per format."""

from __future__ import annotations

import asyncio
import json

from notyet.core.event import Usage
from notyet.core.session import News, Turn
from notyet.core.text import bounded, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from notyet.agents.transcript import Transcript
    from notyet.core.session import StopReason

    Tell = Callable[[News], None]
    Entry = dict[str, Any]
    Read = Callable[[Entry, "Reading"], None]

_LONGEST_TEXT = 1_000_000
_LONGEST_SHOWN = 400  # of a tool's input
_MOST_TOOLS = 1000  # names that are kept; the calls are all counted
_MOST = 2**53  # larger numbers are no counts, and not every reader of JSON keeps them
FIGURES = ("input", "output", "cache_read", "cache_write")


class Reading:
    """The turn so far. The readers of the formats call these methods, in the order of events."""

    def __init__(self, tell: Tell, transcript: Transcript, key: str) -> None:
        self._tell = tell
        self._transcript = transcript
        self._key = key
        self.session: str | None = None
        self.model: str | None = None
        self.text = ""
        self.error: str | None = None
        self.stop_reason: StopReason = "end_turn"
        self.is_accepted = self.is_finished = False
        self.understood = self.garbage = 0  # lines
        self.figures: dict[str, int] | None = None  # as the agent sums them up
        self.parts: dict[str, dict[str, int]] = {}  # as they come, by message
        self.tools: list[str] = []
        self.tool_calls = 0
        self.turns = 0
        self._pieces: list[str] = []
        self._told: set[object] = set()

    def named(self, session: object) -> None:
        """Note the id of the conversation."""
        if isinstance(session, str) and session:
            self.session = session

    def accept(self) -> None:
        """Note that the agent has the prompt."""
        if not self.is_accepted:
            self.is_accepted = True
            self.keep(self._transcript.accepted, self._key)
            self._tell(News(kind="accepted"))

    def say(self, text: object) -> None:
        """Note a whole message of the agent; the last one is its answer."""
        self.flush()
        if isinstance(text, str) and text.strip():
            self.accept()
            self.text = bounded(text, _LONGEST_TEXT)
            self.keep(self._transcript.said, text)
            self._tell(News(kind="text", text=text))

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
        if len(self.tools) < _MOST_TOOLS and tool not in self.tools:
            self.tools.append(tool)
        if isinstance(script, str):  # under the name that scripts look for
            self.keep(self._transcript.tool, "bash", {"script": script, "tool": tool})
        else:
            self.keep(self._transcript.tool, tool, given)
        self._tell(News(kind="tool", tool=tool, text=in_a_line(script or given)))

    def is_new(self, call: object) -> bool:
        """Return True for a call that was not noted before: some formats repeat it."""
        if not isinstance(call, str) or call in self._told:
            return not isinstance(call, str)
        self._told.add(call)
        return True

    def answered(self, text: object) -> None:
        """Note the output of a tool."""
        if isinstance(text, str) and text:
            self.keep(self._transcript.result, text)

    def count(self, message: object, figures: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """Note the tokens of one request; a repeated report replaces the first."""
        self.parts[message if isinstance(message, str) else ""] = _numbers(figures, names)

    def sum_up(self, figures: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """Note the tokens that the agent summed up itself."""
        self.figures = _numbers(figures, names)

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


def tell(watcher: Tell | None, news: News) -> None:
    """Call the watcher, whose failure must not end the turn."""
    if watcher is None:
        return
    try:
        watcher(news)
    except Exception as error:  # noqa: BLE001  # foreign code
        context = {"message": "on_news failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)


def in_a_line(value: object) -> str:
    """Return a value as a short text on one line."""
    try:
        text = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        )
    except (ValueError, RecursionError):  # too deeply nested
        text = "..."
    return bounded(text, _LONGEST_SHOWN).replace("\n", " ").strip()


def whole(value: object) -> int:
    """Return a count; 0 for anything that is none: text, infinity, a negative number."""
    return int(value) if isinstance(value, int | float) and 0 <= value < _MOST else 0


def _numbers(figures: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, int]:
    """Return token counts by our names; `names` are the agent's, in the same order."""
    found = {}
    for ours, theirs in zip(FIGURES, names, strict=True):
        found[ours] = whole(figures.get(theirs))
    return found


# One function per format. Each takes a parsed line and notes in a `Reading` what it means. Unknown
# lines are ignored, because formats grow with every release; a value of an unexpected type counts
# as missing.


_ANTHROPIC = (
    *("input_tokens", "output_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
)
_PLAIN = ("input", "output", "cache_read", "cache_write")
_STOPS: dict[str, StopReason] = {
    "max_tokens": "max_tokens",
    "length": "max_tokens",
    "refusal": "refusal",
    "error_max_turns": "max_turns",
}
_SHELLS = frozenset({"Bash", "bash", "run_shell_command", "shell"})
_QWEN_FAILED = "[API Error: "
_OWN_WORDS = "<synthetic>"  # the model of messages that Claude Code itself writes


def read_claude(entry: Entry, reading: Reading) -> None:
    """Read a line of `claude --output-format stream-json`, which qwen writes too."""
    kind = entry.get("type")
    reading.named(entry.get("session_id"))
    if kind == "system" and entry.get("subtype") == "init":
        reading.model = _text(entry.get("model")) or reading.model
        reading.accept()
    elif kind in ("assistant", "user"):
        _claude_message(kind, entry, reading)
    elif kind == "result":
        _claude_result(entry, reading)


def _claude_message(kind: str, entry: Entry, reading: Reading) -> None:
    message = _dict(entry.get("message"))
    model = _text(message.get("model"))
    is_own = not entry.get("parent_tool_use_id")  # else a subagent's
    texts = []
    for block in _dicts(message.get("content")):
        if kind == "user":
            reading.answered(_joined(block.get("content")))
        elif block.get("type") == "text" and is_own and model != _OWN_WORDS:
            texts.append(_text(block.get("text")))
        elif block.get("type") == "tool_use" and is_own:
            _use(reading, block.get("name"), block.get("input"))
    reading.say("\n".join(texts))
    if kind == "assistant" and model != _OWN_WORDS:
        reading.model = model or reading.model
        reading.count(message.get("id"), _dict(message.get("usage")), _ANTHROPIC)


def _claude_result(entry: Entry, reading: Reading) -> None:
    reading.sum_up(_dict(entry.get("usage")), _ANTHROPIC)
    reading.turns = whole(entry.get("num_turns"))
    subtype = entry.get("subtype")
    if subtype == "error_max_turns":
        reading.finish("max_turns")
        return
    if entry.get("is_error"):
        errors = entry.get("errors") or entry.get("error") or entry.get("result") or subtype
        reading.fail("; ".join(map(_said, errors)) if isinstance(errors, list) else _said(errors))
    else:
        answer = _text(entry.get("result"))
        if answer.strip() != reading.text.strip():
            reading.say(answer)
    reading.finish(_STOPS.get(_text(entry.get("stop_reason")), "end_turn"))


def read_qwen(entry: Entry, reading: Reading) -> None:
    """Read a line of qwen; its sums count a resumed conversation twice, so they are ignored."""
    message = _dict(entry.get("message"))
    usage = _dict(message.get("usage"))
    cached = whole(usage.get("cache_read_input_tokens"))  # which it counts as input, too
    usage = usage | {"input_tokens": max(0, whole(usage.get("input_tokens")) - cached)}
    read_claude(entry | {"message": message | {"usage": usage}}, reading)
    reading.figures = None
    if entry.get("type") == "result" and reading.text.startswith(_QWEN_FAILED):
        reading.fail(reading.text)  # which it calls a success
        reading.text = ""


def read_codex(entry: Entry, reading: Reading) -> None:
    """Read a line of `codex exec --json`."""
    kind = entry.get("type")
    if kind == "thread.started":
        reading.named(entry.get("thread_id"))
    elif kind == "turn.started":
        reading.accept()
    elif kind in ("item.started", "item.completed"):
        _codex_item(kind, _dict(entry.get("item")), reading)
    elif kind == "turn.completed":
        usage = _dict(entry.get("usage"))
        cached = whole(usage.get("cached_input_tokens"))
        figures = {
            "input": max(0, whole(usage.get("input_tokens")) - cached),
            "output": usage.get("output_tokens"),
            "cache_read": cached,
            "cache_write": usage.get("cache_write_input_tokens"),
        }
        reading.sum_up(figures, _PLAIN)
        reading.finish()
    elif kind == "turn.failed":
        reading.fail(_said(entry.get("error")))
        reading.finish()


def _codex_item(kind: str, item: Entry, reading: Reading) -> None:
    what = item.get("type")
    if what == "agent_message":
        if kind == "item.completed":
            reading.say(item.get("text"))
        return
    if what in ("reasoning", "error", "todo_list"):  # its own warnings are items of kind "error"
        return
    # Short items come without `item.started`.
    if reading.is_new(item.get("id")):
        name = item.get("tool") if what == "mcp_tool_call" else what
        given = {k: v for k, v in item.items() if k not in ("id", "type", "status", "result")}
        reading.use(name, given, item.get("command"))
    if kind == "item.completed":
        reading.answered(item.get("aggregated_output"))


def read_gemini(entry: Entry, reading: Reading) -> None:
    """Read a line of `gemini -o stream-json`."""
    kind = entry.get("type")
    if kind == "init":
        reading.named(entry.get("session_id"))
        reading.model = _text(entry.get("model")) or None
    elif kind == "message" and entry.get("role") == "user":
        reading.accept()
    elif kind == "message":
        note = reading.piece if entry.get("delta") else reading.say
        note(entry.get("content"))
    elif kind == "tool_use":
        _use(reading, entry.get("tool_name"), entry.get("parameters"))
    elif kind == "tool_result":
        reading.answered(entry.get("output"))
    elif kind == "error" and entry.get("severity") != "warning":
        reading.fail(_said(entry))
    elif kind == "result":
        stats = _dict(entry.get("stats"))
        cached = whole(stats.get("cached"))
        figures = {
            "input": stats.get("input", max(0, whole(stats.get("input_tokens")) - cached)),
            "output": stats.get("output_tokens"),
            "cache_read": cached,
        }
        reading.sum_up(figures, _PLAIN)
        if entry.get("status") != "success":
            reading.fail(_said(entry.get("error")))
        reading.finish()


def read_opencode(entry: Entry, reading: Reading) -> None:
    """Read a line of `opencode run --format json`."""
    kind = entry.get("type")
    part = _dict(entry.get("part"))
    reading.named(entry.get("sessionID"))
    if kind == "step_start":
        reading.accept()
        reading.turns += 1
    elif kind == "text":
        reading.say(part.get("text"))
    elif kind == "tool_use":
        state = _dict(part.get("state"))
        _use(reading, part.get("tool"), state.get("input"))
        reading.answered(state.get("output"))
    elif kind == "step_finish":
        tokens = _dict(part.get("tokens"))
        cache = _dict(tokens.get("cache"))
        figures = {
            "input": tokens.get("input"),
            "output": whole(tokens.get("output")) + whole(tokens.get("reasoning")),
            "cache_read": cache.get("read"),
            "cache_write": cache.get("write"),
        }
        reading.count(part.get("id"), figures, _PLAIN)
        if part.get("reason") != "tool-calls":
            reading.finish(_STOPS.get(_text(part.get("reason")), "end_turn"))
    elif kind == "error":
        reading.fail(_said(entry.get("error")))


def read_copilot(entry: Entry, reading: Reading) -> None:
    """Read a line of `copilot --output-format json`; it tells no tokens."""
    kind = entry.get("type")
    data = _dict(entry.get("data"))
    is_own = not data.get("parentToolCallId") and not entry.get("agentId")  # else a subagent's
    if kind == "user.message":
        reading.accept()
    elif kind == "assistant.turn_start" and is_own:
        reading.turns += 1
    elif kind == "assistant.message" and is_own:
        reading.model = _text(data.get("model")) or reading.model
        reading.say(data.get("content"))
    elif kind == "tool.execution_start" and is_own:
        _use(reading, data.get("toolName"), data.get("arguments"))
    elif kind == "tool.execution_complete":
        reading.answered(_dict(data.get("result")).get("content"))
    elif kind == "session.error":
        reading.fail(_said(data))
    elif kind == "result":
        reading.named(entry.get("sessionId"))
        code = entry.get("exitCode")
        if isinstance(code, int) and code and reading.error is None:
            reading.fail(f"copilot says that it failed with exit code {code}")
        reading.finish()


def _use(reading: Reading, name: object, given: object) -> None:
    script = _dict(given).get("command") if _text(name) in _SHELLS else None
    reading.use(name, given, script)


def _said(error: object) -> str:
    """Return the message of an error, wherever a format puts it."""
    found = _dict(error)
    for place in (found, _dict(found.get("data")), _dict(found.get("error"))):
        if isinstance(place.get("message"), str) and place["message"]:
            return str(place["message"])
    if found:
        return _text(found.get("name")) or _text(found.get("type"))
    return error if isinstance(error, str) else ""


def _joined(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_text(block["text"]) for block in _dicts(content) if "text" in block)


def _dicts(value: object) -> Iterable[Entry]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _dict(value: object) -> Entry:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


READERS: dict[str, Read] = {
    "claude-stream": read_claude,
    "codex-json": read_codex,
    "gemini-stream": read_gemini,
    "opencode-json": read_opencode,
    "qwen-stream": read_qwen,
    "copilot-json": read_copilot,
}
