"""`settle`: what the reports of all gates come to, as one decision."""

from __future__ import annotations

from notyet.core.gate import EVERY_AGENT, Command, file_of
from notyet.core.limits import limit_in_force, used
from notyet.core.matcher import fits
from notyet.core.message import SendBack, compose
from notyet.core.plan import blocks, counted
from notyet.core.record import made, replace
from notyet.core.text import bounded, joined, listed, masked
from notyet.core.verdict import Allow, Block, Decision, Halt, Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.verdict import Outcome

_MOST_WORDS = 100_000  # characters of one prompt
_CAP_OF_ONE = 2  # the host overrides the second block, without telling us of that stop
_MOST_COMPARED = 20_000  # characters of a reason by which failures are compared
_ALLOW = Allow()


class _Tally:
    """The answers that count, sorted by kind, each in declared order."""

    def __init__(self) -> None:
        self.halts: list[Halt] = []
        self.blocks: list[tuple[Gate, Block]] = []
        self.broken: list[str] = []  # gates with a problem that does not block
        self.would_block: list[str] = []  # gates that only observe
        self.unseen: list[str] = []  # those of them that gave no answer
        self.not_run: list[str] = []
        self.extend = 0
        self.warnings: list[str] = []

    def add(self, gate: Gate, answer: Block | Halt | Problem | None) -> None:
        """Count an answer other than Allow, of a gate that does not only observe."""
        if isinstance(answer, Block):
            self.extend = max(self.extend, answer.extend)
            self.blocks.append((gate, answer))
        elif isinstance(answer, Halt):
            self.halts.append(answer)
        elif isinstance(answer, Problem):
            self.broken.append(gate.name)
        else:
            self.not_run.append(gate.name)


def settle(plan: Plan, reports: Sequence[Report], tree: str = "") -> Decision:
    """Settle the reports, in whatever order they came, into one decision.

    `tree` is the fingerprint of the files as they are now; empty when it is not known.
    """
    return settle_and_cut(plan, reports, tree)[0]


def settle_and_cut(
    plan: Plan, reports: Sequence[Report], tree: str = ""
) -> tuple[Decision, Sequence[str]]:
    """Return the decision, and the gates whose output is too long for the agent's prompt."""
    ordered = _ordered(plan, reports)
    if plan.event.scope == "subagent":
        event = plan.event
        ordered = tuple([_with_match(*one, event) for one in zip(ordered, plan.gates, strict=True)])
    tally = _count(plan.gates, ordered)
    repeat_key = _repeat_key(plan, tally, tree)
    verdict, outcome, why = _verdict(plan, tally, ordered, repeat_key)
    cut: Sequence[str] = ()
    if outcome == "blocked":
        repeats = _repeats(plan, repeat_key)
        verdict, cut = _sent_back(plan, tally, ordered, repeats, can_be_stuck=bool(repeat_key))
    warnings = plan.warnings
    if tally.warnings or tally.extend > plan.limit.number:
        warnings = (*warnings, *tally.warnings, *_clipped(plan, tally.extend))
    settled = {
        "verdict": verdict,
        "outcome": outcome,
        "reports": ordered,
        "turn": plan.history.turn,
        "count": plan.history.blocks + (outcome == "blocked"),
        "limit": plan.limit.number,
        "limit_source": plan.limit.source,
        "extend": tally.extend,
        "why": why,
        "repeat_key": repeat_key,
        "overridden": 0,  # the ledger knows
        "warnings": warnings,
        "stop": 0,  # as the ledger numbers it
        "subagents": (),
        "unchanged": (),
        "sent_back_by": _sent_back_by(plan, ordered, outcome),
    }
    return made(Decision, settled), cut


def _ordered(plan: Plan, reports: Sequence[Report]) -> tuple[Report, ...]:
    """Return a report for each gate, in declared order."""
    by_gate = {report.gate: report for report in reports}
    ordered = []
    for gate in plan.gates:
        report = by_gate.get(gate.name)
        if report is None or isinstance(report.answer, Problem):
            report = _completed(plan, gate, report)
        ordered.append(report)
    return tuple(ordered)


