"""The output of headless agents: one function per format reads a line into a `TurnBuilder`.

A host's `command_line` names its format. Unknown lines are ignored, because formats grow with every
release; a value of an unexpected type counts as missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from notyet.agents.turn_builder import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from notyet.agents.turn_builder import TurnBuilder
    from notyet.core.session import StopReason

    Entry = dict[str, Any]

ANTHROPIC_FIGURES = (
    *("input_tokens", "output_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
)
_CACHES = ("read", "write")
_STOPS: dict[str, StopReason] = {
    "max_tokens": "max_tokens",
    "length": "max_tokens",
    "refusal": "refusal",
    "error_max_turns": "max_turns",
}
_SHELLS = frozenset({"Bash", "bash", "Execute", "run_shell_command", "shell", "terminal"})
_QWEN_FAILED = "[API Error: "
_GOOSE_FAILED = "Ran into this error: "
OWN_WORDS = "<synthetic>"  # the model of messages that Claude Code itself writes


def read_claude(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `claude --output-format stream-json`, which qwen writes too."""
    kind = entry.get("type")
    builder.named(entry.get("session_id"))
    if kind == "system" and entry.get("subtype") == "init":
        builder.model = _text(entry.get("model")) or builder.model
        builder.accept()
    elif kind in ("assistant", "user"):
        _claude_message(kind, entry, builder)
    elif kind == "result":
        _claude_result(entry, builder)


def _claude_message(kind: str, entry: Entry, builder: TurnBuilder) -> None:
    message = _dict(entry.get("message"))
    model = _text(message.get("model"))
    is_own = not entry.get("parent_tool_use_id")  # else a subagent's
    texts = []
    for block in _dicts(message.get("content")):
        if kind == "user":
            builder.answered(_joined(block.get("content")))
        elif block.get("type") == "text" and is_own and model != OWN_WORDS:
            texts.append(_text(block.get("text")))
        elif block.get("type") == "tool_use" and is_own:
            _use(builder, block.get("name"), block.get("input"))
    builder.say("\n".join(texts))
    if kind == "assistant" and model != OWN_WORDS:
        builder.model = model or builder.model
        builder.count(message.get("id"), _dict(message.get("usage")), ANTHROPIC_FIGURES)


def _claude_result(entry: Entry, builder: TurnBuilder) -> None:
    builder.sum_up(_dict(entry.get("usage")), ANTHROPIC_FIGURES)
    builder.turns = whole(entry.get("num_turns"))
    subtype = entry.get("subtype")
    if subtype == "error_max_turns":
        builder.finish("max_turns")
        return
    if entry.get("is_error"):
        errors = entry.get("errors") or entry.get("error") or entry.get("result") or subtype
        builder.fail("; ".join(map(_said, errors)) if isinstance(errors, list) else _said(errors))
    else:
        answer = _text(entry.get("result"))
        if answer.strip() != builder.text.strip():
            builder.say(answer)
    builder.finish(_STOPS.get(_text(entry.get("stop_reason")), "end_turn"))


