"""`Engine`: gates, observers and limits in one object, for programs that embed notyet.

The way of a stop is in `stop`; `check` and `check_sync` are two small drivers of it. A function
that takes the wrong arguments is refused when it is registered, not when an agent stops.
"""

from __future__ import annotations

import os
import sys

from notyet.core.event import StartEvent, StopEvent
from notyet.core.gate import EVERY_AGENT, NATIVE, Command, Function, Gate, Starter
from notyet.core.limits import History, Limits
from notyet.core.plan import select
from notyet.core.record import replace
from notyet.core.verdict import skipped
from notyet.engine.gate_runs import gate_function
from notyet.engine.observers import OBSERVED, Observer, Watch, notify_all
from notyet.engine.snapshots import snapshots_at_start, wants_snapshot
from notyet.engine.start_hooks import StartHook, run_start_hooks, start_handler
from notyet.engine.stop import WAIT_FOR_EQUAL, Stop, check, decide
from notyet.errors import attempt
from notyet.hosts import openclaw
from notyet.hosts.plugins import STARTING, snake
from notyet.ledger.memory import MemoryLedger
from notyet.run.drive import drive_sync
from notyet.run.functions import accepts, calling_engines, run_in_thread_or_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal, TypeVar

    from notyet.core.verdict import Decision
    from notyet.engine.stop import Keep
    from notyet.ledger import AnyLedger
    from notyet.run.drive import Progress, Steps
    from notyet.run.functions import GateFunction

    T = TypeVar("T")
    Asked = Literal["needed", "all"]  # "all": gates run even if no file changed (N1)

_INSIDE = "this stop comes from inside a gate; a gate's own work is not gated"


