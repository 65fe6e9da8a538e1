"""The Messages protocol that Claude Code speaks with its model."""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any

from clients.model.script import Request, Run, Say, Spawn, Step, actor_in

_USAGE = {"input_tokens": 7, "output_tokens": 3}
_ids = count(1)
# A stop hook's words, as context or as a block, and what closes them.
_CONTEXT = re.compile(
    r"^<system-reminder>\n(?:Subagent)?Stop hook additional context: (.*)\n</system-reminder>\s*$",
    re.DOTALL,
)
_NEXT = re.compile(r"\n\n(?:Subagent)?Stop hook additional context: ")  # another hook's, in one
_FEEDBACK = re.compile(r"^Stop hook feedback:\n(?:\[[^]\n]*\]: )?(.*)$", re.DOTALL)

_BARE = re.compile(r"^(notyet: .*)$", re.DOTALL)  # by a supervisor, as a message of its user


def is_asked(path: str) -> bool:
    """Tell whether the model is asked for an answer."""
    return path.endswith("/messages")


def read(body: dict[str, Any], headers: dict[str, str]) -> Request:
    """Return what is asked."""
    texts: list[str] = []
    results: list[str] = []
    news: list[str] = []
    task = ""
    for message in body.get("messages", []):
        if message["role"] == "assistant":
            news = []
            continue
        found = list(_texts(message["content"]))
        task = task or "\n".join(found)
        texts += found
        news += found
        results += _results(message["content"])
    return Request(actor_in(task), texts, results, body, headers, news)


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _texts(content: Any) -> list[str]:
    return [block["text"] for block in _blocks(content) if block["type"] == "text"]


def _results(content: Any) -> list[str]:
    found = [block for block in _blocks(content) if block["type"] == "tool_result"]
    return ["\n".join(_texts(block.get("content"))) for block in found]


def prompts(texts: list[str]) -> list[str]:
    """Return what stop hooks said."""
    found = [pattern.match(text) for text in texts for pattern in (_CONTEXT, _FEEDBACK, _BARE)]
    return [words for match in found if match for words in _NEXT.split(match[1])]


def aside(request: Request) -> list[dict[str, Any]] | None:
    """Answer what is no turn of an agent: titles and summaries are asked for without tools."""
    return None if request.raw.get("tools") else write(Say("A title"), request)


def write(step: Step, request: Request) -> list[dict[str, Any]]:
    """Return the stream of one answer."""
    number = next(_ids)
    if isinstance(step, Say):
        start = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": step.text}
    else:
        name, given = _tool(step, request)
        start = {"type": "tool_use", "id": f"toolu_{number:08}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    message = {
        "id": f"msg_{number:08}",
        "type": "message",
        "role": "assistant",
        "model": request.raw.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    why = {"stop_reason": "end_turn" if isinstance(step, Say) else "tool_use"}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": why | {"stop_sequence": None}, "usage": _USAGE},
        {"type": "message_stop"},
    ]


def _tool(step: Step, request: Request) -> tuple[str, dict[str, Any]]:
    """Return a call of one of the tools that were offered."""
    offered = {tool["name"]: tool for tool in request.raw["tools"]}
    if isinstance(step, Run):
        given = {"command": step.command, "description": "scripted"}
        return "Bash", given | ({"run_in_background": True} if step.background else {})
    assert isinstance(step, Spawn)
    name = "Agent" if "Agent" in offered else "Task"
    given = {
        "description": "scripted",
        "prompt": step.task,
        "subagent_type": step.agent_type or "general-purpose",
        "run_in_background": step.background,
    } | ({"isolation": "worktree"} if step.isolated else {})
    known = offered[name]["input_schema"]["properties"]
    return name, {key: value for key, value in given.items() if key in known}


def other(method: str, path: str) -> dict[str, Any]:
    """Answer anything else that a program asks."""
    return {"input_tokens": 10} if path.endswith("/count_tokens") else {}
