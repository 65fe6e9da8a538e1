"""google-adk: `GatePlugin`, which gates every agent of an app.

    runner = InMemoryRunner(agent, plugins=[GatePlugin(engine)])

ADK has no event for a stop; but it goes on after a response that calls a function. So the plugin
adds a call of its own function, `notyet`, to an answer that is sent back. The call stays in the
session's events; the model gets its prompt as the next message of the user.

An answer is that of the main agent if it ends the run: the root agent's, or that of an agent to
which the conversation was transferred. Agents that work as tools (`AgentTool`, `single_turn`,
`task`), transferred ones, and those in a workflow are subagents.
"""

from __future__ import annotations

import functools
import json
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.adk.agents.llm_agent import LlmAgent
from google.adk.code_executors.built_in_code_executor import BuiltInCodeExecutor
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from notyet.core.event import Usage
from notyet.core.verdict import UNCHECKED
from notyet.frameworks.gated_run import Framework, GatedRun, Gates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from notyet.engine.engine import Engine

F = TypeVar("F", bound="Callable[..., Any]")

FRAMEWORK = Framework("google-adk", "google-adk", "2.8", "2.13")
_CALL = "notyet"  # the function that goes on after an answer; no model is offered it
_FINISH = "finish_task"  # the tool by which an agent in the mode "task" reports
_NOT_A_MODELS = (
    "google-adk ends a run with the answer of a workflow, or of a callback in place of the model"
)
_LIVE = "google-adk cannot hold live runs (run_live, support_cfc); to gate an agent, use run_async"
_MOST = 10_000  # invocations, and sessions with words of starters, that are remembered

# The run of the agent whose tool is called in this context; agents that the tool runs are its own.
_calling: ContextVar[GatedRun | None] = ContextVar("notyet_adk_calling", default=None)


def _sent_back(prompt: str) -> str:
    """Answer our call; its prompt is shown to the model in another way."""
    del prompt
    return "sent back"


class _Agent:
    """An agent in one invocation, with its figures so far."""

    def __init__(self, run: GatedRun) -> None:
        self.run = run
        self.is_started = False
        self._usage = Usage()
        self._turns = 0
        self._tools: list[str] = []
        self._model: str | None = None

    def count(self, response: LlmResponse, model: str | None) -> None:
        """Add what one response of the model cost."""
        self._turns += 1
        self._tools += [call.name or "" for call in response.get_function_calls()]
        self._model = response.model_version or model or self._model
        spent = response.usage_metadata
        if spent is None:
            return
        prompt, cached = spent.prompt_token_count or 0, spent.cached_content_token_count or 0
        output = (spent.candidates_token_count or 0) + (spent.thoughts_token_count or 0)
        known, total = self._usage, spent.total_token_count or prompt + output
        self._usage = Usage(
            input=known.input + max(0, prompt - cached),
            output=known.output + output,
            cache_read=known.cache_read + cached,
            total=known.total + total,
        )

    def describe(self, text: str, result: Any = None, cannot_hold: str = "") -> dict[str, Any]:
        """Return the fields of an event, and why the agent cannot go on, if so."""
        return {
            "cannot_hold": cannot_hold,
            "last_message": text,
            "result": result,
            "total_usage": self._usage if self._usage.total else None,
            "turns": self._turns,
            "tool_calls": len(self._tools),
            "tools_used": tuple(self._tools),
            "model": self._model,
        }


class _Invocation:
    """One invocation: a run of an app, or of an agent that is a tool of another app's agent."""

    def __init__(self, main: _Agent, root: Any) -> None:
        self.main = main
        self.root = root
        self.others: dict[tuple[str, str], _Agent] = {}  # by name and branch
        self.is_asked = False  # the main agent may stop, and no model was called since
        self.last: str | None = None  # the answer by which it would end now
        self.model: str | None = None  # that was asked last


def _harmless(callback: F) -> F:
    """Keep a fault of ours out of ADK, which would end the run."""

    @functools.wraps(callback)
    async def guarded(plugin: GatePlugin, **given: Any) -> Any:
        try:
            return await callback(plugin, **given)
        except Exception as error:  # noqa: BLE001  # a fault of ours must not reach the framework
            warn = plugin.gates.engine.warn
            warn(f"{UNCHECKED}: {FRAMEWORK.name}: {type(error).__name__}: {error}")
            return None

    return cast("F", guarded)


