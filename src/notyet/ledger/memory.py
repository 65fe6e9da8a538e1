"""`MemoryLedger`: counts until the process ends, for `Engine(ledger=None)`.

Not SQLite in memory: entering and recording a stop would take eight times as long (0.26 ms, not
0.03), where a whole decision by three functions takes 0.08 ms (docs/performance.md).
"""

from __future__ import annotations

import os
import time
from threading import Condition
from weakref import WeakSet

from notyet.core.limits import History, after, open_turn, within_limit
from notyet.core.plan import skip_causes
from notyet.core.record import variant
from notyet.errors import LedgerError
from notyet.ledger import REPEATED_AT_MOST, REPEATED_WITHIN, Begun
from notyet.ledger.passes import agents_of, failures_in, here, passes_in
from notyet.ledger.stop_rows import event_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.plan import Wanted
    from notyet.core.verdict import Decision, Report
    from notyet.ledger.passes import Agent

# A long-lived process must not grow with every session and stop it ever saw.
_MOST_AGENTS = 10_000
_MOST_PASSES = 10_000
_MOST_ANSWERS = 10_000  # of the last few seconds


def _remembered(event: StopEvent) -> StopEvent:
    """Return an event for comparisons, without foreign objects."""
    if event.result is not None:
        return variant(event, {"raw": None, "result": event_row(event)[0]})
    return event if event.raw is None else variant(event, {"raw": None})


class _Stop:
    """A stop that is being decided, or was a moment ago."""

    def __init__(self, agent: Agent, event: StopEvent) -> None:
        self.agent = agent
        self.event = event
        self.decision: Decision | None = None
        self.decided_at = 0.0
        self.repeated = 0


