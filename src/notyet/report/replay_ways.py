"""In which ways the answers can turn out that nobody knows."""

from __future__ import annotations

from itertools import combinations

from notyet.core.gate import NOT_ASKED_AT_LIMIT
from notyet.core.verdict import Allow, Block, Halt, Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.report.replay_answers import Missing

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
