"""`AnyLedger`: what the engine needs of a ledger. Ours are `Ledger` and `MemoryLedger`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.verdict import Decision, Report
    from notyet.ledger import Begun
    from notyet.ledger.passes import Wanted
else:
    Protocol = object


class AnyLedger(Protocol):
    """What the engine needs of a ledger. Methods raise only LedgerError.

    `patience` is how many seconds a caller can wait, if less than the ledger would.
    """

    in_memory: bool  # False: calls may wait for a disk or a lock

    def begin(self, event: StopEvent, patience: float | None = None) -> Begun:
        """Enter a stop: number its turn, and find out if the host overrode the last one."""

    def record(
        self, begun: Begun, decision: Decision, ceiling: int = 0, patience: float | None = None
    ) -> Decision:
        """Count and record a decision; return it within the limits (`within_limit`)."""

    def give_up(self, begun: Begun, patience: float | None = None) -> None:
        """End a stop that is being decided without an answer; count nothing."""

    def skip(self, event: StopEvent, decision: Decision, patience: float | None = None) -> None:
        """Record a stop that was allowed without running gates; count nothing."""

    def keep_output(self, begun: Begun, report: Report) -> str:
        """Write a report's whole output to a file; return its path, or ''."""

    def answer(self, stop: int, patience: float) -> Decision | None:
        """Wait for a stop's decision; None if there will be none, or not in time."""

    def recall(
        self, event: StopEvent, wanted: Sequence[Wanted], patience: float | None = None
    ) -> Mapping[str, str]:
        """Return why gates can be skipped: gate -> "passed" or "unchanged".

        "unchanged": the files are those that this agent started with, or its session if the start
        of the agent is unknown; never for an agent with a task.
        """

    def remember(self, reports: Sequence[Report], patience: float | None = None) -> None:
        """Remember the passes among reports (`passed_on`), as `record` does.

        A report with `failed_on` deletes the pass of the same gate on these files.
        """

    def remember_start(
        self, event: StartEvent, trees: Mapping[str, str], patience: float | None = None
    ) -> None:
        """Remember the files that an agent starts with, by their scope.

        Only its first start counts: hosts also report one when a context is compacted. After a stop
        none counts: the files may be the agent's own work.
        """
