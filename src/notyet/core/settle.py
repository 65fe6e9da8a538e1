"""`settle`: what the answers of all gates come to."""

from __future__ import annotations

from itertools import repeat

from notyet.core.gate import EVERY_AGENT, fits
from notyet.core.limits import limit_in_force
from notyet.core.record import replace
from notyet.core.text import bounded, joined, listed, masked
from notyet.core.verdict import Allow, Block, Decision, Halt, Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.message import Held
    from notyet.core.plan import Plan
    from notyet.core.verdict import Answer, Outcome


_HOLDING = (Block, Halt)
_NOT_RUN = ("not started", "lost")  # how a command ended that was kept from answering
_MOST_WORDS = 100_000  # characters that an agent is told at once
_MOST_COMPARED = 20_000  # characters of a reason that tell whether a failure is the same


class _Tally:
    """The answers that count, sorted by kind, each in declared order."""

    __slots__ = (
        "blocks",
        "broken",
        "extend",
        "halts",
        "not_asked",
        "unseen",
        "warnings",
        "would_block",
    )

    def __init__(self) -> None:
        self.halts: list[Halt] = []
        self.blocks: list[tuple[Gate, Block]] = []
        self.broken: list[str] = []  # gates that could not answer and are let through
        self.would_block: list[str] = []  # gates that only observe
        self.unseen: list[str] = []  # those of them that gave no answer
        self.not_asked: list[str] = []
        self.extend = 0
        self.warnings: list[str] = []

    def add(self, gate: Gate, answer: Answer | None) -> None:
        """Count the answer of a gate that does not only observe."""
        if isinstance(answer, Allow):
            self.extend = max(self.extend, answer.extend)
        elif isinstance(answer, Block):
            self.extend = max(self.extend, answer.extend)
            self.blocks.append((gate, answer))
        elif isinstance(answer, Halt):
            self.halts.append(answer)
        elif isinstance(answer, Problem):
            self.broken.append(gate.name)
        else:
            self.not_asked.append(gate.name)


def settle(plan: Plan, reports: Sequence[Report], tree: str = "") -> Decision:
    """Settle the reports, in whatever order they came, into one decision.

    `tree` is the fingerprint of the files as they are now; empty when it is not known.
    """
    ordered = _ordered(plan, reports)
    if plan.event.scope == "subagent":
        ordered = tuple(map(_with_match, ordered, plan.gates, repeat(plan.event)))
    tally = _count(plan.gates, ordered)
    repeat_key = _repeat_key(plan, tally, tree)
    verdict, outcome, why = _verdict(plan, tally, repeat_key, ordered)
    return Decision(
        verdict=verdict,
        outcome=outcome,
        reports=ordered,
        turn=plan.history.turn,
        count=plan.history.blocks + (outcome == "blocked"),
        limit=plan.limit.number,
        limit_source=plan.limit.source,
        extend=tally.extend,
        why=why,
        repeat_key=repeat_key,
        warnings=(*plan.warnings, *tally.warnings, *_clipped(plan, tally.extend)),
    )


def too_long(plan: Plan, reports: Sequence[Report], tree: str = "") -> tuple[str, ...]:
    """Return the gates of whose output an agent that is held would read only a part."""
    from notyet.core.message import left_out

    ordered = _ordered(plan, reports)
    tally = _count(plan.gates, ordered)
    return left_out(_held(plan, tally, _repeats(plan, _repeat_key(plan, tally, tree)), ordered))


def _ordered(plan: Plan, reports: Sequence[Report]) -> tuple[Report, ...]:
    """Return a report for each gate, in declared order."""
    by_gate = {report.gate: report for report in reports}
    return tuple([_completed(plan, gate, by_gate.get(gate.name)) for gate in plan.gates])


def _completed(plan: Plan, gate: Gate, report: Report | None) -> Report:
    if gate.name in plan.spared:
        why = plan.spared[gate.name]
        return Report(gate=gate.name, answer=Allow(), observed=gate.observe, spared=why)
    if report is None:
        return Report(gate=gate.name, observed=gate.observe)
    if isinstance(report.answer, Problem) and holds(gate, report):
        return replace(report, held=True)
    return report


def _with_match(report: Report, gate: Gate, event: StopEvent) -> Report:
    """Add which of the agent's names made the gate apply (D2)."""
    if gate.match.agents == EVERY_AGENT:
        return report
    return replace(report, matched=fits(gate.match.kind, gate.match.agents, event))


def holds(gate: Gate, report: Report) -> bool:
    """Tell whether a report ends the questioning (A2)."""
    answer = report.answer
    if isinstance(answer, Allow) or gate.observe:
        return False
    if isinstance(answer, Problem):
        answer = _counted(gate, answer, report)
    return isinstance(answer, _HOLDING)


def needs_tree(plan: Plan, stage: Sequence[Gate], reports: Sequence[Report]) -> bool:
    """Tell whether a stage that holds the agent may be stuck; to know costs a `git status`."""
    if plan.at_limit or not plan.limits.stuck_after:
        return False
    return all(
        gate.native for gate, report in zip(stage, reports, strict=True) if holds(gate, report)
    )


