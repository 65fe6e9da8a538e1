"""`Gates` and `GatedRun`: what every adapter for a framework does with an engine.

An adapter says when an agent wants to stop and how it goes on; these two make the event, ask the
engine, and keep every fault of ours out of the framework:

    gates = Gates(engine, Framework("strands", "strands-agents", "1.62", "1.62"))
    run = GatedRun(gates, session_id=session, agent_name=agent.name)
    prompt = await run.stopping(lambda: {"last_message": text, "total_usage": usage})
    if prompt:
        ...  # go on with this prompt as the user's next message, with the whole history
"""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple

from notyet.core.event import StartEvent, StopEvent, Usage
from notyet.core.verdict import UNCHECKED, Block, Decision, skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notyet.engine.engine import Engine

    Describe = Callable[[], Mapping[str, Any]]  # fields of the StopEvent that the framework knows

_MOST_SESSIONS = 10_000  # whose start is remembered
_looked_at: set[str] = set()  # frameworks whose version was compared, in this process


class Framework(NamedTuple):
    """A framework, and the versions that our tests drive."""

    name: str  # also the host of its events
    package: str  # its name for pip
    oldest: str  # tested
    newest: str


class Gates:
    """An engine as an adapter uses it: only a cancellation is ever raised into the framework."""

    def __init__(
        self,
        engine: Engine,
        framework: Framework,
        *,
        cwd: str | None = None,
        within: float | None = None,
    ) -> None:
        """`cwd` is the folder that agents work in; there is a decision `within` so many seconds."""
        if not hasattr(engine, "check_sync"):
            raise TypeError("engine is an Engine, like Engine([gate]) or Engine.from_project()")
        self.engine = engine
        self.framework = framework
        self.cwd = os.path.abspath(cwd or os.getcwd())
        self.within = within
        self._started: dict[str, None] = {}
        self._said: set[str] = set()
        self._lock = threading.Lock()
        warn_of_version(framework, engine.warn)

    def warn_once(self, message: str) -> None:
        """Pass on a warning, unless it was said here before."""
        with self._lock:
            is_new = message not in self._said
            self._said.add(message)
        if is_new:
            self.engine.warn(message)

    def is_first(self, session_id: str) -> bool:
        """Return True the first time that a session starts here."""
        with self._lock:
            if session_id in self._started:
                return False
            self._started[session_id] = None
            while len(self._started) > _MOST_SESSIONS:
                del self._started[next(iter(self._started))]
            return True