def _completed(plan: Plan, gate: Gate, report: Report | None) -> Report:
    """Return the report on a gate that was skipped, did not run, or had a problem."""
    if report is None:
        why = plan.unchanged.get(gate.name, "")
        answer = _ALLOW if why else None
        return Report(gate=gate.name, answer=answer, observed=gate.observe, spared=why)
    return replace(report, held=True) if blocks(gate, report) else report


def _with_match(report: Report, gate: Gate, event: StopEvent) -> Report:
    """Add which of the agent's names made the gate apply (D2)."""
    if gate.match.agents == EVERY_AGENT:
        return report

    return replace(report, matched=fits(gate.match.kind, gate.match.agents, event))


def _count(gates: tuple[Gate, ...], reports: tuple[Report, ...]) -> _Tally:
    tally = _Tally()
    for gate, report in zip(gates, reports, strict=True):
        answer = report.answer
        if report.warning:
            tally.warnings.append(f"gate {gate.name}: {report.warning}")
        if isinstance(answer, Allow):  # as most say
            if answer.extend > tally.extend and not gate.observe:
                tally.extend = answer.extend
            continue
        if isinstance(answer, Problem):
            tally.warnings.append(f"gate {gate.name} {answer} ({_consequence(gate, answer)})")
            answer = counted(gate, answer, report)
        if not gate.observe:
            tally.add(gate, answer)
        elif isinstance(answer, Block | Halt):
            tally.would_block.append(gate.name)
        else:
            tally.unseen.append(gate.name)
    return tally


def _consequence(gate: Gate, problem: Problem) -> str:
    if gate.observe:
        return "only observed"
    if problem.is_ours or (problem.kind == "unreachable" and not gate.unreachable_blocks):
        return "does not block"
    return f"if_broken = {gate.if_broken}"


def _verdict(
    plan: Plan, tally: _Tally, reports: tuple[Report, ...], repeat_key: str
) -> tuple[Allow | Block | Halt, Outcome, str]:
    """Return the verdict, its outcome and the reason; a Block has no words yet."""
    if plan.skipped:
        return _ALLOW, "skipped", plan.skipped
    if tally.halts:
        reason = joined([halt.reason for halt in tally.halts if halt.reason.strip()])
        return Halt(reason), "halted", reason
    if (
        plan.unchanged
        and not plan.unchecked
        and all(report.spared == "unchanged" for report in reports)
    ):
        return _ALLOW, "skipped", "unchanged"  # no gate ran, and none has passed (N1)
    if not tally.blocks:
        return _ALLOW, *_outcome_of_allow(plan, tally)
    names = listed([gate.name for gate, _ in tally.blocks])
    if plan.at_limit:
        return (
            _ALLOW,
            "capped",
            f"{names} still failing; {_used(plan)}",
        )
    repeats = _repeats(plan, repeat_key)
    if repeat_key and repeats >= plan.limits.stuck_after:
        return _ALLOW, "stuck", f"{names} failed {repeats} times with no file changed"
    return tally.blocks[0][1], "blocked", names


def _sent_back(
    plan: Plan,
    tally: _Tally,
    reports: tuple[Report, ...],
    repeats: int,
    *,
    can_be_stuck: bool,
) -> tuple[Block, Sequence[str]]:
    """Return the verdict with the words of all gates that block, and whose output is cut."""
    by_gate = {report.gate: report for report in reports}
    back = SendBack(
        blocks=tuple((gate, block, by_gate[gate.name]) for gate, block in tally.blocks),
        reports=reports,
        is_subagent=plan.event.scope == "subagent",
        count=plan.history.blocks + 1,
        limit=plan.limit.number,
        limit_source=plan.limit.source,
        is_same=repeats > 1,
        is_stuck_next=can_be_stuck and repeats + 1 >= plan.limits.stuck_after,
        host=plan.event.host,
        is_asked_once=plan.event.host_cap == _CAP_OF_ONE,
        forgets_answers=plan.event.forgets_answers,
        task=plan.event.task or "",
        fixed=_fixed(plan, by_gate),
    )
    prompt, cut = compose(back)
    reason = joined([block.because for _, block in tally.blocks])
    words, reason = bounded(prompt, _MOST_WORDS), bounded(reason, _MOST_WORDS)
    return Block(prompt=words, reason=reason, extend=tally.extend), cut


