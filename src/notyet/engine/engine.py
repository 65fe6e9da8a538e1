"""`Engine`: the line one stop event follows, and the only place where pure meets I/O.

    select ─► ledger.begin ─► decide ─► ledger.record ─► observers
              └────── see `checking`, `deciding` ─────┘

The line is a generator. It yields what it has to wait for and is sent the result, so
`check_sync` and `check` are two small drivers of the same logic (see `checks.drive`).
"""

from __future__ import annotations

import sys

from notyet.core.event import StopEvent
from notyet.core.limits import History, Limits
from notyet.core.plan import missing_names
from notyet.core.record import made
from notyet.core.verdict import skipped
from notyet.engine.registry import Roster
from notyet.engine.stop import Asking, Checking, Deadline, Deciding, Situation
from notyet.engine.warnings import guarded, log, tell_all
from notyet.run.drive import drive_sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from notyet.core.event import StartEvent
    from notyet.core.gate import Gate, Starter
    from notyet.core.verdict import Decision, Report
    from notyet.engine.observers import Observer
    from notyet.engine.stop import Aside, Asked, Keep
    from notyet.engine.unchanged import Remembering
    from notyet.ledger import AnyLedger
    from notyet.run.drive import Line, Progress

_FIRST_ANSWER = 600.0  # seconds that the second of two equal stops waits for the first


