"""`GatedRunner`: gates for agents of the OpenAI Agents SDK; it runs them as `Runner` does.

    runner = GatedRunner(Engine([tests_pass]))
    result = await runner.run(agent, "Fix the parser.")

The SDK has no place at which an agent is sent back, so the runner calls it again with the whole
conversation and the reason. Agents that are tools of a gated agent are its subagents.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agents import ItemHelpers, Runner, RunResultStreaming, RunState
from agents.items import MessageOutputItem, ToolCallItem
from agents.run import get_default_agent_runner, set_default_agent_runner
from agents.tool_context import ToolContext

from notyet.core.event import Usage
from notyet.core.verdict import UNCHECKED
from notyet.frameworks.gated_run import Framework, GatedRun, Gates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from agents import Agent, RunResult
    from agents.result import RunResultBase
    from agents.stream_events import StreamEvent

    from notyet.engine.engine import Engine

FRAMEWORK = Framework("openai-agents", "openai-agents", oldest="0.21", newest="0.24")

_SIGNATURE = inspect.signature(Runner.run_streamed)  # `run` and `run_sync` have the same names


class GatedRunner:
    """Runs agents as `Runner` does, and sends them back as often as the gates say.

    `cwd` is the folder that the agents work in; there is a decision `within` so many seconds.
    """

    def __init__(
        self, engine: Engine, *, cwd: str | None = None, within: float | None = None
    ) -> None:
        self._gates = Gates(engine, FRAMEWORK, cwd=cwd, within=within)

    async def run(
        self,
        starting_agent: Agent[Any],
        input: str | list[Any] | RunState[Any],  # noqa: A002  # its name in the SDK
        **options: Any,
    ) -> RunResult:
        """Do what `Runner.run` does, with its options; return the result of the last pass."""
        return await _run(self._turn(starting_agent, input, **options))

    def run_sync(
        self,
        starting_agent: Agent[Any],
        input: str | list[Any] | RunState[Any],  # noqa: A002
        **options: Any,
    ) -> RunResult:
        """Do what `Runner.run_sync` does, with its options; return the result of the last pass."""
        return _run_sync(self._turn(starting_agent, input, **options))

    def run_streamed(
        self,
        starting_agent: Agent[Any],
        input: str | list[Any] | RunState[Any],  # noqa: A002
        *more: Any,
        **options: Any,
    ) -> GatedStream:
        """Do what `Runner.run_streamed` does; the events of all passes are one stream.

        The gates run when the stream has been read to the end of a pass.
        """
        return GatedStream(self._turn(starting_agent, input, *more, **options))

    def _turn(self, *given_to_runner: Any, **more: Any) -> _Turn:
        options = _SIGNATURE.bind(*given_to_runner, **more).arguments  # names what is wrong
        agent, given = options.pop("starting_agent"), options.pop("input")
        caller = _caller.get()  # if a tool of a gated agent calls us
        return _Turn(self._gates, agent, given, options, runner=_sdk_runner(), caller=caller)


class _Turn:
    """What agents do for one input: passes of the SDK, each with what the next one is given."""

    def __init__(
        self,
        gates: Gates,
        agent: Agent[Any],
        given: Any,
        options: dict[str, Any],
        *,
        runner: Any,
        caller: _Turn | None,
    ) -> None:
        self.gates = gates
        self.runner = runner
        self.agent = agent
        self.given = given
        self.options = options
        self.has_failed = False  # this pass, and a handler of errors gave its output
        self._is_start = not isinstance(given, RunState)
        self._spent: list[Any] = []  # the usage of each request to a model
        self._tools: tuple[str, ...] = ()  # that were called
        self.run: GatedRun = GatedRun(
            gates,
            session_id=_session_id(options, is_main=caller is None),
            agent_name=agent.name,
            parent=caller.run if caller else None,
            task=_task_of(given),
        )
        handlers = options.get("error_handlers")
        if handlers:
            noted = {kind: self._noting(handler) for kind, handler in handlers.items()}
            self.options = {**options, "error_handlers": noted}

    def _noting(self, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def noted(error: Any) -> Any:
            self.has_failed = True
            return handler(error)

        return noted

    async def start(self) -> None:
        """Run what is to happen when a session starts, and add its words to the input."""
        if self._is_start:
            self._add(await self.run.starting())

    def start_sync(self) -> None:
        """Do what `start` does from code that is not async."""
        if self._is_start:
            self._add(self.run.starting_sync())

    def _add(self, words: str) -> None:
        if words and isinstance(self.given, str):
            self.given = f"{words}\n\n{self.given}"
        elif words:
            self.given = [_user(words), *self.given]

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Make agents in tools the subagents of this run."""
        self.has_failed = False
        token = _caller.set(self)
        try:
            yield
        finally:
            _caller.reset(token)

    def is_done(self, result: RunResultBase) -> bool:
        """Return True if the agent ended by itself: no approval is missing, and nothing failed."""
        return not result.interruptions and not self.has_failed

    def known(self, result: RunResultBase) -> dict[str, Any]:
        """Return what the SDK knows of this turn, for the StopEvent."""
        output = result.final_output
        is_text = isinstance(output, str)
        self._spent += [response.usage for response in result.raw_responses]
        self._tools += tuple(
            item.tool_name or str(_field(item.raw_item, "type"))
            for item in result.new_items
            if isinstance(item, ToolCallItem)
        )
        return {
            "agent_name": result.last_agent.name,
            "last_message": output if is_text else _last_text(result),
            "result": None if is_text else output,
            "total_usage": _sum(self._spent),
            "turns": len(self._spent),
            "tool_calls": len(self._tools),
            "tools_used": self._tools,
            "model": _model_of(result.last_agent, self.options),
        }

    def goes_on(self, result: RunResultBase, prompt: str) -> bool:
        """Return True if there is another pass, and prepare it."""
        if not prompt:
            return False
        try:
            self._go_on(result, prompt)
        except Exception as error:  # noqa: BLE001  # a fault of ours must not reach the framework
            message = f"{type(error).__name__}: {error}"
            self.gates.engine.warn(f"{UNCHECKED}: {FRAMEWORK.name}: not sent back: {message}")
            return False
        return True

    def _go_on(self, result: RunResultBase, prompt: str) -> None:
        # The same wrapper, so that the usage of all passes is in the result's.
        options = {**self.options, "context": result.context_wrapper}
        given: Any = prompt  # enough where a session or the server keeps the conversation
        if options.get("previous_response_id") or options.get("auto_previous_response_id"):
            options["previous_response_id"] = result.last_response_id
        elif options.get("session") is None and options.get("conversation_id") is None:
            given = [*result.to_input_list(mode="normalized"), _user(prompt)]
        self.agent, self.given, self.options = result.last_agent, given, options


