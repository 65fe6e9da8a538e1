"""The chat completions protocol, which most programs speak with models of other vendors.

Programs differ in their tools and in how they wrap the words of a hook. A driver says so:

    WIRE = Chat(
        run=lambda step: ("bash", {"command": step.command}),
        spawn=lambda step: ("task", {"prompt": step.task}),
        words=r"Stop hook feedback:\n(.*)",
    )
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from clients.model.script import MAIN, Request, Run, Say, Spawn, Step, Write, actor_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Call = tuple[str, dict[str, Any]]  # the name of a tool, and its arguments
_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
_ids = count(1)


@dataclass(frozen=True)
class Chat:
    """The protocol as one program speaks it."""

    run: Callable[[Run], Call] = lambda step: ("bash", {"command": step.command})
    spawn: Callable[[Spawn], Call] | None = None  # None where it has no subagents
    edit: Callable[[Write], Call] | None = None  # None where no test needs it
    finish: Callable[[Say], Call] | None = None  # the tool that ends a turn, where one must
    words: str = r"^(notyet: .*)$"  # finds what a stop hook said, as group 1, in a user's text
    frames: tuple[str, ...] = ()  # how the program's own texts in the user's role begin

    def is_asked(self, path: str) -> bool:
        """Return True if a POST to this path asks the model for an answer."""
        return path.endswith("/chat/completions")

    def other(self, _method: str, _path: str) -> dict[str, Any]:
        """Answer a request for anything else: the list of models."""
        model = {"id": "fake-model", "object": "model", "created": 1, "owned_by": "tests"}
        return {"object": "list", "data": [model]}

    def read(self, body: dict[str, Any], headers: dict[str, str]) -> Request:
        """Read a request. Its actor is named in the agent's first text, or its system prompt."""
        texts: list[str] = []
        news: list[str] = []
        results: list[str] = []
        system: list[str] = []
        for message in body["messages"]:
            said = list(_texts(message.get("content")))
            if message["role"] == "assistant":
                news = []
            elif message["role"] == "tool":
                results.append("\n".join(said))
            elif message["role"] == "user":
                said = [text for text in said if not text.lstrip().startswith(self.frames)]
                texts += said
                news += said
            else:
                system += said
        actor = actor_in(texts[0]) if texts else MAIN
        if actor == MAIN:
            actor = actor_in("\n".join(system))
        return Request(actor, texts, results, body, headers, news)

    def aside(self, request: Request) -> list[Any] | dict[str, Any] | None:
        """Answer what is no turn of an agent: titles and summaries are asked for without tools."""
        if request.raw.get("tools"):
            return None
        return _answer({"role": "assistant", "content": "A title"}, "stop", request.raw)

    def write(self, step: Step, request: Request) -> list[Any] | dict[str, Any]:
        """Return the answer of a step: chunks for a stream, else one object."""
        if isinstance(step, Say) and self.finish is None:
            return _answer({"role": "assistant", "content": step.text}, "stop", request.raw)
        name, arguments = self._call(step)
        offered = [tool["function"]["name"] for tool in request.raw["tools"]]
        assert name in offered, f"there is no tool {name}, only {offered}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{next(_ids)}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return _answer(message, "tool_calls", request.raw)

    def _call(self, step: Step) -> Call:
        if isinstance(step, Run):
            return self.run(step)
        if isinstance(step, Write):
            assert self.edit, "its driver does not say how it writes a file"
            return self.edit(step)
        if isinstance(step, Spawn):
            assert self.spawn, "its agents have no subagents"
            return self.spawn(step)
        assert isinstance(step, Say)
        assert self.finish
        return self.finish(step)

    def prompts(self, texts: list[str]) -> list[str]:
        """Return what stop hooks said, as they said it."""
        found = [re.search(self.words, text, re.DOTALL) for text in texts]
        return [match[1] for match in found if match]


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        yield from (part["text"] for part in content or [] if part.get("type") == "text")


def _answer(message: dict[str, Any], why: str, asked: dict[str, Any]) -> list[Any] | dict[str, Any]:
    about = {"id": f"chatcmpl-{next(_ids)}", "created": 1, "model": asked.get("model", "")}
    if not asked.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": why}
        return about | {"object": "chat.completion", "choices": [choice], "usage": _USAGE}
    about["object"] = "chat.completion.chunk"
    said = {"index": 0, "delta": message, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": why}
    chunks: list[Any] = [about | {"choices": [said]}, about | {"choices": [end]}]
    if (asked.get("stream_options") or {}).get("include_usage"):
        chunks.append(about | {"choices": [], "usage": _USAGE})
    return [*chunks, "[DONE]"]
