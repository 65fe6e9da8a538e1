"""Recorded stops against today's configuration: which decisions would differ.

A turn is gone through from its first stop. As long as its decisions stay as they were, the next
stop would have happened as recorded; what follows one that differs is hypothetical, and is not
guessed.
"""

from __future__ import annotations

from notyet.core.limits import History, Limits
from notyet.core.plan import select
from notyet.core.record import Record, replace, variant
from notyet.core.verdict import HIGHEST_EXTEND, Halt, skipped
from notyet.hosts import HOSTS
from notyet.replay.answers import (
    UNKNOWN_TREE,
    Alike,
    Doubted,
    Evidence,
    Missing,
    anything,
    recall,
    tree_of,
)
from notyet.replay.search import Possible, Stopped, possible
from notyet.replay.words import Cause, because, by_names_of_today, changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.ledger.history import Counted
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
    limit_missing: bool = False  # nobody knows whether a gate asked for a higher limit before (B2)
    too_many: bool = False  # missing answers, so that not every way was tried
    not_halting: tuple[str, ...] = ()  # gates that might halt, which was not tried
    takes_passes: bool = False  # other turns might have left other passes, which was not tried (N1)
    asked_now: tuple[str, ...] = ()  # gates that answered just now, on today's files
    changes: Mapping[str, str] = {}  # what became of its gates since
    history: History = History()  # what had been counted
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


def halting(turns: Sequence[Sequence[Then]]) -> frozenset[str]:
    """Return the names and the definitions of gates that halted at some stop."""
    reports = (report for turn in turns for then in turn for report in then.past.reports)
    halts = [report for report in reports if isinstance(report.answer, Halt)]
    return frozenset(word for one in halts for word in (one.gate, one.definition) if word)


def replay(
    turns: Sequence[Sequence[Then]], today_of: Callable[[Past], Today | str]
) -> list[Finding]:
    """Replay the stops of agents' turns, each turn with its oldest stop first.

    `today_of` returns what is in force where a stop was, or why nobody can tell. It is tried what
    happens if a gate halts only of those that did at one of the stops.
    """
    around = _Around(halting(turns))
    folds = [(then, fold) for turn in turns for fold in [_Turn(turn, around)] for then in turn]
    folds.sort(key=lambda pair: pair[0].past.id)
    return [fold.next(then, today_of) for then, fold in folds]


class _Around:
    """What is known of all stops together."""

    def __init__(self, halting: frozenset[str]) -> None:
        self.halting = halting
        self.doubted = Doubted()  # by whatever turn
        self.found: dict[object, Possible] = {}  # for other stops that are like one


