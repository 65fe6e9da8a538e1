"""In which ways the answers can turn out that nobody knows."""

from __future__ import annotations

from itertools import combinations, product

from notyet.core.gate import NOT_ASKED_AT_LIMIT
from notyet.core.limits import History, Limits, limit_in_force, within_limit
from notyet.core.plan import HANDED_BACK, plan
from notyet.core.record import Record, replace
from notyet.core.settle import needs_tree
from notyet.core.verdict import (
    HIGHEST_EXTEND,
    OUTCOMES,
    Allow,
    Block,
    Decision,
    Halt,
    Problem,
    Report,
)
from notyet.engine.stop import Asking, Deadline
from notyet.replay.answers import Alike, anything, is_asked, next_alike, said, sameness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.replay.answers import Missing, Recalled, Said
    from notyet.run.drive import Line

    Answers = dict[str, str]  # gate -> how it is assumed to answer

SPARING = frozenset({"passed", "unchanged"})  # ways not to be asked, because nothing changed (N1)
_AS_THEN = "as then"
# A problem with `if_broken = "block"` counts as a block, which is tried too; one by the host's
# deadline never does.
_ANSWERS: dict[str, Allow | Block | Halt | Problem] = {
    "allow": Allow(),
    "block": Block("?"),
    "problem": Problem("deadline", "not known"),
    "halt": Halt(),
}


def assumed_report(missing: Missing, kind: str) -> Report:
    """Return the report of a gate that is assumed to be asked, and to answer so."""
    if missing.report is not None:
        return missing.report
    gate = missing.gate
    return Report(gate=gate.name, answer=_ANSWERS[kind], observed=gate.observe)


def groups_of(missing: Sequence[Missing]) -> list[list[Missing]]:
    """Put gates together that can be exchanged: what counts is which answers their group gives."""
    groups: dict[object, list[Missing]] = {}
    for one in missing:
        gate = one.gate
        key = (
            gate.priority,
            gate.step,
            gate.always,
            gate.observe,
            gate.native,
            gate.check.speaks in NOT_ASKED_AT_LIMIT,
            one.may_be_spared,
            one.halts,
            _own(one),
        )
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _own(missing: Missing) -> object:
    """Return what sets a gate apart of which it is known what it says if it is asked."""
    if missing.report is None:
        return None
    # The words of one that holds the agent count too.
    return missing.report.answer if missing.report.answer == Allow() else missing.gate.name


def ways_of(group: Sequence[Missing]) -> list[Answers]:
    """Return the ways in which a group of like gates can answer."""
    kinds = _kinds(group[0])
    names = [missing.gate.name for missing in group]
    return [
        dict.fromkeys(names, chosen[0]) | dict(zip(names, chosen, strict=False))
        for size in range(1, min(len(kinds), len(names)) + 1)
        for chosen in combinations(kinds, size)
    ]


def _kinds(missing: Missing) -> list[str]:
    if missing.report is not None:
        return [_AS_THEN, "passed", "unchanged"]
    kinds = ["allow", "block", "problem"]
    if missing.halts:
        kinds.append("halt")
    if missing.may_be_spared:
        kinds.append("unchanged")  # one that is spared for a pass is like one that passes
    return kinds


# Which decisions are possible for a recorded stop, whatever the gates say that nobody asked.
#
# Deciding is left to the engine's own line: `plan`, the asking stage by stage, `settle` and
# `within_limit`. Only the answers are recalled instead of asked for; those that are missing are
# tried
# in every way that can make a difference.


_MOST_TRIED = 2_000  # ways in which the missing answers can turn out


class Stopped(Record, kw_only=True):
    """A recorded stop, and what it would meet."""

    event: StopEvent
    history: History
    gates: tuple[Gate, ...]  # those that apply
    declared: tuple[Gate, ...]
    limits: Limits
    recalled: Recalled
    tree: str = ""  # a fingerprint of the files then; "": there was none, or UNKNOWN_TREE
    alike: Alike = Alike()
    highest: int = 0  # the highest limit that gates of this turn may have asked for (B2)


