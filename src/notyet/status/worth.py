"""Whether a gate is worth its time, in words, for `notyet log --stats` and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.times import age

if TYPE_CHECKING:
    from notyet.ledger.stats import GateStats

FEW = 10  # answers, below which a share says little
FEW_BLOCKS = 5
_OFTEN = 0.5  # of the blocks led to a pass
_BROKEN = 0.2  # of the runs gave no answer
_SLOW = 30.0  # seconds


def verdict(gate: GateStats, *, never: str = "never blocked") -> str:
    """Return in plain words whether a gate is worth its time, as far as the numbers say.

    `never` is said of a gate whose numbers have no block.
    """
    asked = gate.asked
    if not asked:
        return "never run: nothing changed" if gate.spared else "never run"
    if asked < FEW:
        return f"too early to say: run {asked} times" if asked > 1 else "too early: run once"
    if gate.problems / asked >= _BROKEN:
        return f"broken in {100 * gate.problems / asked:.0f}% of its runs: look at it"
    cost = f"costs {age(gate.p50)} each"
    if gate.watches:
        times = f"{gate.stopped} times" if gate.stopped != 1 else "once"
        return f"only observes; would have {_stopped(gate)} {times}, {cost}"
    if gate.stopped or gate.held:
        return _worth(gate)
    slow = gate.p50 >= _SLOW
    return f"{never}, {f'and {cost}: is it needed at every stop?' if slow else cost}"


def _worth(gate: GateStats) -> str:
    """Return what came of the blocks of a gate."""
    each = age(gate.seconds / (gate.stopped + gate.held))
    if not gate.sent_back:
        if gate.halted:
            return f"{_stopped(gate)}, once per {each} of running"
        return "blocked, but never sent an agent back: see limits"
    if gate.sent_back < FEW_BLOCKS:
        return f"few blocks so far; one per {each} of running"
    if gate.led_to_pass / gate.sent_back >= _OFTEN:
        return f"yes: its blocks are fixed, one per {each} of running"
    return "its blocks are rarely fixed in the same turn: is its message clear?"


def _stopped(gate: GateStats) -> str:
    if not gate.halted:
        return "blocked"
    return "blocked or ended the turn" if gate.blocked else "ended the turn"
