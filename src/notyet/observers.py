"""Observers: told about an ending, one after another, and unable to change it (K10)."""

from __future__ import annotations

from notyet.checks.function import Question
from notyet.core.gate import check_timeout, name_of
from notyet.core.record import Record
from notyet.core.verdict import Allow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision

_SCOPES = {"stop": "agent", "subagent_stop": "subagent", "subagent_ended": "subagent"}
OBSERVED = tuple(_SCOPES)


class Observer(Record):
    """A handler `(event, ctx)` for "stop", "subagent_stop" or "subagent_ended"."""

    on: str
    call: Callable[..., Any]
    timeout: float | None = 30.0

    def _validate(self) -> None:
        if self.on not in _SCOPES:
            raise ValueError(f"an observer is told of {', '.join(OBSERVED)}, not of {self.on!r}")
        if not callable(self.call):
            raise TypeError(f"an observer is a function, not {type(self.call).__name__}")
        check_timeout(self.timeout)


def question_for(observer: Observer) -> Question:
    """Return how an observer is told."""
    name = f"{observer.on} observer {name_of(observer.call)}"
    return Question(name, observer.call, _ignore, timeout=observer.timeout)


def is_told(observer: Observer, event: StopEvent) -> bool:
    """Tell whether an ending is one that this observer is told of."""
    return _SCOPES[observer.on] == event.scope and not event.internal


def arguments(on: str, event: StopEvent, decision: Decision) -> tuple[Any, ...]:
    """Return what an observer is told, in a copy that is its alone."""
    from notyet.core.event import private_copy
    from notyet.dialects import neovate, openclaw

    event = private_copy(event)
    if on == "stop":
        return neovate.write_stop(event, decision)
    if on == "subagent_stop":
        return neovate.write_subagent_stop(event, decision)
    return openclaw.write_ended(event, decision)


def _ignore(_returned: object) -> tuple[Allow, str]:
    return Allow(), ""