class Engine:
    """Asks gates whether an agent may stop, and remembers what came of it.

    `gates` are `Gate`s or plain functions, which become gates for the main agent. `starters` may
    add words for an agent that starts. Without a `ledger`, send-backs are counted in memory. What
    somebody should know goes to `warn`, or to the logger "notyet".
    """

    def __init__(
        self,
        gates: Iterable[Gate | Callable[..., Any]] = (),
        *,
        observers: Iterable[Observer] = (),
        starters: Iterable[Starter] = (),
        limits: Limits = Limits(),  # noqa: B008  # a record cannot be changed
        ledger: AnyLedger | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        if ledger is None:
            from notyet.ledger.memory import MemoryLedger

            ledger = MemoryLedger()
        if not hasattr(ledger, "begin"):
            raise TypeError("ledger is a Ledger, like Ledger('stops.db'), or None")
        if not isinstance(limits, Limits):
            raise TypeError("limits are Limits, like Limits(max_blocks=5)")
        self._ledger = ledger
        self._warn = guarded(warn) if warn else log
        self._limits = limits
        self._roster = Roster(engine=id(self))
        for observer in observers:
            self._roster.watch(observer)
        for gate in gates:
            self._roster.add(gate)
        for starter in starters:
            self._roster.begin(starter)

    @property
    def limits(self) -> Limits:
        """How often this engine's gates may send an agent back."""
        return self._limits

    @property
    def warn(self) -> Callable[[str], None]:
        """Where what somebody should know goes; it never raises."""
        return self._warn

    def on(self, name: str, handler: Callable[..., Any], priority: int = 0) -> None:
        """Register a handler `(event, ctx)`, plain or async.

        "subagent_stopping" and "stopping" decide, one after another, higher priority first.
        "stop", "subagent_stop" and "subagent_ended" are told, in order of registration, and so is
        "decision", with `(event, decision)`, also when an agent is sent back. "session_start" and
        "subagent_start" are told too, and may return words for the agent, or a dict with
        `additional_context`.
        """
        self._roster.on(name, handler, priority)

    async def decide(
        self,
        event: StopEvent,
        history: History = History(),  # noqa: B008  # a record cannot be changed
        *,
        keep: Keep | None = None,
        asked: Asked = "needed",
        progress: Progress | None = None,
    ) -> Decision:
        """Ask the gates and settle their answers; count nothing, record nothing, tell nobody.

        `keep` is called with a report whose output is too long for the agent, keeps that
        somewhere and returns where; without it nothing is kept. `asked` "all" spares no gate
        because nothing changed (N1). `progress` is called with a gate's name and None when it is
        asked, and with its report when it has answered, from the thread that drives.
        """
        from notyet.run import drive_async

        keep = keep or _keep_nothing
        return await drive_async.drive(self._decide_only(event, history, keep, asked, progress))

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
        keep = keep or _keep_nothing
        return drive_sync(self._decide_only(event, history, keep, asked, progress))

    def asks(self, event: StopEvent) -> bool:
        """Tell whether there is a gate for this event, so that it is worth a record."""
        return self._look(event)[0] is None

    async def tell(self, event: StopEvent, decision: Decision) -> None:
        """Tell the observers of a decision that was made with `decide` and is in force now."""
        from notyet.run import drive_async

        await drive_async.drive(self._tell(event, decision, Deadline(None)))

    async def start(self, event: StartEvent) -> str:
        """Tell the starters that an agent begins; return what they add for it, joined."""
        from notyet.core.event import StartEvent

        if not isinstance(event, StartEvent):
            raise TypeError(f"a start is a StartEvent, not {type(event).__name__}")
        if not self._roster.starters or self._is_asking_here():
            return ""
        from notyet.engine.start_hooks import begin
        from notyet.run import drive_async

        return await drive_async.drive(begin(event, tuple(self._roster.starters), self._warn))

    async def check(self, event: StopEvent, *, within: float | None = None) -> Decision:
        """Decide, count and record a stop, and tell the observers; of a block those of "decision".

        `within` so many seconds there is a decision: a gate that is still at work by then is
        ended, has a problem and never blocks. Recording it and telling observers may take a
        second more, or an eighth of that time if that is less.
        """
        from notyet.run import drive_async
        from notyet.run.functions import run_or_do

        # Nobody waits on the loop's thread for a ledger that is locked.
        asking = Asking(event, self._roster.questions, Deadline(within))
        return await drive_async.drive(self._check(asking, _FIRST_ANSWER, run_or_do))

    def check_sync(self, event: StopEvent, *, within: float | None = None) -> Decision:
        """Do what `check` does from code that is not async, inside a running loop or not."""
        return check_meanwhile(self, event, within)

    def _check(
        self,
        asking: Asking,
        patience: float,
        aside: Aside,
        remembering: Remembering | None = None,
    ) -> Line[Decision]:
        event = asking.event
        decision, gates = self._look(event)
        if decision is None:
            situation = self._situation(gates, History())  # until the ledger knows
            checking = Checking(asking, situation, self._ledger, self._warn, aside)
            decision = yield from checking.check(patience, remembering)
            if checking.repeats:
                tell_all(decision.warnings, self._warn)
                return decision  # the observers are told of the stop that it repeats
        tell_all(decision.warnings, self._warn)
        yield from self._tell(event, decision, asking.deadline)
        return decision

    def _decide_only(
        self,
        event: StopEvent,
        history: History,
        keep: Keep,
        asked: Asked,
        progress: Progress | None,
    ) -> Line[Decision]:
        if asked not in {"needed", "all"}:
            raise ValueError(f"asked is 'needed' or 'all', not {asked!r}")
        decision, gates = self._look(event)
        if decision is None:
            asking = Asking(event, self._roster.questions, Deadline(None), progress)
            deciding = Deciding(asking, self._situation(gates, history))
            decision = yield from deciding.decide(self._ledger, keep, self._warn, asked)
        return decision

    def _look(self, event: StopEvent) -> tuple[Decision | None, tuple[Gate, ...]]:
        """Return the gates that apply, or a decision where there is nothing to ask."""
        if not isinstance(event, StopEvent):
            raise TypeError(f"a stop is a StopEvent, not {type(event).__name__}")
        if self._is_asking_here():
            said = "a gate, or what it started, wanted to stop; a gate's own work is not gated"
            return skipped("inside", said), ()
        gates = self._roster.gates_for(event)
        if not gates:
            return skipped("no-gate", *missing_names(event, self._roster.gates)), ()
        return None, gates

    def _is_asking_here(self) -> bool:
        """Tell whether a function that this engine asks, or what it started, calls us."""
        asked_by = self._roster.asked_by
        return asked_by is not None and id(self) in asked_by.get()

    def _situation(self, gates: tuple[Gate, ...], history: History) -> Situation:
        values = {"gates": gates, "declared": self._roster.gates}
        return made(Situation, {**values, "history": history, "limits": self._limits})

    def _tell(self, event: StopEvent, decision: Decision, deadline: Deadline) -> Line[None]:
        if not self._roster.watches or (decision.outcome, decision.why) == ("skipped", "inside"):
            return  # a gate's own work is nobody's ending
        from notyet.engine.observers import tell

        yield from tell(tuple(self._roster.watches), event, decision, deadline.last, self._warn)


def check_meanwhile(
    engine: Engine,
    event: StopEvent,
    within: float | None,
    *,
    while_waiting: Callable[[], None] | None = None,
    remembering: Remembering | None = None,
) -> Decision:
    """Do what `check_sync` does, for a process that is there for one stop and has more to do.

    `while_waiting` is called once, while git or the first commands are at work, if any are; it
    must not raise. `remembering` has begun to look at the files that the gates depend on.
    """
    # What a running loop of this thread is asking cannot be answered while we wait for it.
    patience = 0.0 if _in_a_running_loop() else _FIRST_ANSWER
    questions = engine._roster.questions  # noqa: SLF001  # of this module
    asking = Asking(event, questions, Deadline(within), while_waiting=while_waiting)
    return drive_sync(engine._check(asking, patience, _at_once, remembering))  # noqa: SLF001


def _keep_nothing(_report: Report) -> str:
    return ""


def _at_once(job: Callable[[], None]) -> None:
    job()


def _in_a_running_loop() -> bool:
    asyncio = sys.modules.get("asyncio")  # if nobody imported it, nothing runs
    if asyncio is None:
        return False
    return asyncio._get_running_loop() is not None  # noqa: SLF001  # public, but for its name
