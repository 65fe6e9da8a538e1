"""`Engine`: the line one stop event follows, and the only place where pure meets I/O.

    select ─► ledger.begin ─► plan ─► ask each stage ─► settle ─► ledger.record ─► observers

The line is a generator. It yields what it has to wait for and is sent the result, so
`check_sync` and `check` are two small drivers of the same logic (see `checks.drive`).
"""

from __future__ import annotations

import sys
from time import monotonic

from notyet import workspace
from notyet.asking import Asking, question_for
from notyet.checks.drive import Call, drive_sync
from notyet.checks.function import asked_by, takes
from notyet.core.event import StopEvent
from notyet.core.gate import Function, Gate
from notyet.core.limits import History, Limits
from notyet.core.plan import missing_names, plan, select
from notyet.core.record import replace
from notyet.core.settle import holds, needs_tree, settle
from notyet.core.verdict import Allow, Block, Decision, Problem
from notyet.errors import LedgerError
from notyet.observers import OBSERVED, Observer, Watch, is_told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from notyet.checks.drive import Line
    from notyet.checks.function import Question
    from notyet.core.verdict import Report
    from notyet.ledger import AnyLedger, Begun

    Aside = Callable[[Callable[[], None]], None]  # runs what nobody waits for

_FIRST_ANSWER = 600.0  # seconds that the second of two equal stops waits for the first
_ONE_WAIT = 1.0
_LONGEST_OUTPUT = 1_200  # characters of a failed gate that its agent can be told; more gets a log