def read_qwen(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of qwen; its sums count a resumed conversation twice, so they are ignored."""
    message = _dict(entry.get("message"))
    usage = _dict(message.get("usage"))
    cached = whole(usage.get("cache_read_input_tokens"))  # which it counts as input, too
    usage = usage | {"input_tokens": max(0, whole(usage.get("input_tokens")) - cached)}
    read_claude(entry | {"message": message | {"usage": usage}}, builder)
    builder.figures = None
    if entry.get("type") == "result" and builder.text.startswith(_QWEN_FAILED):
        builder.fail(builder.text)  # which it calls a success
        builder.text = ""


def read_codex(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `codex exec --json`."""
    kind = entry.get("type")
    if kind == "thread.started":
        builder.named(entry.get("thread_id"))
    elif kind == "turn.started":
        builder.accept()
    elif kind in ("item.started", "item.completed"):
        _codex_item(kind, _dict(entry.get("item")), builder)
    elif kind == "turn.completed":
        usage = _dict(entry.get("usage"))
        cached = whole(usage.get("cached_input_tokens"))
        figures = {
            "input": max(0, whole(usage.get("input_tokens")) - cached),
            "output": usage.get("output_tokens"),
            "cache_read": cached,
            "cache_write": usage.get("cache_write_input_tokens"),
        }
        builder.sum_up(figures)
        builder.finish()
    elif kind == "turn.failed":
        builder.fail(_said(entry.get("error")))
        builder.finish()
    elif kind == "error":  # it tries again, without end where the network is gone
        builder.report(_said(entry))


def _codex_item(kind: str, item: Entry, builder: TurnBuilder) -> None:
    what = item.get("type")
    if what == "agent_message":
        if kind == "item.completed":
            builder.say(item.get("text"))
        return
    if what in ("reasoning", "error", "todo_list"):  # its own warnings are items of kind "error"
        return
    # Short items come without `item.started`.
    if builder.is_new(item.get("id")):
        name = item.get("tool") if what == "mcp_tool_call" else what
        given = {k: v for k, v in item.items() if k not in ("id", "type", "status", "result")}
        builder.use(name, given, item.get("command"))
    if kind == "item.completed":
        builder.answered(item.get("aggregated_output"))


def read_gemini(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `gemini -o stream-json`."""
    kind = entry.get("type")
    if kind == "init":
        builder.named(entry.get("session_id"))
        builder.model = _text(entry.get("model")) or None
    elif kind == "message" and entry.get("role") == "user":
        builder.accept()
    elif kind == "message":
        note = builder.piece if entry.get("delta") else builder.say
        note(entry.get("content"))
    elif kind == "tool_use":
        _use(builder, entry.get("tool_name"), entry.get("parameters"))
    elif kind == "tool_result":
        builder.answered(entry.get("output"))
    elif kind == "error":
        builder.flush()  # a hook that sends the agent back is such a warning, between two answers
        is_warning = entry.get("severity") == "warning"
        (builder.report if is_warning else builder.fail)(_said(entry))
    elif kind == "result":
        stats = _dict(entry.get("stats"))
        cached = whole(stats.get("cached"))
        figures = {
            "input": stats.get("input", max(0, whole(stats.get("input_tokens")) - cached)),
            "output": stats.get("output_tokens"),
            "cache_read": cached,
        }
        builder.sum_up(figures)
        if entry.get("status") != "success":
            builder.fail(_said(entry.get("error")))
        builder.finish()


def read_opencode(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `opencode run --format json`."""
    kind = entry.get("type")
    part = _dict(entry.get("part"))
    builder.named(entry.get("sessionID"))
    if kind == "step_start":
        builder.accept()
        builder.turns += 1
    elif kind == "text":
        builder.say(part.get("text"))
    elif kind == "tool_use":
        state = _dict(part.get("state"))
        _use(builder, part.get("tool"), state.get("input"))
        builder.answered(state.get("output"))
    elif kind == "step_finish":
        tokens = _dict(part.get("tokens"))
        cache = _dict(tokens.get("cache"))
        figures = {
            "input": tokens.get("input"),
            "output": whole(tokens.get("output")) + whole(tokens.get("reasoning")),
            "cache_read": cache.get("read"),
            "cache_write": cache.get("write"),
        }
        builder.count(part.get("id"), figures)
        if part.get("reason") != "tool-calls":
            builder.finish(_STOPS.get(_text(part.get("reason")), "end_turn"))
    elif kind == "error":
        builder.fail(_said(entry.get("error")))


def read_copilot(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `copilot --output-format json`; it reports no tokens."""
    kind = entry.get("type")
    data = _dict(entry.get("data"))
    is_own = not data.get("parentToolCallId") and not entry.get("agentId")  # else a subagent's
    if kind == "user.message":
        builder.accept()
    elif kind == "assistant.turn_start" and is_own:
        builder.turns += 1
    elif kind == "assistant.message" and is_own:
        builder.model = _text(data.get("model")) or builder.model
        builder.say(data.get("content"))
    elif kind == "tool.execution_start" and is_own:
        _use(builder, data.get("toolName"), data.get("arguments"))
    elif kind == "tool.execution_complete":
        builder.answered(_dict(data.get("result")).get("content"))
    elif kind == "session.error":
        builder.fail(_said(data))
    elif kind == "result":
        builder.named(entry.get("sessionId"))
        code = entry.get("exitCode")
        if isinstance(code, int) and code and builder.error is None:
            builder.fail(f"copilot says that it failed with exit code {code}")
        builder.finish()


def read_cursor(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `cursor-agent --output-format stream-json`, as cursor.com documents it.

    It reports no tokens, and its `result` joins all that the agent said.
    """
    kind = entry.get("type")
    builder.named(entry.get("session_id"))
    if kind == "system":
        builder.model = _text(entry.get("model")) or None
        builder.accept()
    elif kind == "assistant":
        builder.turns += 1
        builder.say(_joined(_dict(entry.get("message")).get("content")))
    elif kind == "tool_call":
        _cursor_call(entry, builder)
    elif kind == "result":
        if entry.get("is_error"):
            builder.fail(_said(entry.get("error") or entry.get("result")))
        builder.finish()


def _cursor_call(entry: Entry, builder: TurnBuilder) -> None:
    for key, value in _dict(entry.get("tool_call")).items():  # one, such as `shellToolCall`
        call = _dict(value)
        if entry.get("subtype") == "started":
            name = call.get("name") or key.removesuffix("ToolCall")
            _use(builder, name, call.get("args") or _parsed(call.get("arguments")))
        else:
            result = _dict(_dict(call.get("result")).get("success"))
            builder.answered(result.get("stdout") or result.get("content"))


def read_droid(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `droid exec -o stream-json`; its `numTurns` counts the whole conversation."""
    kind = entry.get("type")
    builder.named(entry.get("session_id"))
    if kind == "system":
        builder.model = _text(entry.get("model")) or None
    elif kind == "message" and entry.get("role") == "user":
        builder.accept()
    elif kind == "message":
        builder.turns += builder.is_new(entry.get("id"))
        builder.say(entry.get("text"))
    elif kind == "tool_call":
        builder.turns += builder.is_new(entry.get("messageId"))
        _use(builder, entry.get("toolName"), entry.get("parameters"))
    elif kind == "tool_result":
        builder.answered(entry.get("value"))
    elif kind == "error" and builder.error is None:  # the second one says only that it failed
        builder.fail(_said(entry))
    elif kind == "completion":
        builder.sum_up(_dict(entry.get("usage")), ANTHROPIC_FIGURES)
        builder.finish()


def read_vibe(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `vibe --output streaming`; it reports no tokens."""
    kind = entry.get("type")
    builder.named(entry.get("sessionId"))
    if kind == "message" and entry.get("role") == "user":
        builder.accept()
    elif kind == "message":
        builder.say(_joined(entry.get("content")))
        if _dict(entry.get("outcome")).get("type") == "committed":
            builder.finish()
    elif kind == "effect":
        detail = _dict(entry.get("detail"))
        given = _dict(detail.get("input"))
        script = given.get("command") if detail.get("kind") == "shell" else None
        builder.use(detail.get("toolName"), given, script)
        builder.answered(_dict(entry.get("state")).get("outputText"))


def read_pi(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `pi -p --mode json`."""
    kind = entry.get("type")
    message = _dict(entry.get("message"))
    if kind == "session":
        builder.named(entry.get("id"))
    elif kind == "agent_start":
        builder.accept()
    elif kind == "turn_end":
        builder.turns += 1
        builder.model = _text(message.get("model")) or builder.model
        builder.say(_joined(message.get("content")))
        figures = ("input", "output", "cacheRead", "cacheWrite")
        builder.count(str(message.get("timestamp")), _dict(message.get("usage")), figures)
    elif kind == "tool_execution_start":
        _use(builder, entry.get("toolName"), entry.get("args"))
    elif kind == "tool_execution_end":
        builder.answered(_joined(_dict(entry.get("result")).get("content")))
    elif kind == "agent_end":
        _pi_end(entry, builder)


def _pi_end(entry: Entry, builder: TurnBuilder) -> None:
    last = next(iter([*_dicts(entry.get("messages"))][-1:]), {})
    reason, error = _text(last.get("stopReason")), last.get("errorMessage")
    if entry.get("willRetry"):
        builder.report(error)
        return
    if reason == "error":
        builder.fail(error)
    builder.finish(_STOPS.get(reason, "end_turn"))


def read_goose(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `goose run --output-format stream-json`; it does not name its session."""
    kind = entry.get("type")
    if kind == "message":
        _goose_message(_dict(entry.get("message")), builder)
    elif kind == "error":
        builder.fail(_said(entry.get("error")))
    elif kind == "complete":
        output = whole(entry.get("output_tokens"))
        read, written = (whole(entry.get(f"cache_{which}_input_tokens")) for which in _CACHES)
        given = max(0, whole(entry.get("total_tokens")) - output - read - written)
        figures = {"input": given, "output": output, "cache_read": read, "cache_write": written}
        builder.sum_up(figures)
        builder.finish()


def _goose_message(message: Entry, builder: TurnBuilder) -> None:
    """Read a message, or a piece of one: the pieces have the same id."""
    if builder.is_new(message.get("id")):
        builder.flush()
    inference = _dict(_dict(message.get("metadata")).get("inference"))
    builder.model = _text(inference.get("requestedModel")) or builder.model
    for part in _dicts(message.get("content")):
        what = part.get("type")
        if what == "text" and message.get("role") == "assistant":
            text = _text(part.get("text"))
            is_failure = not inference and text.startswith(_GOOSE_FAILED)  # in goose's own words
            (builder.fail if is_failure else builder.piece)(text)
        elif what == "toolRequest":
            call = _dict(_dict(part.get("toolCall")).get("value"))
            _use(builder, call.get("name"), call.get("arguments"))
        elif what == "toolResponse":
            result = _dict(_dict(part.get("toolResult")).get("value"))
            builder.answered(_joined(result.get("content")))


def read_kimi(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `kimi --output-format stream-json`; it reports no tokens and no errors."""
    role = entry.get("role")
    if role == "assistant":
        builder.turns += 1
        builder.say(entry.get("content"))
        for call in _dicts(entry.get("tool_calls")):
            function = _dict(call.get("function"))
            _use(builder, function.get("name"), _parsed(function.get("arguments")))
    elif role == "tool":
        builder.answered(entry.get("content"))
    elif entry.get("type") == "session.resume_hint":  # the last line
        builder.named(entry.get("session_id"))
        builder.finish()


def read_openhands(entry: Entry, builder: TurnBuilder) -> None:
    """Read a line of `openhands --headless --json`; it reports no tokens and no session."""
    kind, source = entry.get("kind"), entry.get("source")
    if kind in ("MessageEvent", "ActionEvent"):
        builder.is_finished = False  # a hook may have sent it back
    if kind == "MessageEvent" and source != "agent":
        builder.accept()
    elif kind == "MessageEvent":
        builder.turns += builder.is_new(entry.get("llm_response_id"))
        builder.say(_joined(_dict(entry.get("llm_message")).get("content")))
        builder.finish()
    elif kind == "ActionEvent":
        action = _dict(entry.get("action"))
        builder.turns += builder.is_new(entry.get("llm_response_id"))
        builder.say(_joined(entry.get("thought")))
        if action.get("kind") == "FinishAction":
            builder.say(action.get("message"))
            builder.finish()
        else:
            _use(builder, entry.get("tool_name"), action)
    elif kind == "ObservationEvent":
        builder.answered(_joined(_dict(entry.get("observation")).get("content")))
    elif kind == "ConversationErrorEvent" and entry.get("code") == "MaxIterationsReached":
        builder.finish("max_turns")
    elif kind == "ConversationErrorEvent":
        builder.fail(entry.get("detail") or entry.get("code"))


def _parsed(arguments: object) -> object:
    try:
        return json.loads(_text(arguments))
    except ValueError:
        return arguments


def _use(builder: TurnBuilder, name: object, given: object) -> None:
    script = _dict(given).get("command") if _text(name) in _SHELLS else None
    builder.use(name, given, script)


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


READERS: dict[str, Callable[[Entry, TurnBuilder], None]] = {
    "claude-stream": read_claude,
    "codex-json": read_codex,
    "gemini-stream": read_gemini,
    "opencode-json": read_opencode,
    "vibe-stream": read_vibe,
    "qwen-stream": read_qwen,
    "copilot-json": read_copilot,
    "cursor-stream": read_cursor,
    "goose-stream": read_goose,
    "droid-stream": read_droid,
    "kimi-stream": read_kimi,
    "openhands-json": read_openhands,
    "pi-json": read_pi,
}
