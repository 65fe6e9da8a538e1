"""claude-agent-sdk: `gate_hooks`, the hooks by which a program's Claude Code agents are gated.

    options = ClaudeAgentOptions(hooks=gate_hooks(engine))

Claude Code asks these hooks when its agent, or a subagent, wants to stop. What they are given and
what they answer is the same as with a hook command, so `hosts.claude` reads and writes it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import HookMatcher

from notyet.agents.formats import ANTHROPIC_FIGURES, OWN_WORDS
from notyet.agents.turn_builder import FIGURES, whole
from notyet.core.event import StartEvent, StopEvent, Usage
from notyet.core.message import note
from notyet.core.verdict import UNCHECKED
from notyet.frameworks.gated_run import Framework, GatedRun, Gates
from notyet.hosts import time_to_answer
from notyet.hosts.claude import HOST
from notyet.hosts.transcript import entry_in, joined, own_transcript, table_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from claude_agent_sdk.types import HookContext, HookEvent, HookInput, HookJSONOutput

    from notyet.engine.engine import Engine

FRAMEWORK = Framework("claude-agent-sdk", "claude-agent-sdk", "0.2.182", "0.2.182")
_EVENTS: tuple[HookEvent, ...] = ("UserPromptSubmit", "SubagentStart", "Stop", "SubagentStop")
_FROM_EVENT = (
    *("last_message", "transcript_path", "agent_transcript_path"),
    *("permission_mode", "background_tasks", "host_cap", "raw"),
)
_MOST = 10_000  # agents that are remembered
# Claude Code writes an answer to the transcript about 0.1 s after it asks.
_PATIENCE = 1.0  # seconds
_PART_TO_WAIT = 10  # at most this part of the turn so far
_POLL = 0.005


def gate_hooks(engine: Engine, *, timeout: float = 1800.0) -> dict[HookEvent, list[HookMatcher]]:
    """Return hooks for `ClaudeAgentOptions(hooks=...)`, which gate agents and subagents.

    Claude Code waits `timeout` seconds for an answer; gates have a little less. Options of several
    agents may share the hooks. To add hooks of your own, put them into the lists.
    """
    hooks = _Hooks(engine, timeout)
    return {name: [HookMatcher(hooks=[hooks.answer], timeout=timeout)] for name in _EVENTS}


class _Agent:
    """A turn of a main agent, or of a subagent."""

    def __init__(self, run: GatedRun, begin: int, began: float) -> None:
        self.run = run
        self.end = begin  # how far the agent's transcript was read
        self.began = began  # by the monotonic clock
        self._begin = begin  # where the turn begins in the transcript
        self._has_figures: bool | None = None  # None before the first stop

    async def describe(self, event: StopEvent) -> dict[str, Any]:
        """Return the fields of the event that the payload and the transcript have."""
        known = {name: getattr(event, name) for name in _FROM_EVENT}
        path, of_subagent = own_transcript(event), event.scope == "subagent"
        if path is None or not await self._is_written(path, event):
            return known  # no figures are better than those of less than was done
        self.end = _size(path)
        entries = _entries(path, self._begin, of_subagent=of_subagent)
        return known | _figures(entries, of_subagent=of_subagent)

    async def _is_written(self, path: str, event: StopEvent) -> bool:
        """Wait until the transcript has the answer; return True if it has.

        At the first stop, waiting must not make a short turn longer by more than a part of it. A
        turn has figures at all of its stops or at none.
        """
        if self._has_figures is False:
            return False
        now, patience = time.monotonic(), _PATIENCE
        if self._has_figures is None:
            patience = min(patience, (now - self.began) / _PART_TO_WAIT)
        while not self._has_answer(path, event):
            if time.monotonic() > now + patience:
                self._has_figures = bool(self._has_figures)
                return False
            await asyncio.sleep(_POLL)
        self._has_figures = True
        return True

    def _has_answer(self, path: str, event: StopEvent) -> bool:
        answer = (event.last_message or "").strip()
        new = _entries(path, self.end, of_subagent=event.scope == "subagent")
        texts = [_said(entry).strip() for entry in new if entry.get("type") == "assistant"]
        return not answer or any(text and answer.endswith(text) for text in texts)


class _Hooks:
    """The hooks of one engine; Claude Code calls them for all of its sessions."""

    def __init__(self, engine: Engine, timeout: float) -> None:
        self._gates = Gates(engine, FRAMEWORK, within=time_to_answer(timeout))
        self._agents: dict[str, _Agent] = {}  # by session, or id of a subagent

    async def answer(
        self, payload: HookInput, _tool_use_id: str | None, _context: HookContext
    ) -> HookJSONOutput:
        """Answer a hook; a fault of ours allows the stop."""
        try:
            reply: HookJSONOutput = await self._answer(payload)
        except Exception as error:  # noqa: BLE001  # a fault of ours must not reach the framework
            words = f"{type(error).__name__}: {error}"
            self._gates.engine.warn(f"{UNCHECKED}: {FRAMEWORK.name}: {words}")
            return {}
        return reply

    async def _answer(self, payload: Mapping[str, Any]) -> Any:
        name = payload["hook_event_name"]
        is_prompt = name == "UserPromptSubmit"
        read_as = {**payload, "hook_event_name": "SessionStart"} if is_prompt else payload
        event = HOST.read_event(read_as, os.environ)
        if isinstance(event, StopEvent):
            return await self._answer_stop(event)
        assert event is not None
        agent = self._begin(event, _text(payload.get("prompt")))
        words = await agent.run.starting()
        about = {"hookEventName": name, "additionalContext": words}
        return {"hookSpecificOutput": about} if words else {}

    async def _answer_stop(self, event: StopEvent) -> Any:
        agent = self._agents.get(_key(event))
        known_turns = (None, agent.run.turn_id if agent else None)
        # What ends in the background gives the main agent a turn without a prompt. Of a subagent
        # that changes nothing, although its payload then has the id of that turn.
        if agent is None or (event.scope == "agent" and event.turn_id not in known_turns):
            agent = self._begin(event)
        run = agent.run
        run.cwd = event.cwd or run.cwd
        known = await agent.describe(event) if self._is_read(event) else {}
        await run.stopping(lambda: known)
        assert run.decision is not None
        reply = HOST.write_reply(run.decision.verdict, note(run.decision), event, {})
        return json.loads(reply.stdout or "{}")

    def _is_read(self, event: StopEvent) -> bool:
        """Return True if a gate or an observer is to read this event."""
        engine = self._gates.engine
        return bool(engine.observed) or engine.asks(event)

    def _begin(self, event: StopEvent | StartEvent, task: str | None = None) -> _Agent:
        """Begin a turn; its part of the transcript is what comes from now on."""
        before, parent = self._agents.get(_key(event)), None
        if event.scope == "subagent":
            main = self._agents.get(event.session_id)
            parent = main.run if main else GatedRun(self._gates, session_id=event.session_id)
        run = GatedRun(
            self._gates,
            session_id=_key(event),
            agent_name=event.agent_type,
            parent=parent,
            task=task,
            turn_id=event.turn_id,
            cwd=event.cwd,
        )
        begin, began = before.end if before else 0, time.monotonic()
        if before and isinstance(event, StopEvent):
            began = before.began  # nothing said when this turn began
        if isinstance(event, StartEvent) and event.scope == "agent" and event.transcript_path:
            begin = _size(event.transcript_path)  # of a session that is continued
        agent = self._agents[_key(event)] = _Agent(run, begin, began)
        while len(self._agents) > _MOST:
            self._agents.pop(next(iter(self._agents)), None)
        return agent


def _key(event: StopEvent | StartEvent) -> str:
    return (event.scope == "subagent" and event.agent_id) or event.session_id


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _figures(entries: Iterable[dict[str, Any]], *, of_subagent: bool) -> dict[str, Any]:
    """Return what an agent did, by the entries of its transcript."""
    spent: dict[str, dict[str, int]] = {}  # by message, which may stand on several lines
    tools: list[str] = []
    model = task = None
    for entry in entries:
        message = table_in(entry.get("message"))
        if entry.get("type") == "user" and of_subagent and not task:
            task = _said(entry)  # what the parent gave it to do
        if entry.get("type") != "assistant" or message.get("model") == OWN_WORDS:
            continue
        model, usage = _text(message.get("model")), table_in(message.get("usage"))
        spent[str(message.get("id"))] = {
            ours: whole(usage.get(theirs))
            for ours, theirs in zip(FIGURES, ANTHROPIC_FIGURES, strict=True)
        }
        blocks = [table_in(block) for block in message.get("content") or ()]
        tools += [str(block.get("name")) for block in blocks if block.get("type") == "tool_use"]
    sums = {name: sum(part[name] for part in spent.values()) for name in FIGURES}
    return {
        "total_usage": Usage(**sums, total=sum(sums.values())),
        "turns": len(spent),
        "tool_calls": len(tools),
        "tools_used": tuple(tools),
        "model": model,
        "task": task,
    }


def _entries(path: str, begin: int, *, of_subagent: bool) -> Iterator[dict[str, Any]]:
    """Yield an agent's entries since a place in a transcript."""
    with suppress(OSError), open(path, "rb") as lines:
        lines.seek(begin)
        for line in lines:
            entry = entry_in(line)
            if (entry.get("isSidechain") is True) == of_subagent:
                yield entry


def _said(entry: Mapping[str, Any]) -> str:
    return joined(table_in(entry.get("message")).get("content"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
