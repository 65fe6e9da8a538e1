"""Our durable memory: what every stop came to, and how often each agent was sent back."""

from __future__ import annotations

from notyet.core.limits import History
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision
else:
    Protocol = object


class Begun(Record, kw_only=True):
    """A stop that is being decided; or, with `repeats`, one that another stop answers (B12)."""

    stop: int
    history: History = History()
    repeats: int = 0
    warnings: tuple[str, ...] = ()


class Book(Protocol):
    """What the engine needs of a ledger. Methods raise LedgerError and nothing else."""

    instant: bool  # False: calls may wait for a disk or a lock

    def begin(self, event: StopEvent) -> Begun:
        """Number the turn, find out what became of the last stop, and enter this one."""

    def record(self, stop: int, decision: Decision) -> None:
        """Write down a decision and count it; the agent hears of it only afterwards."""

    def answer(self, stop: int, patience: float) -> Decision | None:
        """Wait for a stop's decision; None when it does not come."""
