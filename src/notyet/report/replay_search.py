"""Which decisions are possible for a recorded stop, whatever the gates say that nobody asked.

Deciding is left to the engine's own line: `plan`, the asking stage by stage, `settle` and
`within_limit`. Only the answers are recalled instead of asked for; those that are missing are tried
in every way that can make a difference.
"""

from __future__ import annotations

from itertools import combinations, product

from notyet.asking import Asking
from notyet.core.gate import NOT_ASKED_AT_LIMIT, Gate
from notyet.core.limits import History, Limits, limit_in_force, within_limit
from notyet.core.plan import HANDED_BACK, plan
from notyet.core.record import Record, replace
from notyet.core.verdict import OUTCOMES, Allow, Block, Decision, Halt, Problem, Report
from notyet.deadline import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.checks.drive import Line
    from notyet.core.event import StopEvent
    from notyet.report.replay_answers import Missing, Recalled

    Answers = dict[str, str]  # gate -> how it is assumed to answer

UNKNOWN_TREE = "?"  # stands for files that looked somehow
_MOST_TRIED = 2_000  # ways in which the missing answers can turn out
# A problem with `if_broken = "block"` counts as a block, which is tried too; one by the host's
# deadline never does.
_ANSWERS: dict[str, Allow | Block | Halt | Problem] = {
    "allow": Allow(),
    "block": Block("?"),
    "problem": Problem("deadline", "not known"),
    "halt": Halt(),
}


class Alike(Record, kw_only=True):
    """What the stops before this one, in its turn, failed alike with (B6)."""

    key: str = ""
    repeats: int = 0  # where it is not known: at most
    is_known: bool = True


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
    halting: frozenset[str] = frozenset()  # gates that are known to halt


class Possible(Record, kw_only=True):
    """What a stop can come to."""

    decisions: tuple[Decision, ...]  # one for each outcome
    matters: tuple[Missing, ...] = ()  # whose answer makes a difference
    is_whole: bool = True  # False: there were too many ways to try them all
    alike: Alike = Alike()  # for the next stop, if this one has the first of the outcomes

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
        tuple(
            (name, type(report.answer), getattr(report.answer, "kind", ""))
            for name, report in stopped.recalled.known.items()
        ),
        tuple(stopped.recalled.spared.items()),
        tuple((missing.gate.name, missing.why) for missing in stopped.recalled.missing),
        (stopped.history.blocks, limit_in_force(stopped.limits, stopped.history, event.host_cap)),
        (event.scope, event.agent_id, event.background_tasks),
        (event.last_message or "").lstrip().startswith(HANDED_BACK),
        bool(stopped.tree),
    )


def _tried(stopped: Stopped) -> Possible:
    groups = _groups(stopped)
    ways = [_ways(group, stopped.halting) for group in groups]
    total = 1
    for choices in ways:
        total *= len(choices)
    if total > _MOST_TRIED:
        return Possible(decisions=(), matters=stopped.recalled.missing, is_whole=False)
    tried: dict[tuple[int, ...], frozenset[str]] = {}
    first: dict[str, list[Decision]] = {}
    for picked in product(*(range(len(choices)) for choices in ways)):
        answers: Answers = {}
        for choices, at in zip(ways, picked, strict=True):
            answers |= choices[at]
        decisions = list(_decisions(stopped, answers))
        tried[picked] = frozenset(decision.outcome for decision in decisions)
        for decision in decisions:
            first.setdefault(decision.outcome, []).append(decision)
    matters = [
        missing for at, group in enumerate(groups) if _differs(tried, at) for missing in group
    ]
    return Possible(
        decisions=tuple(first[outcome][0] for outcome in OUTCOMES if outcome in first),
        matters=tuple(matters),
        alike=_next_alike(stopped, [one for some in first.values() for one in some]),
    )


def _groups(stopped: Stopped) -> list[list[Missing]]:
    """Put gates together that can be exchanged: what counts is which answers their group gives."""
    groups: dict[object, list[Missing]] = {}
    for missing in stopped.recalled.missing:
        gate = missing.gate
        key = (
            gate.priority,
            gate.step,
            gate.always,
            gate.observe,
            gate.native,
            gate.check.speaks in NOT_ASKED_AT_LIMIT,
            _may_be_spared(missing),
            gate.name in stopped.halting,
        )
        groups.setdefault(key, []).append(missing)
    return list(groups.values())


