"""What a ledger promises: what the engine needs of one, whoever wrote it.

`notyet.testing` checks every promise; our own ledgers are `sqlite` and `memory`.
"""

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
    """What the engine needs of a ledger. Methods raise LedgerError and nothing else.

    `patience` is how many seconds a caller can wait, where that may be less than the ledger would.
    """

    instant: bool  # False: calls may wait for a disk or a lock

    def begin(self, event: StopEvent, patience: float | None = None) -> Begun:
        """Number the turn, find out what became of the last stop, and enter this one."""

    def record(
        self, begun: Begun, decision: Decision, ceiling: int = 0, patience: float | None = None
    ) -> Decision:
        """Count a decision and write it down; return it as it may stand (`within_limit`)."""

    def give_up(self, begun: Begun, patience: float | None = None) -> None:
        """Say that a stop which is still asking will not be answered; count nothing."""

    def skip(self, event: StopEvent, decision: Decision, patience: float | None = None) -> None:
        """Write down a stop that was let go for a cause, without counting anything."""

    def keep_output(self, begun: Begun, report: Report) -> str:
        """Keep a report's whole output in a file; return its path, empty where there is none."""

    def answer(self, stop: int, patience: float) -> Decision | None:
        """Wait for a stop's decision; None when nobody will answer, or not in time."""

    def recall(
        self, event: StopEvent, wanted: Sequence[Wanted], patience: float | None = None
    ) -> Mapping[str, str]:
        """Say why gates need not be asked: gate -> "passed" or "unchanged"; of others nothing.

        "unchanged" are the files that this agent began with; where no start of it is known, those
        that its session began with. Those of an agent with a task are never.
        """

    def remember(self, reports: Sequence[Report], patience: float | None = None) -> None:
        """Remember the passes among reports, those with a `passed_on`; `record` does so too.

        One with a `failed_on` takes back what the same gate passed on these files.
        """

    def remember_start(
        self, event: StartEvent, trees: Mapping[str, str], patience: float | None = None
    ) -> None:
        """Remember with which files an agent begins, by their scope; of each agent only once.

        Hosts tell of a start in the middle of a session too, when its context is compacted. And
        one that has stopped before does not begin: the files may be its own work.
        """
