"""What a ledger promises about turns and counts, and small builders for all its promises."""

from __future__ import annotations

import os

from notyet.core.event import StopEvent
from notyet.core.limits import History, after, open_turn, within_limit
from notyet.core.record import replace
from notyet.core.verdict import OUTCOMES, Allow, Block, Decision
from notyet.errors import LedgerError
from notyet.testing.promises import Promise, at_once, expect, into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from notyet.ledger import AnyLedger, Begun

ODD_TEXTS = ("lone \ud800", "x" * 100_000, "nul \x00", "'; DROP TABLE stops", "ünï ✓\n")
_DECIDED = tuple(outcome for outcome in OUTCOMES if outcome != "overridden")

COUNTS: list[Promise] = []
_promise = into(COUNTS)


def stop(message: str = "", **fields: Any) -> StopEvent:
    return StopEvent(**({"session_id": "s1", "last_message": message} | fields))


def decision(begun: Begun, outcome: str = "blocked", **fields: Any) -> Decision:
    verdict = Block("go on", "why") if outcome == "blocked" else Allow()
    known = {"verdict": verdict, "outcome": outcome, "turn": begun.history.turn}
    return Decision(**(known | {"limit": 999, "count": 1, "why": "tests"} | fields))


def decide(ledger: AnyLedger, event: StopEvent, outcome: str = "blocked", **fields: Any) -> Begun:
    begun = ledger.begin(event)
    expect(f"what the stop {event.last_message!r} repeats", begun.repeats, 0)
    ledger.record(begun, decision(begun, outcome, **fields))
    return begun


def look(ledger: AnyLedger, **fields: Any) -> History:
    """Read a history through a stop that repeats no other, and leave nothing asked."""
    begun = ledger.begin(stop(f"look {os.urandom(8).hex()}", **fields))
    ledger.give_up(begun)
    return begun.history


def refuses(what: str, call: Callable[..., object], *args: object) -> None:
    try:
        returned = call(*args)
    except LedgerError:
        return
    raise AssertionError(f"{what} returned {returned!r}, and did not raise LedgerError")


@_promise("every stop has a number of its own, from 1 up")
def _numbers(ledger: AnyLedger) -> None:
    events = [stop("one"), stop("two"), stop("one", session_id="s2")]
    begun = [ledger.begin(event) for event in events]
    expect("what they repeat", [each.repeats for each in begun], [0, 0, 0])
    numbers = [each.stop for each in begun]
    expect("different numbers", len({n for n in numbers if n > 0}), 3)


@_promise("a new turn id opens a turn, a known one never does (B4)")
def _turn_ids(ledger: AnyLedger) -> None:
    turns = [decide(ledger, stop(f"{n}", turn_id=t)).history.turn for n, t in enumerate("aabac")]
    expect("the turns", turns, [1, 1, 2, 2, 3])
    for name in "defgh":
        decide(ledger, stop(turn_id=name))
    expect("the turn, when the eighth last id comes back", look(ledger, turn_id="a").turn, 8)


@_promise("without an id, a flag that is false opens a turn, and nothing else does (B4)")
def _flags(ledger: AnyLedger) -> None:
    flags = (False, True, None, False, None)
    stops = [stop(f"{n}", stop_hook_active=flag) for n, flag in enumerate(flags)]
    expect("the turns", [decide(ledger, s).history.turn for s in stops], [1, 1, 1, 2, 2])


@_promise("any text can be an id (B4)")
def _odd_ids(ledger: AnyLedger) -> None:
    for odd in ODD_TEXTS:
        fields = {"session_id": odd, "agent_id": odd, "host": odd, "turn_id": odd}
        turns = [decide(ledger, stop(f"{n}", **fields)).history.turn for n in range(2)]
        expect(f"the turns named {odd[:30]!r}", turns, [1, 1])
        expect(f"the count of {odd[:30]!r}", look(ledger, **fields).blocks, 2)
        other = fields | {"turn_id": odd + "x"}
        expect(f"the turn after {odd[:30]!r}", look(ledger, **other).turn, 2)
        other = fields | {"session_id": odd + "x"}
        expect(f"the count of a longer {odd[:30]!r}", look(ledger, **other).blocks, 0)


@_promise("agents are kept apart by host, session and id (B1)")
def _apart(ledger: AnyLedger) -> None:
    agents: list[dict[str, Any]] = [{}, {"host": "h"}, {"session_id": "s2"}, {"agent_id": "a"}]
    for agent in agents:
        decide(ledger, stop(**agent))
    expect("their counts", [look(ledger, **agent).blocks for agent in agents], [1, 1, 1, 1])


@_promise("a send-back is counted when `record` returns (B3)")
def _counted(ledger: AnyLedger) -> None:
    expect("the first count", decide(ledger, stop("0")).history.blocks, 0)
    for n in range(1, 4):
        (seen,) = at_once([lambda: look(ledger)])  # from another thread
        expect("the counts", (seen.blocks, seen.session_blocks, seen.blocked), (n, n, True))
        decide(ledger, stop(f"{n}"))