class Engine:
    """Runs gates when an agent stops, and records the decisions.

    `gates` are `Gate`s or plain functions, which become gates for the main agent. `starters` may
    add words for an agent that starts. Without a `ledger`, send-backs are counted in memory.
    `limits` may also be a dict, as OpenClaw's configuration has it: `{"maxSteerRestarts": 5}`.
    Warnings go to `warn`, or to the logger "notyet". `unchecked` are sentences about checks that
    could not be loaded; with one, no stop passes.
    """

    def __init__(
        self,
        gates: Iterable[Gate | Callable[..., Any]] = (),
        *,
        observers: Iterable[Observer] = (),
        starters: Iterable[Starter] = (),
        limits: Limits | dict[str, Any] = Limits(),  # noqa: B008  # a record cannot be changed
        ledger: AnyLedger | None = None,
        warn: Callable[[str], None] | None = None,
        unchecked: Iterable[str] = (),
    ) -> None:
        if ledger is None:
            ledger = MemoryLedger()
        if not hasattr(ledger, "begin"):
            raise TypeError("ledger is a Ledger, like Ledger('stops.db'), or None")
        if isinstance(limits, dict):
            limits = openclaw.limits(limits)
        if not isinstance(limits, Limits):
            raise TypeError("limits are Limits, like Limits(max_blocks=5)")
        self._ledger = ledger
        self._warn = _guarded(warn) if warn else _log
        self._limits = limits
        self._unchecked = tuple(unchecked)
        self._gates: list[Gate] = []
        self._functions: dict[str, GateFunction] = {}  # of the gates that are functions, by name
        self._watches: list[Watch] = []
        self._starters: list[StartHook] = []
        self._names: set[str] = set()  # of the gates
        self._has_patterns = False  # whether the names of agents decide which gates apply
        self._selected: dict[tuple[str, str], tuple[Gate, ...]] = {}
        for observer in observers:
            self._add_observer(observer)
        for gate in gates:
            self._add_gate(gate)
        for starter in starters:
            self._add_starter(starter)

    @classmethod
    def from_project(
        cls,
        cwd: str = ".",
        *,
        agent: str = "",
        workspace: str = "",
        ledger: AnyLedger | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> Engine:
        """Return an engine with what the trusted files of a project say, as they are now.

        These are the gates, start hooks, observers and limits that agents of `notyet with` meet
        there, also those written for other hosts. `agent` is the program that your sessions run,
        like `claude`: the hooks of its own files are left to it. `workspace` is where the files
        are, if on another machine. Raises Refused if that cannot be read.
        """
        from notyet.engine.from_project import project_engine  # which imports this module

        return project_engine(cwd, agent, workspace, ledger, warn)

    @property
    def limits(self) -> Limits:
        """How often this engine's gates may send an agent back."""
        return self._limits

    @property
    def warn(self) -> Callable[[str], None]:
        """Where warnings go; it never raises."""
        return self._warn

    def on(
        self, name: str, handler: Callable[..., Any], priority: int | dict[str, int] = 0
    ) -> None:
        """Register a handler `(event, ctx)`, plain or async.

        "subagent_stopping" and "stopping" decide, one after another, higher priority first.
        "stop", "subagent_stop" and "subagent_ended" are notified, in order of registration, and so
        is "decision", with `(event, decision)`, also when an agent is sent back. "session_start"
        and "subagent_start" may return words for the agent, or a dict with `additional_context`.
        Names may be in camel case, and the priority in a dict: `{"priority": 100}`.
        """
        given, name = name, snake(name)
        order = priority.get("priority", 0) if isinstance(priority, dict) else priority
        if name in STARTING:
            self._add_starter(start_handler(name, handler, len(self._starters)))
            return
        if name in openclaw.DECIDING:
            self._add_gate(openclaw.gate(name, handler, order, step=len(self._gates)))
            return
        try:
            observer = Observer(name, handler)
        except ValueError:
            known = ", ".join((*openclaw.DECIDING, *OBSERVED, *STARTING))
            raise ValueError(f"unknown event {given!r}; choose one of {known}") from None
        self._add_observer(observer)

    async def decide(
        self,
        event: StopEvent,
        history: History = History(),  # noqa: B008  # a record cannot be changed
        *,
        keep: Keep | None = None,
        asked: Asked = "needed",
        progress: Progress | None = None,
    ) -> Decision:
        """Run the gates and settle their answers, without counting, recording or notifying.

        `keep` is called with a report whose output is too long for the agent, keeps the output and
        returns the path; without it nothing is kept. With `asked` "all", gates run even if no file
        changed (N1). `progress` is called with a gate's name and None when it starts, and with its
        report when it has answered, from the thread that drives. It may have two methods:
        `planned`, called with the names of the gates that will run, and `printed`, called from any
        thread with a gate's name and bytes that its command printed.
        """
        return await _drive(self._decide(event, history, keep, asked, progress))

    def decide_sync(
        self,
        event: StopEvent,
        history: History = History(),  # noqa: B008  # a record cannot be changed
        *,
        keep: Keep | None = None,
        asked: Asked = "needed",
        progress: Progress | None = None,
    ) -> Decision:
        """Do what `decide` does from code that is not async, inside a running loop or not."""
        return drive_sync(self._decide(event, history, keep, asked, progress))

    def asks(self, event: StopEvent) -> bool:
        """Return True if a gate applies to this event, so that it is worth a record."""
        return bool(self._gates_for(event))

    @property
    def observed(self) -> frozenset[str]:
        """What observers are registered for, like "stop" or "decision"."""
        return frozenset(watch.observer.on for watch in self._watches)

    @property
    def acts_at_start(self) -> bool:
        """True if `start` runs a starter, or takes a snapshot for a gate."""
        return bool(self._starters) or any(map(wants_snapshot, self._gates))

    async def tell(self, event: StopEvent, decision: Decision) -> None:
        """Notify the observers of a decision that was made with `decide` and is in force now."""
        await _drive(notify_all(tuple(self._watches), event, decision, None, self._warn))

    async def start(self, event: StartEvent) -> str:
        """Run the starters of an agent that begins; return what they add for it, joined.

        Gates that compare the files with those at the start have a snapshot afterwards.
        """
        return await _drive(self._start(event))

    def start_sync(self, event: StartEvent) -> str:
        """Do what `start` does from code that is not async, inside a running loop or not."""
        return drive_sync(self._start(event))

    async def check(
        self,
        event: StopEvent,
        *,
        within: float | None = None,
        may_block: bool = True,
        progress: Progress | None = None,
    ) -> Decision:
        """Decide, count and record a stop, and notify the observers.

        Of a block only those of "decision" are notified. There is a decision `within` so many
        seconds: a gate that still runs by then is ended and has a problem. A command that had its
        share of the time has timed out; a function, or a command that began late, never blocks.
        Recording and notifying may take a second more, or an eighth of that time if less. Without
        `may_block`, for an agent that cannot go on, the stop is allowed as if at the limit.
        `progress` is called as in `decide`.
        """
        # A locked ledger must not block the loop's thread.
        options = {"within": within, "progress": progress, "on_cancel": run_in_thread_or_here}
        return await _drive(self._check(event, may_block, **options))

    def check_sync(
        self,
        event: StopEvent,
        *,
        within: float | None = None,
        may_block: bool = True,
        progress: Progress | None = None,
    ) -> Decision:
        """Do what `check` does from code that is not async, inside a running loop or not."""
        # What a running loop of this thread is deciding cannot end while we wait for it.
        patience = 0.0 if _in_a_running_loop() else WAIT_FOR_EQUAL
        options = {"within": within, "progress": progress, "wait_for_equal": patience}
        return drive_sync(self._check(event, may_block, **options))

    def _start(self, event: StartEvent) -> Steps[str]:
        if not isinstance(event, StartEvent):
            raise TypeError(f"a start is a StartEvent, not {type(event).__name__}")
        if self._is_inside():
            return ""
        yield from snapshots_at_start(event, tuple(self._gates), os.environ, self._warn)
        if not self._starters:
            return ""
        return (yield from run_start_hooks(event, tuple(self._starters), self._warn))

    def _check(self, event: StopEvent, may_block: bool, **options: Any) -> Steps[Decision]:  # noqa: FBT001
        gates = self._gates_for(event)
        if gates is None:
            self._warn(_INSIDE)
            return skipped("inside", _INSIDE)
        if not may_block:
            options["limits"] = replace(self._limits, max_blocks=0)
        return (yield from check(self._stop(event, gates, **options)))

    def _decide(
        self,
        event: StopEvent,
        history: History,
        keep: Keep | None,
        asked: str,
        progress: Progress | None,
    ) -> Steps[Decision]:
        if asked not in {"needed", "all"}:
            raise ValueError(f"asked must be 'needed' or 'all', not {asked!r}")
        gates = self._gates_for(event)
        if gates is None:
            return skipped("inside", _INSIDE)
        stop = self._stop(event, gates, progress=progress)
        keep = keep or (lambda _report: "")
        return (yield from decide(stop, history, keep, run_unchanged=asked == "all"))

    def _stop(self, event: StopEvent, gates: tuple[Gate, ...], **more: Any) -> Stop:
        return Stop(
            event,
            gates,
            self._ledger,
            declared=self._gates,
            warn=self._warn,
            functions=self._functions,
            watches=tuple(self._watches),
            unchecked=self._unchecked,
            **({"limits": self._limits} | more),
        )

    def _gates_for(self, event: StopEvent) -> tuple[Gate, ...] | None:
        """Return the gates that apply to an event; None if a gate's own work stops."""
        if not isinstance(event, StopEvent):
            raise TypeError(f"a stop is a StopEvent, not {type(event).__name__}")
        if self._is_inside():
            return None
        if event.internal or (self._has_patterns and event.scope == "subagent"):
            return select(event, self._gates)
        kind, selected = (event.scope, event.ending), self._selected
        if kind not in selected:
            selected[kind] = select(event, self._gates)
        return selected[kind]

    def _is_inside(self) -> bool:
        """Return True if a function that this engine runs, or what it started, calls us."""
        return id(self) in calling_engines.get()

    def _add_gate(self, gate: Gate | Callable[..., Any]) -> None:
        """Add a gate; a plain function becomes one for the main agent."""
        if not isinstance(gate, Gate):
            gate = _as_gate(gate)
        if gate.name in self._names:
            raise ValueError(f"two gates are called {gate.name!r}; give each a name of its own")
        if not isinstance(gate.check, Command):
            shape = ("event",) if gate.native else ("event", "ctx")
            _expect(gate.check.call, shape, f"the gate {gate.name!r}")
            self._functions[gate.name] = gate_function(gate, gate.check, id(self))
        self._names.add(gate.name)
        self._gates.append(gate)
        match = gate.match
        self._has_patterns |= match.agents != EVERY_AGENT or bool(match.never)
        self._selected = {}  # a new one: another thread may be filling in the old

    def _add_observer(self, observer: object) -> None:
        """Add an observer."""
        if not isinstance(observer, Observer):
            kind = type(observer).__name__
            raise TypeError(f"an observer is an Observer, not {kind}; or use engine.on()")
        if callable(observer.call):
            _expect(observer.call, ("event", "ctx"), f"an observer of {observer.on!r}")
        self._watches.append(Watch(observer))

    def _add_starter(self, starter: Starter) -> None:
        """Add a starter, which may add words for an agent that starts."""
        if not isinstance(starter, Starter):
            raise TypeError(f"a starter is a Starter, not {type(starter).__name__}")
        if not isinstance(starter.check, Command):
            shape = ("event",) if starter.check.speaks == NATIVE else ("event", "ctx")
            _expect(starter.check.call, shape, f"the start handler {starter.name!r}")
        self._starters.append(StartHook(starter, engine=id(self)))


def _guarded(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that passes on warnings, and cannot cost the caller the verdict."""

    def guarded(message: str) -> None:
        _, error = attempt(warn, message)
        if error is not None:
            _log(message)

    return guarded


def _log(message: str) -> None:
    import logging

    logging.getLogger("notyet").warning("%s", message)


async def _drive(steps: Steps[T]) -> T:
    from notyet.run import drive_async  # without `asyncio` for those who call `check_sync` only

    return await drive_async.drive(steps)


def _in_a_running_loop() -> bool:
    asyncio = sys.modules.get("asyncio")  # if it was not imported, no loop runs
    return asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001  # public


def _as_gate(call: Callable[..., Any]) -> Gate:
    if not callable(call):
        raise TypeError(f"a gate is a Gate or a function, not {type(call).__name__}")
    name = getattr(call, "__name__", type(call).__name__)
    return Gate(name=name, check=Function(call))


def _expect(call: Callable[..., Any], names: tuple[str, ...], who: str) -> None:
    if not accepts(call, len(names)):
        raise TypeError(f"{who} is called with ({', '.join(names)}), which it does not take")
