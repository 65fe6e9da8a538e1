"""`settle`: what the reports of all gates come to, as one decision."""

from __future__ import annotations

from notyet.core.gate import EVERY_AGENT
from notyet.core.limits import limit_in_force
from notyet.core.message import SendBack, compose, left_out
from notyet.core.record import made, replace
from notyet.core.text import bounded, joined, listed, masked
from notyet.core.verdict import Allow, Block, Decision, Halt, Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.verdict import Outcome

    Blocks = Sequence[tuple[Gate, Block]]  # who blocks, in declared order

_MOST_WORDS = 100_000  # characters that an agent is told at once
_MOST_COMPARED = 20_000  # characters of a reason by which failures are compared


def _sent_back(
    plan: Plan, blocks: Blocks, reports: tuple[Report, ...], *, repeats: int, extend: int
) -> Block:
    """Return the verdict that sends an agent back, with the words of all gates that block."""
    return Block(
        prompt=bounded(compose(_send_back(plan, blocks, reports, repeats)), _MOST_WORDS),
        reason=bounded(joined([block.because for _, block in blocks]), _MOST_WORDS),
        extend=extend,
    )


def _send_back(plan: Plan, blocks: Blocks, reports: tuple[Report, ...], repeats: int) -> SendBack:
    by_gate = {report.gate: report for report in reports}
    return SendBack(
        blocks=tuple((gate, block, by_gate[gate.name]) for gate, block in blocks),
        reports=reports,
        is_subagent=plan.event.scope == "subagent",
        count=plan.history.blocks + 1,
        limit=plan.limit.number,
        is_same=repeats > 1,
        host=plan.event.host,
    )


_ALLOW = Allow()
_BLOCKING = (Block, Halt)
_NOT_RUN = ("not started", "lost")  # how a command ended that was kept from answering


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
        self.broken: list[str] = []  # gates with a problem that does not block
        self.would_block: list[str] = []  # gates that only observe
        self.unseen: list[str] = []  # those of them that gave no answer
        self.not_asked: list[str] = []
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
            self.not_asked.append(gate.name)


def settle(plan: Plan, reports: Sequence[Report], tree: str = "") -> Decision:
    """Settle the reports, in whatever order they came, into one decision.

    `tree` is the fingerprint of the files as they are now; empty when it is not known.
    """
    ordered = _ordered(plan, reports)
    if plan.event.scope == "subagent":
        event = plan.event
        ordered = tuple([_with_match(*one, event) for one in zip(ordered, plan.gates, strict=True)])
    tally = _count(plan.gates, ordered)
    repeat_key = _repeat_key(plan, tally, tree)
    verdict, outcome, why = _verdict(plan, tally, repeat_key, ordered)
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
    }
    return made(Decision, settled)


def too_long(plan: Plan, reports: Sequence[Report], tree: str = "") -> tuple[str, ...]:
    """Return the gates whose output does not fit into the prompt, if the agent is sent back."""
    ordered = _ordered(plan, reports)
    tally = _count(plan.gates, ordered)
    repeat_key = _repeat_key(plan, tally, tree)
    if not _sends_back(plan, tally, repeat_key):
        return ()
    return left_out(_send_back(plan, tally.blocks, ordered, _repeats(plan, repeat_key)))


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
    from notyet.core.matcher import fits

    return replace(report, matched=fits(gate.match.kind, gate.match.agents, event))


def blocks(gate: Gate, report: Report) -> bool:
    """Return True if a report keeps the gates after it from running (A2)."""
    answer = report.answer
    if isinstance(answer, Allow) or gate.observe:
        return False
    if isinstance(answer, Problem):
        answer = _counted(gate, answer, report)
    return isinstance(answer, _BLOCKING)


def needs_tree(plan: Plan, stage: Sequence[Gate], reports: Sequence[Report]) -> bool:
    """Return True if the agent may be stuck on this stage; to know costs a `git status`."""
    if plan.at_limit or not plan.limits.stuck_after:
        return False
    return all(
        gate.native for gate, report in zip(stage, reports, strict=True) if blocks(gate, report)
    )


