"""Our durable memory: what every stop came to, and how often each agent was sent back."""

from __future__ import annotations

from notyet.core.limits import History
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.verdict import Decision, Report
else:
    Protocol = object


class Begun(Record, kw_only=True):
    """A stop that is being decided; or, with `repeats`, one that another stop answers (B12)."""

    stop: int
    token: bytes = b""  # a stop's number alone may mean another stop, in another file
    history: History = History()
    repeats: int = 0
    overridden: int = 0  # the stop before, if the host let the agent go against it (B11)
    warnings: tuple[str, ...] = ()


class Wanted(Record, kw_only=True):
    """A gate that need not be asked if it passed on these files, or if the agent began with them.

    `definition` is what it asks, `tree` a fingerprint of the files that count for it, which
    `scope` names; each is empty where it is unknown (N1).
    """

    gate: str
    definition: str
    scope: str
    tree: str


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


# A stop is given up when its check is cancelled, or its process dies: then nobody was answered.
GIVEN_UP = ("cancelled", "lost")
# The same stop again, with its flag still false, is a repetition for so many seconds and so many
# times; an agent that says the same thing later has been at work, and must be counted (B12).
REPEATED_WITHIN = 10.0
REPEATED_AT_MOST = 3


def is_given_up(decision: Decision) -> bool:
    """Tell whether a recorded decision is no answer to anybody."""
    return decision.outcome == "skipped" and decision.why in GIVEN_UP
