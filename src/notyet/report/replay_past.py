"""The stops to be replayed, turn by turn: each with those before it, which it depends on."""

from __future__ import annotations

from notyet.core.limits import History
from notyet.ledger.counted import Counted, counted, decided
from notyet.ledger.past import Wish, stops, these
from notyet.report.replay import Then

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.ledger.past import Past
    from notyet.ledger.sqlite import Ledger

_MOST_BEFORE = 50  # stops of a turn that are read although nobody wants to see them


def chosen(ledger: Ledger, wish: Wish, numbers: Sequence[int] = ()) -> list[Past]:
    """Return the stops that somebody wants replayed, the oldest first."""
    found = these(ledger, sorted(set(numbers))) if numbers else stops(ledger, wish)
    return sorted(found, key=lambda past: past.id)


def turns(ledger: Ledger, pasts: Sequence[Past]) -> list[list[Then]]:
    """Return the turns that these stops are in, each from its beginning, as far as it is known."""
    counts = counted(ledger, [past.id for past in pasts])
    groups: dict[tuple[int, int], list[Past]] = {}
    for past in pasts:
        known = counts.get(past.id)
        # One that was let go before it was counted belongs to no turn.
        key = (known.agent, known.turn) if known is not None and known.turn else (0, -past.id)
        groups.setdefault(key, []).append(past)
    before = _before(counts, groups)
    earlier = {past.id: past for past in these(ledger, sorted(before))}
    for number, key in before.items():
        if number in earlier:
            groups[key].append(earlier[number])
    return [
        [
            Then(past=past, counted=counts.get(past.id) or _uncounted(past))
            for past in sorted(group, key=lambda past: past.id)
        ]
        for group in groups.values()
    ]


def programs(ledger: Ledger, pasts: Sequence[Past]) -> dict[str, tuple[str, str]]:
    """Return who supervised the tasks of these stops, and which agents they are."""
    from notyet.ledger.tasks import Tasks

    tasks = Tasks(ledger)
    views = [
        view
        for task in dict.fromkeys(past.task for past in pasts if past.task)
        for view in tasks.views(task)
    ]
    return {view.task.id: (view.program, view.agent) for view in views}


def _before(
    counts: dict[int, Counted], groups: dict[tuple[int, int], list[Past]]
) -> dict[int, tuple[int, int]]:
    """Return the stops that lie before the last one of a turn, and are not there; and its turn."""
    last = {key: max(past.id for past in group) for key, group in groups.items()}
    there = {past.id for group in groups.values() for past in group}
    found: dict[tuple[int, int], list[int]] = {}
    for known in counts.values():
        key = (known.agent, known.turn)
        if key in last and known.stop < last[key] and known.stop not in there:
            found.setdefault(key, []).append(known.stop)
    return {
        number: key for key, numbers in found.items() for number in sorted(numbers)[-_MOST_BEFORE:]
    }


def _uncounted(past: Past) -> Counted:
    return Counted(
        stop=past.id,
        agent=0,
        turn=0,
        outcome=decided(past.outcome, past.why),
        history=History(turn=1),
    )