def _fixed(plan: Plan, by_gate: Mapping[str, Report]) -> tuple[str, ...]:
    """Return what the `fix` of each gate that passed changed: the agent knows older files."""
    fixing = (g for g in plan.gates if isinstance(g.check, Command) and "fix" in g.check.options)
    reports = (by_gate[gate.name] for gate in fixing if gate.name in by_gate)
    return tuple(
        f"{report.gate}: {report.answer.note}"
        for report in reports
        if isinstance(report.answer, Allow) and report.answer.note and not report.spared
    )


def _sent_back_by(
    plan: Plan, reports: tuple[Report, ...], outcome: Outcome
) -> tuple[tuple[str, str], ...]:
    """Return the gates that sent the agent back, now or before, and have not passed since."""
    is_blocked = outcome == "blocked"
    if outcome == "passed" or not (is_blocked or plan.history.sent_back_by):
        return ()
    found = dict.fromkeys(plan.history.sent_back_by)
    for gate, report in zip(plan.gates, reports, strict=True):
        one = (gate.name, file_of(gate))
        if isinstance(report.answer, Allow):
            found.pop(one, None)
        elif is_blocked and blocks(gate, report):
            found[one] = None
    return tuple(found)


def _repeats(plan: Plan, repeat_key: str) -> int:
    """Return how many stops in a row failed alike, this one included."""
    is_same = repeat_key and repeat_key == plan.history.repeat_key
    return plan.history.repeats + 1 if is_same else 1


def _outcome_of_allow(plan: Plan, tally: _Tally) -> tuple[Outcome, str]:
    if plan.handed_back and any(gate.native for gate in plan.gates):
        return "handed_back", "the agent handed the matter to its user"
    if plan.at_limit and tally.not_run:
        return (
            "capped",
            f"{listed(tally.not_run)} not run; {_used(plan)}",
        )
    silent = tally.broken + tally.not_run
    if not silent and all(gate.observe for gate in plan.gates):  # then no gate has passed
        silent = tally.unseen
    missing = [f"{listed(silent)} gave no answer"] if silent else []
    if missing or plan.unchecked:
        return "failed_open", "; ".join((*missing, *plan.unchecked))
    if tally.would_block:
        return "observed", f"{listed(tally.would_block)} would have blocked"
    return "passed", ""


def _used(plan: Plan) -> str:
    return used(plan.limits, plan.history, plan.limit)


def _repeat_key(plan: Plan, tally: _Tally, tree: str) -> str:
    """Return a key that is equal for equal failures on the same files; empty if unknown (B6)."""
    if not tree or not tally.blocks or plan.at_limit or not plan.limits.stuck_after:
        return ""
    if not all(gate.native for gate, _ in tally.blocks):
        return ""
    from zlib import crc32

    text = joined([block.because for _, block in tally.blocks])
    words = masked(bounded(text, _MOST_COMPARED))
    names = "\n".join(gate.name for gate, _ in tally.blocks)
    same = crc32(f"{names}\n\n{words}".encode("utf-8", "replace"))
    return f"{same:08x}-{len(words)}-{tree}"


def _clipped(plan: Plan, extend: int) -> list[str]:
    if extend <= plan.limit.number:
        return []
    wished = replace(plan.history, extend=extend)
    limit = limit_in_force(plan.limits, wished, plan.event.host_cap)
    if limit.number >= extend:
        return []
    return [f"a gate asked for a limit of {extend}; it stays at {limit.number} ({limit.source})"]