def _may_be_spared(missing: Missing) -> bool:
    """Tell whether a gate might not have been asked, because nothing had changed (N1).

    Who is spared is found out before anybody is asked, so one that was only not reached is not.
    """
    return missing.gate.when == "changed" and missing.why != "not_asked"


def _ways(group: Sequence[Missing], halting: frozenset[str]) -> list[Answers]:
    """Return the ways in which a group of like gates can answer."""
    gate = group[0].gate
    kinds = ["allow", "block"] if gate.observe else ["allow", "block", "problem"]
    if gate.name in halting:
        kinds.append("halt")
    if _may_be_spared(group[0]):
        kinds.append("unchanged")
    names = [missing.gate.name for missing in group]
    return [
        dict.fromkeys(names, chosen[0]) | dict(zip(names, chosen, strict=False))
        for size in range(1, min(len(kinds), len(names)) + 1)
        for chosen in combinations(kinds, size)
    ]


def _differs(tried: Mapping[tuple[int, ...], frozenset[str]], at: int) -> bool:
    """Tell whether a group makes a difference, while all others answer alike."""
    seen: dict[tuple[int, ...], frozenset[str]] = {}
    for picked, outcomes in tried.items():
        others = picked[:at] + picked[at + 1 :]
        if seen.setdefault(others, outcomes) != outcomes:
            return True
    return False


def _decisions(stopped: Stopped, assumed: Answers) -> Iterator[Decision]:
    """Yield what is decided if the missing gates answer so: two where a repetition is not known."""
    reports = dict(stopped.recalled.known)
    spared = dict(stopped.recalled.spared)
    for missing in stopped.recalled.missing:
        name, kind = missing.gate.name, assumed[missing.gate.name]
        if kind == "unchanged":
            spared[name] = kind
        else:
            reports[name] = Report(gate=name, answer=_ANSWERS[kind], observed=missing.gate.observe)
    history = replace(stopped.history, repeat_key="", repeats=0)
    decision = _decide(stopped, history, reports, spared)
    if not decision.repeat_key:
        yield decision
        return
    guessed = any(kind == "block" and _holds(decision, name) for name, kind in assumed.items())
    for is_same in _sameness(stopped, decision.repeat_key, guessed=guessed):
        key = decision.repeat_key if is_same else ""
        repeats = stopped.alike.repeats if is_same else 0
        again = replace(history, repeat_key=key, repeats=repeats)
        yield _decide(stopped, again, reports, spared)


def _holds(decision: Decision, gate: str) -> bool:
    return any(
        report.gate == gate and isinstance(report.answer, Block) and not report.observed
        for report in decision.reports
    )


def _sameness(stopped: Stopped, key: str, *, guessed: bool) -> tuple[bool, ...]:
    """Tell whether a stop fails as those before it did; both where nobody knows."""
    alike = stopped.alike
    if alike.is_known and not alike.key:
        return (False,)
    if guessed or not alike.is_known:
        return (True, False)
    words, tree = _parts(key)
    words_before, tree_before = _parts(alike.key)
    if words != words_before:
        return (False,)
    if UNKNOWN_TREE in {tree, tree_before}:
        return (True, False)
    return (tree == tree_before,)


def tree_of(repeat_key: str) -> str:
    """Return the fingerprint of the files in what stays equal while nothing moves."""
    return _parts(repeat_key)[1]


def _parts(repeat_key: str) -> tuple[str, str]:
    words, size, tree = [*repeat_key.split("-", 2), "", ""][:3]
    return f"{words}-{size}", tree


def _next_alike(stopped: Stopped, decisions: Sequence[Decision]) -> Alike:
    """Return what the next stop of the turn is compared with."""
    keys = {decision.repeat_key for decision in decisions}
    before = stopped.alike
    if len(keys) > 1:
        return Alike(repeats=before.repeats + 1, is_known=False)
    key = keys.pop()
    if not key:
        return Alike()
    same = _sameness(stopped, key, guessed=False)
    if len(same) > 1:  # the same words, perhaps of the same files
        return Alike(key=key, repeats=before.repeats + 1, is_known=before.is_known)
    return Alike(key=key, repeats=before.repeats + 1 if same[0] else 1)


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

    def _tree(self, gates: Sequence[Gate], reports: Sequence[Report]) -> Line[str]:  # noqa: ARG002  # as it is called
        yield from ()  # a line that waits for nothing
        return self._known_tree
