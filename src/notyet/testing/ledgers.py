"""`ledger_conformance`: does a ledger of your own keep what the engine relies on?

    def test_my_ledger():
        ledger_conformance(MyLedger)

It needs no test framework. All that is broken is told at once, with the ids of the rules.
"""

from __future__ import annotations

from functools import partial

from notyet.ledger import Begun
from notyet.testing.ledger_answers import ANSWERS
from notyet.testing.ledger_counts import COUNTS, decide, decision, look, refuses, stop
from notyet.testing.ledger_passes import PASSES, PASSES_IF_DURABLE, passed, start, wanted
from notyet.testing.promises import Promise, at_once, check_all, expect, into, later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from notyet.ledger import AnyLedger

    L = TypeVar("L", bound=AnyLedger)
    Reopen = Callable[[AnyLedger], AnyLedger]

__all__ = ["ledger_conformance"]

_DURABLE: list[Promise] = []
_UNUSABLE: list[Promise] = []
_promise_if_durable = into(_DURABLE)
_promise_if_unusable = into(_UNUSABLE)


def ledger_conformance(
    make_ledger: Callable[[], L],
    reopen: Callable[[L], AnyLedger] | None = None,
    unusable: Callable[[], AnyLedger] | None = None,
) -> None:
    """Raise one AssertionError that lists every promise of `AnyLedger` this ledger breaks.

    `make_ledger` returns a fresh, empty ledger at each call. `reopen`, for ledgers that outlive
    their process, returns a second one with the memory of the given one, which stays in use.
    `unusable` returns a ledger whose storage cannot be reached.
    """

    def proof(promise: Promise, make: Callable[[], Any], *more: object) -> Callable[[], None]:
        return lambda: promise.keeps(make(), *more)

    proofs = [(each.says, proof(each, make_ledger)) for each in (*COUNTS, *ANSWERS, *PASSES)]
    if reopen is not None:
        durable = (*_DURABLE, *PASSES_IF_DURABLE)
        proofs += [(each.says, proof(each, make_ledger, reopen)) for each in durable]
    if unusable is not None:
        proofs += [(each.says, proof(each, unusable)) for each in _UNUSABLE]
    check_all("the ledger", proofs)


@_promise_if_durable("what `record` returned is there for whoever opens the ledger next (B3)")
def _survives(ledger: AnyLedger, reopen: Reopen) -> None:
    decide(ledger, stop("one", turn_id="a"), extend=9, repeat_key="k")
    expect("the turn", decide(reopen(ledger), stop(turn_id="b")).history.turn, 2)
    decide(ledger, stop("two", turn_id="b"), extend=8, repeat_key="m")
    again = reopen(ledger)
    expect("the history", look(again, turn_id="a"), look(ledger, turn_id="a"))
    seen = look(again, turn_id="b")
    expect("the counts", (seen.turn, seen.blocks, seen.session_blocks, seen.extend), (2, 2, 3, 8))
    expect("the last failure", (seen.blocked, seen.repeats, seen.repeat_key), (True, 1, "m"))


@_promise_if_durable("an equal stop elsewhere waits for the first answer and repeats it (B12)")
def _repeats_elsewhere(ledger: AnyLedger, reopen: Reopen) -> None:
    again = reopen(ledger)
    event = stop("same", stop_hook_active=False)
    first = ledger.begin(event)
    expect("what it repeats", again.begin(event).repeats, first.stop)
    wanted = decision(first)
    jobs = [lambda: again.answer(first.stop, 5.0), later(ledger.record, first, wanted)]
    expect("the answer", at_once(jobs)[0], wanted)
    expect("what it repeats later", reopen(ledger).begin(event).repeats, first.stop)


@_promise_if_durable("ledgers that share a memory lose no count and no limit (B1, B3)")
def _shared(ledger: AnyLedger, reopen: Reopen) -> None:
    def work(name: int, used: AnyLedger) -> list[str]:
        outcomes: list[str] = []
        for n in range(10):
            begun = used.begin(stop(f"{name} {n}"))
            outcomes.append(used.record(begun, decision(begun, limit=25)).outcome)
        return outcomes

    ledgers = [ledger, reopen(ledger), reopen(ledger)]
    outcomes = at_once([partial(work, *numbered) for numbered in enumerate(ledgers)])
    expect("how many were sent back", sum(each.count("blocked") for each in outcomes), 25)
    expect("the count", look(reopen(ledger)).blocks, 25)


@_promise_if_unusable("a ledger that cannot be used raises LedgerError, and nothing else")
def _raises(ledger: AnyLedger) -> None:
    begun = Begun(stop=1)
    refuses("begin", ledger.begin, stop())
    refuses("record", ledger.record, begun, decision(begun))
    refuses("skip", ledger.skip, stop(), decision(begun, "skipped"))
    refuses("give_up", ledger.give_up, begun)
    refuses("answer", ledger.answer, 1, 0.0)
    refuses("recall", ledger.recall, stop(), [wanted()])
    refuses("remember", ledger.remember, [passed()])
    refuses("remember_start", ledger.remember_start, start(), {"s": "t1"})