class Possible(Record, kw_only=True):
    """What a stop can come to."""

    decisions: tuple[Decision, ...]  # one for each outcome
    matters: tuple[Missing, ...] = ()  # whose answer makes a difference
    limit_matters: bool = False  # whether a gate asked for a higher limit before, too
    is_whole: bool = True  # False: there were too many ways to try them all
    alike: Alike = Alike()  # for the next stop, if this one has the first of the outcomes
    # By outcome, the lowest and the highest limit that its gates may ask for.
    extends: Mapping[str, tuple[int, int]] = {}
    may_say: frozenset[Said] = frozenset()  # what gates might say that would be asked
    must_say: frozenset[Said] = frozenset()  # what they would say in any case
    unheard: tuple[Missing, ...] = ()  # who might be asked, might hold it, and might say anything

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What it can come to, in a word each."""
        return tuple(decision.outcome for decision in self.decisions)


def possible(stopped: Stopped, known: dict[object, Possible] | None = None) -> Possible:
    """Try the missing answers in every way, and return what comes of it.

    `known` keeps what came of stops like this one: there may be thousands.
    """
    shape = _shape(stopped) if known is not None and stopped.recalled.missing else None
    if known is None or shape is None:
        return _tried(stopped)
    if shape not in known:
        found = _tried(stopped)
        if found.alike.key:  # the next stop is compared with what this one said
            return found
        known[shape] = found
    return known[shape]


def _shape(stopped: Stopped) -> object:
    """Return what the outcomes depend on, words aside; None where these count too."""
    if stopped.alike != Alike():
        return None
    event = stopped.event
    return (
        id(stopped.declared),
        stopped.limits,
        tuple(gate.name for gate in stopped.gates),
        tuple((name, *_kind(report)) for name, report in stopped.recalled.known.items()),
        tuple(stopped.recalled.spared.items()),
        tuple(
            (missing.gate.name, missing.why, missing.may_be_spared, *_kind(missing.report))
            for missing in stopped.recalled.missing
        ),
        (stopped.history.blocks, limit_in_force(stopped.limits, stopped.history, event.host_cap)),
        tuple(history.extend for history in _histories(stopped)),
        (event.scope, event.agent_id, event.background_tasks),
        (event.last_message or "").lstrip().startswith(HANDED_BACK),
        bool(stopped.tree),
    )


def _kind(report: Report | None) -> tuple[object, ...]:
    """Return what counts of an answer, words aside."""
    answer = report.answer if report is not None else None
    return type(answer), getattr(answer, "kind", ""), getattr(answer, "extend", 0)


def _tried(stopped: Stopped) -> Possible:
    groups = groups_of(stopped.recalled.missing)
    ways = [ways_of(group) for group in groups]
    histories = _histories(stopped)
    total = len(histories)
    for choices in ways:
        total *= len(choices)
    if total > _MOST_TRIED:
        missing = stopped.recalled.missing
        may_say = anything(stopped.gates)
        return Possible(decisions=(), matters=missing, is_whole=False, may_say=may_say)
    tried: dict[tuple[int, ...], frozenset[str]] = {}
    ends = _Ends(stopped)
    counts = (range(len(histories)), *(range(len(choices)) for choices in ways))
    for picked in product(*counts):
        answers: Answers = {}
        for choices, at in zip(ways, picked[1:], strict=True):
            answers |= choices[at]
        decisions = list(_decisions(stopped, histories[picked[0]], answers))
        tried[picked] = frozenset(decision.outcome for decision in decisions)
        for decision in decisions:
            ends.add(decision, answers)
    matters = [
        missing for at, group in enumerate(groups, 1) if _differs(tried, at) for missing in group
    ]
    return ends.possible(tuple(matters), limit_matters=_differs(tried, 0))


def _histories(stopped: Stopped) -> list[History]:
    """Return what may have been counted: two where it is not known whether the limit is reached."""
    low = stopped.history
    high = replace(low, extend=max(low.extend, stopped.highest))

    def is_full(history: History) -> bool:
        limit = limit_in_force(stopped.limits, history, stopped.event.host_cap)
        return history.blocks >= limit.number

    return [low] if is_full(low) == is_full(high) else [low, high]


class _Ends:
    """The decisions that are possible, and what they leave behind."""

    def __init__(self, stopped: Stopped) -> None:
        self._alike = stopped.alike
        self._unknown = {one.gate.name: one for one in stopped.recalled.missing if not one.report}
        self._first: dict[str, Decision] = {}
        self._extends: dict[str, tuple[int, int]] = {}
        self._keys: set[str] = set()
        self._said: list[frozenset[Said]] = []
        self._asked: set[str] = set()

    def add(self, decision: Decision, answers: Answers) -> None:
        """Take a decision that was found possible if the gates answer so."""
        outcome = decision.outcome
        self._first.setdefault(outcome, decision)
        self._keys.add(decision.repeat_key)
        asked = [report for report in decision.reports if is_asked(report)]
        self._said.append(frozenset(map(said, asked)))
        held = {report.gate for report in asked if not report.observed}
        self._asked |= held
        guessed = any(
            name in held and answers[name] in {"allow", "block"} for name in self._unknown
        )
        low, high = self._extends.get(outcome, (HIGHEST_EXTEND, 0))
        most = HIGHEST_EXTEND if guessed else decision.extend
        self._extends[outcome] = (min(low, decision.extend), max(high, most))

    def possible(self, matters: tuple[Missing, ...], *, limit_matters: bool) -> Possible:
        """Return all of them."""
        first = self._first
        return Possible(
            decisions=tuple(first[outcome] for outcome in OUTCOMES if outcome in first),
            matters=matters,
            limit_matters=limit_matters,
            alike=next_alike(self._alike, self._keys),
            extends=self._extends,
            may_say=frozenset().union(*self._said),
            must_say=frozenset.intersection(*self._said),
            unheard=tuple(one for name, one in self._unknown.items() if name in self._asked),
        )


def _differs(tried: Mapping[tuple[int, ...], frozenset[str]], at: int) -> bool:
    """Tell whether a choice makes a difference, while all others stay as they are."""
    seen: dict[tuple[int, ...], frozenset[str]] = {}
    for picked, outcomes in tried.items():
        others = picked[:at] + picked[at + 1 :]
        if seen.setdefault(others, outcomes) != outcomes:
            return True
    return False


def _decisions(stopped: Stopped, history: History, assumed: Answers) -> Iterator[Decision]:
    """Yield what is decided if the missing gates answer so: two where a repetition is not known."""
    reports = dict(stopped.recalled.known)
    spared = dict(stopped.recalled.spared)
    for missing in stopped.recalled.missing:
        name, kind = missing.gate.name, assumed[missing.gate.name]
        if kind in SPARING:
            spared[name] = kind
        else:
            reports[name] = assumed_report(missing, kind)
    history = replace(history, repeat_key="", repeats=0)
    decision = _decide(stopped, history, reports, spared)
    if not decision.repeat_key:
        yield decision
        return
    guessed = any(kind == "block" and _holds(decision, name) for name, kind in assumed.items())
    for is_same in sameness(stopped.alike, decision.repeat_key, guessed=guessed):
        key = decision.repeat_key if is_same else ""
        repeats = stopped.alike.repeats if is_same else 0
        again = replace(history, repeat_key=key, repeats=repeats)
        yield _decide(stopped, again, reports, spared)


def _holds(decision: Decision, gate: str) -> bool:
    return any(
        report.gate == gate and isinstance(report.answer, Block) and not report.observed
        for report in decision.reports
    )


def _decide(
    stopped: Stopped,
    history: History,
    reports: Mapping[str, Report],
    spared: Mapping[str, str],
) -> Decision:
    """Follow the engine's line, with answers that are known."""
    planned = plan(
        stopped.event, stopped.gates, history, stopped.limits, stopped.declared, spared=spared
    )
    line = _Recalling(planned.event, reports, stopped.tree).decide(planned, lambda _report: "")
    said: str | None = None
    while True:
        try:
            line.send(said)
            said = ""  # where a transcript lies, or a log, makes no difference
        except StopIteration as end:
            decision: Decision = end.value
            return within_limit(history, decision, stopped.limits.session_ceiling)


class _Recalling(Asking):
    """Asks nobody: every answer is there, and so are the files as they were."""

    def __init__(self, event: StopEvent, reports: Mapping[str, Report], tree: str) -> None:
        super().__init__(event, {}, Deadline(None), answers=reports)
        self._known_tree = tree

    def _tree(self, planned: Plan, gates: Sequence[Gate], reports: Sequence[Report]) -> Line[str]:
        yield from ()  # a line that waits for nothing
        is_asked = needs_tree(planned, gates[: len(reports)], reports)
        return self._known_tree if is_asked else ""
