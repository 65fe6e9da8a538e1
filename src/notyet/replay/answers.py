"""Whether a recorded stop fails as those before it did, as far as that is known (B6)."""

from __future__ import annotations

from notyet.core.record import Record, replace
from notyet.core.verdict import Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Literal

    from notyet.core.gate import Gate

    Why = Literal[
        "new", "changed", "not_asked", "nobody_asked", "unrecorded", "more_time",
        "spared", "remembered", "might_be_spared", "might_extend",
    ]  # fmt: skip
    Said = tuple[str, str]  # a gate, and the kind of its answer

UNKNOWN_TREE = "?"  # stands for files that looked somehow


class Alike(Record, kw_only=True):
    """What the stops before this one, in its turn, failed alike with (B6)."""

    key: str = ""
    repeats: int = 0  # where it is not known: at most
    is_known: bool = True


def sameness(alike: Alike, key: str, *, guessed: bool) -> tuple[bool, ...]:
    """Tell whether a stop fails as those before it did; both where nobody knows."""
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


def next_alike(before: Alike, keys: set[str]) -> Alike:
    """Return what the next stop of the turn is compared with."""
    if len(keys) > 1:
        return Alike(repeats=before.repeats + 1, is_known=False)
    (key,) = keys
    if not key:
        return Alike()
    same = sameness(before, key, guessed=False)
    if len(same) > 1:  # the same words, perhaps of the same files
        return Alike(key=key, repeats=before.repeats + 1, is_known=before.is_known)
    return Alike(key=key, repeats=before.repeats + 1 if same[0] else 1)


def tree_of(repeat_key: str) -> str:
    """Return the fingerprint of the files in what stays equal while nothing moves."""
    return _parts(repeat_key)[1]


def _parts(repeat_key: str) -> tuple[str, str]:
    words, size, tree = [*repeat_key.split("-", 2), "", ""][:3]
    return f"{words}-{size}", tree


# Why an answer is missing, for people.
WORDS: Mapping[str, str] = {
    "new": "it is new",
    "changed": "it asks something else now",
    "not_asked": "it was not asked then",
    "nobody_asked": "nobody was asked then",
    "unrecorded": "what it asked then was not recorded",
    "more_time": "it ran out of time then, and has more now",
    "spared": "it was spared then, because nothing had changed",
    "remembered": "it was spared then, and might be asked now",
    "might_be_spared": "it was asked then, and might be spared now",
    "might_extend": "it might have asked for a higher limit before",
}
_CUT_OFF = frozenset({"timeout", "deadline"})
# A command that is ended for its timeout takes that long and a little more; one that took longer
# than it may now, by more than clocks differ, would be ended.
_SLACK = 1.02


class Missing(Record, kw_only=True):
    """A gate whose answer nobody knows."""

    gate: Gate
    why: Why
    report: Report | None = None  # what it said then: only whether it is asked is not known
    may_be_spared: bool = False  # it might not be asked, because nothing had changed (N1)
    halts: bool = False  # it is known to halt


class Recalled(Record, kw_only=True):
    """The answers to the questions of today, by the names that gates have today."""

    known: Mapping[str, Report] = {}
    spared: Mapping[str, str] = {}  # who was not asked because nothing had changed (N1)
    missing: tuple[Missing, ...] = ()
    asked_now: tuple[str, ...] = ()  # those in `known` that answered just now, on today's files


class Evidence(Record, kw_only=True):
    """What tells how gates would answer at a stop."""

    reports: Sequence[Report] = ()  # of the stop
    asked_now: Mapping[str, Report] = {}  # by definition; they count where the record has none
    halting: frozenset[str] = frozenset()  # names and definitions of gates that are known to halt
    doubted: Doubted | None = None
    can_spare: bool = True  # there is a repository, so that it can be told whether files changed


def recall(gates: Sequence[Gate], definitions: Mapping[str, str], evidence: Evidence) -> Recalled:
    """Find what these gates answered then, and who did not; `definitions` are theirs, by name."""
    known: dict[str, Report] = {}
    spared: dict[str, str] = {}
    missing: list[Missing] = []
    now: list[str] = []
    for gate in gates:
        definition = definitions[gate.name]
        said = _said(gate, definition, evidence.reports)
        if isinstance(said, str) and definition in evidence.asked_now:
            now.append(gate.name)
            known[gate.name] = _renamed(evidence.asked_now[definition], gate)
            continue
        may_be_spared = _may_be_spared(gate, definition, evidence)
        unknown = Missing(
            gate=gate,
            why=said if isinstance(said, str) else "remembered",
            may_be_spared=may_be_spared,
            halts=bool({gate.name, definition} & evidence.halting),
        )
        if isinstance(said, str) or (said.spared and (may_be_spared or not evidence.can_spare)):
            missing.append(unknown)
        elif said.spared:
            spared[gate.name] = said.spared
        elif may_be_spared:
            said = _renamed(said, gate)
            missing.append(replace(unknown, why="might_be_spared", report=said))
        else:
            known[gate.name] = _renamed(said, gate)
    return Recalled(known=known, spared=spared, missing=tuple(missing), asked_now=tuple(now))


