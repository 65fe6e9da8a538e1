"""Recorded stops against today's configuration: which decisions would differ.

A turn is gone through from its first stop. As long as its decisions stay as they were, the next
stop would have happened as recorded; what follows one that differs is hypothetical, and is not
guessed.
"""

from __future__ import annotations

from notyet.core.limits import Limits
from notyet.core.plan import select
from notyet.core.record import Record, replace, variant
from notyet.core.verdict import skipped
from notyet.dialects import HOSTS
from notyet.report.replay_answers import Missing, recall
from notyet.report.replay_search import UNKNOWN_TREE, Alike, Possible, Stopped, possible, tree_of
from notyet.report.replay_words import Cause, because, changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.ledger.counted import Counted
    from notyet.ledger.past import Past

    Result = Literal["same", "differs", "unknown", "hypothetical", "left_out"]

RESULTS = ("same", "differs", "unknown", "hypothetical", "left_out")
# Stops that were let go for these causes are a matter of configuration; others would be so again.
_NOT_IN_FORCE = frozenset({"untrusted", "config"})
_REPLAYED = _NOT_IN_FORCE | {"background", "unchanged"}
_REFILLS = frozenset({"passed", "observed"})


class Today(Record, kw_only=True):
    """What is in force at a place."""

    gates: tuple[Gate, ...] = ()
    definitions: Mapping[str, str] = {}  # of the gates, by name
    limits: Limits = Limits()
    workspace: str = ""  # where the agent's files are, if elsewhere
    no_gate: str = "no-gate"  # why there is none, where there is none
    has_git: bool = True  # else nothing tells whether files changed
    asked_now: Mapping[str, Report] = {}  # answers of just now, by definition


class Then(Record, kw_only=True):
    """A recorded stop, and how it was counted."""

    past: Past
    counted: Counted


class Finding(Record, kw_only=True):
    """What replaying one stop found out."""

    past: Past
    result: Result
    was: str  # the outcome as it was decided
    could: tuple[str, ...] = ()  # the outcomes that are possible today
    why: str = ""  # of the one decision that is possible
    because: tuple[Cause, ...] = ()  # what makes the difference
    missing: tuple[Missing, ...] = ()  # whose unknown answers make a difference
    too_many: bool = False  # of them, so that not every way was tried
    asked_now: tuple[str, ...] = ()  # gates that answered just now, on today's files
    changes: Mapping[str, str] = {}  # what became of its gates since
    follows: int = 0  # the stop of its turn that differs, or is not known, before this one
    left_out: str = ""  # why it was not replayed


def why_left_out(past: Past) -> str:
    """Say why a stop cannot be replayed at all; empty when it can."""
    if past.outcome == "asking":
        return "it is still being asked"
    if past.host not in HOSTS:
        return "a program asked gates of its own"
    if past.outcome == "skipped" and past.why not in _REPLAYED:
        return f"skipped: {past.why}"
    if past.why == "background" and not past.event.background_tasks:
        return "too much was running then to be recorded"
    return ""


def replay(
    turn: Sequence[Then],
    today_of: Callable[[Past], Today | str],
    halting: frozenset[str] = frozenset(),
    known: dict[object, Possible] | None = None,
) -> list[Finding]:
    """Replay the stops of one agent's turn, the oldest first.

    `today_of` returns what is in force where a stop was, or why nobody can tell. `halting` are
    gates that are known to halt: only of these is it tried what happens if they do. `known` keeps
    what was found out, for other turns in the same places.
    """
    fold = _Turn(turn[0].counted if turn else None, halting, known)
    return [fold.next(then, today_of) for then in turn]