async def _run(turn: _Turn) -> RunResult:
    await turn.start()
    while True:
        with turn.calling():
            result = await turn.runner.run(turn.agent, turn.given, **turn.options)
        if not turn.is_done(result):
            return result
        prompt = await turn.run.stopping(lambda: turn.known(result))  # noqa: B023  # awaited here
        if not turn.goes_on(result, prompt):
            return result


def _run_sync(turn: _Turn) -> RunResult:
    turn.start_sync()
    while True:
        with turn.calling():
            result = turn.runner.run_sync(turn.agent, turn.given, **turn.options)
        if not turn.is_done(result):
            return result
        prompt = turn.run.stopping_sync(lambda: turn.known(result))  # noqa: B023  # called here
        if not turn.goes_on(result, prompt):
            return result


class GatedStream(RunResultStreaming):
    """The passes of a gated run as one `RunResultStreaming`: it has what the current pass has."""

    def __init__(self, turn: _Turn) -> None:
        self._turn = turn
        self._check: asyncio.Future[str] | None = None  # what the gates say
        self._is_cancelled = False
        self._has_ended = False
        turn.start_sync()
        self._pass = self._next_pass()

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_pass"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._pass, name, value)

    @property
    def is_complete(self) -> bool:
        """Whether the last pass has ended, and the gates have answered."""
        return self._has_ended

    def cancel(self, mode: str = "immediate") -> None:
        """Cancel the run as the SDK does; gates that run are ended."""
        self._is_cancelled = True
        self._pass.cancel(mode)
        if self._check is not None:
            self._check.cancel()

    async def stream_events(self) -> AsyncIterator[StreamEvent]:
        """Return the events of all passes."""
        turn = self._turn
        while not self._has_ended:
            try:
                async for event in self._pass.stream_events():
                    yield event
                prompt = await self._stopping()
            except Exception:
                self._has_ended = True
                raise
            if turn.goes_on(self._pass, prompt):
                self._pass = self._next_pass()
            else:
                self._has_ended = True

    def _next_pass(self) -> RunResultStreaming:
        turn = self._turn
        with turn.calling():
            return turn.runner.run_streamed(turn.agent, turn.given, **turn.options)

    async def _stopping(self) -> str:
        turn, result = self._turn, self._pass
        if self._is_cancelled or result.run_loop_exception or not turn.is_done(result):
            return ""
        self._check = check = asyncio.ensure_future(turn.run.stopping(lambda: turn.known(result)))
        try:
            await asyncio.wait([check])
        except asyncio.CancelledError:
            check.cancel()
            await asyncio.wait([check])  # until its gates have ended
            raise
        return "" if self._is_cancelled or check.cancelled() else check.result()


