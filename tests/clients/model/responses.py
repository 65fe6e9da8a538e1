"""The streaming Responses protocol, as Codex speaks it.

Codex starts a subagent with one tool and waits for it with another. A script says `Spawn` for
both: the call's id remembers that it, and whom, is to be waited for.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from dataclasses import dataclass
from typing import Any

from clients.model.script import Request, Run, Say, Spawn, Step, actor_in

# The tools for subagents, old and new, are in these namespaces.
_AGENTS = "multi_agent_v1"
_TEAM = "collaboration"
_AWAITED = "awaited_"
_LONGEST_WAIT = 90_000  # milliseconds
_FRAMES = ("<environment_context>", "# AGENTS.md")  # the program's own words about the place
_ENDED = "<subagent_notification>"
_TITLE = "Your task is to generate a very short title"  # codex-acp asks for it beside the turn
_PROMPT = re.compile(r'<hook_prompt hook_run_id="[^"]*">(.*)</hook_prompt>', re.DOTALL)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Tell:
    """Give a subagent more to do, and wait for its report; only Codex's agents can."""

    agent: str
    words: str


def is_asked(path: str) -> bool:
    """Tell whether a POST to this path asks the model for an answer."""
    return path.endswith("/responses")


def other(_method: str, _path: str) -> dict[str, Any]:
    """Answer a request for anything else: there are no other models."""
    return {"object": "list", "data": [], "models": []}


def read(body: dict[str, Any], headers: dict[str, str]) -> Request:
    """Read a request. Whose it is stands in its first text that is not the program's own."""
    texts: list[str] = []
    news: list[str] = []
    results: list[str] = []
    for item in body["input"]:
        if item["type"] == "function_call_output":
            results.append(_text(item["output"]))
        if item["type"] == "function_call" or item.get("role") == "assistant":
            news = []
        if item.get("role") == "user" or item["type"] == "agent_message":
            said = [text for text in _texts(item) if not text.startswith(_FRAMES)]
            texts += said
            news += said
    return Request(
        actor=actor_in(texts[0] if texts else ""),
        texts=texts,
        results=results,
        raw=body,
        headers=headers,
        news=news,
    )


def told_by_program(request: Request) -> list[str]:
    """Return what the program told the model itself, in the developer's role."""
    items = [item for item in request.raw["input"] if item.get("role") == "developer"]
    return [text for item in items for text in _texts(item)]


def aside(request: Request) -> list[dict[str, Any]] | None:
    """Wait for the subagent which was just given its task, if it is to be waited for.

    And say the same again to the mere news that a subagent has ended: when it comes is chance.
    """
    if any(text.startswith(_TITLE) for text in request.texts):
        return _answer(_message('{"title": "A title"}'))
    said = [item for item in request.raw["input"] if item.get("role") != "user"][-1]
    is_mere_news = request.news and all(text.startswith(_ENDED) for text in request.news)
    if is_mere_news and said.get("role") == "assistant":
        return _answer(_message(said["content"][0]["text"]))
    last = request.raw["input"][-1]
    if last["type"] != "function_call_output" or not last["call_id"].startswith(_AWAITED):
        return None
    if _tools(request.raw, _TEAM):
        return _answer(_call("wait_agent", {"timeout_ms": _LONGEST_WAIT}, namespace=_TEAM))
    agent = last["call_id"].removeprefix(_AWAITED).partition("_")[0]
    agent = agent or json.loads(_text(last["output"]))["agent_id"]
    arguments = {"targets": [agent], "timeout_ms": _LONGEST_WAIT}
    return _answer(_call("wait_agent", arguments, namespace=_AGENTS))


def write(step: Step | Tell, request: Request) -> list[dict[str, Any]]:
    """Return the events of a step."""
    if isinstance(step, Say):
        return _answer(_message(step.text))
    if isinstance(step, Run):
        wanted = {"cmd": step.command, "yield_time_ms": 250 if step.background else 30_000}
        return _answer(_call("exec_command", wanted))
    if isinstance(step, Tell):
        words = {"target": step.agent, "message": step.words}
        prefix = f"{_AWAITED}{step.agent}_"
        return _answer(_call("send_input", words, namespace=_AGENTS, prefix=prefix))
    assert isinstance(step, Spawn)
    is_team = bool(_tools(request.raw, _TEAM))
    namespace = _TEAM if is_team else _AGENTS
    arguments = {"message": step.task}
    if is_team:
        arguments |= {"task_name": actor_in(step.task), "fork_turns": "none"}
    if step.agent_type:
        known = _tools(request.raw, namespace)["spawn_agent"]["parameters"]["properties"]
        assert "agent_type" in known, "no type can be named"
        arguments["agent_type"] = step.agent_type
    prefix = "call_" if step.background else f"{_AWAITED}_"
    return _answer(_call("spawn_agent", arguments, namespace=namespace, prefix=prefix))


def prompts(texts: list[str]) -> list[str]:
    """Return what stop hooks said, as they said it."""
    found = [_PROMPT.fullmatch(text) for text in texts]
    return [html.unescape(match[1]) for match in found if match]


def _texts(item: dict[str, Any]) -> list[str]:
    content = item["content"]
    if isinstance(content, str):
        return [content]
    # What one agent tells another is meant to be secret, and here is not.
    texts = [part.get("text") or part["encrypted_content"] for part in content]
    return ["".join(texts)] if item["type"] == "agent_message" else texts


def _text(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output)


def _tools(body: dict[str, Any], namespace: str) -> dict[str, dict[str, Any]]:
    """Return the tools of a namespace that the model is offered, by name."""
    spaces = [tool for tool in body["tools"] if tool.get("name") == namespace]
    return {tool["name"]: tool for space in spaces for tool in space["tools"]}


def _message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {
        "type": "message",
        "role": "assistant",
        "id": f"msg_{next(_numbers)}",
        "content": content,
    }


def _call(
    name: str, arguments: dict[str, Any], namespace: str = "", prefix: str = "call_"
) -> dict[str, Any]:
    number = next(_numbers)
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"{prefix}{number}",
        "name": name,
        "arguments": json.dumps(arguments),
    } | ({"namespace": namespace} if namespace else {})


def _answer(item: dict[str, Any]) -> list[dict[str, Any]]:
    name = f"resp_{next(_numbers)}"
    usage = {
        "input_tokens": 1,
        "input_tokens_details": None,
        "output_tokens": 1,
        "output_tokens_details": None,
        "total_tokens": 2,
    }
    begun = {"type": "response.output_item.added", "output_index": 0, "item": _begun(item)}
    delta = []
    if item["type"] == "message":
        text = item["content"][0]["text"]
        at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        delta = [{"type": "response.output_text.delta", "delta": text} | at]
    return [
        {"type": "response.created", "response": {"id": name}},
        begun,
        *delta,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": name, "usage": usage}},
    ]


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    return item | ({"content": []} if item["type"] == "message" else {"arguments": ""})