class MemoryLedger:
    """Counts in memory; safe to use from many threads."""

    in_memory = True

    def __init__(self) -> None:
        self._histories: dict[Agent, History] = {}
        self._asking: dict[int, _Stop] = {}
        self._decided: dict[int, _Stop] = {}
        self._last: dict[Agent, int] = {}  # the newest decided stop of each agent
        self._newest: dict[Agent, int] = {}  # and the newest of any kind
        self._passes: dict[tuple[str, str], None] = {}  # definition and tree, oldest first
        self._starts: dict[Agent, dict[str, str]] = {}  # scope and tree
        self._stops = 0
        self._changed = Condition()
        _all.add(self)

    def begin(self, event: StopEvent, _patience: float | None = None) -> Begun:
        """Number the turn and enter the stop, or find the one it repeats."""
        agent = (event.host, event.session_id, event.agent_id or "")
        event = _remembered(event)
        with self._changed:
            history = self._histories.get(agent, History())
            earlier = self._repeated(agent, event, history)
            if earlier:
                return Begun(stop=earlier, repeats=earlier)
            self._stops += 1
            opened = open_turn(history, event)
            overridden = 0
            last = self._last.get(agent, 0)
            is_last = self._newest.get(agent, last) == last
            if opened.turn != history.turn and history.blocked and is_last:
                overridden = last
            history = opened
            self._remember(agent, history)
            self._newest[agent] = self._stops
            self._asking[self._stops] = _Stop(agent, event)
            return Begun(stop=self._stops, history=history, overridden=overridden)

    def record(
        self, begun: Begun, decision: Decision, ceiling: int = 0, _patience: float | None = None
    ) -> Decision:
        """Count the decision, and wake those who wait for it."""
        with self._changed:
            stop = self._asking.pop(begun.stop, None)
            if stop is None:
                raise LedgerError("in memory", f"stop {begun.stop} is not being checked")
            history = self._histories.get(stop.agent, begun.history)
            decision = within_limit(history, decision, ceiling)
            self._decide(begun.stop, stop, decision)
            if decision.turn == history.turn:
                self._last[stop.agent] = begun.stop
            self._remember(stop.agent, after(history, decision))
            self.remember(decision.reports)
            return decision

    def give_up(self, begun: Begun, _patience: float | None = None) -> None:
        """End a stop that is being decided without an answer."""
        with self._changed:
            stop = self._asking.pop(begun.stop, None)
            if stop is not None:
                self._decide(begun.stop, stop, None)

    def skip(self, event: StopEvent, _decision: Decision, _patience: float | None = None) -> int:
        """Remember only that there was a stop; return 0, for it is in no log."""
        agent = (event.host, event.session_id, event.agent_id or "")
        with self._changed:
            self._stops += 1
            if agent in self._histories:
                self._newest[agent] = self._stops
        return 0

    def keep_output(self, _begun: Begun, _report: Report) -> str:
        """Keep nothing: this ledger has no folder."""
        return ""

    def _decide(self, number: int, stop: _Stop, decision: Decision | None) -> None:
        stop.decision, stop.decided_at = decision, time.monotonic()
        self._decided[number] = stop
        self._forget_old_answers(stop.decided_at)
        self._changed.notify_all()

    def _forget_old_answers(self, now: float) -> None:
        while self._decided:
            oldest, kept = next(iter(self._decided.items()))
            if now - kept.decided_at < REPEATED_WITHIN and len(self._decided) <= _MOST_ANSWERS:
                return
            del self._decided[oldest]

    def recall(
        self, event: StopEvent, wanted: Sequence[Wanted], _patience: float | None = None
    ) -> Mapping[str, str]:
        """Return why gates can be skipped: gate -> "passed" or "unchanged" (N1)."""
        with self._changed:
            passed = [(one.definition, here(one.tree)) in self._passes for one in wanted]
            return skip_causes(wanted, self._start_of(event), passed)

    def start_of(self, event: StopEvent, _patience: float | None = None) -> Mapping[str, str]:
        """Return the files that the agent of an event started with: scope -> tree."""
        with self._changed:
            return self._start_of(event)

    def _start_of(self, event: StopEvent) -> Mapping[str, str]:
        known = [self._starts[a] for a in agents_of(event) if a in self._starts]
        return known[0] if known else {}

    def remember(self, reports: Sequence[Report], _patience: float | None = None) -> None:
        """Remember the passes among reports; forget those that failures refute."""
        with self._changed:
            for known in passes_in(reports):
                self._passes[known] = None
                _drop_oldest(self._passes, _MOST_PASSES)
            for gate, tree in failures_in(reports):
                for known in [*self._passes]:
                    if known[0] == gate and known[1].startswith(f"{tree} "):
                        del self._passes[known]

    def remember_start(
        self, event: StartEvent, trees: Mapping[str, str], _patience: float | None = None
    ) -> bool:
        """Remember the files that an agent starts with; return True if this is its first start."""
        with self._changed:
            agent = (event.host, event.session_id, event.agent_id or "")
            key = agent if agent[-1] else agent[:-1]  # a session starts before all else in it
            seen = (*self._histories, *self._starts)
            is_first = bool(trees) and all(known[: len(key)] != key for known in seen)
            if is_first:
                self._starts[agent] = dict(trees)
            _drop_oldest(self._starts, _MOST_AGENTS)
            return is_first

    def answer(self, stop: int, patience: float) -> Decision | None:
        """Wait for the decision of a stop."""
        with self._changed:
            self._changed.wait_for(lambda: stop not in self._asking, patience)
            kept = self._decided.get(stop)
            return kept.decision if kept is not None else None

    def after_fork(self) -> None:
        """Replace a lock that another thread of the parent may hold, and forget its stops."""
        self._changed = Condition()
        self._asking.clear()

    def _repeated(self, agent: Agent, event: StopEvent, history: History) -> int:
        for number, stop in self._asking.items():
            if stop.agent == agent and stop.event == event:
                return number
        number = self._last.get(agent, 0)
        last = self._decided.get(number)
        if event.stop_hook_active is not False or not history.blocked or last is None:
            return 0
        fresh = time.monotonic() - last.decided_at < REPEATED_WITHIN
        if fresh and last.repeated < REPEATED_AT_MOST and last.event == event:
            last.repeated += 1
            return number
        return 0

    def _remember(self, agent: Agent, history: History) -> None:
        self._histories.pop(agent, None)  # so that the dict stays in order of use
        self._histories[agent] = history
        if len(self._histories) > _MOST_AGENTS:
            oldest = next(iter(self._histories))
            del self._histories[oldest]
            self._last.pop(oldest, None)
            self._newest.pop(oldest, None)


def _drop_oldest(known: dict[Any, Any], most: int) -> None:
    while len(known) > most:
        del known[next(iter(known))]


_all: WeakSet[MemoryLedger] = WeakSet()


def _after_in_child() -> None:
    for ledger in list(_all):
        ledger.after_fork()


os.register_at_fork(after_in_child=_after_in_child)