_OWN = frozenset(name for name in vars(GatedStream) if not name.startswith("__")) | {
    "_turn",
    "_check",
    "_is_cancelled",
    "_has_ended",
    "_pass",
}


# Agents as tools: the SDK runs them with its default runner, which is ours as soon as a GatedRunner
# was used. It passes on everything else.

_caller: ContextVar[_Turn | None] = ContextVar("notyet_openai_agents_caller", default=None)
_installing = threading.Lock()


class _ToolRunner:
    """Gates agents that run as tools of a gated agent, and runs all others as before."""

    def __init__(self, before: Any) -> None:
        self.before = before

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:  # noqa: A002
        turn = self._turn(starting_agent, input, options)
        if turn is None:
            return await self.before.run(starting_agent, input, **options)
        return await _run(turn)

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:  # noqa: A002
        turn = self._turn(starting_agent, input, options)
        if turn is None:
            return self.before.run_sync(starting_agent, input, **options)
        return _run_sync(turn)

    def run_streamed(
        self,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002
        **options: Any,
    ) -> RunResultStreaming:
        turn = self._turn(starting_agent, input, options)
        if turn is None:
            return self.before.run_streamed(starting_agent, input, **options)
        return GatedStream(turn)

    def _turn(self, agent: Agent[Any], given: Any, options: dict[str, Any]) -> _Turn | None:
        """Return the turn of a subagent; None for agents that guardrails and others run."""
        caller = _caller.get()
        if caller is None or not isinstance(options.get("context"), ToolContext):
            return None
        return _Turn(caller.gates, agent, given, options, runner=self.before, caller=caller)


def _sdk_runner() -> Any:
    """Return the SDK's own runner; from now on, ours sees the agents that are tools."""
    with _installing:
        runner = get_default_agent_runner()
        if not isinstance(runner, _ToolRunner):
            runner = _ToolRunner(runner)
            set_default_agent_runner(runner)
        return runner.before


# What the SDK knows.


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _session_id(options: dict[str, Any], *, is_main: bool) -> str | None:
    """Return the id of the conversation, if the SDK has one."""
    known: str | None = None
    with suppress(Exception):  # one that the server numbers has no id before its first request
        known = _field(options.get("session"), "session_id")
    known = known or options.get("conversation_id")
    if known or not is_main:  # a subagent inherits the group of its parent
        return known
    return _field(options.get("run_config"), "group_id") or None


def _task_of(given: Any) -> str | None:
    """Return what the user asked for last."""
    if isinstance(given, str):
        return given
    items: list[Any] = given if isinstance(given, list) else []
    for item in reversed(items):
        if _field(item, "role") == "user":
            content = _field(item, "content")
            if isinstance(content, str):
                return content
            parts = content if isinstance(content, list) else ()
            return "\n".join(_field(part, "text") or "" for part in parts).strip() or None
    return None


def _last_text(result: RunResultBase) -> str | None:
    """Return the text of the last message, or what a tool ended the run with."""
    for item in reversed(result.new_items):
        if isinstance(item, MessageOutputItem):
            return ItemHelpers.text_message_output(item) or None
    return None if result.final_output is None else str(result.final_output)


def _model_of(agent: Agent[Any], options: dict[str, Any]) -> str | None:
    model = _field(options.get("run_config"), "model") or agent.model
    name = model if isinstance(model, str) else _field(model, "model")
    return name if isinstance(name, str) else None


def _field(value: Any, name: str) -> Any:
    """Return a field of one of the SDK's objects, which may also be a dict."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _sum(spent: list[Any]) -> Usage:
    details = [usage.input_tokens_details for usage in spent]
    return Usage(
        input=sum(usage.input_tokens for usage in spent),
        output=sum(usage.output_tokens for usage in spent),
        cache_read=sum(getattr(detail, "cached_tokens", 0) or 0 for detail in details),
        cache_write=sum(getattr(detail, "cache_write_tokens", 0) or 0 for detail in details),
        total=sum(usage.total_tokens for usage in spent),
    )
