"""The streaming protocol of Gemini's API (`streamGenerateContent`), as Gemini CLI speaks it.

A subagent of Gemini CLI ends by a call of its tool `complete_task`, so that is how it says `Say`;
a stop hook that sends it back is told as that call's error.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from clients.model.script import Request, Run, Say, Spawn, Step, actor_in

_PLACE = "<session_context>"  # begins the program's own words about the place
_CONTEXT = re.compile(r"<hook_context>(.*)</hook_context>\n\n", re.DOTALL)  # of a start hook
_DENIED = "Tool execution blocked: "
_OURS = "notyet: "  # the program gives a hook's words to the model as they are
_DONE = "complete_task"
_numbers = itertools.count(1)


def is_asked(path: str) -> bool:
    """Tell whether a POST to this path asks the model for an answer."""
    return path.endswith(":streamGenerateContent")


def other(_method: str, path: str) -> dict[str, Any]:
    """Answer a request for anything else: texts have one token."""
    return {"totalTokens": 1} if path.endswith(":countTokens") else {"models": []}


def read(body: dict[str, Any], headers: dict[str, str]) -> Request:
    """Read a request. Whose it is stands in its first text that is not the program's own."""
    texts: list[str] = []
    news: list[str] = []
    results: list[str] = []
    for content in body["contents"]:
        if content["role"] == "model":
            news = []
            continue
        for part in content["parts"]:
            if "functionResponse" in part:
                response = part["functionResponse"]["response"]
                results.append(json.dumps(response))
                news += [str(error) for key, error in response.items() if key == "error"]
            elif not part["text"].startswith(_PLACE):
                text = _CONTEXT.sub("", part["text"], count=1)
                texts.append(text)
                news.append(text)
    return Request(
        actor=next(filter(lambda actor: actor != "main", map(actor_in, texts)), "main"),
        texts=texts,
        results=results,
        raw=body,
        headers=headers,
        news=news,
    )


def contexts(request: Request) -> list[str]:
    """Return what start hooks told the agent; the program escapes it a little."""
    said = json.dumps(request.raw["contents"])
    return re.findall(r"<hook_context>(.*?)</hook_context>", said)


def aside(_request: Request) -> list[dict[str, Any]] | None:
    """Leave every request to the script."""
    return None


def write(step: Step, request: Request) -> list[dict[str, Any]]:
    """Return the events of a step."""
    tools = _tools(request.raw)
    if isinstance(step, Say):
        if _DONE in tools:
            return _answer(_call(_DONE, _report(tools[_DONE], step.text)))
        return _answer({"text": step.text})
    if isinstance(step, Run):
        return _answer(_call("run_shell_command", {"command": step.command}))
    assert isinstance(step, Spawn)
    agent = step.agent_type or "generalist"
    return _answer(_call("invoke_agent", {"agent_name": agent, "prompt": step.task}))


def prompts(texts: list[str]) -> list[str]:
    """Return what stop hooks said, as they said it."""
    words = [text.removeprefix(_DENIED) for text in texts]
    return [text for text in words if text.startswith(_OURS)]


def _tools(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parameters of the tools that the model is offered, by name."""
    found = {}
    for group in body.get("tools", ()):
        for tool in group["functionDeclarations"]:
            schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
            found[tool["name"]] = schema.get("properties", {})
    return found


def _report(parameters: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a report in the form that a subagent must give it: of one text, maybe in a table."""
    name, form = next(iter(parameters.items()))
    return {name: _report(form["properties"], text) if form["type"] == "object" else text}


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"functionCall": {"id": f"call_{next(_numbers)}", "name": name, "args": arguments}}


def _answer(part: dict[str, Any]) -> list[dict[str, Any]]:
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "mock"}]
