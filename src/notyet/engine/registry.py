"""The gates, observers and starters of an engine, checked when they are registered.

A function that takes the wrong arguments is refused here, not when an agent stops.
"""

from __future__ import annotations

from notyet.core.gate import EVERY_AGENT, NATIVE, Command, Gate
from notyet.core.plan import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.gate import Starter
    from notyet.engine.observers import Watch
    from notyet.engine.start_hooks import Entry
    from notyet.run.functions import Question


class Registry:
    """The gates, observers and starters, in the order in which they were added."""

    def __init__(self, engine: int) -> None:
        self._engine = engine
        self.gates: list[Gate] = []
        self.functions: dict[str, Question] = {}  # of the gates that are functions, by name
        self.watches: list[Watch] = []
        self.starters: list[Entry] = []
        self._names: set[str] = set()
        self._has_patterns = False  # whether the names of agents decide which gates apply
        self._selected: dict[tuple[str, str], tuple[Gate, ...]] = {}
        # The engines that run a function now; set once an engine has a function.
        self.asked_by: ContextVar[frozenset[int]] | None = None

    def add_gate(self, gate: Gate | Callable[..., Any]) -> None:
        """Add a gate; a plain function becomes one for the main agent."""
        if not isinstance(gate, Gate):
            gate = _as_gate(gate)
        if gate.name in self._names:
            raise ValueError(f"two gates are called {gate.name!r}; give each a name of its own")
        if not isinstance(gate.check, Command):
            from notyet.engine.questions import function_question
            from notyet.run.functions import asked_by

            self.asked_by = asked_by
            shape = ("event",) if gate.native else ("event", "ctx")
            _expect(gate.check.call, shape, f"the gate {gate.name!r}")
            self.functions[gate.name] = function_question(gate, gate.check, self._engine)
        self._names.add(gate.name)
        self.gates.append(gate)
        match = gate.match
        self._has_patterns |= match.agents != EVERY_AGENT or bool(match.never)
        self._selected = {}  # a new one: another thread may be filling in the old

    def gates_for(self, event: StopEvent) -> tuple[Gate, ...]:
        """Return the gates that apply to an event; cached where no agent name matters."""
        if event.internal or (self._has_patterns and event.scope == "subagent"):
            return select(event, self.gates)
        kind, selected = (event.scope, event.ending), self._selected
        if kind not in selected:
            selected[kind] = select(event, self.gates)
        return selected[kind]

    def add_observer(self, observer: object) -> None:
        """Add an observer."""
        from notyet.engine.observers import Observer, Watch

        if not isinstance(observer, Observer):
            kind = type(observer).__name__
            raise TypeError(f"an observer is an Observer, not {kind}; or use engine.on()")
        if callable(observer.call):
            _expect(observer.call, ("event", "ctx"), f"an observer of {observer.on!r}")
        self.watches.append(Watch(observer))

    def add_starter(self, starter: Starter) -> None:
        """Add a starter, which may add words for an agent that starts."""
        from notyet.core.gate import Starter
        from notyet.engine.start_hooks import entry_for
        from notyet.run.functions import asked_by

        if not isinstance(starter, Starter):
            raise TypeError(f"a starter is a Starter, not {type(starter).__name__}")
        if not isinstance(starter.check, Command):
            shape = ("event",) if starter.check.speaks == NATIVE else ("event", "ctx")
            _expect(starter.check.call, shape, f"the start handler {starter.name!r}")
        self.asked_by = asked_by
        self.starters.append(entry_for(starter, engine=self._engine))

    def on(self, name: str, handler: Callable[..., Any], priority: int) -> None:
        """Add a handler by the name of what it is called for."""
        from notyet.engine.observers import OBSERVED, Observer
        from notyet.hosts import openclaw
        from notyet.hosts.plugins import STARTING

        if name in STARTING:
            from notyet.engine.start_hooks import handler as starter_for

            self.add_starter(starter_for(name, handler, len(self.starters)))
            return
        if name in openclaw.DECIDING:
            self.add_gate(openclaw.gate(name, handler, priority, step=len(self.gates)))
            return
        try:
            observer = Observer(name, handler)
        except ValueError:
            known = ", ".join((*openclaw.DECIDING, *OBSERVED, *STARTING))
            raise ValueError(f"no event is called {name!r}; there is {known}") from None
        self.add_observer(observer)


def _as_gate(call: Callable[..., Any]) -> Gate:
    if not callable(call):
        raise TypeError(f"a gate is a Gate or a function, not {type(call).__name__}")
    from notyet.core.gate import Function

    name = getattr(call, "__name__", type(call).__name__)
    return Gate(name=name, check=Function(call))


def _expect(call: Callable[..., Any], names: tuple[str, ...], who: str) -> None:
    from notyet.run.functions import accepts

    if not accepts(call, len(names)):
        raise TypeError(f"{who} is called with ({', '.join(names)}), which it does not take")
