"""The output of headless agents: one function per format reads a line into a `Reading`.

A host's `command_line` names its format. Unknown lines are ignored, because formats grow with every
release; a value of an unexpected type counts as missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.agents.reading import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from notyet.agents.reading import Reading
    from notyet.core.session import StopReason

    Entry = dict[str, Any]

_ANTHROPIC = (
    *("input_tokens", "output_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
)
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
        reading.sum_up(figures)
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
        reading.sum_up(figures)
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
        reading.count(part.get("id"), figures)
        if part.get("reason") != "tool-calls":
            reading.finish(_STOPS.get(_text(part.get("reason")), "end_turn"))
    elif kind == "error":
        reading.fail(_said(entry.get("error")))


def read_copilot(entry: Entry, reading: Reading) -> None:
    """Read a line of `copilot --output-format json`; it reports no tokens."""
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


READERS: dict[str, Callable[[Entry, Reading], None]] = {
    "claude-stream": read_claude,
    "codex-json": read_codex,
    "gemini-stream": read_gemini,
    "opencode-json": read_opencode,
    "qwen-stream": read_qwen,
    "copilot-json": read_copilot,
}