class GatedRun:
    """One run of an agent with all its send-backs: a turn of notyet's (B4).

    Adapters report figures of the whole run; those of an event are what came since the last
    send-back. A subagent names its `parent`.
    """

    def __init__(
        self,
        gates: Gates,
        *,
        session_id: str | None = None,
        agent_name: str | None = None,
        parent: GatedRun | None = None,
        task: str | None = None,
        turn_id: str | None = None,
        cwd: str | None = None,
    ) -> None:
        """Take the framework's own session; `turn_id` is that of a run which is resumed."""
        self.gates = gates
        self.cwd = cwd or gates.cwd  # an adapter may change it during the run
        self.session_id = session_id or f"{gates.framework.name}-{uuid.uuid4()}"
        self.turn_id = turn_id or uuid.uuid4().hex
        self.parent = parent
        self.decision: Decision | None = None  # the last one
        self.send_backs = 0
        self._agent_id = self.session_id if parent is not None else None
        self._agent_name = agent_name
        self._task = task
        self._before: dict[str, Any] = {}  # the figures at the last stop
        self._since = time.monotonic()

    async def starting(self) -> str:
        """Run what is to happen when a session starts; return words for the agent, or ''."""
        if not self._has_start():
            return ""
        try:
            return await self.gates.engine.start(self._start())
        except Exception as error:  # noqa: BLE001  # a fault of ours must not reach the framework
            return self._not_started(error)

    def starting_sync(self) -> str:
        """Do what `starting` does from code that is not async."""
        if not self._has_start():
            return ""
        try:
            return self.gates.engine.start_sync(self._start())
        except Exception as error:  # noqa: BLE001  # a fault of ours must not reach the framework
            return self._not_started(error)

    def _not_started(self, error: Exception) -> str:
        self.gates.engine.warn(f"the start of {self.session_id} failed: {_words(error)}")
        return ""

    async def stopping(self, describe: Describe) -> str:
        """Return the prompt that the agent goes on with, or '' if it may stop.

        `describe` returns the fields of the `StopEvent` that the framework knows, and why the
        agent cannot go on, if so, as `cannot_hold`: the gates then only observe.
        """
        try:
            event, options = self._asked(describe())
            decision = await self.gates.engine.check(event, **options)
        except Exception as error:  # noqa: BLE001  # a fault of ours must not reach the framework
            decision = self._failed(error)
        return self._settled(decision)

    def stopping_sync(self, describe: Describe) -> str:
        """Do what `stopping` does from code that is not async."""
        try:
            event, options = self._asked(describe())
            decision = self.gates.engine.check_sync(event, **options)
        except Exception as error:  # noqa: BLE001  # a fault of ours must not reach the framework
            decision = self._failed(error)
        return self._settled(decision)

    def _has_start(self) -> bool:
        engine = self.gates.engine
        return engine.acts_at_start and self.gates.is_first(self.session_id)

    def _start(self) -> StartEvent:
        return StartEvent(
            scope="subagent" if self.parent else "agent",
            host=self.gates.framework.name,
            session_id=self.session_id,
            agent_id=self._agent_id,
            agent_type=self._agent_name if self.parent else None,
            parent_session_id=self.parent.session_id if self.parent else None,
            cwd=self.cwd,
            turn_id=self.turn_id,
        )

    def _asked(self, known: Mapping[str, Any]) -> tuple[StopEvent, dict[str, Any]]:
        """Return the event, and how the engine is to check it."""
        fields = dict(known)
        cannot_hold = fields.pop("cannot_hold", "")
        event = self._event(fields)
        if cannot_hold and self.gates.engine.asks(event):
            self.gates.warn_once(f"gates only observe here: {cannot_hold}")
        return event, {"within": self.gates.within, "may_block": not cannot_hold}

    def _event(self, known: Mapping[str, Any]) -> StopEvent:
        """Return the event; what came since the last stop is counted."""
        now = time.monotonic()
        fields = {name: value for name, value in known.items() if value is not None}
        total = fields.get("total_usage")
        if isinstance(total, Usage):
            fields["usage"] = _since(total, self._before.get("total_usage"))
        for name in ("turns", "tool_calls"):
            if name in fields:
                counted, before = fields[name], self._before.get(name, 0)
                fields[name] = max(0, counted - before)
                self._before[name] = counted
        tools = tuple(fields.get("tools_used", ()))
        new = tools[len(self._before.get("tools_used", ())) :]
        fields["tools_used"] = tuple(dict.fromkeys(new))
        self._before |= {"tools_used": tools, "total_usage": total}
        fields.setdefault("duration_ms", (now - self._since) * 1000)
        fields.setdefault("agent_name", self._agent_name)  # another one may have taken over
        fields.setdefault("task", self._task)  # an adapter may learn it later
        return StopEvent(
            scope="subagent" if self.parent else "agent",
            host=self.gates.framework.name,
            session_id=self.session_id,
            parent_session_id=self.parent.session_id if self.parent else None,
            turn_id=self.turn_id,
            agent_id=self._agent_id,
            agent_type=self._agent_name if self.parent else None,
            cwd=self.cwd,
            stop_hook_active=self.send_backs > 0,
            **fields,
        )

    def _failed(self, error: Exception) -> Decision:
        """Return the decision after a fault of ours: allowed, and said (A6)."""
        self.gates.engine.warn(f"{UNCHECKED}: {self.gates.framework.name}: {_words(error)}")
        return skipped("internal", _words(error))

    def _settled(self, decision: Decision) -> str:
        self.decision = decision
        self._since = time.monotonic()
        if not isinstance(decision.verdict, Block):
            return ""
        self.send_backs += 1
        return decision.verdict.prompt


def warn_of_version(framework: Framework, warn: Callable[[str], None]) -> None:
    """Say once that the installed version of a framework was not tested."""
    if framework.name in _looked_at:
        return
    _looked_at.add(framework.name)
    try:
        installed = version(framework.package)
    except PackageNotFoundError:  # vendored, or renamed
        return
    if _minor(framework.oldest) <= _minor(installed) <= _minor(framework.newest):
        return
    tested = f"{framework.oldest} to {framework.newest}"
    if framework.oldest == framework.newest:
        tested = framework.newest
    warn(
        f"notyet was not tested with {framework.package} {installed} (tested: {tested}); "
        "if agents are not sent back as they should be, install a tested version"
    )


def _minor(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version: those of 1.30rc1 are 1 and 30."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def _since(total: Usage, before: Usage | None) -> Usage:
    """Return what was spent since an earlier total."""
    if before is None:
        return total
    names = Usage._fields
    return Usage(**{n: max(0, getattr(total, n) - getattr(before, n)) for n in names})


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
