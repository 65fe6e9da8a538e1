"""How a stop that gates apply to is checked: entered in the ledger, decided, counted, recorded.

ledger.begin ─► decide (see `deciding`) ─► ledger.record
"""

from __future__ import annotations

from time import monotonic

from notyet.checks.drive import Call
from notyet.core.record import variant
from notyet.core.verdict import Decision, skipped
from notyet.deciding import NO_SESSION, Deciding, begin_to_look
from notyet.stop_errors import LedgerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from notyet.asking import Asking
    from notyet.checks.drive import Line
    from notyet.core.verdict import Report
    from notyet.deciding import Situation
    from notyet.ledger import AnyLedger, Begun
    from notyet.remembering import Remembering

    Aside = Callable[[Callable[[], None]], None]  # runs what nobody waits for

_ONE_WAIT = 1.0  # seconds
_PATIENCE_OF_LEDGER = 60.0  # seconds at most; a ledger of files has a patience of its own


class Checking:
    """One stop that is being checked."""

    def __init__(
        self,
        asking: Asking,
        situation: Situation,
        ledger: AnyLedger,
        warn: Callable[[str], None],
        aside: Aside,
    ) -> None:
        self.repeats = False  # whether the answer is that of an equal stop
        self._asking = asking
        self._event = asking.event
        self._deadline = asking.deadline
        self._situation = situation
        self._ledger = ledger
        self._warn = warn
        self._aside = aside

    def check(self, patience: float, remembering: Remembering | None = None) -> Line[Decision]:
        """Decide and record; `patience` is for the first of two equal stops.

        `remembering` may have begun to look at files already.
        """
        if not self._event.session_id.strip():
            decision = skipped("no-session", NO_SESSION)
            yield from self._write_down(decision)
            return decision
        if remembering is None:  # git is at work while the ledger is opened
            gates = self._situation.gates
            remembering = yield from begin_to_look(self._event, gates, self._deadline)
        try:
            entered = yield from self._enter(patience)
            if isinstance(entered, Decision):
                return entered
            if remembering is not None:
                self._asking.use_wait()
            return (yield from self._decide_and_record(entered, remembering))
        finally:
            if remembering is not None:
                remembering.leave()

    def _enter(self, patience: float) -> Line[Begun | Decision]:
        """Enter a stop in the ledger, or return the answer that an equal one gets (B12)."""
        ends = monotonic() + self._deadline.left(patience)
        while True:
            wait = self._deadline.left(_PATIENCE_OF_LEDGER)
            try:
                begun: Begun = yield from self._keep(
                    self._ledger.begin, self._event, wait, undo=self._give_up
                )
                if not begun.repeats:
                    return begun
                # In short waits, so that nobody is left waiting when this check is cancelled.
                wait = max(0.0, min(_ONE_WAIT, ends - monotonic()))
                answer: Decision | None = yield Call(self._ledger.answer, (begun.repeats, wait))
            except LedgerError as error:
                return skipped("ledger", f"{error} (nothing was asked)")
            if answer is not None:
                self.repeats = True
                return answer
            if monotonic() >= ends:
                self.repeats = True
                return skipped("duplicate", "an equal stop is still being checked")

    def _decide_and_record(self, begun: Begun, remembering: Remembering | None) -> Line[Decision]:
        deciding = Deciding(self._asking, variant(self._situation, {"history": begun.history}))
        try:
            decision = yield from deciding.decide(
                self._ledger, self._kept_by(begun), self._warn, remembering=remembering
            )
            if begun.warnings or begun.overridden:
                warnings = (*begun.warnings, *decision.warnings)
                found = {"overridden": begun.overridden, "warnings": warnings}
                decision = variant(decision, found)
            try:
                wait = self._deadline.left_at_last(_PATIENCE_OF_LEDGER)
                ceiling = self._situation.limits.session_ceiling
                recorded: Decision = yield from self._keep(
                    self._ledger.record, begun, decision, ceiling, wait
                )
            except LedgerError as error:
                from notyet.core.limits import uncounted

                return uncounted(decision, str(error))
        except BaseException:  # cancelled, interrupted: the stop must not look asked for ever
            self._aside(lambda: self._give_up(begun))
            raise
        return recorded

    def _kept_by(self, begun: Begun) -> Callable[[Report], str]:
        """Return what keeps an output that is too long for the agent, and says where."""

        def keep(report: Report) -> str:
            try:
                path = self._ledger.keep_output(begun, report)
            except LedgerError as error:
                self._warn(f"{error} (the whole output of {report.gate} was not kept)")
                return ""
            if not path and not self._ledger.instant:
                self._warn(f"the whole output of {report.gate} could not be kept")
            return path

        return keep

    def _write_down(self, decision: Decision) -> Line[None]:
        """Record a stop that was let go for a cause (A10)."""
        try:
            wait = self._deadline.left_at_last(_PATIENCE_OF_LEDGER)
            yield from self._keep(self._ledger.skip, self._event, decision, wait)
        except LedgerError as error:
            self._warn(f"{error} (that the stop was skipped was not recorded)")

    def _keep(
        self, call: Callable[..., Any], *args: Any, undo: Callable[[Any], None] | None = None
    ) -> Line[Any]:
        """Call the ledger, and wait for it only where it can make us wait."""
        if self._ledger.instant:
            return call(*args)
        return (yield Call(call, args, undo))

    def _give_up(self, begun: Begun) -> None:
        if begun.repeats:
            return  # another's stop
        try:
            self._ledger.give_up(begun, self._deadline.left_at_last(_PATIENCE_OF_LEDGER))
        except LedgerError as error:
            self._warn(f"{error} (that this check was cancelled was not recorded)")