class _Turn:
    """What is known of a turn so far, replayed."""

    def __init__(self, turn: Sequence[Then], around: _Around) -> None:
        self._around = around
        first = turn[0].counted
        self._alike = Alike()
        self._extend = (0, 0)  # the lowest and the highest limit that gates may have asked for
        if not first.is_first:  # stops before it are gone
            self._alike = Alike(repeats=first.history.blocks, is_known=False)
            self._extend = (0, HIGHEST_EXTEND)
        self._doubted = Doubted()
        self._unheard: dict[str, Missing] = {}  # who may have asked for it
        self._differs = 0
        self._unknown = 0

    def next(self, then: Then, today_of: Callable[[Past], Today | str]) -> Finding:
        past, was = then.past, then.counted.outcome
        why = why_left_out(past)
        if why:
            return Finding(past=past, result="left_out", was=was, left_out=why)
        today = today_of(past)
        if self._differs:
            if isinstance(today, Today):
                may_say = anything(today.gates)
                self._doubt(then, today, Possible(decisions=(), may_say=may_say))
            return Finding(past=past, result="hypothetical", was=was, follows=self._differs)
        if isinstance(today, str):
            self._lose(then)
            return Finding(past=past, result="left_out", was=was, left_out=today)
        stopped = self._stopped(then, today)
        known = self._around.found
        found = possible(stopped, known) if stopped.gates else _without_gates(today)
        finding = _compared(then, today, found, stopped)
        missing = {one.gate.name: one for one in finding.missing}
        if found.limit_matters:
            missing = self._unheard | missing
        finding = replace(
            finding,
            follows=self._unknown,
            missing=tuple(missing.values()),
            takes_passes=self._takes_passes(stopped, today),
        )
        self._doubt(then, today, found)
        self._go_on(then, found, finding)
        return finding

    def _doubt(self, then: Then, today: Today, found: Possible) -> None:
        """Note which passes may be remembered that were not, or the other way round."""
        changing = [gate.name for gate in today.gates if gate.when == "changed"]
        definitions = {name: today.definitions[name] for name in changing}
        for doubted in (self._doubted, self._around.doubted):
            doubted.note(
                then.past.reports,
                definitions,
                may_say=found.may_say,
                must_say=found.must_say,
            )

    def _stopped(self, then: Then, today: Today) -> Stopped:
        past = then.past
        event = variant(past.event, {"workspace": today.workspace})
        gates = select(event, today.gates)
        low, high = self._extend
        key = then.counted.repeat_key
        evidence = Evidence(
            reports=past.reports,
            asked_now=today.asked_now,
            halting=self._around.halting,
            doubted=self._doubted,
            can_spare=today.has_git,
        )
        return Stopped(
            event=event,
            history=replace(then.counted.history, extend=low),
            gates=gates,
            declared=today.gates,
            limits=today.limits,
            recalled=recall(gates, today.definitions, evidence),
            tree=tree_of(key) if key else UNKNOWN_TREE if today.has_git else "",
            alike=self._alike,
            highest=high,
        )

    def _takes_passes(self, stopped: Stopped, today: Today) -> bool:
        """Tell whether other turns might have left other passes, which is not tried."""
        tried = {one.gate.name for one in stopped.recalled.missing if one.may_be_spared}
        tried.update(stopped.recalled.asked_now)
        return today.has_git and any(
            self._around.doubted.about(today.definitions[gate.name])
            for gate in stopped.gates
            if gate.when == "changed" and gate.name not in tried
        )

    def _go_on(self, then: Then, found: Possible, finding: Finding) -> None:
        """Remember what the next stop of this turn depends on."""
        self._alike = found.alike
        for one in found.unheard:
            self._unheard.setdefault(one.gate.name, replace(one, why="might_extend"))
        was = then.counted.outcome
        # What follows is told as far as this stop stays as it was, where it can.
        ends = [found.extends[was]] if was in found.extends else [*found.extends.values()]
        if ends:
            low, high = self._extend
            self._extend = (
                max(low, min(end[0] for end in ends)),
                max(high, *(end[1] for end in ends)),
            )
        if not found.is_whole:
            self._lose(then)
        if finding.result == "unknown":
            self._unknown = self._unknown or then.past.id
        elif finding.result == "differs" and not _goes_on_alike(then, found):
            self._differs = then.past.id

    def _lose(self, then: Then) -> None:
        """Nobody knows what became of a stop."""
        self._alike = Alike(repeats=then.counted.history.blocks + 1, is_known=False)
        self._extend = (0, HIGHEST_EXTEND)


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
        renamed = replace(past, reports=by_names_of_today(past.reports, today.definitions))
        causes = _in_all(
            [because(renamed, was, one, today.limits, changed) for one in found.decisions]
        )
    return Finding(
        past=past,
        result=result,
        was=was,
        could=found.outcomes,
        why=one.why if one is not None else "",
        because=causes,
        missing=found.matters,
        limit_missing=found.limit_matters,
        too_many=not found.is_whole,
        not_halting=tuple(one.gate.name for one in found.unheard if not one.halts),
        asked_now=stopped.recalled.asked_now,
        changes=changed,
        history=stopped.history,
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
