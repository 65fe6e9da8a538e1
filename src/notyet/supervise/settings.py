"""Settings of a supervisor, and the progress that it reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from notyet.core.record import Record

if TYPE_CHECKING:
    from notyet.core.session import Turn
    from notyet.core.task import Result
    from notyet.core.verdict import Decision

ProgressKind = Literal[
    "sent",
    "accepted",
    "text",
    "tool",
    "error",
    "turn",
    "settling",
    "gating",
    "decided",
    "steering",
    "ended",
    "delivered",
]


class SupervisorSettings(Record, kw_only=True):
    """Timeouts and limits of a supervisor; times are in seconds."""

    max_depth: int = 5  # how deep agents may be nested
    max_children: int = 20  # active children of one task
    grace: float = 15.0  # how long an error may turn out to be transient
    children_expiry: float = 600.0  # how long a parent's end waits for its children
    abort_patience: float = 15.0  # how long an agent may take to stop
    steer_pause: float = 2.0  # between two steers by hand
    lease: float = 60.0  # an owner that does not renew it loses its tasks
    poll: float = 0.25  # between two looks for what other processes did to our tasks
    first_retry: float = 1.0  # of a delivery; doubles each time
    longest_retry: float = 300.0
    delivery_attempts: int = 10  # then a delivery is suspended
    delivery_timeout: float = 120.0  # for the consumer to take a result
    ledger_patience: float = 60.0  # how long to go on trying when the ledger cannot be written

    def _validate(self) -> None:
        for name in self._fields:
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name} must be a number from 0 up, not {value!r}")
        for name in ("lease", "poll"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be a number above 0")


class Progress(Record, kw_only=True):
    """An event in the life of a task, for `on_progress`."""

    task_id: str
    kind: ProgressKind
    generation: int = 1
    text: str = ""
    tool: str = ""
    decision: Decision | None = None
    turn: Turn | None = None
    result: Result | None = None