@_promise("a pass refills the count of its turn, never that of the session (B4, B13)")
def _refill(ledger: AnyLedger) -> None:
    for outcome in _DECIDED:
        agent = {"session_id": outcome}
        decide(ledger, stop("one", **agent))
        decide(ledger, stop("two", **agent), outcome)
        seen = look(ledger, **agent)
        blocks = {"blocked": 2, "passed": 0, "observed": 0}.get(outcome, 1)
        session_blocks = 2 if outcome == "blocked" else 1
        counts = (seen.blocks, seen.session_blocks, seen.blocked)
        wanted = (blocks, session_blocks, outcome == "blocked")
        expect(f"the counts after a stop that is {outcome}", counts, wanted)


@_promise("an extended limit is kept, never lowered, until the next turn (B2)")
def _extend(ledger: AnyLedger) -> None:
    decide(ledger, stop("one", turn_id="a"), extend=9)
    decide(ledger, stop("two", turn_id="a"), "passed", extend=4)
    expect("the limit", look(ledger, turn_id="a").extend, 9)
    expect("the limit of the next turn", look(ledger, turn_id="b").extend, 0)


@_promise("failures that are alike are counted, one after another (B6)")
def _alike(ledger: AnyLedger) -> None:
    for n, (key, repeats) in enumerate((("k", 1), ("k", 2), ("m", 1), ("", 0))):
        decide(ledger, stop(f"{n}"), repeat_key=key)
        seen = look(ledger)
        expect("how often, and what", (seen.repeats, seen.repeat_key), (repeats, key))


@_promise("a new turn after a block begins afresh (B11)")
def _new_turn(ledger: AnyLedger) -> None:
    event = stop("same", turn_id="a", stop_hook_active=False)
    decide(ledger, event, extend=9, repeat_key="k")
    new = ledger.begin(replace(event, turn_id="b"))
    expect("what it repeats", new.repeats, 0)
    wanted = History(turn=2, turn_ids=("a", "b"), session_blocks=1)
    expect("its history", new.history, wanted)


@_promise("a late decision of an older turn spends the session's budget only (B1, B13)")
def _late(ledger: AnyLedger) -> None:
    asked = (stop("one", turn_id="a"), stop("two", turn_id="a"), stop(turn_id="b"))
    early, late, new = [ledger.begin(event) for event in asked]
    for begun in (early, new, late):
        ledger.record(begun, decision(begun))
    seen = look(ledger, turn_id="b")
    expect("the counts", (seen.turn, seen.blocks, seen.session_blocks), (2, 1, 3))


@_promise("stops at the same time never use more than the limit together (B1)")
def _limit(ledger: AnyLedger) -> None:
    begun = [ledger.begin(stop(f"{n}")) for n in range(6)]
    final = [ledger.record(each, decision(each, limit=3)) for each in begun]
    expect("the outcomes", [each.outcome for each in final], ["blocked"] * 3 + ["capped"] * 3)
    expect("the counts", [each.count for each in final], [1, 2, 3, 3, 3, 3])
    expect("the last verdict", final[-1].verdict, Allow())
    expect("the count kept", look(ledger).blocks, 3)


@_promise("stops of all turns stay below the session's ceiling, and 0 is none (B13)")
def _ceiling(ledger: AnyLedger) -> None:
    for ceiling, blocked in ((2, 2), (0, 4)):
        agent = {"session_id": f"ceiling {ceiling}"}
        begun = [ledger.begin(stop(turn_id=f"t{n}", **agent)) for n in range(4)]
        final = [ledger.record(each, decision(each), ceiling) for each in begun]
        wanted = ["blocked"] * blocked + ["capped"] * (4 - blocked)
        expect(f"the outcomes below {ceiling}", [each.outcome for each in final], wanted)
        expect("the count kept", look(ledger, **agent).session_blocks, blocked)


@_promise("histories move as `open_turn` and `after` say, decisions as `within_limit` says (B)")
def _model(ledger: AnyLedger) -> None:
    known = {"s1": History(), "s2": History()}
    for n in range(120):
        session = f"s{1 + n % 2}"
        event = stop(f"{n}", session_id=session, turn_id=f"t{n // 9}")
        wanted = open_turn(known[session], event)
        begun = ledger.begin(event)
        expect(f"the history at stop {n}", begun.history, wanted)
        outcome = "blocked" if n % 5 else _DECIDED[n // 5 % len(_DECIDED)]
        fields = {"limit": 3, "extend": n % 7, "repeat_key": "k" * (n % 3 > 0)}
        proposed = decision(begun, outcome, **fields)
        final = within_limit(wanted, proposed, 30)
        got = ledger.record(begun, proposed, 30)
        expect(f"the decision of stop {n}", replace(got, warnings=()), final)
        known[session] = after(wanted, final)
