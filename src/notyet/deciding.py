"""How a stop that gates apply to is decided: who is asked, who is spared, and what came of it.

    plan ─► look at the files ─► recall who has passed ─► ask each stage ─► settle ─► look again

Nothing is counted and nothing is written here, so that `notyet check` goes the same way as a stop.
"""

from __future__ import annotations

from notyet.core.command import Command
from notyet.core.limits import History, Limits
from notyet.core.plan import plan
from notyet.core.record import Record, variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from notyet.asking import Asking, Keep
    from notyet.checks.drive import Line
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.verdict import Decision
    from notyet.deadline import Deadline
    from notyet.ledger import AnyLedger
    from notyet.remembering import Remembering

    Asked = Literal["needed", "all"]  # "all": nobody is spared because nothing changed (N1)

NO_SESSION = "the event has no session_id, so nothing was asked"


class Situation(Record, kw_only=True):
    """What a stop is decided by: the gates that apply, and how often they held this agent."""

    gates: tuple[Gate, ...]
    declared: Sequence[Gate] = ()  # all gates, also those that do not apply
    history: History = History()
    limits: Limits = Limits()


class Deciding:
    """One stop that is being decided."""

    def __init__(self, asking: Asking, situation: Situation) -> None:
        self._asking = asking
        self._situation = situation
        self.spared: Mapping[str, str] = {}  # whom a stop need not ask, and why
        self._unseen: tuple[str, ...] = ()  # that files could not be looked at

    def decide(
        self,
        ledger: AnyLedger,
        keep: Keep,
        warn: Callable[[str], None],
        asked: Asked = "needed",
        *,
        remembering: Remembering | None = None,
    ) -> Line[Decision]:
        """Ask those who must be asked, settle what was said, and look on which files they passed.

        The ledger is only asked what it remembers. `remembering` may have begun to look already.
        """
        everybody = self._plan({})
        if not depends_on_files(everybody.event, [g for stage in everybody.stages for g in stage]):
            return self._defined((yield from self._asking.decide(everybody, keep)))
        if remembering is None:
            from notyet.remembering import Remembering

            gates, deadline = self._situation.gates, self._asking.deadline
            remembering = Remembering(everybody.event, gates, deadline)
        yield from remembering.look(everybody)
        self._unseen = remembering.warnings
        self.spared = yield from remembering.recall(ledger, warn)
        needed = self._plan(self.spared) if self.spared and asked == "needed" else everybody
        decision = yield from self._asking.decide(needed, keep)
        return (yield from remembering.seal(self._defined(decision)))

    def decide_without(
        self, spared: Mapping[str, str], asking: Asking, keep: Keep
    ) -> Line[Decision]:
        """Decide again with some gates left out; the files are not looked at another time."""
        self._asking = asking
        decision = self._defined((yield from asking.decide(self._plan(spared), keep)))
        return variant(decision, {"warnings": (*decision.warnings, *self._unseen)})

    def _plan(self, spared: Mapping[str, str]) -> Plan:
        now = self._situation
        event = self._asking.event
        return plan(event, now.gates, now.history, now.limits, now.declared, spared=spared)

    def _defined(self, decision: Decision) -> Decision:
        """Return a decision whose reports say what was asked, where that is a command."""
        gates = self._situation.gates
        for gate in gates:
            if isinstance(gate.check, Command):
                from notyet.core.definition import defined

                return variant(decision, {"reports": defined(decision.reports, gates)})
        return decision


def begin_to_look(
    event: StopEvent, gates: Sequence[Gate], deadline: Deadline
) -> Line[Remembering | None]:
    """Have git look at the files that gates depend on, while other things are done."""
    if not depends_on_files(event, gates):
        return None
    from notyet.remembering import Remembering

    remembering = Remembering(event, gates, deadline)
    yield from remembering.begin()
    return remembering


def depends_on_files(event: StopEvent, gates: Sequence[Gate]) -> bool:
    """Tell whether one of the gates may be spared by what the files look like (N1)."""
    for gate in gates:
        if gate.when == "changed" and isinstance(gate.check, Command):
            from notyet.workspace.repository import repository_of

            return bool(event.workspace or repository_of(event.cwd))
    return False
