"""`Gated`: gates for an agent of pydantic-ai, as one of its capabilities.

    agent = Agent("openai:gpt-5", capabilities=[Gated(Engine([gate]))])

An agent that a gate blocks goes on in the same run, with the whole history. Agents that a gated
agent runs from its tools or output functions are its subagents, if they have a `Gated` too.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse
from pydantic_core import to_json
from pydantic_graph import End

from notyet.core.event import Usage
from notyet.core.verdict import UNCHECKED
from notyet.errors import attempt
from notyet.frameworks.gated_run import Framework, GatedRun, Gates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_ai import RunContext

    from notyet.engine.engine import Engine

FRAMEWORK = Framework("pydantic-ai", "pydantic-ai-slim", "2.40", "2.66")

_STREAMED = (
    "run_stream hands out the answer before the run ends; "
    "use run, iter or run_stream_events to have the agent sent back"
)
_NO_REQUEST_LEFT = (
    "the run has used its request_limit, so going on would lose the answer; raise the limit to "
    "have the agent sent back"
)
# The run whose tool or output function is running: a run that begins there is its subagent.
_caller: ContextVar[GatedRun | None] = ContextVar("notyet_pydantic_ai_caller", default=None)


class Gated(AbstractCapability[Any]):
    """Sends the agent back to work as long as a gate blocks its stop."""

    def __init__(
        self, engine: Engine, *, cwd: str | None = None, within: float | None = None
    ) -> None:
        """`cwd` is the folder that the agent works in; there is a decision `within` seconds."""
        self._gates = Gates(engine, FRAMEWORK, cwd=cwd, within=within)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: an engine cannot be written into the file of an agent."""
        return None

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Return what gates one run, so that runs share nothing."""
        gate, error = attempt(_RunGate, self._gates, ctx)
        if error is not None:
            _say_unchecked(self._gates, error)
            return self
        run_gate: AbstractCapability[Any] = gate
        return run_gate


class _RunGate(AbstractCapability[Any]):
    """Gates one run of an agent."""

    def __init__(self, gates: Gates, ctx: RunContext[Any]) -> None:
        parent = _caller.get()
        self._run = GatedRun(
            gates,
            # Agents that are run with the messages of their caller share its conversation.
            session_id=None if parent else ctx.conversation_id,
            agent_name=ctx.agent.name if ctx.agent else None,
            parent=parent,
            task=_text(ctx.prompt),
        )
        self._spent_before = _usage(ctx)  # by the caller, where it passes its usage on
        self._tools: list[str] = []

    async def before_run(self, ctx: RunContext[Any]) -> None:
        self._give(ctx, await self._run.starting(), "asap")

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        if not isinstance(result, End) or _only_pauses(result.data.output):
            return result
        if ctx.pending_messages:  # the run goes on anyway
            return result
        prompt = await self._run.stopping(partial(self._describe, ctx, node, result.data.output))
        self._give(ctx, prompt, "when_idle")
        return result

    def _give(self, ctx: RunContext[Any], words: str, priority: str) -> None:
        """Put words into the run's queue of messages."""
        if words:
            _, error = attempt(partial(ctx.enqueue, words, priority=priority))
            if error is not None:
                _say_unchecked(self._run.gates, error)

    async def wrap_tool_execute(self, _ctx: RunContext[Any], **call: Any) -> Any:
        self._tools.append(call["call"].tool_name)
        with self._calling():
            return await call["handler"](call["args"])

    async def wrap_output_process(self, _ctx: RunContext[Any], **call: Any) -> Any:
        with self._calling():
            return await call["handler"](call["output"])

    @contextmanager
    def _calling(self) -> Iterator[None]:
        token = _caller.set(self._run)
        try:
            yield
        finally:
            _caller.reset(token)

    def _describe(self, ctx: RunContext[Any], node: Any, output: Any) -> Mapping[str, Any]:
        cannot_hold = _why_it_cannot_go_on(ctx, node)
        spent, before = _usage(ctx), self._spent_before
        total = {name: getattr(spent, name) - getattr(before, name) for name in Usage._fields}
        return {
            "run_id": ctx.run_id,
            "last_message": _last_message(ctx, output),
            "result": output,
            # That of a streamed answer is added later.
            "total_usage": Usage(**total) if cannot_hold != _STREAMED else None,
            "turns": ctx.run_step,
            "tool_calls": len(self._tools),
            "tools_used": tuple(self._tools),
            "model": ctx.model.model_name,
            "cannot_hold": cannot_hold,
        }


def _say_unchecked(gates: Gates, error: Exception) -> None:
    gates.engine.warn(f"{UNCHECKED}: {FRAMEWORK.name}: {type(error).__name__}: {error}")


def _why_it_cannot_go_on(ctx: RunContext[Any], node: Any) -> str:
    if not Agent.is_call_tools_node(node):
        return _STREAMED
    limits = getattr(ctx, "usage_limits", None)  # later versions say it
    limit = limits.request_limit if limits else None
    if limit is not None and ctx.usage.requests >= limit:
        return _NO_REQUEST_LEFT
    return ""


def _only_pauses(output: Any) -> bool:
    """Return True if a run ends because it waits for its caller or its provider."""
    return (
        isinstance(output, DeferredToolRequests) or type(output).__name__ == "PendingModelResponse"
    )


def _last_message(ctx: RunContext[Any], output: Any) -> str:
    """Return the agent's last words; structured output as the JSON that the model wrote."""
    if isinstance(output, str):
        return output
    answers = [message for message in ctx.messages if isinstance(message, ModelResponse)]
    said = answers[-1].text if answers else None
    return str(said or to_json(output, fallback=repr).decode())


def _usage(ctx: RunContext[Any]) -> Usage:
    usage = ctx.usage
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    return Usage(
        input=max(0, usage.input_tokens - read - written),  # which it counts as input, too
        output=usage.output_tokens,
        cache_read=read,
        cache_write=written,
        total=usage.total_tokens,
    )


def _text(prompt: Any) -> str | None:
    """Return the text of a prompt, which may have pictures, too."""
    if prompt is None or isinstance(prompt, str):
        return prompt
    return "\n".join(part for part in prompt if isinstance(part, str))