def _counted(gate: Gate, problem: Problem, report: Report) -> Block | Problem:
    """Return what a problem counts as: a gate's `if_broken` may make it a Block (A6)."""
    if gate.observe or gate.if_broken == "allow" or problem.kind == "deadline":
        return problem
    # What only a person should do, such as to vouch for a host key, the user is told.
    needs_user = report.exit in _NOT_RUN and bool(report.tell_user)
    then = "Only your user can fix that." if needs_user else "Fix that first."
    return Block(f"The gate {gate.name} could not run ({problem}). {then}")


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
            answer = _counted(gate, answer, report)
        if not gate.observe:
            tally.add(gate, answer)
        elif isinstance(answer, _BLOCKING):
            tally.would_block.append(gate.name)
        else:
            tally.unseen.append(gate.name)
    return tally


def _consequence(gate: Gate, problem: Problem) -> str:
    if gate.observe:
        return "only observed"
    return "it holds nobody" if problem.kind == "deadline" else f"if_broken = {gate.if_broken}"


def _verdict(
    plan: Plan, tally: _Tally, repeat_key: str, reports: tuple[Report, ...]
) -> tuple[Allow | Block | Halt, Outcome, str]:
    if plan.skipped:
        return _ALLOW, "skipped", plan.skipped
    if tally.halts:
        reason = joined([halt.reason for halt in tally.halts if halt.reason.strip()])
        return Halt(reason), "halted", reason
    if plan.unchanged and all(report.spared == "unchanged" for report in reports):
        return _ALLOW, "skipped", "unchanged"  # no gate ran, and none has passed (N1)
    if not tally.blocks:
        return _ALLOW, *_outcome_of_allow(plan, tally)
    names = listed([gate.name for gate, _ in tally.blocks])
    if plan.at_limit:
        return _ALLOW, "capped", f"{names} still blocks; {_used(plan)}"
    repeats = _repeats(plan, repeat_key)
    if repeat_key and repeats >= plan.limits.stuck_after:
        return _ALLOW, "stuck", f"{names} failed {repeats} times with no file changed"
    verdict = _sent_back(plan, tally.blocks, reports, repeats=repeats, extend=tally.extend)
    return verdict, "blocked", names


def _sends_back(plan: Plan, tally: _Tally, repeat_key: str) -> bool:
    """Return True if the agent is sent back, and not let through by a limit."""
    if plan.skipped or plan.at_limit or tally.halts or not tally.blocks:
        return False
    return not (repeat_key and _repeats(plan, repeat_key) >= plan.limits.stuck_after)


def _repeats(plan: Plan, repeat_key: str) -> int:
    """Return how many stops in a row failed alike, this one included."""
    is_same = repeat_key and repeat_key == plan.history.repeat_key
    return plan.history.repeats + 1 if is_same else 1


def _outcome_of_allow(plan: Plan, tally: _Tally) -> tuple[Outcome, str]:
    if plan.handed_back and any(gate.native for gate in plan.gates):
        return "handed_back", "the agent handed the matter to its user"
    if plan.at_limit and tally.not_asked:
        return "capped", f"{listed(tally.not_asked)} not asked; {_used(plan)}"
    if tally.broken or tally.not_asked:
        return "failed_open", f"{listed(tally.broken + tally.not_asked)} gave no answer"
    if tally.unseen and all(gate.observe for gate in plan.gates):  # then no gate has passed
        return "failed_open", f"{listed(tally.unseen)} gave no answer"
    if tally.would_block:
        return "observed", f"{listed(tally.would_block)} would have blocked"
    return "passed", ""


def _used(plan: Plan) -> str:
    return f"{plan.history.blocks} of {plan.limit.number} send-backs used ({plan.limit.source})"


def _repeat_key(plan: Plan, tally: _Tally, tree: str) -> str:
    """Return a key that is equal for equal failures on the same files; empty if unknown (B6)."""
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
