"""Which gates would be asked now, and which be spared because nothing changed (N1)."""

from __future__ import annotations

import os

from notyet.core.definition import definition_of
from notyet.core.gate import place_of
from notyet.core.record import Record
from notyet.engine.unchanged import files_of, scope_key, trees_of
from notyet.errors import LedgerError
from notyet.git.look import PATIENCE
from notyet.ledger.passes import Wanted
from notyet.run.drive import drive_sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.ledger.stops import Ledger

_WHEN = "SELECT at, stop FROM passes WHERE definition = ? AND tree = ?"
_EVER = "SELECT 1 FROM passes WHERE definition = ? LIMIT 1"
# Not that it never passed: a failure takes back a pass on the same files.
_NOT_REMEMBERED = "no pass of it is remembered"
_OTHER_FILES = "it passed on other files than these"
_UNKNOWN = "nobody can tell whether its files changed"
_ELSEWHERE = "its files are on another machine, which was not asked whether they changed"


class Spared(Record, kw_only=True):
    """Why a gate is not asked (`cause` is "passed" or "unchanged"), or why it is after all."""

    cause: str = ""
    because: str
    at: float = 0.0  # when it passed
    stop: int = 0  # by which stop; 0: by hand


def spared_now(
    event: StopEvent, gates: Sequence[Gate], ledger: Ledger, damage: str = ""
) -> dict[str, Spared]:
    """Look at the files, and say of each gate whether it would be asked.

    No gate is run, and no other machine is connected to. Of a ledger with a `damage` nothing is
    recalled: a stop sets it aside.
    """
    changed = [gate for gate in gates if gate.when == "changed"]
    known = {gate.name: Spared(because="it is asked always") for gate in gates}
    wanted = _wanted(event, [gate for gate in changed if not _is_there(gate, event)])
    for gate in changed:
        known[gate.name] = Spared(because=_ELSEWHERE if _is_there(gate, event) else _UNKNOWN)
    if not os.path.exists(ledger.path):
        return known | {one.gate: Spared(because=_NOT_REMEMBERED) for one in wanted}
    if damage:
        return known | {one.gate: Spared(because=damage) for one in wanted}
    try:
        recalled = ledger.recall(event, wanted)
        for one in wanted:
            known[one.gate] = _found(one, recalled, ledger)
    except LedgerError as error:
        return known | {one.gate: Spared(because=str(error)) for one in wanted}
    return known


def _is_there(gate: Gate, event: StopEvent) -> bool:
    """Tell whether files on another machine count for a gate."""
    return bool(event.workspace) or place_of(gate) is not None


def _wanted(event: StopEvent, gates: Sequence[Gate]) -> list[Wanted]:
    """Return what the ledger is asked: by which files, as they are now."""
    files = {gate.name: files_of(gate, event) for gate in gates}
    trees = drive_sync(trees_of(files, PATIENCE)) if files else {}
    return [
        Wanted(
            gate=gate.name,
            definition=definition_of(gate),
            scope=scope_key(files[gate.name]),
            tree=trees[gate.name],
        )
        for gate in gates
        if trees[gate.name]
    ]


def _found(one: Wanted, recalled: Mapping[str, str], ledger: Ledger) -> Spared:
    cause = recalled.get(one.gate, "")
    if cause == "unchanged":
        return Spared(cause=cause, because="no file changed since the agent began")
    if cause:
        key = (one.definition, one.tree)
        row = ledger.file.read(lambda db: db.execute(_WHEN, key).fetchone())
        at, stop = row or (0.0, 0)
        return Spared(cause=cause, because="it passed on these very files", at=at, stop=stop)
    if ledger.file.read(lambda db: db.execute(_EVER, (one.definition,)).fetchone()):
        return Spared(because=_OTHER_FILES)
    return Spared(because=_NOT_REMEMBERED)
