"""`GateMiddleware`: gates for an agent of LangChain, LangGraph or deepagents.

    agent = create_agent("openai:gpt-5", tools, middleware=[GateMiddleware(Engine([gate]))])

An agent that a gate blocks goes on in the same run, with the whole history. Agents that a gated
agent runs from its tools, as deepagents does, are its subagents, if they have a `GateMiddleware`
too; one instance may serve all of them.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.config import get_config
from langgraph.types import Command

from notyet.core.event import StopEvent, Usage
from notyet.core.verdict import UNCHECKED
from notyet.errors import attempt
from notyet.frameworks.gated_run import Framework, GatedRun, Gates

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from notyet.engine.engine import Engine

FRAMEWORK = Framework("langchain", "langchain", "1.4", "1.4")

_MOST_RUNS = 10_000  # that are remembered; those that raised never come to an end
_TASK = "task"  # the tool by which deepagents runs its subagents


class _State(TypedDict, total=False):
    """What the checkpoints keep of a run, so that one that is resumed is the same turn."""

    notyet_run: Annotated[dict[str, str], PrivateStateAttr]


class _Run(GatedRun):
    """One run of an agent, and what its calls of the model and of tools come to."""

    def __init__(self, gates: Gates, before: Iterable[Any] = (), **who: Any) -> None:
        """`before` are the messages of the thread before this run."""
        super().__init__(gates, **who)
        self.tools: list[str] = []
        self._counted = {message.id for message in before if isinstance(message, AIMessage)}
        self._lock = threading.Lock()
        self._answers = 0
        self._spent = Usage()
        self._model: str | None = None

    def count(self, messages: list[Any]) -> None:
        """Count answers of the model; when tools are called, before a summary can replace them."""
        with self._lock:
            answers = []
            for message in reversed(messages):
                if isinstance(message, AIMessage):
                    if message.id in self._counted:
                        break
                    self._counted.add(message.id)
                    answers.append(message)
            for answer in reversed(answers):
                self._answers += not _is_of_middleware(answer)
                spent, known = _usage(answer), answer.response_metadata
                sums = {n: getattr(self._spent, n) + getattr(spent, n) for n in Usage._fields}
                self._spent = Usage(**sums)
                self._model = known.get("model_name") or known.get("model") or self._model

    def describe(self, state: Any) -> Mapping[str, Any]:
        """Return what is known of a stop."""
        messages, result = state["messages"], state.get("structured_response")
        self.count(messages)
        known: dict[str, Any] = {
            "result": result,
            "total_usage": self._spent,
            "turns": self._answers,
            "tool_calls": len(self.tools),
            "tools_used": tuple(self.tools),
            "model": self._model,
        }
        last: Any = messages[-1] if messages else None
        if not isinstance(last, AIMessage):  # the result of a tool that answers for the agent
            return known | {"last_message": getattr(last, "text", None)}
        if result is None and _is_of_middleware(last):  # which ended the run, as at a limit
            return known | {"ending": "error", "error": last.text}
        said = [m.text for m in messages if isinstance(m, AIMessage) and m.text.strip()]
        return known | {"last_message": said[-1] if said else None}


class _ToolCall:
    """A call of a tool: agents that run in it are subagents of its run."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.has_gated = False  # an agent
        self.result: Any = None


_caller: ContextVar[_ToolCall | None] = ContextVar("notyet_langchain_caller", default=None)


