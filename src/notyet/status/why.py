"""`notyet status --why`: for one stop, which gates would run, and why the others would not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.core.event import child_key
from notyet.core.gate import EVERY_AGENT, definition_of, place_of, why_not
from notyet.core.limits import History, Limits, open_turn
from notyet.core.matcher import fits
from notyet.core.plan import HANDED_BACK, plan, select
from notyet.engine.unchanged import files_of, scope_key, trees_of
from notyet.errors import LedgerError
from notyet.git.fingerprint import PATIENCE
from notyet.ledger.counts import preview_begin
from notyet.ledger.passes import Wanted
from notyet.run.drive import drive_sync
from notyet.status.overview import DEFAULT, limits_here

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.config.load import Setup
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.ledger.stops import Ledger

_OWN_WORK = "the agent is one of the host's own"
_BACKGROUND = "other agents of the session are running (wait_for_background)"
_PASSED_AT = "SELECT at, stop FROM passes WHERE definition = ? AND tree = ?"
_EVER_PASSED = "SELECT 1 FROM passes WHERE definition = ? LIMIT 1"
# Not "it never passed": a failure removes the pass on the same files.
_NEVER = "no pass of it is remembered"
_UNKNOWN = "it is unknown whether its files changed"
_ELSEWHERE = "its files are on another machine, which was not connected to"


@dataclass(frozen=True, kw_only=True)
class Unchanged:
    """Why a gate is skipped (`cause` is "passed" or "unchanged"), or why it runs after all."""

    cause: str = ""
    because: str
    at: float = 0.0  # when it passed
    stop: int = 0  # at which stop; 0: by hand


@dataclass(frozen=True, kw_only=True)
class GateWhy:
    """One gate, and whether it would run."""

    gate: str
    file: str = ""
    line: int = 0
    applies: bool
    because: str
    asked: bool = False
    spared: Unchanged | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether it would be skipped because its files did not change."""
        return self.spared is not None and bool(self.spared.cause)


@dataclass(frozen=True, kw_only=True)
class Why:
    """What a stop would meet."""

    host: str
    scope: str
    session_id: str
    agent: str  # empty for a main agent
    gates: tuple[GateWhy, ...]
    cause: str = ""  # why no gate runs, as the ledger would record it
    skipped: str = ""  # the same in words
    used: int | None = 0  # send-backs in this turn; None: unknown
    limit: int = 0
    limit_source: str = ""  # the setting, and where it is set
    warnings: tuple[str, ...] = ()


def explained(
    event: StopEvent,
    setup: Setup,
    history: History | None,
    environ: Mapping[str, str],
    unchanged: Mapping[str, Unchanged],
    *,
    allowed: tuple[str, str] = ("", ""),
) -> Why:
    """Return for every gate in force why it applies, or why not.

    `allowed` is the cause for which the hook would not get to the gates, and its words. Without a
    history it is unknown.
    """
    known = open_turn(History(), event) if history is None else history
    gates = select(event, setup.gates)
    planned = plan(event, gates, known, Limits(**setup.limits), setup.gates)
    cause, words = allowed if allowed[0] else _skipped(event, planned)
    return Why(
        host=event.host,
        scope=event.scope,
        session_id=event.session_id,
        agent=child_key(event) if event.scope == "subagent" else "",
        gates=tuple(_gate(gate, planned, words, unchanged) for gate in setup.gates),
        cause=cause,
        skipped=words,
        used=None if history is None else history.blocks,
        limit=planned.limit.number,
        limit_source=_source(planned.limit.source, setup, environ),
        warnings=planned.warnings,
    )


def _gate(gate: Gate, planned: Plan, skipped: str, unchanged: Mapping[str, Unchanged]) -> GateWhy:
    event = planned.event
    because = _OWN_WORK if event.internal else why_not(gate, event)
    left_out = "" if because else _left_out(gate, planned, skipped)
    found = None if because or left_out else unchanged.get(gate.name)
    return GateWhy(
        gate=gate.name,
        file=gate.source.file if gate.source is not None else "",
        line=gate.source.line if gate.source is not None else 0,
        applies=not because,
        because=because or left_out or _matched(gate, event),
        asked=not because and not left_out and not (found and found.cause),
        spared=found,
    )