def _renamed(report: Report, gate: Gate) -> Report:
    """Return a report as one of a gate of today."""
    return replace(report, gate=gate.name, observed=gate.observe, held=False)


def _may_be_spared(gate: Gate, definition: str, evidence: Evidence) -> bool:
    """Tell whether a gate might be spared today, and nobody knows (N1).

    Where it could be spared then, the record tells whether it was: that was found out before
    anybody was asked, so also of one that was not reached. It tells nothing any more once a stop
    before it might have ended with another pass to be remembered.
    """
    if gate.when != "changed" or not evidence.can_spare:
        return False
    then = counterpart(gate, definition, evidence.reports)
    if then is None or then.when != "changed" or not _was_looked_at(gate, evidence.reports):
        return True
    return evidence.doubted is not None and evidence.doubted.about(definition)


def _was_looked_at(gate: Gate, reports: Sequence[Report]) -> bool:
    """Tell whether it was found out then who can be spared.

    Not where nobody was to be asked; nor, perhaps, of a foreign gate, which may be left out.
    """
    return gate.native and any(report.answer is not None for report in reports)


def counterpart(gate: Gate, definition: str, reports: Sequence[Report]) -> Report | None:
    """Return what was recorded of the same question, whatever the gate was called then."""
    twins = [report for report in reports if definition and report.definition == definition]
    return next((twin for twin in twins if twin.gate == gate.name), twins[0] if twins else None)


def _said(gate: Gate, definition: str, reports: Sequence[Report]) -> Report | Why:
    """Return the recorded answer, or why there is none."""
    if all(report.answer is None for report in reports):
        return "nobody_asked"
    report = counterpart(gate, definition, reports)
    if report is None:
        namesake = next((report for report in reports if report.gate == gate.name), None)
        if namesake is None:
            return "new"
        if namesake.definition:
            return "changed"
        return "unrecorded" if namesake.answer is not None else "not_asked"
    if report.spared:
        return report if gate.when == "changed" else "spared"
    if report.answer is None:
        return "not_asked"
    return _within(gate.timeout, report)


def _within(timeout: float | None, report: Report) -> Report | Why:
    """Return a recorded answer as it would be with the time that the gate has now."""
    if isinstance(report.answer, Problem) and report.answer.kind in _CUT_OFF:
        if report.answer.kind == "timeout" and (
            timeout is None or timeout > report.seconds * _SLACK
        ):
            return "more_time"
        return report
    if is_too_slow(timeout, report):
        said = f"it took {report.seconds:.1f} s, and has {timeout:g} s now"
        return replace(report, answer=Problem("timeout", said))
    return report


def is_too_slow(timeout: float | None, report: Report) -> bool:
    """Tell whether a gate that answered then would be ended now, before it does."""
    is_ended = isinstance(report.answer, Problem) and report.answer.kind in _CUT_OFF
    return timeout is not None and not is_ended and report.seconds > timeout * _SLACK


# Which remembered passes would be there today and were not then, or the other way round (N1).
#
# A gate is spared on files that it passed on before, and did not fail on since, at whatever stop.
# So
# once a stop would ask other gates than it did, later ones may spare others too.


class Doubted:
    """The questions of whose passes nobody knows any more whether they are remembered."""

    def __init__(self) -> None:
        self._definitions: set[str] = set()

    def about(self, definition: str) -> bool:
        """Tell whether passes of this question may be others than they were."""
        return definition in self._definitions

    def note(
        self,
        reports: Sequence[Report],
        definitions: Mapping[str, str],
        *,
        may_say: Iterable[Said],
        must_say: Iterable[Said],
    ) -> None:
        """Take what a recorded stop would leave to be remembered: perhaps, and in any case.

        `definitions` are those of the gates that can be spared today, by name.
        """
        asked = (report for report in reports if is_asked(report) and report.when == "changed")
        then = {(report.definition, said(report)[1]) for report in asked}
        perhaps, surely = (
            {(definitions[gate], kind) for gate, kind in some if gate in definitions}
            for some in (may_say, must_say)
        )
        self._definitions |= {definition for definition, _ in (then - surely) | (perhaps - then)}


def is_asked(report: Report) -> bool:
    """Tell whether a gate was asked."""
    return report.answer is not None and not report.spared


def said(report: Report) -> Said:
    """Return which gate said what, words aside."""
    return report.gate, type(report.answer).__name__


def anything(gates: Iterable[Gate]) -> frozenset[Said]:
    """Return what gates may say of which nothing is known."""
    return frozenset((gate.name, "?") for gate in gates)
