"""What the gates of today would have said at a recorded stop, as far as the record knows."""

from __future__ import annotations

from notyet.core.record import Record, replace
from notyet.core.verdict import Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from notyet.core.gate import Gate

    Why = Literal[
        "new", "changed", "not_asked", "nobody_asked", "spared", "unrecorded", "more_time"
    ]  # fmt: skip

# Why an answer is missing, for people.
WORDS: Mapping[str, str] = {
    "new": "it is new",
    "changed": "it asks something else now",
    "not_asked": "it was not asked then",
    "nobody_asked": "nobody was asked then",
    "spared": "it was spared then, because nothing had changed",
    "unrecorded": "what it asked then was not recorded",
    "more_time": "it ran out of time then, and has more now",
}
_CUT_OFF = frozenset({"timeout", "deadline"})
# A command that is ended for its timeout takes that long and a little more; one that took longer
# than it may now, by more than clocks differ, would be ended.
_SLACK = 1.02


class Missing(Record, kw_only=True):
    """A gate whose answer nobody knows."""

    gate: Gate
    why: Why


class Recalled(Record, kw_only=True):
    """The answers to the questions of today, by the names that gates have today."""

    known: Mapping[str, Report] = {}
    spared: Mapping[str, str] = {}  # who was not asked because nothing had changed (N1)
    missing: tuple[Missing, ...] = ()
    asked_now: tuple[str, ...] = ()  # those in `known` that answered just now, on today's files


def recall(
    gates: Sequence[Gate],
    definitions: Mapping[str, str],
    reports: Sequence[Report],
    asked_now: Mapping[str, Report] | None = None,
) -> Recalled:
    """Find what these gates answered then, and who did not.

    `definitions` are those of the gates, by name; `asked_now` are answers by definition, which
    count where the record has none.
    """
    known: dict[str, Report] = {}
    spared: dict[str, str] = {}
    missing: list[Missing] = []
    now: list[str] = []
    for gate in gates:
        definition = definitions[gate.name]
        said = _said(gate, definition, reports)
        if isinstance(said, str) and asked_now and definition in asked_now:
            now.append(gate.name)
            said = asked_now[definition]
        if isinstance(said, str):
            missing.append(Missing(gate=gate, why=said))
        elif said.spared:
            spared[gate.name] = said.spared
        else:
            known[gate.name] = replace(said, gate=gate.name, observed=gate.observe, held=False)
    return Recalled(known=known, spared=spared, missing=tuple(missing), asked_now=tuple(now))


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
    if timeout is not None and report.seconds > timeout * _SLACK:
        said = f"it took {report.seconds:.1f} s, and has {timeout:g} s now"
        return replace(report, answer=Problem("timeout", said))
    return report
