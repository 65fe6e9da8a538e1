"""`notyet log --stats`: gate by gate, is it worth its seconds?"""

from __future__ import annotations

import sys

from notyet.cli.lines import in_a_line, json_line
from notyet.cli.moments import age, exactly
from notyet.cli.style import Style
from notyet.cli.table import table
from notyet.core.record import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.ledger.past import Wish
    from notyet.ledger.past_stats import GateStats, Stats
    from notyet.ledger.sqlite import Ledger

_HEAD = (
    "GATE", "ASKED", "SPARED", "BLOCKED", "BROKEN", "P50", "P95", "IN ALL", "MENDED",
    "WORTH IT?",
)  # fmt: skip
_FEW = 10  # answers, below which a share says little
_FEW_BLOCKS = 5
_OFTEN = 0.5  # of the blocks led to a pass
_BROKEN = 0.2  # of the questions could not be answered
_SLOW = 30.0  # seconds


def show_stats(ledger: Ledger, wish: Wish, *, as_json: bool) -> int:
    """Print what the stops that are meant come to."""
    from notyet.ledger.past_stats import stats

    found = stats(ledger, wish)
    if as_json:
        for gate in found.gates:
            print(json_line({"kind": "gate", **as_dict(gate), "verdict": verdict(gate)}))
        print(json_line({"kind": "stops", **_totals(found)}))
        return 0
    where = f" in {in_a_line(wish.place, 200)}" if wish.place else ""
    if not found.stops:
        print(f"no stops{where} to count{'; everywhere: add --all' if where else ''}")
        return 0
    style = Style(sys.stdout)
    for line in table(_HEAD, [_row(gate) for gate in found.gates], style, right=_HEAD[1:8]):
        print(line)
    if not found.gates:
        print("no gate was asked")
    print()
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in found.outcomes.items())
    stops = "1 stop" if found.stops == 1 else f"{found.stops:,} stops"
    print(f"{stops}{where}: {outcomes}")
    print(f"from {exactly(found.first_at)} to {exactly(found.last_at)}")
    if not found.is_all:
        print(f"only the newest {found.stops:,} were counted; choose others with --until")
    return 0


def _totals(found: Stats) -> dict[str, object]:
    known = as_dict(found)
    del known["gates"]
    return known


def _row(gate: GateStats) -> tuple[str, ...]:
    return (
        gate.gate,
        str(gate.asked),
        str(gate.spared),
        str(gate.blocked),
        str(gate.problems),
        age(gate.p50) if gate.asked else "-",
        age(gate.p95) if gate.asked else "-",
        age(gate.seconds),
        _led_to_pass(gate),
        verdict(gate),
    )


def _led_to_pass(gate: GateStats) -> str:
    if not gate.sent_back:
        return "-"
    share = f"{gate.led_to_pass}/{gate.sent_back}"
    if gate.sent_back < _FEW_BLOCKS:  # a percentage would say more than is known
        return share
    return f"{share} ({100 * gate.led_to_pass / gate.sent_back:.0f}%)"


def verdict(gate: GateStats) -> str:
    """Say in plain words whether a gate is worth its seconds, as far as the numbers carry."""
    asked = gate.asked
    if not asked:
        return "never asked: nothing changed" if gate.spared else "never asked"
    if asked < _FEW:
        return f"too early to say: asked {asked} times" if asked > 1 else "too early: asked once"
    if gate.problems / asked >= _BROKEN:
        return f"broken in {100 * gate.problems / asked:.0f}% of its questions: look at it"
    cost = f"{age(gate.p50)} each"
    if gate.observed and not gate.blocked:
        return f"only watches; would have blocked {gate.observed} times"
    if not gate.blocked:
        if gate.p50 >= _SLOW:
            return f"never blocked, and costs {cost}: is it needed at every stop?"
        return f"never blocked, costs {cost}"
    if not gate.sent_back:
        return "blocked, but never sent anybody back: see limits"
    each = age(gate.seconds / gate.blocked)
    if gate.sent_back < _FEW_BLOCKS:
        return f"few blocks so far; one per {each} of asking"
    if gate.led_to_pass / gate.sent_back >= _OFTEN:
        return f"yes: its blocks are mended, one per {each} of asking"
    return "its blocks are rarely mended in the same turn: is its message clear?"
