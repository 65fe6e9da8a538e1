"""With which files an agent begins: a gate need not be asked as long as they stay so (N1)."""

from __future__ import annotations

from time import monotonic

from notyet.checks.drive import Call
from notyet.core.event import stop_of
from notyet.core.plan import select
from notyet.dependence import files_of, scope_key
from notyet.remembering import may_be_spared, trees_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.checks.drive import Line
    from notyet.core.event import StartEvent
    from notyet.core.gate import Gate
    from notyet.ledger import AnyLedger

_LEAST_LEFT = 0.2  # seconds for the ledger, where looking took all the time
_GOES_ON = frozenset({"compact", "resume"})  # starts of sessions that began before


def remember_start(
    event: StartEvent, gates: Sequence[Gate], ledger: AnyLedger, patience: float
) -> Line[None]:
    """Remember with which files an agent begins, within a time. Raises LedgerError."""
    ends = monotonic() + patience
    trees = yield from begun_with(event, gates, patience)
    if trees:
        left = max(_LEAST_LEFT, ends - monotonic())
        yield Call(ledger.remember_start, (event, trees, left))


def begun_with(event: StartEvent, gates: Sequence[Gate], patience: float) -> Line[dict[str, str]]:
    """Look at the files that an agent begins with; return fingerprints by scope.

    Nothing where that is not to be remembered: a session that goes on began before.
    """
    if not event.session_id.strip() or (event.scope == "agent" and event.source in _GOES_ON):
        return {}
    asked = [gate for gate in gates if may_be_spared(gate)]
    if event.scope == "subagent":  # other gates may be there for those that the session starts
        asked = [*select(stop_of(event), asked)]
    files = {gate.name: files_of(gate, event) for gate in asked}
    trees = yield from trees_of(files, patience)
    return {scope_key(files[name]): tree for name, tree in trees.items()}  # unknown ones too
