"""Messages of ACP, versions 1 and 2 (draft): reading what we need of them, and writing ours.

Version 1 answers `session/prompt` when the turn has ended. Version 2 answers it at once, and says
by an update that the session is idle again.
"""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]

CANCELLED = -32800  # the error of a request that was cancelled
INTERNAL = -32603
NEW_SESSION = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
PROMPT = "session/prompt"
UPDATE = "session/update"
CANCEL = "session/cancel"
CANCEL_REQUEST = "$/cancel_request"
# Ways in which clients end a session, and with it what runs in it.
CLOSING = frozenset({CANCEL, "session/close", "session/delete"})
END_TURN = "end_turn"
SPOKEN = frozenset({"agent_message_chunk", "agent_message"})
TOOLS = frozenset({"tool_call", "tool_call_update"})


def parse(line: bytes) -> Message | None:
    """Return the message of a line; None if it is no JSON object."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def line_of(message: Message) -> bytes:
    """Return the line of a message."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def request(number: object, method: str, params: Message) -> bytes:
    """Return a request."""
    return line_of({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: Message) -> bytes:
    """Return a notification."""
    return line_of({"jsonrpc": "2.0", "method": method, "params": params})


def result(number: object, value: object) -> bytes:
    """Return the answer to a request."""
    return line_of({"jsonrpc": "2.0", "id": number, "result": value})


def error(number: object, code: int, words: str) -> bytes:
    """Return the answer to a request that failed."""
    failed = {"code": code, "message": words}
    return line_of({"jsonrpc": "2.0", "id": number, "error": failed})


def prompt(number: object, session: str, text: str) -> bytes:
    """Return a prompt of ours."""
    return request(
        number, PROMPT, {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    )


def update(session: str, kind: str, fields: Message) -> bytes:
    """Return an update for the client."""
    return notification(UPDATE, {"sessionId": session, "update": {"sessionUpdate": kind, **fields}})


def tool_call(
    version: int, session: str, call: str, *, title: str, status: str, text: str = "", new: bool
) -> bytes:
    """Return what shows work of ours as a tool call: a `new` one, or how it goes on."""
    fields: Message = {"toolCallId": call, "title": title, "status": status}
    if new:
        fields["kind"] = "other"
    if text:
        fields["content"] = [{"type": "content", "content": {"type": "text", "text": text}}]
    kind = "tool_call" if new and version == 1 else "tool_call_update"
    return update(session, kind, fields)


def words(session: str, message: str, text: str) -> bytes:
    """Return words of ours, as a message of the agent with an id of its own."""
    content = {"type": "text", "text": text}
    return update(session, "agent_message_chunk", {"content": content, "messageId": message})


def key(number: object) -> str:
    """Return a request's id as a key: 1 and "1" are two ids."""
    return json.dumps(number)


def value(message: Message, *path: str) -> Any:
    """Return what stands at a path of keys; None if there is nothing."""
    found: Any = message
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def text_of(content: object) -> str:
    """Return the text of a content block, or of several."""
    blocks = content if isinstance(content, list) else [content]
    found = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "".join(text for text in found if isinstance(text, str))


def has_failed(answer: Message) -> bool:
    """Return True if a request failed; some agents write `"error": null` beside a result."""
    return answer.get("error") is not None


def result_of(answer: Message) -> Message:
    """Return the result of a request; empty if it is no object."""
    found = answer.get("result")
    return found if isinstance(found, dict) else {}


def prompt_text(params: Message) -> str:
    """Return the words of a prompt."""
    blocks = params.get("prompt")
    found = [text_of(block) for block in blocks] if isinstance(blocks, list) else []
    return "\n".join(text for text in found if text)
