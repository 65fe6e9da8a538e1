"""`GateHook`: gates for agents of Strands, which go on with the reason when they are sent back.

    hook = GateHook(Engine([tests_pass]))
    agent = Agent(model=model, tools=[edit], hooks=[hook])
    agent("Fix the parser.")

One hook serves any number of agents. An agent that runs in a tool of a gated agent is a subagent.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    HookOrder,
)

from notyet.core.event import Usage
from notyet.core.verdict import UNCHECKED
from notyet.frameworks.gated_run import Framework, GatedRun, Gates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from strands import Agent
    from strands.agent import AgentResult
    from strands.hooks import HookRegistry

    from notyet.engine.engine import Engine

FRAMEWORK = Framework("strands", "strands-agents", oldest="1.56", newest="1.62")

# "tool_use": a tool ended the loop, as the one for structured output does.
_DONE = frozenset({"end_turn", "stop_sequence", "tool_use"})
_PAUSED = frozenset({"interrupt", "checkpoint"})  # a later invocation goes on with the turn
_HANDOFF = "handoff_to_agent"  # the tool by which an agent of a swarm passes on its work
_POLL = 0.1  # seconds between two looks at an agent's cancel signal, while gates run
_NOT_GATED = (
    f"{UNCHECKED}: strands: Agent.structured_output() cannot be sent back; "
    "pass structured_output_model to the agent instead"
)

_caller: ContextVar[GatedRun | None] = ContextVar("notyet_strands_caller", default=None)


class _Turn:
    """What an agent does for one prompt, with its send-backs and pauses."""

    def __init__(self, run: GatedRun, earlier: int) -> None:
        self.run = run
        self.earlier = earlier  # invocations of the agent before this turn
        self.tools: list[str] = []  # called in this turn
        self.goes_on = False  # the agent's next pass belongs to this turn
        self.handed_off = False  # in this pass


class GateHook:
    """A hook provider that runs the gates of an engine when an agent is done.

    `cwd` is the folder that the agents work in; there is a decision `within` so many seconds.
    """

    def __init__(
        self, engine: Engine, *, cwd: str | None = None, within: float | None = None
    ) -> None:
        self._gates = Gates(engine, FRAMEWORK, cwd=cwd, within=within)
        self._turns: WeakKeyDictionary[Agent, _Turn] = WeakKeyDictionary()  # the last of each

    def register_hooks(self, registry: HookRegistry, **_more: Any) -> None:
        """Register the callbacks; Strands calls this for each agent."""
        registry.add_callback(BeforeInvocationEvent, self._before)
        registry.add_callback(BeforeToolCallEvent, self._before_tool)
        registry.add_callback(AfterToolCallEvent, self._after_tool)
        # Last, to see whether another hook sends the agent on: then this is no stop.
        registry.add_callback(AfterInvocationEvent, self._after, order=HookOrder.SDK_LAST)

    async def _before(self, event: BeforeInvocationEvent) -> None:
        with self._guarded():
            if event.messages is None:
                self._gates.warn_once(_NOT_GATED)
                return
            turn = self._turns.get(event.agent)
            if turn is None or not turn.goes_on:
                turn = self._new_turn(event.agent, event.messages)
            turn.goes_on = turn.handed_off = False
            if event.messages:  # else it goes on with its history, and is not at its start
                words = await turn.run.starting()
                if words:
                    event.messages = _with_words(words, event.messages)

    async def _before_tool(self, event: BeforeToolCallEvent) -> None:
        with self._guarded():
            turn = self._turns[event.agent]
            turn.tools.append(event.tool_use["name"])
            _caller.set(turn.run)  # until the tool ends, also for what it starts

    async def _after_tool(self, event: AfterToolCallEvent) -> None:
        with self._guarded():
            turn = self._turns[event.agent]
            _caller.set(turn.run.parent)
            if event.tool_use["name"] == _HANDOFF and event.result["status"] == "success":
                turn.handed_off = True

    async def _after(self, event: AfterInvocationEvent) -> None:
        with self._guarded():
            agent, result = event.agent, event.result
            turn = self._turns.get(agent) or self._new_turn(agent, ())
            _caller.set(turn.run.parent)  # an interrupted tool did not get there
            if result is None:  # an error, or refused by another hook
                return
            if _is_sent_on(event) or result.stop_reason in _PAUSED:
                turn.goes_on = True
            elif _is_done(agent, result) and not turn.handed_off:
                prompt = await _stopping(agent, turn, result)
                if prompt:
                    event.resume = prompt
                    turn.goes_on = True
                    _forget_stop_tool(agent)

    def _new_turn(self, agent: Agent, messages: Sequence[Any]) -> _Turn:
        last = self._turns.get(agent)
        run = GatedRun(
            self._gates,
            session_id=_session_id(agent, last),
            agent_name=agent.name,
            parent=_caller.get(),
            task=_text_of(messages) or None,
        )
        turn = _Turn(run, len(agent.event_loop_metrics.agent_invocations) - 1)
        self._turns[agent] = turn
        return turn

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Keep our own faults out of the framework; a cancellation passes (A6)."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # Strands ends the agent with what a hook raises
            self._gates.engine.warn(f"{UNCHECKED}: strands: {type(error).__name__}: {error}")


async def _stopping(agent: Agent, turn: _Turn, result: AgentResult) -> str:
    """Return the prompt that the agent goes on with; '' too if it is cancelled meanwhile (C4)."""
    check = asyncio.ensure_future(turn.run.stopping(lambda: _known(agent, turn, result)))
    try:
        while not (await asyncio.wait([check], timeout=_POLL))[0]:
            if agent.cancel_signal.is_set():
                break
    except asyncio.CancelledError:
        check.cancel()
        await asyncio.wait([check])  # until its gates have ended
        raise
    if agent.cancel_signal.is_set():
        check.cancel()
        await asyncio.wait([check])
        return ""
    return check.result()


def _known(agent: Agent, turn: _Turn, result: AgentResult) -> dict[str, Any]:
    """Return what Strands knows of this turn, for the StopEvent."""
    invocations = agent.event_loop_metrics.agent_invocations[turn.earlier :]
    spent = [invocation.usage for invocation in invocations]

    def total(name: str) -> int:
        return sum(usage.get(name, 0) for usage in spent)

    return {
        "last_message": _text_of([result.message]) or str(result).strip() or None,
        "total_usage": Usage(
            input=total("inputTokens"),
            output=total("outputTokens"),
            cache_read=total("cacheReadInputTokens"),
            cache_write=total("cacheWriteInputTokens"),
            total=total("totalTokens"),
        ),
        "turns": sum(len(invocation.cycles) for invocation in invocations),
        "tool_calls": len(turn.tools),
        "tools_used": tuple(turn.tools),
        "model": _model_of(agent),
        "result": result.structured_output,
    }


def _model_of(agent: Agent) -> str | None:
    config = agent.model.get_config()
    name = config.get("model_id") if isinstance(config, dict) else None
    return name if isinstance(name, str) else None


def _is_sent_on(event: AfterInvocationEvent) -> bool:
    """Return True if another hook sends the agent on, or results of background tools do."""
    return event.resume is not None or getattr(event, "_continuation_state", None) is not None


def _is_done(agent: Agent, result: AgentResult) -> bool:
    """Return True if the agent ended by itself: not by a limit, a filter or its user."""
    if result.stop_reason == "cancelled":
        return not agent.cancel_signal.is_set()  # but by the agent, with Strands' stop tool
    return result.stop_reason in _DONE


def _forget_stop_tool(agent: Agent) -> None:
    """Take back the request of Strands' stop tool, which would end the next pass too."""
    agent._deferred_cancel = False  # noqa: SLF001  # it lasts until the invocation ends
    agent._cancel_message = None  # noqa: SLF001


def _session_id(agent: Agent, last: _Turn | None) -> str:
    """Return the id of the conversation: Strands' own where it is kept."""
    if getattr(agent, "_session_manager", None) is not None:
        # Agents of one session have counters of their own.
        own = "" if agent.agent_id == "default" else f"/{agent.agent_id}"
        return f"{agent.session_id}{own}"
    if last is not None and agent.messages:
        return last.run.session_id
    return f"strands-{uuid.uuid4()}"


def _with_words(words: str, messages: Sequence[Any]) -> list[Any]:
    """Return messages that begin with words for the agent."""
    first, *others = messages
    if first["role"] != "user":
        return [{"role": "user", "content": [{"text": words}]}, *messages]
    # In the same message: some models refuse two messages of the user in a row.
    return [{**first, "content": [{"text": words}, *first["content"]]}, *others]


def _text_of(messages: Sequence[Any]) -> str:
    return "\n".join(
        block["text"]
        for message in messages
        for block in message["content"]
        if block.get("text", "").strip()
    )
