"""Sessions of an agent behind the proxy, and the turns in them."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any, Literal

from notyet.acp.heard import Facts, Heard, usage_of
from notyet.acp.wire import value
from notyet.core.event import BackgroundTask, StopEvent, Usage

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from notyet.acp.wire import Message
    from notyet.core.verdict import Decision

    State = Literal["working", "gating", "over"]

_USAGE_FIELDS = Usage._fields
_NO_TOKENS = "the agent ended its turn"


class Session:
    """One conversation with the agent."""

    def __init__(self, name: str, cwd: str, counted_as: str = "") -> None:
        self.name = name  # its id in the protocol
        self.cwd = cwd
        self.counted_as = counted_as or name  # a fork is counted as the session it comes from
        self.mark = json.dumps(name, ensure_ascii=False).encode()  # how most lines name it
        self.turn: Turn | None = None  # the newest one
        self.starting: asyncio.Task[None] | None = None
        self.waiting: list[bytes] = []  # lines of the client, until it has started
        self.spending = Spending()
        self.said: set[str] = set()  # warnings that its user has read

    def working(self) -> Turn | None:
        """Return the turn that the agent works in."""
        turn = self.turn
        return turn if turn is not None and turn.state == "working" else None


class Turn:
    """One prompt of the client, with all the follow-ups that gates made of it.

    It is `working` while the agent has a prompt, `gating` while its end is held, and then `over`.
    """

    def __init__(self, session: Session, asked: object, task: str) -> None:
        self.session = session
        self.asked = asked  # the id of the client's request
        self.task = task
        self.turn_id = uuid.uuid4().hex
        self.state: State = "working"
        self.own_id = ""  # of our follow-up that the agent works on
        self.is_cancelled = False
        self.has_run = False  # version 2: it was said to be running
        self.heard = Heard()
        self.held: tuple[Message, bytes] | None = None  # its end, which the client has not seen
        self.decision: Decision | None = None
        self.send_backs = 0
        self.check: asyncio.Task[None] | None = None
        self.close_display: Callable[[], None] | None = None  # of gates that still run
        self.spent: dict[str, int] = {}  # tokens of all its runs, as the agent names them
        self._usage = Usage()  # the same, in our words
        self._began = time.monotonic()

    def continues(self, own_id: str) -> None:
        """Begin a follow-up."""
        self.send_backs += 1
        self.own_id, self.state = own_id, "working"
        self.heard, self.has_run = Heard(), False
        self._began = time.monotonic()

    def spend(self, usage: object) -> None:
        """Add what a run used."""
        for name, count in usage.items() if isinstance(usage, dict) else ():
            if isinstance(count, int):
                self.spent[name] = self.spent.get(name, 0) + count

    def event(self, host: str, end: Message, facts: Facts, agent: str) -> StopEvent:
        """Return the stop that an end means."""
        usage = usage_of(end.get("usage")) or usage_of(facts.usage) or _gemini_usage(end)
        total = None
        if usage is not None:
            added = {n: getattr(usage, n) + getattr(self._usage, n) for n in _USAGE_FIELDS}
            total = self._usage = Usage(**added)
        return StopEvent(
            host=host,
            session_id=self.session.counted_as,
            turn_id=self.turn_id,
            agent_name=agent or None,
            cwd=self.session.cwd,
            task=self.task or None,
            last_message=facts.text or None,
            stop_hook_active=self.send_backs > 0,
            usage=usage,
            total_usage=total,
            tool_calls=facts.tool_calls,
            tools_used=facts.tools,
            duration_ms=(time.monotonic() - self._began) * 1000,
            background_tasks=_background(end),
        )


class Spending:
    """The tokens that a session's agent reports, by which a failed call of its model is told."""

    def __init__(self) -> None:
        self._is_reported = False
        self._last: object = None
        self._totals: dict[str, int] = {}

    def of_this_turn(self, totals: dict[str, int]) -> dict[str, int]:
        """Return what is new in counts of the whole session."""
        before, self._totals = self._totals, totals
        return {name: max(0, count - before.get(name, 0)) for name, count in totals.items()}

    def failed_call(
        self, end: Message, facts: Facts, *, sums_up: bool, signs: tuple[str, ...]
    ) -> str:
        """Return why a turn ended without an answer of the model; empty if it seems to have one.

        Some agents say `end_turn` after a failed call. What tells: no word and no tool call, no
        usage where the agent reports it, or a sign of the agent's at the start of its last words.
        With `sums_up` the usage is that of the session; elsewhere an agent may repeat the last one.
        """
        usage = end.get("usage")
        before, self._last = self._last, usage or self._last
        used, self._is_reported = self._is_reported, self._is_reported or bool(usage)
        if not facts.has_acted:
            return "the agent ended its turn without a word or a tool call"
        if not usage and ("usage" in end or used):
            return f"{_NO_TOKENS} and reports no tokens, as after a failed call of its model"
        if sums_up and usage and usage == before:
            return f"{_NO_TOKENS} and used no tokens, as after a failed call of its model"
        if facts.text.startswith(signs) and not (sums_up and usage):
            return f"the agent's call of its model failed: {facts.text[:200]}"
        return ""


def _gemini_usage(end: Message) -> Usage | None:
    """Return the tokens that Gemini CLI counts."""
    counted = value(end, "_meta", "quota", "token_count")
    if not isinstance(counted, dict):
        return None
    known = {
        ours: counted[theirs]
        for theirs, ours in (("input_tokens", "input"), ("output_tokens", "output"))
        if isinstance(counted.get(theirs), int) and counted[theirs] >= 0
    }
    return Usage(**known) if known else None


def _background(end: Message) -> tuple[BackgroundTask, ...]:
    """Return what still runs beside the agent, in version 2: it is not finished then (B10)."""
    listed: Any = end.get("background")
    if not isinstance(listed, list):
        return ()
    return tuple(
        BackgroundTask(id=str(value(one, "id") if isinstance(one, dict) else one), type="subagent")
        for one in listed
    )
