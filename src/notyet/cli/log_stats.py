"""`notyet log --stats`: gate by gate, is it worth its seconds?"""

from __future__ import annotations

import sys

from notyet.cli.lines import in_a_line, json_line
from notyet.cli.log_list import elsewhere
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
    "GATE", "ASKED", "SPARED", "BLOCKED", "HALTED", "BROKEN", "P50", "P95", "IN ALL", "MENDED",
    "WORTH IT?",
)  # fmt: skip
_WATCHING = "WATCHING"  # instead of GATE
_LEFT = (_HEAD[0], _WATCHING, *_HEAD[-2:])
_EACH = (False, True)
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
        print(f"no stops{where} to count{f'; {elsewhere(ledger)}' if where else ''}")
        return 0
    style = Style(sys.stdout)
    for gates in ([gate for gate in found.gates if gate.watches is watch] for watch in _EACH):
        for line in _table(gates, style):
            print(line)
    if not found.gates:
        print("no gate was asked\n")
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


def _table(gates: list[GateStats], style: Style) -> list[str]:
    """Return the table of some gates, and a line to set it off; without what none of them has."""
    if not gates:
        return []
    left_out = set() if any(gate.halted for gate in gates) else {"HALTED"}
    head = {name: name for name in _HEAD}
    if gates[0].watches:
        head |= {"GATE": _WATCHING, "BLOCKED": "WOULD BLOCK", "HALTED": "WOULD HALT"}
        left_out.add("MENDED")
    shown = [at for at, name in enumerate(_HEAD) if name not in left_out]
    names = [head[_HEAD[at]] for at in shown]
    rows = [[_row(gate)[at] for at in shown] for gate in gates]
    right = [name for name in names if name not in _LEFT]
    return [*table(names, rows, style, right=right), ""]


def _row(gate: GateStats) -> tuple[str, ...]:
    return (
        gate.gate,
        str(gate.asked),
        str(gate.spared),
        str(gate.blocked),
        str(gate.halted),
        _broken(gate),
        age(gate.p50) if gate.asked else "-",
        age(gate.p95) if gate.asked else "-",
        age(gate.seconds),
        _led_to_pass(gate),
        verdict(gate),
    )


def _broken(gate: GateStats) -> str:
    if gate.watches or not gate.problems:
        return str(gate.problems)
    parts = ((gate.held, "held"), (gate.failed_open, "let go"))
    return ", ".join(f"{count} {word}" for count, word in parts if count)


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
    cost = f"costs {age(gate.p50)} each"
    if gate.watches:
        times = f"{gate.stopped} times" if gate.stopped != 1 else "once"
        return f"only watches; would have {_stopped_by(gate)} {times}, {cost}"
    if gate.stopped or gate.held:
        return _worth(gate)
    if gate.p50 >= _SLOW:
        return f"never blocked, and {cost}: is it needed at every stop?"
    return f"never blocked, {cost}"


def _worth(gate: GateStats) -> str:
    """Say what came of it that a gate kept agents from finishing."""
    each = age(gate.seconds / (gate.stopped + gate.held))
    if not gate.sent_back:
        if gate.halted:
            return f"{_stopped_by(gate)}, once per {each} of asking"
        return "blocked, but never sent anybody back: see limits"
    if gate.sent_back < _FEW_BLOCKS:
        return f"few blocks so far; one per {each} of asking"
    if gate.led_to_pass / gate.sent_back >= _OFTEN:
        return f"yes: its blocks are mended, one per {each} of asking"
    return "its blocks are rarely mended in the same turn: is its message clear?"


def _stopped_by(gate: GateStats) -> str:
    if not gate.halted:
        return "blocked"
    return "blocked or ended the turn" if gate.blocked else "ended the turn"