class GateMiddleware(AgentMiddleware):
    """Sends the agent back to work as long as a gate blocks its stop."""

    state_schema = _State

    def __init__(
        self, engine: Engine, *, cwd: str | None = None, within: float | None = None
    ) -> None:
        """`cwd` is the folder that the agent works in; there is a decision `within` seconds."""
        super().__init__()
        self._gates = Gates(engine, FRAMEWORK, cwd=cwd, within=within)
        self._runs: OrderedDict[str, _Run] = OrderedDict()  # by turn
        self._lock = threading.Lock()

    # The framework passes `runtime` by its name.
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:  # noqa: ARG002
        run = self._new_run(state)
        return _begun(run, run.starting_sync())

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:  # noqa: ARG002
        run = self._new_run(state)
        return _begun(run, await run.starting())

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002
        run = self._run_of(state)
        return self._stopped(run, run.stopping_sync(lambda: run.describe(state)))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002
        run = self._run_of(state)
        return self._stopped(run, await run.stopping(lambda: run.describe(state)))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        with self._calling(request) as call:
            call.result = handler(request)
        return call.result

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        with self._calling(request) as call:
            call.result = await handler(request)
        return call.result

    @contextmanager
    def _calling(self, request: Any) -> Iterator[_ToolCall]:
        call = _ToolCall(self._run_of(request.state))
        call.run.tools.append(request.tool_call["name"])
        attempt(call.run.count, request.state.get("messages", []))
        token = _caller.set(call)
        try:
            yield call
        finally:
            _caller.reset(token)
        has_run = request.tool_call["name"] == _TASK and isinstance(call.result, Command)
        if has_run and not call.has_gated:
            self._say_ungated(str(request.tool_call["args"].get("subagent_type")))

    def _say_ungated(self, name: str) -> None:
        """Say once that a subagent of deepagents ended without the gates that are for it."""
        subagent = StopEvent(scope="subagent", agent_type=name, agent_name=name)
        if self._gates.engine.asks(subagent):
            self._gates.warn_once(
                f"{UNCHECKED}: the subagent {name} has no gates; add its spec to `subagents`, with "
                "this GateMiddleware in its `middleware`"
            )

    def _new_run(self, state: Any) -> _Run:
        """Return the run that begins."""
        caller = _caller.get()
        if caller is not None:
            caller.has_gated = True
        who, error = attempt(_who, state)
        if error is not None:
            self._gates.warn_once(f"the agent is unknown: {type(error).__name__}: {error}")
        parent = caller.run if caller else None
        return self._remember(_Run(self._gates, state["messages"], parent=parent, **(who or {})))

    def _run_of(self, state: Any) -> _Run:
        """Return the run that a state is of; it may have begun in another process."""
        ids = state.get("notyet_run") or {}
        with self._lock:
            run = self._runs.get(ids.get("turn_id", ""))
        if run is not None:
            return run
        caller, messages = _caller.get(), state.get("messages", [])
        while messages and not isinstance(messages[-1], HumanMessage):
            messages = messages[:-1]
        parent = caller.run if caller else None
        return self._remember(_Run(self._gates, messages, parent=parent, **ids))

    def _remember(self, run: _Run) -> _Run:
        with self._lock:
            self._runs[run.turn_id] = run
            while len(self._runs) > _MOST_RUNS:
                self._runs.popitem(last=False)
        return run

    def _stopped(self, run: _Run, prompt: str) -> dict[str, Any] | None:
        """Return how the graph goes on."""
        if prompt:
            return _begun(run, prompt) | {"jump_to": "model"}
        with self._lock:
            self._runs.pop(run.turn_id, None)
        return None


def _begun(run: _Run, words: str) -> dict[str, Any]:
    """Return what the state keeps of a run, and words for the agent."""
    ids = {"session_id": run.session_id, "turn_id": run.turn_id}
    return {"notyet_run": ids, "messages": [HumanMessage(words)] if words else []}


def _who(state: Any) -> dict[str, Any]:
    """Return who begins a run, in which session and with which task."""
    config = get_config()
    known, place = config.get("configurable") or {}, ""
    thread, name = known.get("thread_id"), (config.get("metadata") or {}).get("lc_agent_name")
    outside, _, _ = known.get("checkpoint_ns", "").rpartition("|")
    if outside:  # in another graph, which may run it several times at once in this thread
        place = f"/{name or 'agent'}-{uuid.uuid4()}"
    tasks = [message.text for message in state["messages"] if isinstance(message, HumanMessage)]
    return {
        "session_id": f"{thread}{place}" if thread else None,
        "agent_name": name,
        "task": tasks[-1] if tasks else None,
    }


def _is_of_middleware(message: AIMessage) -> bool:
    """Return True if a middleware wrote an answer: it has no figures and no id of a model."""
    if message.response_metadata or message.usage_metadata:
        return False
    return attempt(uuid.UUID, message.id)[1] is None


def _usage(message: AIMessage) -> Usage:
    known = message.usage_metadata or {}
    details = known.get("input_token_details") or {}
    read, written = details.get("cache_read") or 0, details.get("cache_creation") or 0
    return Usage(
        input=max(0, known.get("input_tokens", 0) - read - written),  # which it counts as input
        output=known.get("output_tokens", 0),
        cache_read=read,
        cache_write=written,
        total=known.get("total_tokens", 0),
    )