class _Turn:
    """What is known of a turn so far, replayed."""

    def __init__(
        self,
        first: Counted | None,
        halting: frozenset[str],
        known: dict[object, Possible] | None,
    ) -> None:
        self._halting = halting
        self._known = known
        self._alike = Alike()
        if first is not None and not first.is_first:  # stops before it are gone
            self._alike = Alike(repeats=first.history.blocks, is_known=False)
        self._extend: int | None = 0 if first is not None and first.is_first else None
        self._differs = 0
        self._unknown = 0

    def next(self, then: Then, today_of: Callable[[Past], Today | str]) -> Finding:
        past, was = then.past, then.counted.outcome
        why = why_left_out(past)
        if why:
            return Finding(past=past, result="left_out", was=was, left_out=why)
        if self._differs:
            return Finding(past=past, result="hypothetical", was=was, follows=self._differs)
        today = today_of(past)
        if isinstance(today, str):
            self._lose(then)
            return Finding(past=past, result="left_out", was=was, left_out=today)
        stopped = self._stopped(then, today)
        found = possible(stopped, self._known) if stopped.gates else _without_gates(today)
        finding = _compared(then, today, found, stopped)
        finding = replace(finding, follows=self._unknown)
        self._go_on(then, found, finding)
        return finding

    def _stopped(self, then: Then, today: Today) -> Stopped:
        past = then.past
        event = variant(past.event, {"workspace": today.workspace})
        gates = select(event, today.gates)
        history = then.counted.history
        if self._extend is not None:
            history = replace(history, extend=self._extend)
        key = then.counted.repeat_key
        return Stopped(
            event=event,
            history=history,
            gates=gates,
            declared=today.gates,
            limits=today.limits,
            recalled=recall(gates, today.definitions, past.reports, today.asked_now),
            tree=tree_of(key) if key else UNKNOWN_TREE if today.has_git else "",
            alike=self._alike,
            halting=self._halting,
        )

    def _go_on(self, then: Then, found: Possible, finding: Finding) -> None:
        """Remember what the next stop of this turn depends on."""
        self._alike = found.alike
        if not found.is_whole:
            self._lose(then)
        if len(found.decisions) == 1 and self._extend is not None:
            self._extend = max(self._extend, found.decisions[0].extend)
        else:
            self._extend = None
        if finding.result == "unknown":
            self._unknown = self._unknown or then.past.id
        elif finding.result == "differs" and not _goes_on_alike(then, found):
            self._differs = then.past.id

    def _lose(self, then: Then) -> None:
        """Nobody knows what became of a stop."""
        self._alike = Alike(repeats=then.counted.history.blocks + 1, is_known=False)
        self._extend = None


def _without_gates(today: Today) -> Possible:
    decision = skipped(today.no_gate)
    return Possible(decisions=(decision,))


def _compared(then: Then, today: Today, found: Possible, stopped: Stopped) -> Finding:
    past, was = then.past, then.counted.outcome
    result: Result = "unknown"
    # Who is let go because nobody need be asked is gated all the same.
    was_gated = was != "skipped" or past.why not in _NOT_IN_FORCE
    if was_gated != bool(stopped.gates) or (found.is_whole and was not in found.outcomes):
        result = "differs"
    elif found.is_whole and len(found.outcomes) == 1:
        result = "same"
    one = found.decisions[0] if len(found.decisions) == 1 else None
    changed = changes(past, today.gates, today.definitions, stopped.event)
    causes: tuple[Cause, ...] = ()
    if result == "differs" and found.decisions:
        causes = _in_all(
            [because(past, was, one, today.limits, changed) for one in found.decisions]
        )
    return Finding(
        past=past,
        result=result,
        was=was,
        could=found.outcomes,
        why=one.why if one is not None else "",
        because=causes,
        missing=found.matters,
        too_many=not found.is_whole,
        asked_now=stopped.recalled.asked_now,
        changes=changed,
    )


def _in_all(causes: Sequence[tuple[Cause, ...]]) -> tuple[Cause, ...]:
    """Return what makes a difference whatever the missing answers are."""
    return tuple(cause for cause in causes[0] if all(cause in others for others in causes[1:]))


def _goes_on_alike(then: Then, found: Possible) -> bool:
    """Tell whether the agent goes on, or does not, as it did, and with the same budget."""
    was, blocks = then.counted.outcome, then.counted.history.blocks

    def follows(outcome: str) -> tuple[str, int]:
        fate = outcome if outcome in {"blocked", "halted"} else "let go"
        return fate, 0 if outcome in _REFILLS else blocks

    return all(follows(outcome) == follows(was) for outcome in found.outcomes)
