"""Why a recorded stop would be decided differently: which gate or limit makes the difference."""

from __future__ import annotations

from notyet.core.gate import why_not
from notyet.core.record import Record, replace
from notyet.core.settle import holds
from notyet.core.verdict import Allow, Block, Halt, Problem
from notyet.replay.answers import is_too_slow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.limits import Limits
    from notyet.core.verdict import Decision, Report
    from notyet.ledger.past import Past

_NONE = "was not asked"
_WEAK = frozenset({None, _NONE, "allowed"})


class Cause(Record):
    """What makes a difference: a gate, or without a name something else."""

    gate: str
    what: str

    def __str__(self) -> str:
        return f"{self.gate} {self.what}" if self.gate else self.what


def changes(
    past: Past, gates: Sequence[Gate], definitions: Mapping[str, str], event: StopEvent
) -> dict[str, str]:
    """Return what became of each gate since a stop, in words; unchanged ones are left out."""
    if not past.reports:  # what was in force then is not known
        return {}
    found: dict[str, str] = {}
    by_name = {gate.name: gate for gate in gates}
    reports = by_names_of_today(past.reports, definitions)
    for report in reports:
        said = _change(report, by_name.get(report.gate), definitions, event)
        if said:
            found[report.gate] = said
    met = {report.gate for report in reports}
    for gate in gates:
        if gate.name not in met and not why_not(gate, event):
            found[gate.name] = "is new"
    return found


def by_names_of_today(
    reports: Sequence[Report], definitions: Mapping[str, str]
) -> tuple[Report, ...]:
    """Return reports with the names that gates have today which ask the same."""
    asking = {definition: name for name, definition in reversed([*definitions.items()])}

    def name(report: Report) -> str:
        if not report.definition or definitions.get(report.gate) == report.definition:
            return report.gate
        return asking.get(report.definition, report.gate)

    return tuple(replace(report, gate=name(report)) for report in reports)


def _change(
    report: Report, gate: Gate | None, definitions: Mapping[str, str], event: StopEvent
) -> str:
    if gate is None:
        return "is gone"
    if report.definition and definitions[gate.name] != report.definition:
        return "asks something else now"
    why = why_not(gate, event)
    if why:
        return f"no longer applies: {why}"
    if gate.observe != report.observed:
        return "only observes now" if gate.observe else "does more than observe now"
    if report.when and gate.when != report.when:
        return f"has when = {gate.when} now"
    if isinstance(report.answer, Problem) and holds(gate, report) != report.held:
        return f"has if_broken = {gate.if_broken} now"
    if is_too_slow(gate.timeout, report):
        return f"took {report.seconds:.3g} s, and has a timeout of {gate.timeout:g} s now"
    return ""


def because(
    past: Past, was: str, decision: Decision, limits: Limits, changed: Mapping[str, str]
) -> tuple[Cause, ...]:
    """Return what makes the difference between a recorded stop and a decision of today."""
    outcomes = {was, decision.outcome}
    if was == "skipped" and past.why in {"untrusted", "config"}:
        return (Cause("", f"its gates were not in force then ({past.why})"),)
    if (
        outcomes != {"skipped"}
        and "skipped" in outcomes
        and "background"
        in {
            past.why,
            decision.why,
        }
    ):
        word = "true" if limits.wait_for_background else "false"
        return (Cause("", f"wait_for_background is {word} now"),)
    then = {report.gate: _effect(report) for report in past.reports}
    now = {report.gate: _effect(report) for report in decision.reports}
    moved = [
        name
        for name in dict.fromkeys((*then, *now))
        if then.get(name, _NONE) != now.get(name, _NONE)
    ]
    # Whether a gate that allows is asked makes a difference only where nothing else does.
    strong = [name for name in moved if not {then.get(name), now.get(name)} <= _WEAK]
    found = [_cause(name, then, now, changed) for name in strong]
    if "capped" in outcomes and decision.limit != past.limit:
        words = f"the limit is {decision.limit} ({decision.limit_source}), not {past.limit}"
        found.append(Cause("", words))
    if "stuck" in outcomes and not found:
        found.append(Cause("", f"stuck_after is {limits.stuck_after} now"))
    return tuple(found or [_cause(name, then, now, changed) for name in moved])


def _cause(
    name: str, then: Mapping[str, str], now: Mapping[str, str], changed: Mapping[str, str]
) -> Cause:
    return Cause(name, changed.get(name) or _moved(then.get(name, _NONE), now.get(name, _NONE)))


def _effect(report: Report) -> str:
    """Return what a gate does to a decision."""
    answer = report.answer
    if isinstance(answer, Block | Halt) or report.held:
        return "would have held it" if report.observed else "held it"
    if isinstance(answer, Problem):
        return "had a problem"
    return "allowed" if isinstance(answer, Allow) else _NONE


def _moved(then: str, now: str) -> str:
    """Say what became of a gate that is as it was, and counts differently."""
    if then == _NONE:
        return "is asked now, and was not then"
    if now == _NONE:
        return "is not asked now"
    return f"{then}, and now: {now}"
