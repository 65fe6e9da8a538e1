"""What an agent is told that is sent back, and whether it is stuck: most stops need none of it."""

from __future__ import annotations

from notyet.core.masked import masked
from notyet.core.message import Held, compose, left_out
from notyet.core.text import bounded, joined
from notyet.core.verdict import Block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.verdict import Report

    Blocks = Sequence[tuple[Gate, Block]]  # who blocks, in declared order

_MOST_WORDS = 100_000  # characters that an agent is told at once
_MOST_COMPARED = 20_000  # characters of a reason that tell whether a failure is the same


def sent_back(
    plan: Plan, blocks: Blocks, reports: tuple[Report, ...], *, repeats: int, extend: int
) -> Block:
    """Return the verdict that sends an agent back, with the words of all who block."""
    return Block(
        prompt=bounded(compose(_held(plan, blocks, reports, repeats)), _MOST_WORDS),
        reason=bounded(joined([block.because for _, block in blocks]), _MOST_WORDS),
        extend=extend,
    )


def cut_short(
    plan: Plan, blocks: Blocks, reports: tuple[Report, ...], repeats: int
) -> tuple[str, ...]:
    """Return the gates of whose output an agent that is held would read only a part."""
    return left_out(_held(plan, blocks, reports, repeats))


def _held(plan: Plan, blocks: Blocks, reports: tuple[Report, ...], repeats: int) -> Held:
    by_gate = {report.gate: report for report in reports}
    return Held(
        blocks=tuple((gate, block, by_gate[gate.name]) for gate, block in blocks),
        reports=reports,
        is_subagent=plan.event.scope == "subagent",
        count=plan.history.blocks + 1,
        limit=plan.limit.number,
        is_same=repeats > 1,
        host=plan.event.host,
    )


def repeat_key_of(plan: Plan, blocks: Blocks, tree: str) -> str:
    """Return what stays equal while nothing moves; empty where we cannot tell (B6)."""
    if plan.at_limit or not plan.limits.stuck_after:
        return ""
    if not all(gate.native for gate, _ in blocks):
        return ""
    from zlib import crc32

    said = joined([block.because for _, block in blocks])
    words = masked(bounded(said, _MOST_COMPARED))
    names = "\n".join(gate.name for gate, _ in blocks)
    same = crc32(f"{names}\n\n{words}".encode("utf-8", "replace"))
    return f"{same:08x}-{len(words)}-{tree}"
