"""A ledger that forgets when the process ends: what `Engine(ledger=None)` counts with."""

from __future__ import annotations

from threading import Condition

from notyet.core.limits import History, after, open_turn
from notyet.core.record import Record
from notyet.ledger import Begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision

    Agent = tuple[str, str, str]

_MOST_AGENTS = 10_000  # a long-lived process must not grow with every session it ever saw


class _Stop(Record):
    agent: Agent
    event: StopEvent


class MemoryLedger:
    """Counts in memory; safe to use from many threads."""

    instant = True

    def __init__(self) -> None:
        self._histories: dict[Agent, History] = {}
        self._last: dict[Agent, int] = {}
        self._asking: dict[int, _Stop] = {}
        self._answers: dict[int, tuple[StopEvent, Decision]] = {}
        self._stops = 0
        self._changed = Condition()

    def begin(self, event: StopEvent) -> Begun:
        """Number the turn and enter the stop, or find the one it repeats."""
        agent = (event.host, event.session_id, event.agent_id or "")
        with self._changed:
            history = self._histories.get(agent, History())
            for stop, asking in self._asking.items():
                if asking.agent == agent and asking.event == event:
                    return Begun(stop=stop, repeats=stop)
            last = self._last.get(agent, 0)
            if event.stop_hook_active is False and history.blocked and last in self._answers:
                earlier, _ = self._answers[last]
                if earlier == event:
                    return Begun(stop=last, repeats=last)
            self._stops += 1
            history = open_turn(history, event)
            self._remember(agent, history)
            self._asking[self._stops] = _Stop(agent, event)
            return Begun(stop=self._stops, history=history)

    def record(self, stop: int, decision: Decision) -> None:
        """Count the decision and keep it for a repeated question."""
        with self._changed:
            asking = self._asking.pop(stop, None)
            if asking is None:
                return
            agent = asking.agent
            self._answers.pop(self._last.get(agent, 0), None)
            self._answers[stop] = (asking.event, decision)
            self._last[agent] = stop
            self._remember(agent, after(self._histories.get(agent, History()), decision))
            self._changed.notify_all()

    def answer(self, stop: int, patience: float) -> Decision | None:
        """Wait for a stop that is still being asked."""
        with self._changed:
            self._changed.wait_for(lambda: stop not in self._asking, patience)
            kept = self._answers.get(stop)
            return kept[1] if kept else None

    def _remember(self, agent: Agent, history: History) -> None:
        self._histories.pop(agent, None)  # so that the dict stays in order of use
        self._histories[agent] = history
        if len(self._histories) > _MOST_AGENTS:
            oldest = next(iter(self._histories))
            del self._histories[oldest]
            self._answers.pop(self._last.pop(oldest, 0), None)