def _left_out(gate: Gate, planned: Plan, skipped: str) -> str:
    """Return why a gate that applies does not run, files aside; empty if it does."""
    if skipped or any(gate in stage for stage in planned.stages):
        return skipped
    if planned.handed_back and gate.native:
        return f"the agent hands back (it says {HANDED_BACK})"
    return f"the agent used all its send-backs ({planned.limit.number})"


def _matched(gate: Gate, event: StopEvent) -> str:
    if event.scope == "agent":
        return "it is for the main agent"
    if gate.match.agents == EVERY_AGENT:
        return "it is for every subagent"
    return fits(gate.match.kind, gate.match.agents, event)


def _skipped(event: StopEvent, planned: Plan) -> tuple[str, str]:
    if event.internal:
        return "no-gate", _OWN_WORK
    if not planned.gates:
        return "no-gate", "no gate applies"
    return (planned.skipped, _BACKGROUND) if planned.skipped else ("", "")


def _source(source: str, setup: Setup, environ: Mapping[str, str]) -> str:
    """Return the setting that a limit comes from, and where it is set."""
    name = source.split(maxsplit=1)[0]
    where = {one["name"]: one["source"] for one in limits_here(setup, environ)}.get(name, "")
    return f"{source}, {'by default' if where == DEFAULT else where}" if where else source


def history_now(ledger: Ledger, event: StopEvent) -> History:
    """Return the history in which this stop would happen. Raises LedgerError."""
    path = ledger.path
    # A stop that is creating the ledger leaves an empty file for a moment.
    if os.path.isdir(path) or (os.path.exists(path) and os.path.getsize(path) > 0):
        return preview_begin(ledger, event).history
    return open_turn(History(), event)


def unchanged_now(
    event: StopEvent, gates: Sequence[Gate], ledger: Ledger, damage: str = ""
) -> dict[str, Unchanged]:
    """Return for each gate whether its files changed (N1); run none, and connect to no machine.

    A ledger with a `damage` is not read: the next stop sets it aside.
    """
    known = {gate.name: Unchanged(because="it runs always") for gate in gates}
    local = []
    for gate in gates:
        if gate.when == "changed":
            is_remote = bool(event.workspace) or place_of(gate) is not None
            known[gate.name] = Unchanged(because=_ELSEWHERE if is_remote else _UNKNOWN)
            local += [] if is_remote else [gate]
    wanted = _wanted(event, local)
    if damage or not os.path.exists(ledger.path):
        return known | {one.gate: Unchanged(because=damage or _NEVER) for one in wanted}
    try:
        recalled = ledger.recall(event, wanted)
        return known | {one.gate: _recalled(one, recalled, ledger) for one in wanted}
    except LedgerError as error:
        return known | {one.gate: Unchanged(because=str(error)) for one in wanted}


def _wanted(event: StopEvent, gates: Sequence[Gate]) -> list[Wanted]:
    """Return the keys of passes on the files as they are now."""
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


def _recalled(one: Wanted, recalled: Mapping[str, str], ledger: Ledger) -> Unchanged:
    cause = recalled.get(one.gate, "")
    if cause == "unchanged":
        return Unchanged(cause=cause, because="no file changed since the agent began")
    key = (one.definition, one.tree)
    if cause:
        row = ledger.connection.read(lambda db: db.execute(_PASSED_AT, key).fetchone())
        at, stop = row or (0.0, 0)
        return Unchanged(cause=cause, because="it passed on these very files", at=at, stop=stop)
    ever = ledger.connection.read(lambda db: db.execute(_EVER_PASSED, key[:1]).fetchone())
    return Unchanged(because="it passed on other files" if ever else _NEVER)