def _counted(gate: Gate, problem: Problem, report: Report) -> Block | Problem:
    """Return what a problem counts as: a gate's `if_broken` may make it a Block (A6)."""
    if gate.observe or gate.if_broken == "allow" or problem.kind == "deadline":
        return problem
    # What only a person should do, such as to vouch for a host key, the user is told.
    needs_user = report.exit in _NOT_RUN and bool(report.tell_user)
    then = "Only your user can mend that." if needs_user else "Mend that first."
    return Block(f"The gate {gate.name} could not be asked ({problem}). {then}")


def _count(gates: tuple[Gate, ...], reports: tuple[Report, ...]) -> _Tally:
    tally = _Tally()
    for gate, report in zip(gates, reports, strict=True):
        answer = report.answer
        if report.warning:
            tally.warnings.append(f"gate {gate.name}: {report.warning}")
        if isinstance(answer, Problem):
            then = "only observed" if gate.observe else f"if_broken = {gate.if_broken}"
            if answer.kind == "deadline" and not gate.observe:
                then = "it holds nobody"
            tally.warnings.append(f"gate {gate.name} {answer} ({then})")
            answer = _counted(gate, answer, report)
        if not gate.observe:
            tally.add(gate, answer)
        elif isinstance(answer, _HOLDING):
            tally.would_block.append(gate.name)
        elif not isinstance(answer, Allow):
            tally.unseen.append(gate.name)
    return tally


def _verdict(
    plan: Plan, tally: _Tally, repeat_key: str, reports: tuple[Report, ...]
) -> tuple[Allow | Block | Halt, Outcome, str]:
    if plan.skipped:
        return Allow(), "skipped", plan.skipped
    if tally.halts:
        reason = joined([halt.reason for halt in tally.halts if halt.reason.strip()])
        return Halt(reason), "halted", reason
    if reports and all(report.spared == "unchanged" for report in reports):
        return Allow(), "skipped", "unchanged"  # nobody was asked, and nobody has passed (N1)
    if not tally.blocks:
        return Allow(), *_outcome_of_allow(plan, tally)
    names = listed([gate.name for gate, _ in tally.blocks])
    if plan.at_limit:
        return Allow(), "capped", f"{names} still blocks; {_used(plan)}"
    repeats = _repeats(plan, repeat_key)
    if repeat_key and repeats >= plan.limits.stuck_after:
        return Allow(), "stuck", f"{names} failed {repeats} times alike, and no file changed"
    from notyet.core.message import compose  # most stops end without a word

    verdict = Block(
        prompt=bounded(compose(_held(plan, tally, repeats, reports)), _MOST_WORDS),
        reason=bounded(joined([block.because for _, block in tally.blocks]), _MOST_WORDS),
        extend=tally.extend,
    )
    return verdict, "blocked", names


def _repeats(plan: Plan, repeat_key: str) -> int:
    """Return how many stops in a row failed alike, this one included."""
    is_same = repeat_key and repeat_key == plan.history.repeat_key
    return plan.history.repeats + 1 if is_same else 1


def _held(plan: Plan, tally: _Tally, repeats: int, reports: tuple[Report, ...]) -> Held:
    from notyet.core.message import Held

    by_gate = {report.gate: report for report in reports}
    return Held(
        blocks=tuple((gate, block, by_gate[gate.name]) for gate, block in tally.blocks),
        reports=reports,
        is_subagent=plan.event.scope == "subagent",
        count=plan.history.blocks + 1,
        limit=plan.limit.number,
        is_same=repeats > 1,
        host=plan.event.host,
    )


def _outcome_of_allow(plan: Plan, tally: _Tally) -> tuple[Outcome, str]:
    if plan.handed_back and any(gate.native for gate in plan.gates):
        return "handed_back", "the agent handed the matter to its user"
    if plan.at_limit and tally.not_asked:
        return "capped", f"{listed(tally.not_asked)} not asked; {_used(plan)}"
    if tally.broken or tally.not_asked:
        return "failed_open", f"{listed(tally.broken + tally.not_asked)} gave no answer"
    if tally.unseen and all(gate.observe for gate in plan.gates):  # then nobody has passed
        return "failed_open", f"{listed(tally.unseen)} gave no answer"
    if tally.would_block:
        return "observed", f"{listed(tally.would_block)} would have blocked"
    return "passed", ""


def _used(plan: Plan) -> str:
    return f"{plan.history.blocks} of {plan.limit.number} send-backs used ({plan.limit.source})"


def _repeat_key(plan: Plan, tally: _Tally, tree: str) -> str:
    """Return what stays equal while nothing moves; empty where we cannot tell (B6)."""
    if not tree or not tally.blocks or plan.at_limit or not plan.limits.stuck_after:
        return ""
    if not all(gate.native for gate, _ in tally.blocks):
        return ""
    from zlib import crc32

    said = joined([block.because for _, block in tally.blocks])
    words = masked(bounded(said, _MOST_COMPARED))
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