class Engine:
    """Asks gates whether an agent may stop, and remembers what came of it.

    `gates` are `Gate`s or plain functions, which become gates for the main agent. Without a
    `ledger`, send-backs are counted in memory. What somebody should know goes to `warn`, or to
    the logger "notyet".
    """

    def __init__(
        self,
        gates: Iterable[Gate | Callable[..., Any]] = (),
        *,
        observers: Iterable[Observer] = (),
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
        self._warn = warn or _warn
        self._limits = limits
        self._observers: list[Watch] = []
        for observer in observers:
            self._watch(observer)
        self._gates: list[Gate] = []
        self._names: set[str] = set()
        self._questions: dict[str, Question] = {}
        for gate in gates:
            self._add(gate if isinstance(gate, Gate) else _as_gate(gate))

    def on(self, name: str, handler: Callable[..., Any], priority: int = 0) -> None:
        """Register a handler `(event, ctx)`, plain or async.

        "subagent_stopping" and "stopping" decide, one after another, higher priority first.
        "stop", "subagent_stop" and "subagent_ended" are told, in order of registration.
        """
        from notyet.dialects import openclaw

        if name in openclaw.DECIDING:
            self._add(openclaw.gate(name, handler, priority, step=len(self._gates)))
            return
        try:
            observer = Observer(name, handler)
        except ValueError:
            known = ", ".join((*openclaw.DECIDING, *OBSERVED))
            raise ValueError(f"no event is called {name!r}; there is {known}") from None
        self._watch(observer)

    async def decide(
        self,
        event: StopEvent,
        history: History = History(),  # noqa: B008  # a record cannot be changed
    ) -> Decision:
        """Ask the gates and settle their answers; count nothing, record nothing, tell nobody."""
        from notyet.checks.drive_async import drive

        return await drive(self._decide_only(event, history))

    async def check(self, event: StopEvent, *, within: float | None = None) -> Decision:
        """Decide, count and record a stop, then tell the observers unless it was blocked.

        `within` so many seconds there is a decision: a gate that is still at work by then is
        ended, has a problem and never blocks.
        """
        from notyet.checks.drive_async import drive
        from notyet.checks.threads import run_or_do

        # Nobody waits on the loop's thread for a ledger that is locked.
        return await drive(self._check(event, _deadline(within), _FIRST_ANSWER, run_or_do))

    def check_sync(self, event: StopEvent, *, within: float | None = None) -> Decision:
        """Do what `check` does from code that is not async, inside a running loop or not."""
        # What a running loop of this thread is asking cannot be answered while we wait for it.
        patience = 0.0 if _in_a_running_loop() else _FIRST_ANSWER
        return drive_sync(self._check(event, _deadline(within), patience, _at_once))

    def _watch(self, observer: object) -> None:
        if not isinstance(observer, Observer):
            kind = type(observer).__name__
            raise TypeError(f"an observer is an Observer, not {kind}; or use engine.on()")
        if callable(observer.call):
            _expect(observer.call, ("event", "ctx"), f"an observer of {observer.on!r}")
        self._observers.append(Watch(observer))

    def _add(self, gate: Gate) -> None:
        if gate.name in self._names:
            raise ValueError(f"two gates are called {gate.name!r}; give each a name of its own")
        question = question_for(gate, engine=id(self))
        if question is not None:
            shape = ("event",) if gate.native else ("event", "ctx")
            _expect(question.call, shape, f"the gate {gate.name!r}")
            self._questions[gate.name] = question
        self._names.add(gate.name)
        self._gates.append(gate)

    def _check(
        self, event: StopEvent, deadline: float | None, patience: float, aside: Aside
    ) -> Line[Decision]:
        decision, gates = self._look(event)
        if decision is None and not event.session_id.strip():
            decision = _skipped("no-session", "the event has no session_id, so nothing was asked")
            yield from self._write_down(event, decision)
        if decision is None:
            try:
                entered = yield from self._enter(event, _left(deadline, patience))
            except LedgerError as error:
                decision = _skipped("ledger", f"{error} (nothing was asked)")
            else:
                if isinstance(entered, Decision):
                    self._log(entered)
                    return entered  # the observers are told of the stop that it repeats
                decision = yield from self._decide_and_record(
                    event, gates, entered, deadline, aside
                )
        self._log(decision)
        if decision.why != "inside":
            yield from self._tell(event, decision, deadline)
        return decision

    def _decide_only(self, event: StopEvent, history: History) -> Line[Decision]:
        decision, gates = self._look(event)
        if decision is None:
            decision = yield from self._decide(event, gates, history, None, _keep_nothing)
        return decision

    def _look(self, event: StopEvent) -> tuple[Decision | None, tuple[Gate, ...]]:
        """Return the gates that apply, or a decision where there is nothing to ask."""
        if not isinstance(event, StopEvent):
            raise TypeError(f"a stop is a StopEvent, not {type(event).__name__}")
        if id(self) in asked_by.get():
            said = "a gate, or what it started, wanted to stop; a gate's own work is not gated"
            return _skipped("inside", said), ()
        gates = select(event, self._gates)
        if not gates:
            return _skipped("no-gate", *missing_names(event, self._gates)), ()
        return None, gates

    def _enter(self, event: StopEvent, patience: float) -> Line[Begun | Decision]:
        """Enter a stop in the ledger, or return the answer that an equal one gets (B12)."""
        ends = monotonic() + patience
        while True:
            begun: Begun = yield from self._keep(self._ledger.begin, event, undo=self._give_up)
            if not begun.repeats:
                return begun
            # In short waits, so that nobody is left waiting when this check is cancelled.
            wait = max(0.0, min(_ONE_WAIT, ends - monotonic()))
            answer: Decision | None = yield Call(self._ledger.answer, (begun.repeats, wait))
            if answer is not None:
                return answer
            if monotonic() >= ends:
                return _skipped("duplicate", "an equal stop is still being checked")

    def _decide_and_record(
        self,
        event: StopEvent,
        gates: tuple[Gate, ...],
        begun: Begun,
        deadline: float | None,
        aside: Aside,
    ) -> Line[Decision]:
        def keep(report: Report) -> str:
            return self._ledger.keep_output(begun, report)

        try:
            decision = yield from self._decide(event, gates, begun.history, deadline, keep)
            if begun.warnings:
                decision = replace(decision, warnings=(*begun.warnings, *decision.warnings))
            try:
                recorded: Decision = yield from self._keep(
                    self._ledger.record, begun, decision, self._limits.session_ceiling
                )
            except LedgerError as error:
                return _unrecorded(decision, error)
        except BaseException:  # cancelled, interrupted: the stop must not look asked for ever
            aside(lambda: self._give_up(begun))
            raise
        return recorded

    def _decide(
        self,
        event: StopEvent,
        gates: tuple[Gate, ...],
        history: History,
        deadline: float | None,
        keep: Callable[[Report], str],
    ) -> Line[Decision]:
        planned = plan(event, gates, history, self._limits)
        asking = Asking(planned.event, self._questions, deadline)
        reports: list[Report] = []
        tree = ""
        for stage in planned.stages:
            answers = yield asking.stage(stage)
            held = [holds(gate, report) for gate, report in zip(stage, answers, strict=True)]
            for report, is_holding in zip(answers, held, strict=True):
                if is_holding and len(report.output) > _LONGEST_OUTPUT:
                    path = yield Call(keep, (report,))
                    report = replace(report, log=path)  # noqa: PLW2901  # the same, with its log
                reports.append(report)
            if any(held):
                if needs_tree(planned, stage, answers):
                    wait = _left(deadline, workspace.PATIENCE)
                    tree = yield Call(workspace.fingerprint, (event.cwd, wait))
                break
        return settle(planned, reports, tree)

    def _tell(self, event: StopEvent, decision: Decision, deadline: float | None) -> Line[None]:
        for watch in tuple(self._observers):
            if is_told(watch.observer, event, decision):
                (report,) = yield watch.stage(event, decision, deadline)
                if isinstance(report.answer, Problem):
                    self._warn(f"{report.gate} {report.answer} (ignored)")

    def _write_down(self, event: StopEvent, decision: Decision) -> Line[None]:
        """Record a stop that was let go for a cause (A10)."""
        try:
            yield from self._keep(self._ledger.skip, event, decision)
        except LedgerError as error:
            self._warn(f"{error} (that the stop was skipped was not recorded)")

    def _keep(
        self, call: Callable[..., Any], *args: Any, undo: Callable[[Any], None] | None = None
    ) -> Line[Any]:
        """Call the ledger, and wait for it only where it can make us wait."""
        if self._ledger.instant:
            return call(*args)
        return (yield Call(call, args, undo))

    def _log(self, decision: Decision) -> None:
        for warning in decision.warnings:
            self._warn(warning)

    def _give_up(self, begun: Begun) -> None:
        if begun.repeats:
            return  # another's stop
        try:
            self._ledger.give_up(begun)
        except LedgerError as error:
            self._warn(f"{error} (that this check was cancelled was not recorded)")


def _deadline(within: float | None) -> float | None:
    return None if within is None else monotonic() + within


def _left(deadline: float | None, patience: float) -> float:
    """Return how long we may wait for something of our own."""
    return patience if deadline is None else max(0.0, min(patience, deadline - monotonic()))


def _keep_nothing(_report: Report) -> str:
    return ""


def _at_once(job: Callable[[], None]) -> None:
    job()


def _in_a_running_loop() -> bool:
    asyncio = sys.modules.get("asyncio")  # if nobody imported it, nothing runs
    if asyncio is None:
        return False
    return asyncio._get_running_loop() is not None  # noqa: SLF001  # public, but for its name


def _as_gate(call: Callable[..., Any]) -> Gate:
    if not callable(call):
        raise TypeError(f"a gate is a Gate or a function, not {type(call).__name__}")
    name = getattr(call, "__name__", type(call).__name__)
    return Gate(name=name, check=Function(call))


def _expect(call: Callable[..., Any], names: tuple[str, ...], who: str) -> None:
    """Refuse a function that could only fail once an agent stops."""
    if not takes(call, len(names)):
        raise TypeError(f"{who} is called with ({', '.join(names)}), which it does not take")


def _skipped(cause: str, *warnings: str) -> Decision:
    return Decision(verdict=Allow(), outcome="skipped", why=cause, warnings=warnings)


def _unrecorded(decision: Decision, error: LedgerError) -> Decision:
    """A send-back that was not counted must not happen: it could go on for ever (B3)."""
    warnings = (*decision.warnings, f"{error} (this decision was not recorded)")
    if not isinstance(decision.verdict, Block):
        return replace(decision, warnings=warnings)
    return replace(
        decision,
        verdict=Allow(),
        outcome="failed_open",
        count=decision.count - 1,
        why=f"{decision.why} blocked, but the ledger failed",
        warnings=warnings,
    )


def _warn(message: str) -> None:
    import logging

    logging.getLogger("notyet").warning("%s", message)