class GatePlugin(BasePlugin):
    """Gates the agents of an app, or of a runner, with an engine.

    `cwd` is the folder that agents work in; there is a decision `within` so many seconds.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        name: str = "notyet",
        cwd: str | None = None,
        within: float | None = None,
    ) -> None:
        super().__init__(name=name)
        self.gates = Gates(engine, FRAMEWORK, cwd=cwd, within=within)
        self._invocations: dict[str, _Invocation] = {}
        self._tool = FunctionTool(_sent_back)
        self._tool.name = _CALL
        self._words: dict[str, str] = {}  # that starters have for an agent, by session

    @_harmless
    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Note whose tool runs this app, if one does."""
        self._invocation(invocation_context)
        self._is_live(invocation_context)  # which says so

    @_harmless
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> None:
        """Show the model what it was sent back with, and the words of starters."""
        context = callback_context.get_invocation_context()
        invocation = self._invocation(context)
        invocation.is_asked, invocation.model = False, llm_request.model
        llm_request.contents = _with_prompts(llm_request.contents)
        llm_request.tools_dict[_CALL] = self._tool  # which answers our call; no model sees it
        for agent in self._agents(context, llm_request):
            if not agent.is_started:
                agent.is_started = True
                _remember(self._words, agent.run.session_id, await agent.run.starting())
            words = self._words.get(agent.run.session_id)
            if words:
                llm_request.append_instructions([words])

    @_harmless
    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Gate an answer; one that is sent back calls our function."""
        if llm_response.partial:
            return None
        context = callback_context.get_invocation_context()
        invocation, agents = self._invocation(context), self._agents(context)
        for agent in agents:
            agent.count(llm_response, invocation.model)
        content, text = llm_response.content, _text(llm_response.content)
        if content is None or not _is_answer(llm_response, text, context.agent):
            return None
        if self._is_live(context):
            return None
        prompt = await self._stopping(invocation, agents, text)
        if not prompt:
            return None
        call = types.FunctionCall(name=_CALL, args={"prompt": prompt})
        parts = [*(content.parts or ()), types.Part(function_call=call)]
        return llm_response.model_copy(update={"content": types.Content(role="model", parts=parts)})

    @_harmless
    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Note who calls a tool."""
        del tool, tool_args
        _calling.set(self._invocation(tool_context.get_invocation_context()).main.run)
        return None

    @_harmless
    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: Any,
    ) -> dict[str, Any] | None:
        """Gate an answer that a tool gives in place of the model."""
        context, actions = tool_context.get_invocation_context(), tool_context.actions
        is_finish = tool.name == _FINISH and "error" not in (result or ())
        is_finish = is_finish and getattr(context.agent, "mode", None) == "task"
        if tool.name == _CALL or not (
            is_finish or actions.skip_summarization or actions.set_model_response is not None
        ):
            return None
        if actions.requested_tool_confirmations or actions.requested_auth_configs:
            return None  # it waits for a person
        invocation, agents = self._invocation(context), self._agents(context)
        if is_finish:
            agents = agents[:1]  # it reports to the agent that gave it the task
        answer = tool_args if is_finish else actions.set_model_response or result
        prompt = await self._stopping(invocation, agents, _json(answer), answer)
        if not prompt:
            return None
        actions.skip_summarization = actions.set_model_response = actions.escalate = None
        return {_CALL: prompt, "result_of_tool": result}

    @_harmless
    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> None:
        """Note the answer that the run would end with."""
        is_end = event.is_final_response() and not event.long_running_tool_ids
        is_answer = is_end and not event.error_code and event.author != "user"
        self._invocation(invocation_context).last = _text(event.content) if is_answer else None

    @_harmless
    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Check an answer that could not be held, and say it where it did not pass."""
        invocation = self._invocations.pop(invocation_context.invocation_id, None)
        is_aborted = getattr(invocation_context, "is_aborted", False)  # since 2.10
        is_cut = sys.exc_info()[0] is not None or is_aborted
        if invocation is None or invocation.last is None or invocation.is_asked or is_cut:
            return
        if self._is_live(invocation_context):
            return
        last, main = invocation.last, invocation.main
        await main.run.stopping(lambda: main.describe(last, cannot_hold=_NOT_A_MODELS))

    @_harmless
    async def on_run_error_callback(
        self, *, invocation_context: InvocationContext, error: Exception
    ) -> None:
        """Forget a run that failed: it did not stop."""
        del error
        self._invocations.pop(invocation_context.invocation_id, None)

    async def _stopping(
        self, invocation: _Invocation, agents: Iterable[_Agent], text: str, result: Any = None
    ) -> str:
        """Return the prompt to go on with, or '' if all of these may stop."""
        for agent in agents:
            prompt = await agent.run.stopping(functools.partial(agent.describe, text, result))
            if prompt:
                return prompt
            invocation.is_asked |= agent is invocation.main
        return ""

    def _invocation(self, context: InvocationContext) -> _Invocation:
        key = context.invocation_id
        if key not in self._invocations:
            parent = _calling.get()
            # A session goes on with the agent to which it was transferred.
            root = getattr(context.agent, "root_agent", context.agent)
            run = GatedRun(
                self.gates,
                session_id=context.session.id,
                agent_name=getattr(root, "name", None),
                parent=parent if parent and parent.gates is self.gates else None,
                task=_text(context.user_content) or None,
                turn_id=key,  # so an invocation that is resumed goes on counting
            )
            _remember(self._invocations, key, _Invocation(_Agent(run), root))
        return self._invocations[key]

    def _agents(
        self, context: InvocationContext, request: LlmRequest | None = None
    ) -> tuple[_Agent, ...]:
        """Return the agent that is at work, and the main one if it answers for that."""
        invocation, agent = self._invocation(context), context.agent
        main, root = invocation.main, invocation.root
        if agent is None or (isinstance(root, LlmAgent) and agent.name == root.name):
            return (main,)
        is_transferred = isinstance(root, LlmAgent) and _is_transferred(agent, root)
        key = (agent.name, context.branch or "")
        if key not in invocation.others:
            task = context.user_content
            if request is not None and request.contents and not is_transferred:
                task = request.contents[0]
            run = GatedRun(
                self.gates,
                agent_name=agent.name,
                parent=main.run,
                task=_text(task) or None,
                turn_id=context.invocation_id,
            )
            invocation.others[key] = _Agent(run)
        own = invocation.others[key]
        return (own, main) if is_transferred else (own,)

    def _is_live(self, context: InvocationContext) -> bool:
        """Return True, and say it once, if the model talks while it works."""
        is_live = context.live_request_queue is not None
        if is_live:
            self.gates.warn_once(f"{UNCHECKED}: {_LIVE}")
        return is_live


def _is_transferred(agent: Any, root: LlmAgent) -> bool:
    """Return True if an agent talks to the user, because the root agent handed over to it."""
    while isinstance(agent, LlmAgent) and agent.mode != "single_turn":
        if agent.name == root.name:
            return True
        agent = agent.parent_agent
    return False


def _is_answer(response: LlmResponse, text: str, agent: Any) -> bool:
    """Return True if an agent ends its turn with this response, and not by an error."""
    parts = (response.content.parts if response.content else None) or []
    if response.error_code or response.get_function_calls() or not text.strip():
        return False
    executor = getattr(agent, "code_executor", None)
    if executor is None or isinstance(executor, BuiltInCodeExecutor):
        return parts[-1].code_execution_result is None
    return not any(begin in text for begin, _ in executor.code_block_delimiters)


def _with_prompts(contents: list[types.Content]) -> list[types.Content]:
    """Return a request's contents with what our calls say as messages of the user."""
    shown: list[types.Content] = []
    for content in contents:
        parts = content.parts or []
        kept = [part for part in parts if not _is_ours(part)]
        if len(kept) == len(parts):
            shown.append(content)
            continue
        if kept:
            shown.append(types.Content(role=content.role, parts=kept))
        calls = [part.function_call for part in parts if part.function_call and _is_ours(part)]
        prompts = [types.Part(text=str((call.args or {}).get("prompt", ""))) for call in calls]
        if prompts:
            shown.append(types.Content(role="user", parts=prompts))
    return shown


def _is_ours(part: types.Part) -> bool:
    call = part.function_call or part.function_response
    return call is not None and call.name == _CALL


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _remember(known: dict[str, Any], key: str, value: Any) -> None:
    """Keep a value, and not more than so many."""
    if value:
        known[key] = value
    while len(known) > _MOST:
        known.pop(next(iter(known)), None)
